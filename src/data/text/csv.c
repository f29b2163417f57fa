/* The CSV reader: finds the shape of the table in the first lines, counts the lines, parses.
 *
 * The files of a table are read one after the other in each pass, by all threads. The text of one
 * is cut into blocks of 1 MiB; a block has the rows that begin in it. Threads count the rows of all
 * blocks, for a block that begins within quotes and for one that does not, so that each block knows
 * then how it begins and its first row (csv_quotes.h). Then they go through the blocks in
 * passes. Most tables are numbers: a pass parses bytes. If a cell is not a byte (digits alone, at
 * most 255), another pass parses float32. Where a cell is not a number, a pass counts what each
 * column holds (csv_survey.h), another one collects texts, and a last one parses by what was
 * decided. When several rows are wrong, the first of the file is reported. */
#include "data/text/csv.h"
#include "base/memory.h"
#include "data/cells/readers.h"
#include "data/cells/text_column.h"
#include "data/table/part_reading.h"
#include "data/table/rules.h"
#include "data/table/table_space.h"
#include "data/table/wide.h"
#include "data/text/csv_header.h"
#include "data/text/csv_notes.h"
#include "data/text/csv_parts.h"
#include "data/text/csv_quotes.h"
#include "data/text/csv_survey.h"
#include "data/text/csv_text.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BLOCK ((size_t)1 << 20)

/* A file of the table. */
typedef struct part {
    qn__csv_part lines;
    size_t block_count;
    uint64_t *first_row;  /* of each block, and after the last the number of rows */
    uint64_t *line_ends;  /* before each block */
    uint8_t *state;       /* at the beginning of each block, qn__csv_state */
    qn__csv_piece *piece; /* of each block, while rows are counted */
    uint64_t first_item;
} part;

typedef struct table {
    qn__part_files *files;
    qn__pool *pool;
    qn__csv_header *header;
    part *part;
    size_t parts;
    part *now; /* the file that is read, and its text; of one file it stays open */
    qn__source *source;
    qn__csv_text *text;
    qn__csv_line_space *line_space; /* of each thread */
    /* What a pass works on. */
    const char *(*take)(struct table *t, int thread, uint64_t item, const char *at, const char *end,
                        qn__row_failure *failure); /* a line; NULL: failed */
    const qn__row_shape *shape;
    qn__csv_survey *survey; /* NULL: all columns are taken for numbers */
    qn_data_type type;
    uint8_t *values;
    void *labels; /* int32_t or float, or NULL */
    float *weights;
    uint8_t *seen;         /* threads x features, qn__cell_seen; NULL: for bytes */
    uint64_t *wide_column; /* wide columns in the file */
    int64_t **wide;        /* where their values go */
    qn__text_list *list;   /* while texts are listed */
    qn_error *list_error;
    int list_failed; /* out of memory */
    uint32_t wides;
    atomic_size_t next;
    atomic_size_t failed;    /* the lowest block with an invalid row, or SIZE_MAX */
    pthread_mutex_t lock;    /* for failure */
    qn__row_failure failure; /* in the file `wrong` */
    const part *wrong;
    atomic_int short_of_memory;
} table;

/* The offset of the byte before a block, which shows whether a row begins with the block. */
static size_t before(size_t block) { return block * BLOCK - (block > 0); }

/* ------------------------------------------------------------------ files */

static qn_status open_part(table *t, size_t i, qn_error *err) {
    t->now = &t->part[i];
    if (t->text)
        return QN_OK;
    qn_status status = qn__part_files_open(t->files, i, &t->source, err);
    if (status != QN_OK)
        return status;
    status = qn__csv_text_open(t->source, qn__pool_threads(t->pool), &t->text, err);
    if (status != QN_OK) {
        status = qn__part_files_close(t->source, status, err);
        t->source = NULL;
    }
    return status;
}

/* Closes the file, which ended so. */
static qn_status close_part(table *t, qn_status status, qn_error *err) {
    if (!t->text)
        return status;
    if (status == QN_OK)
        status = qn__csv_text_status(t->text, err);
    qn__csv_text_close(t->text);
    status = qn__part_files_close(t->source, status, err);
    t->text = NULL;
    t->source = NULL;
    return status;
}

/* The same, unless it is the only one. */
static qn_status leave_part(table *t, qn_status status, qn_error *err) {
    if (t->parts > 1)
        return close_part(t, status, err);
    return status == QN_OK ? qn__csv_text_status(t->text, err) : status;
}

/* ------------------------------------------------------------------ blocks */

static void walk_blocks(void *context, int thread) {
    table *t = context;
    const part *p = t->now;
    size_t block;
    while ((block = atomic_fetch_add(&t->next, 1)) < p->block_count) {
        const size_t after = (block + 1) * BLOCK - 1, from = before(block), all = p->lines.size;
        const size_t size = (after < all ? after : all) - from;
        const char *at = qn__csv_text_at(t->text, thread, p->lines.begin + from, size);
        if (!at)
            return;
        qn__csv_piece_walk(at, at + size, t->shape->separator, &p->piece[block]);
    }
}

/* What each block begins with. *spread becomes 1 where a quoted cell holds a line end. */
static void join_blocks(part *p, int *spread) {
    uint8_t state = QN__CSV_CELL;
    for (size_t i = 0; i < p->block_count; i++) {
        const qn__csv_piece *piece = &p->piece[i];
        p->state[i] = state;
        p->first_row[i + 1] = p->first_row[i] + piece->rows[state] + (i == 0);
        p->line_ends[i + 1] = p->line_ends[i] + piece->line_ends;
        *spread |= piece->rows[state] < piece->line_ends;
        state = piece->after[state];
    }
}

/* Counts the rows of this file. */
static qn_status count_rows(table *t, qn_error *err) {
    part *p = t->now;
    p->block_count = p->lines.size / BLOCK + (p->lines.size % BLOCK != 0);
    p->first_row = qn__alloc(p->block_count + 1, sizeof *p->first_row, err);
    p->line_ends = qn__alloc(p->block_count + 1, sizeof *p->line_ends, err);
    p->state = qn__alloc(p->block_count, 1, err);
    p->piece = qn__alloc(p->block_count, sizeof *p->piece, err);
    if (!p->first_row || !p->line_ends || !p->state || !p->piece)
        return QN_MEMORY;
    atomic_store(&t->next, 0);
    qn__pool_run(t->pool, walk_blocks, t);
    const qn_status status = qn__csv_text_status(t->text, err);
    if (status == QN_OK)
        join_blocks(p, &t->header->table.shape.spread);
    qn__free(p->piece);
    p->piece = NULL;
    return status;
}

static uint64_t rows_of(const part *p) { return p->first_row[p->block_count]; }

static void note_failure(table *t, size_t block, const qn__row_failure *failure) {
    pthread_mutex_lock(&t->lock);
    if (block < atomic_load(&t->failed)) {
        atomic_store(&t->failed, block);
        t->failure = *failure;
    }
    pthread_mutex_unlock(&t->lock);
}

/* Rows that begin in a block. */
typedef struct block_rows {
    const char *text;       /* the byte before the block, or the first one */
    const char *begin, *at; /* of the first row, and of the one that is taken */
    const char *end;        /* of the last one */
} block_rows;

/* The end of the row in which a place of the text lies: the block's first byte but one. */
static const char *end_of_row(const table *t, size_t block, const char *at, const char *end) {
    const part *p = t->now;
    return t->shape->spread
               ? qn__csv_row_end(at, end, t->shape->separator, (qn__csv_state)p->state[block])
               : qn__line_end(at, end);
}

/* The rows of a block, of which there is at least one. 0 if they cannot be read. */
static int find_rows(const table *t, int thread, size_t block, block_rows *r) {
    const part *p = t->now;
    const qn__csv_part *lines = &p->lines;
    const size_t from = before(block), last = (block + 1) * BLOCK - 1;
    for (size_t more = BLOCK / 16;; more *= 2) {
        const size_t left = lines->size - from;
        const size_t size = left < BLOCK + more ? left : BLOCK + more;
        const char *text = qn__csv_text_at(t->text, thread, lines->begin + from, size);
        if (!text)
            return 0;
        const char *const all = text + size;
        r->end = block + 1 < p->block_count && last < from + size
                     ? end_of_row(t, block + 1, text + (last - from), all)
                     : all;
        if (r->end == all && size < left)
            continue;
        r->text = text;
        r->begin = r->at = block > 0 ? end_of_row(t, block, text, all) + 1 : text;
        return r->begin <= all; /* unless the file has changed since its rows were counted */
    }
}

static const char *parse_row(table *t, int thread, uint64_t row, const char *at, const char *end,
                             qn__row_failure *failure) {
    const size_t features = t->shape->features;
    void *values = t->values + (size_t)row * features * qn__element_of(t->type)->size;
    const qn__row_places places = {.row = row,
                                   .label = t->labels ? (int32_t *)t->labels + row
                                                      : NULL, /* a float is as large */
                                   .weight = t->weights ? t->weights + row : NULL,
                                   .seen = t->seen ? t->seen + (size_t)thread * features : NULL};
    return t->type == QN_U8 ? qn__row_bytes(t->shape, at, end, values, &places)
                            : qn__row_floats(t->shape, at, end, values, &places, failure);
}

static const char *count_row(table *t, int thread, uint64_t row, const char *at, const char *end,
                             qn__row_failure *failure) {
    (void)row, (void)failure;
    return qn__csv_survey_count(t->survey, thread, at, end);
}

static const char *collect_row(table *t, int thread, uint64_t row, const char *at, const char *end,
                               qn__row_failure *failure) {
    (void)row, (void)failure;
    return qn__csv_survey_collect(t->survey, thread, at, end);
}

static const char *list_row(table *t, int thread, uint64_t row, const char *at, const char *end,
                            qn__row_failure *failure) {
    (void)thread, (void)row, (void)failure;
    const char *next =
        qn__row_listed(t->shape, at, end, qn__csv_survey_listed(t->survey), t->list, t->list_error);
    t->list_failed |= !next;
    return next;
}

/* Takes a line, after it was rewritten where those of the file are not those of the table. */
static const char *take_line(table *t, int thread, uint64_t item, const char *at, const char *end,
                             qn__row_failure *failure) {
    const qn__csv_part *lines = &t->now->lines;
    const char *next;
    size_t size;
    if (qn__csv_part_is_plain(lines))
        return t->take(t, thread, item, at, end, failure);
    const char *line =
        qn__csv_part_line(lines, t->header, &t->line_space[thread], at, end, &next, &size, failure);
    if (!line && failure->fault == QN__ROW_FINE)
        atomic_store(&t->short_of_memory, 1);
    return line && t->take(t, thread, item, line, line + size, failure) ? next : NULL;
}

static void take_block(table *t, int thread, size_t block) {
    const part *p = t->now;
    block_rows r;
    if (p->first_row[block] == p->first_row[block + 1])
        return;
    if (!find_rows(t, thread, block, &r)) {
        note_failure(t, block,
                     &(qn__row_failure){.fault = QN__ROW_BLANK, .line = p->line_ends[block]});
        return;
    }
    for (uint64_t row = p->first_row[block]; row < p->first_row[block + 1]; row++) {
        qn__row_failure failure = {.fault = QN__ROW_FINE};
        const char *next = take_line(t, thread, p->first_item + row, r.at, r.end, &failure);
        if (!next) {
            failure.line = p->line_ends[block] + qn__csv_line_ends(r.text, r.at);
            note_failure(t, block, &failure);
            return;
        }
        r.at = next;
    }
    if (t->take == parse_row && t->type == QN_F32) /* mostly the last pass */
        qn__csv_text_forget(t->text, r.begin, r.at);
}

static void take_blocks(void *context, int thread) {
    table *t = context;
    size_t block;
    /* Blocks are taken in ascending order, so all below a failed one are parsed completely. */
    while ((block = atomic_fetch_add(&t->next, 1)) < t->now->block_count &&
           block < atomic_load(&t->failed))
        take_block(t, thread, block);
}

/* A line that is taken for item number `item`; the next line, or NULL: failed. */
typedef const char *line_taker(table *t, int thread, uint64_t item, const char *at, const char *end,
                               qn__row_failure *failure);

/* Goes through all rows. *wrong is 1 where one was wrong. Fails where a file cannot be read. */
static qn_status take_rows(table *t, line_taker *take, int *wrong, qn_error *err) {
    qn_status status = QN_OK;
    *wrong = 0;
    t->take = take;
    for (size_t i = 0; i < t->parts && status == QN_OK && !*wrong; i++) {
        if (t->part[i].lines.size == 0)
            continue;
        status = open_part(t, i, err);
        if (status != QN_OK)
            return status;
        atomic_store(&t->next, 0);
        atomic_store(&t->failed, SIZE_MAX);
        if (t->list) /* in their order */
            take_blocks(t, 0);
        else
            qn__pool_run(t->pool, take_blocks, t);
        *wrong = atomic_load(&t->failed) != SIZE_MAX;
        t->wrong = t->now;
        status = leave_part(t, QN_OK, err);
    }
    return status == QN_OK && atomic_load(&t->short_of_memory) ? qn__fail_memory(err, BLOCK, 1)
                                                               : status;
}

/* When the lines are too short to hold the cells that the first line promises, one of them is
 * wrong; finding it needs no space for the table. */
static qn_status find_short_row(table *t, const part *p, qn_error *err) {
    const qn__row_shape shape = {
        .separator = t->shape->separator, .columns = p->lines.cells, .spread = t->shape->spread};
    const size_t size = p->lines.size;
    qn_status status = open_part(t, (size_t)(p - t->part), err);
    if (status != QN_OK)
        return status;
    const char *at = qn__csv_text_at(t->text, 0, p->lines.begin, size), *end = at ? at + size : at;
    if (!at)
        return leave_part(t, qn__csv_text_status(t->text, err), err);
    for (const char *row = at; at && at < end; row = at) {
        at = qn__row_count(&shape, at, end, &t->failure);
        t->failure.line += at ? qn__csv_line_ends(row, at) : 0;
    }
    status = at ? qn__fail(err, QN_INPUT, "the file changed while it was read")
                : qn__csv_part_refuse_row(&p->lines, t->header, &t->failure, err);
    return leave_part(t, status, err);
}

/* Allocates the table as one type. The size of the text bounds it: each cell but the last needs a
 * separator. */
static qn_status reserve(table *t, int threads, qn_data *data, qn_data_type type, qn_error *err) {
    qn__free(t->seen);
    t->seen = NULL;
    data->type = t->type = type;
    const qn_status status = qn__table_space_make(data, err);
    t->values = qn__table_space_values(data);
    if (status == QN_OK && type == QN_F32 &&
        !(t->seen = qn__alloc((uint64_t)threads, data->features, err)))
        return QN_MEMORY;
    return status;
}

/* Parses the whole table as one type. *wrong is 1 where a row is wrong; t->failure then says how,
 * but not for bytes. */
static qn_status parse(table *t, qn_data *data, qn_data_type type, int *wrong, qn_error *err) {
    const qn_status status = reserve(t, qn__pool_threads(t->pool), data, type, err);
    return status == QN_OK ? take_rows(t, parse_row, wrong, err) : status;
}

static qn_status parse_numbers(table *t, qn_data *data, int *wrong, qn_error *err) {
    const qn_status status = parse(t, data, QN_U8, wrong, err);
    return status == QN_OK && *wrong ? parse(t, data, QN_F32, wrong, err) : status;
}

/* Whether a row is wrong for another reason than what its columns were taken for. */
static int is_final(qn__row_fault fault) {
    return fault == QN__ROW_FEW || fault == QN__ROW_MANY || fault == QN__ROW_BLANK ||
           fault == QN__ROW_QUOTE || fault == QN__ROW_WEIGHT;
}

/* Lists the texts that become tokens: one thread goes through the rows, in their order. */
static qn_status list_texts(table *t, qn__text_list *list, qn_error *err) {
    int wrong;
    t->list = list;
    t->list_error = err;
    t->shape = qn__csv_survey_shape(t->survey);
    const qn_status status = take_rows(t, list_row, &wrong, err);
    t->list = NULL;
    if (status != QN_OK || !wrong)
        return status;
    return t->list_failed ? QN_MEMORY
                          : qn__fail(err, QN_INPUT, "the file changed while it was read");
}

/* Finds out what the columns hold. */
static qn_status survey(table *t, const qn_data_options *options, qn__text_list *list,
                        qn_error *err) {
    int wrong;
    t->survey = qn__csv_survey_create(t->header, qn__pool_threads(t->pool), err);
    if (!t->survey)
        return QN_MEMORY;
    qn_status status = t->text ? qn__csv_text_renew(t->text, err) : QN_OK;
    if (status == QN_OK)
        status = take_rows(t, count_row, &wrong, err);
    if (status == QN_OK)
        status = qn__csv_survey_decide(t->survey, options, list, err);
    if (status == QN_OK && qn__csv_survey_listed(t->survey))
        status = list_texts(t, list, err);
    if (status != QN_OK || !qn__csv_survey_has_texts(t->survey))
        return status;
    status = take_rows(t, collect_row, &wrong, err);
    return status == QN_OK ? qn__csv_survey_sort(t->survey, err) : status;
}

static qn_status parse_columns(table *t, const qn_data_options *options, qn_data *data, int *wrong,
                               qn_error *err) {
    qn_status status = survey(t, options, data->listed, err);
    if (status != QN_OK)
        return status;
    t->shape = qn__csv_survey_shape(t->survey);
    data->missing = qn__csv_survey_has_missing(t->survey);
    data->rules |= qn__csv_survey_rules(t->survey);
    status = qn__csv_survey_keep_exact(t->survey, data, err);
    if (status != QN_OK)
        return status;
    status = parse(t, data, qn__csv_survey_type(t->survey), wrong, err);
    if (status == QN_OK && *wrong && t->type == QN_U8) /* for the message */
        status = parse(t, data, QN_F32, wrong, err);
    return status;
}

/* The labels go to the member of data that the shape says. */
static void hand_over_labels(table *t, qn_data *data) {
    const qn__special *at = t->shape->special;
    while (at->column < t->shape->label)
        at++;
    if (at->kind == QN__COLUMN_REAL)
        data->targets = t->labels;
    else
        data->labels = t->labels;
    t->labels = NULL;
}

/* Finds the rows of all files. */
static qn_status count_items(table *t, qn_data *data, qn_error *err) {
    for (size_t i = 0; i < t->parts; i++) {
        part *p = &t->part[i];
        p->first_item = data->items;
        data->items += rows_of(p);
        /* cells of a line want separators, one less, and a line end */
        if (rows_of(p) > ((uint64_t)p->lines.size + 1) / p->lines.cells)
            return find_short_row(t, p, err);
    }
    if (data->items > 0)
        return QN_OK;
    qn__part_is_empty(data->part);
    return qn__csv_refuse_empty(t->header->table.path, 1, err);
}

static qn_status fill(table *t, const qn_data_options *options, qn_data *data, qn_error *err) {
    int wrong;
    data->features = t->shape->features;
    qn_status status = count_items(t, data, err);
    if (status != QN_OK)
        return status;
    const int labelled = t->shape->label < t->shape->columns;
    if (labelled && !(t->labels = qn__alloc(data->items, sizeof(int32_t), err)))
        return QN_MEMORY;
    if (t->shape->weight < t->shape->columns &&
        !(t->weights = qn__alloc(data->items, sizeof *t->weights, err)))
        return QN_MEMORY;
    status = parse_numbers(t, data, &wrong, err);
    if (status == QN_OK && (wrong ? !is_final(t->failure.fault)
                                  : t->header->table.categories || t->shape->date_format))
        status = parse_columns(t, options, data, &wrong, err);
    if (status == QN_OK && wrong)
        return qn__csv_part_refuse_row(&t->wrong->lines, t->header, &t->failure, err);
    if (status == QN_OK && labelled)
        hand_over_labels(t, data);
    data->weights = t->weights;
    t->weights = NULL;
    return status == QN_OK && data->weights
               ? qn__data_check_weights(data->weights, data->items, t->files->name, err)
               : status;
}

/* ------------------------------------------------------------------ the schema */

/* What all threads saw of feature k. */
static uint8_t seen_of(const table *t, int threads, uint32_t k) {
    uint8_t seen = 0;
    for (int thread = 0; thread < threads; thread++)
        seen |= t->seen[(size_t)thread * t->shape->features + k];
    return seen;
}

/* Columns whose cells were all bytes, in a table of floats. */
static void note_bytes(const table *t, int threads, qn_data *data) {
    const int noted = t->seen && (t->header->table.names || data->label_columns);
    for (uint32_t k = 0; noted && k < data->features; k++)
        data->schema->feature[k].bytes = !(seen_of(t, threads, k) & QN__SEEN_NOT_BYTE);
}

/* What the columns are called and hold; none where there is nothing to tell. */
static qn_status make_schema(table *t, qn__csv_header *header, qn_data *data, qn_error *err) {
    if (data->weights)
        qn__columns_take_name(&header->table, t->shape->weight, &data->weight_name);
    const qn__special *special = t->shape->special;
    if (!header->table.names && !t->survey && !data->targets && !data->label_columns)
        return QN_OK;
    if (!data->schema) /* exact values have made one */
        data->schema = qn__schema_create(data->features, err);
    qn__schema *schema = data->schema;
    if (!schema)
        return QN_MEMORY;
    qn__feature *feature = schema->feature;
    schema->target = qn__data_target(data);
    for (uint64_t column = 0; column < t->shape->columns; column++) {
        const int is_special = special->column == column, is_label = column == t->shape->label;
        if (is_special && special->kind == QN__COLUMN_CLASS) {
            schema->target = QN__TARGET_CLASS;
            qn__text_column_take(special->texts, &schema->classes, &schema->class_name);
        } else if (is_special && special->texts) {
            qn__text_column_give(special->texts, feature);
        } else if (is_special && special->kind == QN__COLUMN_DATE) {
            feature->dates = special->dates;
            feature->time = special->time;
            feature->zone = special->zone;
            data->rules |= QN__RULE_DATES;
            snprintf(data->date_format, sizeof data->date_format, "%s",
                     t->shape->date_format ? t->shape->date_format : "");
        }
        const int is_own = !is_label && column != t->shape->weight &&
                           !(is_special && special->kind == QN__COLUMN_SKIP);
        if (is_own && header->table.categories)
            feature->said = header->table.categories[column];
        if (is_label || is_own)
            qn__columns_take_name(&header->table, column,
                                  is_label ? &schema->label : &feature->name);
        feature += is_own;
        special += is_special;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ wide columns */

static const char *take_whole(table *t, int thread, uint64_t row, const char *at, const char *end,
                              qn__row_failure *failure) {
    (void)thread, (void)failure;
    return qn__row_whole(t->shape, at, end, t->wide_column, t->wides, t->wide, row);
}

/* Whether a column of the file is a feature; *special is the first special one from it on. */
static int is_feature(const table *t, uint64_t column, const qn__special **special) {
    const int is_special = (*special)->column == column;
    const qn__special *at = *special;
    *special += is_special;
    return column != t->shape->label && column != t->shape->weight &&
           !(is_special && at->kind == QN__COLUMN_SKIP);
}

/* Where in the file the columns of whole numbers are, and where their values go. */
static qn_status place_wide(table *t, const qn_data *data, qn_error *err) {
    const qn__special *special = t->shape->special;
    const qn__wide *wide = data->wide;
    t->wide_column = qn__alloc(wide->columns, sizeof *t->wide_column, err);
    t->wide = (int64_t **)qn__alloc(wide->columns, sizeof *t->wide, err);
    if (!t->wide_column || !t->wide)
        return QN_MEMORY;
    uint32_t feature = 0, j = 0;
    for (uint64_t column = 0; column < t->shape->columns && j < wide->columns; column++) {
        if (!is_feature(t, column, &special) || feature++ != wide->feature[j])
            continue;
        if (data->schema->feature[feature - 1].exact == QN__EXACT_WHOLE) {
            t->wide_column[t->wides] = column;
            t->wide[t->wides++] = &qn__wide_of(wide, j)->whole;
        }
        j++;
    }
    return QN_OK;
}

/* Columns of whole numbers that float32 does not hold are read once more. */
static qn_status read_wide(table *t, const qn_data_options *options, qn_data *data, qn_error *err) {
    int wrong;
    const int threads = qn__pool_threads(t->pool);
    if (!t->seen || !qn__rule_holds(options, QN__RULE_EXACT))
        return QN_OK;
    qn__exact *exact = qn__alloc(data->features, sizeof *exact, err);
    if (!exact)
        return QN_MEMORY;
    for (uint32_t k = 0; k < data->features; k++)
        if ((seen_of(t, threads, k) & (QN__SEEN_WIDE | QN__SEEN_FRACTION)) == QN__SEEN_WIDE)
            exact[k] = QN__EXACT_WHOLE;
    qn_status status = qn__wide_make(data, exact, err);
    qn__free(exact);
    if (status != QN_OK || !(data->rules & QN__RULE_EXACT))
        return status;
    status = place_wide(t, data, err);
    if (status == QN_OK && t->text)
        status = qn__csv_text_renew(t->text, err);
    return status == QN_OK ? take_rows(t, take_whole, &wrong, err) : status;
}

static qn_status read_items(table *t, qn__csv_header *header, const qn_data_options *options,
                            qn_data *data, qn_error *err) {
    qn_status status = fill(t, options, data, err);
    qn__columns_give_labels(&header->table, data);
    if (status == QN_OK)
        status = qn__columns_note(&header->table, data, err);
    if (status == QN_OK)
        status = make_schema(t, header, data, err);
    if (status == QN_OK)
        note_bytes(t, qn__pool_threads(t->pool), data);
    if (status == QN_OK)
        status = read_wide(t, options, data, err);
    return status == QN_OK ? qn__csv_look_back(header, t->shape, options, data, err) : status;
}

/* ------------------------------------------------------------------ the beginning */

/* The header, and where the rows are: of one file, whose text stays open. */
static qn_status begin_one(table *t, const qn__csv_keys *keys, const qn_data_options *options,
                           qn__csv_header *header, qn_error *err) {
    qn__csv_part *lines = &t->part->lines;
    qn_status status = open_part(t, 0, err);
    if (status == QN_OK)
        status = qn__csv_text_header(t->text, t->files->name, keys, options, header, &lines->begin,
                                     &lines->size, err);
    if (status != QN_OK)
        return status;
    lines->path = header->table.path;
    lines->first_line = header->first_line;
    lines->cells = header->own;
    status = qn__csv_part_add_keys(t->files->list, 0, header, lines, err);
    return status == QN_OK ? count_rows(t, err) : status;
}

/* The same of several files. */
static qn_status begin_parts(table *t, const qn__csv_keys *keys, const qn_data_options *options,
                             qn__csv_header *header, qn_error *err) {
    qn_status status = qn__csv_parts_header(t->files, keys, options, header, err);
    for (size_t i = 0; i < t->parts && status == QN_OK; i++) {
        status = open_part(t, i, err);
        if (status != QN_OK)
            return status;
        status =
            qn__csv_part_find(t->files->list, i, header, options, t->text, &t->now->lines, err);
        if (status == QN_OK)
            status = count_rows(t, err);
        status = leave_part(t, status, err);
    }
    return status;
}

static qn_status read_table(table *t, const qn_data_options *options, qn_data *data,
                            qn_error *err) {
    const qn__file_list *list = t->files->list;
    const qn__csv_keys keys = {list->file[0].key, list->keys};
    qn__csv_header header = {0};
    t->header = &header;            /* cppcheck-suppress autoVariables; until this function ends */
    t->shape = &header.table.shape; /* cppcheck-suppress autoVariables */
    qn_status status = t->parts == 1 ? begin_one(t, &keys, options, &header, err)
                                     : begin_parts(t, &keys, options, &header, err);
    data->rules |= header.rules;
    if (status == QN_OK)
        status = qn__csv_parts_mark_keys(list, &header, err);
    if (status == QN_OK)
        status = read_items(t, &header, options, data, err);
    status = close_part(t, status, err);
    t->header = NULL;
    t->shape = NULL;
    qn__csv_header_release(&header);
    return status;
}

static void release(table *t) {
    for (size_t i = 0; t->part && i < t->parts; i++) {
        qn__csv_part_release(&t->part[i].lines);
        qn__free(t->part[i].first_row);
        qn__free(t->part[i].line_ends);
        qn__free(t->part[i].state);
        qn__free(t->part[i].piece);
    }
    for (int i = 0; t->line_space && i < qn__pool_threads(t->pool); i++)
        qn__csv_line_space_release(&t->line_space[i]);
    qn__csv_survey_free(t->survey);
    qn__free(t->part);
    qn__free(t->line_space);
    qn__free(t->labels);
    qn__free(t->weights);
    qn__free(t->seen);
    qn__free(t->wide_column);
    qn__free((void *)t->wide);
    pthread_mutex_destroy(&t->lock);
}

static qn_status read_csv(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    table t = {.files = files, .pool = pool, .parts = files->list->count};
    pthread_mutex_init(&t.lock, NULL);
    t.part = qn__alloc(t.parts, sizeof *t.part, err);
    t.line_space = qn__alloc((uint64_t)qn__pool_threads(pool), sizeof *t.line_space, err);
    const qn_status status =
        t.part && t.line_space ? read_table(&t, options, data, err) : QN_MEMORY;
    release(&t);
    return status;
}

static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)first, (void)size, (void)path;
    return QN__PROBE_REST;
}

const qn__reader qn__csv_reader = {
    .name = QN__PACKED_NAMES("csv"),
    .about = "a table in text, separated by comma, semicolon or tab",
    .endings = {"csv", "tsv", "txt", "tab", "data", "dat"},
    .fallback = 1,
    .text = 1,
    .columns = 1,
    .weights = 1,
    .quantities = 1,
    .labels_remedy =
        "leave out `data.labels_path` and name the label column with `data.label_column`",
    .probe = probe,
    .read_parts = read_csv,
};
