/* The reader of Parquet files. Only chunks of columns that are used are read, by all threads. A
 * portion is as many row groups as fit into a part of the memory, or one. */
#include "data/columnar/parquet.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "data/arrow/arrow_portions.h"
#include "data/arrow/pandas_index.h"
#include "data/bytes/descriptor.h"
#include "data/cells/readers.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const char magic[] = "PAR1", encrypted_magic[] = "PARE";

enum { MAGIC = 4, PLANNED = 32 };

typedef struct parquet {
    qn__portions base;
    const char *path;
    int file;
    uint64_t size;
    qn__pool *pool;
    qn__pile pile;
    qn__parquet_footer footer;
    uint64_t most;              /* bytes of a portion */
    size_t first, end, given;   /* row groups of this portion, and how many of it were handed out */
    qn__pile portion;           /* what it has */
    qn__parquet_thread *thread; /* and what each made for it */
    struct ArrowArray *part;    /* of each of its groups */
    atomic_size_t next;         /* of all its chunks, group by group */
    pthread_mutex_t lock;
    size_t failed;    /* the first chunk that failed; SIZE_MAX: none */
    qn_status status; /* of that one */
} parquet;

static qn_status refuse_at(const parquet *r, uint64_t at, const char *remedy) {
    qn__at(r->base.err, "%s, byte %llu", r->path, (unsigned long long)at);
    return qn__remedy(r->base.err, QN_INPUT, "%s", remedy);
}

static qn_status refuse_broken(const parquet *r, uint64_t at, const char *what) {
    qn__fail(r->base.err, QN_INPUT, "%s", what);
    return refuse_at(r, at, "copy the file, or write it again");
}

/* ------------------------------------------------------------------ the description */

static qn_status read_footer(parquet *r) {
    return qn__parquet_find_footer(r->file, r->size, r->path, &r->pile, &r->footer, r->base.err);
}

static qn_status make_schema(qn__portions *reader, struct ArrowSchema *out) {
    parquet *r = (parquet *)reader;
    const qn_status status = read_footer(r);
    if (status != QN_OK)
        return status;
    const size_t columns = r->footer.columns;
    r->base.columns = columns;
    qn__column_type *type = qn__pile_alloc(&r->pile, columns, sizeof *type, r->base.err);
    r->base.wanted = qn__pile_alloc(&r->pile, columns, 1, r->base.err);
    if (!type || !r->base.wanted)
        return QN_MEMORY;
    for (size_t i = 0; i < columns; i++) {
        type[i] = (qn__column_type){.name = r->footer.column[i].name,
                                    .format = r->footer.column[i].format,
                                    .words = r->footer.column[i].words,
                                    .extension = r->footer.column[i].extension};
        r->base.wanted[i] = 1;
    }
    const qn_status made = qn__parts_schema(&r->pile, type, columns, out, r->base.err);
    return made == QN_OK && r->footer.pandas
               ? qn__pandas_put(out, &r->pile, r->footer.pandas, r->footer.pandas_size, r->base.err)
               : made;
}

/* ------------------------------------------------------------------ chunks */

static qn_status refuse_column(const parquet *r, size_t column, uint64_t at, qn_status status,
                               qn_error *err) {
    if (status == QN_INPUT || status == QN_UNSUPPORTED)
        qn__at(err, "%s, byte %llu, column %zu, %.80s", r->path, (unsigned long long)at, column + 1,
               r->footer.column[column].name);
    return status;
}

/* Views of texts point into the bytes, so these stay with the pile. */
static qn_status decode(const parquet *r, size_t group, size_t column, qn__parquet_thread *thread,
                        qn_error *err) {
    const qn__parquet_column *c = &r->footer.column[column];
    const qn__parquet_chunk *chunk = &r->footer.chunk[group * r->footer.leaves + c->leaf];
    const int keep = c->type == QN__PARQUET_BYTES;
    size_t where = 0;
    if (chunk->elsewhere) {
        qn__fail(err, QN_INPUT, "the column is encrypted, or lies in another file");
        qn__remedy(err, QN_INPUT, "leave it out with `data.drop`");
        return refuse_column(r, column, chunk->begin, QN_INPUT, err);
    }
    uint8_t *bytes = keep ? qn__pile_alloc(&thread->pile, chunk->size, 1, err)
                          : qn__scratch_need(&thread->chunk, chunk->size, 1, err);
    if (!bytes)
        return QN_MEMORY;
    qn_status status =
        qn__descriptor_read_at(r->file, r->path, chunk->begin, bytes, (size_t)chunk->size, err);
    if (status == QN_OK) {
        status = qn__parquet_read_chunk(c, chunk, bytes, thread,
                                        r->part[group - r->first].children[column], &where, err);
        status = refuse_column(r, column, chunk->begin + where, status, err);
    }
    return status;
}

/* The error of the first chunk that failed is kept, whichever thread had it. */
static void note(parquet *r, size_t job, qn_status status, const qn_error *err) {
    pthread_mutex_lock(&r->lock);
    if (job < r->failed) {
        r->failed = job;
        r->status = status;
        if (r->base.err)
            *r->base.err = *err;
    }
    pthread_mutex_unlock(&r->lock);
}

/* Of an address: the next chunks are fetched while this one is decoded. */
static void plan_chunks(const parquet *r, size_t job, size_t jobs) {
    const qn__parquet_footer *f = &r->footer;
    for (size_t i = job; i < jobs && i < job + PLANNED; i++) {
        const qn__parquet_column *column = &f->column[i % f->columns];
        const size_t group = r->first + i / f->columns;
        const qn__parquet_chunk *chunk = &f->chunk[group * f->leaves + column->leaf];
        if (r->base.wanted[i % f->columns] && column->readable)
            qn__remote_plan(r->file, chunk->begin, chunk->size);
    }
}

static void decode_some(void *context, int thread) {
    parquet *r = context;
    const size_t columns = r->footer.columns, jobs = (r->end - r->first) * columns;
    for (;;) {
        qn_error err = {0};
        const size_t job = atomic_fetch_add(&r->next, 1), column = job % (columns ? columns : 1);
        if (job >= jobs)
            return;
        if (!r->base.wanted[column] || !r->footer.column[column].readable)
            continue;
        if (qn__remote_has(r->file))
            plan_chunks(r, job, jobs);
        const qn_status status =
            decode(r, r->first + job / columns, column, &r->thread[thread], &err);
        if (status == QN_OK)
            continue;
        note(r, job, status, &err);
        atomic_store(&r->next, jobs); /* those before this one have been taken */
    }
}

/* The memory that the columns of a row group take, unpacked or packed: an estimate, since a
 * description may lie. */
typedef struct group_size {
    double unpacked, packed, largest; /* `largest`: of the packed ones */
} group_size;

static group_size size_of_group(const parquet *r, size_t group) {
    const qn__parquet_footer *f = &r->footer;
    group_size m = {0};
    for (size_t c = 0; c < f->columns; c++) {
        const qn__parquet_column *column = &f->column[c];
        const qn__parquet_chunk *chunk = &f->chunk[group * f->leaves + column->leaf];
        if (!r->base.wanted[c] || !column->readable)
            continue;
        const double packed = (double)chunk->size;
        const double values = (double)(column->words ? chunk->values : f->rows[group]);
        m.unpacked += values * (column->width + column->decimal);
        m.unpacked += column->words ? 8 * (double)f->rows[group] : 0;
        m.unpacked += column->type == QN__PARQUET_BYTES ? (double)chunk->unpacked : 0;
        m.packed += packed;
        m.largest = packed > m.largest ? packed : m.largest;
    }
    return m;
}

static double bytes_of(const parquet *r, size_t group) {
    const group_size m = size_of_group(r, group);
    return m.unpacked + m.packed;
}

/* Whether the sizes that the description claims can be. */
static qn_status check_sizes(qn__portions *reader, uint64_t *items) {
    parquet *r = (parquet *)reader;
    const qn__parquet_footer *f = &r->footer;
    double rows = 0, bytes = 0, memory = 0;
    *items = 0;
    for (size_t g = 0; g < f->groups; g++) {
        rows += (double)f->rows[g];
        *items += (uint64_t)f->rows[g];
        memory += bytes_of(r, g);
        for (size_t c = 0; c < f->columns; c++)
            if (r->base.wanted[c] && f->column[c].readable)
                bytes += (double)f->chunk[g * f->leaves + f->column[c].leaf].size;
    }
    if (bytes > (double)r->size)
        return refuse_broken(r, 0, "the columns of the Parquet file overlap");
    r->most = qn__parts_portion(memory);
    return qn__parts_check_rows(rows, r->base.wanted, f->columns, r->size, r->path, r->base.err);
}

/* A row group whose columns have no values yet. */
static qn_status begin_group(parquet *r, size_t group, struct ArrowArray *part) {
    qn_status status =
        qn__parts_array(&r->portion, r->footer.columns, r->footer.rows[group], part, r->base.err);
    for (size_t c = 0; c < r->footer.columns && status == QN_OK; c++)
        if (r->footer.column[c].words)
            status = qn__parts_list(&r->portion, 0, part->children[c], r->base.err);
    return status;
}

static qn_status decode_portion(parquet *r) {
    double bytes = 0;
    for (r->end = r->first; r->end < r->footer.groups; r->end++) {
        bytes += bytes_of(r, r->end);
        if (r->end > r->first && bytes > (double)r->most)
            break;
    }
    const size_t groups = r->end - r->first;
    const group_size least = groups > 0 ? size_of_group(r, r->first) : (group_size){0};
    const double threads = qn__pool_threads(r->pool);
    qn_status status = qn__parts_check_memory(least.unpacked + threads * least.largest,
                                              "a row group", r->path, r->base.err);
    if (status != QN_OK)
        return status;
    r->part = qn__pile_alloc(&r->portion, groups, sizeof *r->part, r->base.err);
    if (!r->part)
        return QN_MEMORY;
    for (size_t g = 0; g < groups && status == QN_OK; g++)
        status = begin_group(r, r->first + g, &r->part[g]);
    if (status != QN_OK)
        return status;
    atomic_store(&r->next, 0);
    r->failed = SIZE_MAX;
    r->status = QN_OK;
    qn__pool_run(r->pool, decode_some, r);
    return r->status;
}

static void release_portion(parquet *r) {
    const int threads = qn__pool_threads(r->pool);
    for (int i = 0; i < threads; i++)
        qn__pile_release(&r->thread[i].pile);
    qn__pile_release(&r->portion);
    r->part = NULL;
    r->given = 0;
}

static void release_scratch(qn__parquet_thread *thread) {
    qn__scratch_release(&thread->chunk);
    qn__scratch_release(&thread->page);
    qn__scratch_release(&thread->dictionary);
    qn__scratch_release(&thread->numbers);
}

/* ------------------------------------------------------------------ the stream */

static qn_status next_part(qn__portions *reader, struct ArrowArray *out) {
    parquet *r = (parquet *)reader;
    const qn_status status = r->part ? QN_OK : decode_portion(r);
    if (status == QN_OK && r->given < r->end - r->first)
        *out = r->part[r->given++];
    return status;
}

static int more(qn__portions *reader) {
    parquet *r = (parquet *)reader;
    release_portion(r);
    r->first = r->end;
    return r->first < r->footer.groups;
}

static void release_parquet(qn__portions *reader) {
    parquet *r = (parquet *)reader;
    pthread_mutex_destroy(&r->lock);
    release_portion(r);
    for (int i = 0; i < qn__pool_threads(r->pool); i++)
        release_scratch(&r->thread[i]);
    qn__free(r->thread);
    qn__pile_release(&r->pile);
    qn__free(r);
}

static const qn__portions_table portions = {make_schema, check_sizes,     next_part,
                                            more,        release_parquet, "row groups"};

static qn_status open_parquet(qn__source *source, qn__pool *pool, qn__arrow_file *out,
                              qn_error *err) {
    const char *path = qn__source_path(source);
    const qn_status status = qn__parts_need_little_endian(path, err);
    parquet *r = status == QN_OK ? qn__alloc(1, sizeof *r, err) : NULL;
    if (!r)
        return status == QN_OK ? QN_MEMORY : status;
    *r = (parquet){.base = {.table = &portions, .err = err},
                   .path = path,
                   .file = qn__source_descriptor(source),
                   .size = qn__source_file_size(source),
                   .pool = pool};
    r->thread = qn__alloc((uint64_t)qn__pool_threads(pool), sizeof *r->thread, err);
    if (!r->thread) {
        qn__free(r);
        return QN_MEMORY;
    }
    pthread_mutex_init(&r->lock, NULL);
    qn__portions_stream(&r->base, path, pool, out);
    return QN_OK;
}

static qn_status read_parquet(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                              qn_data *data, qn_error *err) {
    return qn__arrow_read_files(files, open_parquet, options, pool, data, err);
}

static int probe_parquet(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    return size >= MAGIC &&
                   (memcmp(first, magic, MAGIC) == 0 || memcmp(first, encrypted_magic, MAGIC) == 0)
               ? QN__PROBE_MAGIC
               : QN__PROBE_NO;
}

const qn__reader qn__parquet_reader = {
    .name = QN__PLAIN_NAME("parquet"),
    .about = "Parquet",
    .endings = {"parquet"},
    .columns = 1,
    .typed = 1,
    .weights = 1,
    .quantities = 1,
    .labels_remedy = "name its column with `data.label_column`",
    .probe = probe_parquet,
    .read_parts = read_parquet,
    .describe = qn__parquet_describe,
};
