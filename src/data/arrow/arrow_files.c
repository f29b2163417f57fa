#include "data/arrow/arrow_files.h"
#include "data/arrow/arrow_common.h"
#include "data/arrow/arrow_parts.h"
#include "data/arrow/arrow_portions.h"
#include "data/cells/folder_values.h"
#include "data/cells/text_set.h"
#include "data/tokens/text_items.h"
#include <stdio.h>
#include <string.h>

/* A file, while it is read. */
typedef struct opened {
    qn__source *source;
    qn__arrow_file file;
    qn__arrow_table table; /* its schema */
    int is_open;
} opened;

/* What is known of each file. */
typedef struct listed {
    uint64_t *from; /* for each column of the table its number in the file; UINT64_MAX: none */
    uint64_t first, rows;
} listed;

/* A column of the table. */
typedef struct column {
    const char *name;
    const char *format, *values; /* its type, and that of its dictionary's values, or NULL */
    qn__arrow_type type;
    int readable;   /* the type is known */
    size_t differs; /* the first file whose type is none that can be made the same; 0: none */
    size_t key;     /* of folders: its number, from 1; 0: it is one of the files */
} column;

typedef struct chain {
    qn__portions base;
    qn__part_files *files;
    qn__arrow_opener *open;
    qn__pool *pool;
    int choosing; /* the columns to read are named: others do not matter */
    int words;    /* lists of words are texts */
    listed *file;
    column *column;
    uint64_t own, columns; /* those of the files; with those of folders */
    opened first, now;     /* the first file stays open: the schema is its own */
    struct ArrowSchema schema, **children, *added;
    size_t at;        /* the file that is read */
    int is_begun;     /* its stream is */
    qn__pile pile;    /* what lives as long as this */
    qn__pile portion; /* what is made for a portion */
} chain;

/* ------------------------------------------------------------------ files */

static const char *path_of(const chain *c, size_t i) { return c->files->list->file[i].path; }

static opened *slot_of(chain *c, size_t i) { return i == 0 ? &c->first : &c->now; }

static qn_status close_file(opened *o, qn_status status, qn_error *err) {
    if (!o->is_open)
        return status;
    qn__arrow_release(&o->table);
    o->file.stream.release(&o->file.stream);
    status = qn__part_files_close(o->source, status, err);
    *o = (opened){0};
    return status;
}

/* Opens a file anew and reads its schema. */
static qn_status open_file(chain *c, size_t i) {
    opened *o = slot_of(c, i);
    if (o->is_open)
        return QN_OK;
    qn_status status = qn__part_files_open(c->files, i, &o->source, c->base.err);
    if (status != QN_OK)
        return status;
    status = c->open(o->source, c->pool, &o->file, c->base.err);
    if (status != QN_OK) {
        const qn_status closed = qn__part_files_close(o->source, status, c->base.err);
        *o = (opened){0};
        return closed == QN_OK ? status : closed;
    }
    o->is_open = 1;
    o->file.source.stream = &o->file.stream;
    status = qn__arrow_read_schema(&o->file.source, &o->table, c->base.err);
    o->table.words = c->words;
    return status;
}

/* The first file stays open. */
static qn_status leave_file(chain *c, size_t i, qn_status status) {
    return i == 0 ? status : close_file(&c->now, status, c->base.err);
}

/* ------------------------------------------------------------------ types */

static qn_status refuse_column(const chain *c, size_t file, const char *name, const char *what,
                               const char *remedy) {
    char shown[64];
    qn__cell_show(&(qn__cell){.text = name, .size = strlen(name)}, shown);
    qn__fail(c->base.err, QN_INPUT, "the column \"%s\" %s", shown, what);
    qn__at(c->base.err, "%s", path_of(c, file));
    return qn__remedy(c->base.err, QN_INPUT, "%s", remedy);
}

static const char *name_of(const qn__arrow_table *table, uint64_t i) {
    const char *name = table->schema.children[i]->name;
    return name ? name : "";
}

static int same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* Makes the type of a column one that holds the values of another file, too. */
static void widen(column *a, const qn__arrow_table *table, uint64_t i, size_t file) {
    const struct ArrowSchema *type = table->schema.children[i];
    const char *values = type->dictionary ? type->dictionary->format : NULL;
    qn__arrow_type other;
    if (same_text(a->format, type->format) && same_text(a->values, values))
        return;
    const int readable = qn__arrow_type_of(table, i, &other, NULL) == QN_OK && a->readable;
    if (readable && other.kind == QN__ARROW_EMPTY)
        return;
    if (readable && qn__arrow_join(&a->type, &other)) {
        a->format = a->type.format;
        a->values = NULL;
    } else if (a->differs == 0) {
        a->differs = file;
    }
}

/* ------------------------------------------------------------------ columns */

static uint32_t find(const qn__text_set *set, const char *name) {
    return qn__text_set_find(set, &(qn__cell){.text = name, .size = strlen(name)});
}

#define COLUMNS_REMEDY                                                                             \
    "give all files the same columns, in any order; `data.features` reads only those it names"

/* Finds the columns of a file by their names. */
static qn_status match(chain *c, size_t i, const qn__arrow_table *table, const qn__text_set *set) {
    uint64_t *from = c->file[i].from, same = 0;
    for (uint64_t k = 0; k < c->own; k++)
        from[k] = UINT64_MAX;
    for (uint64_t k = 0; k < table->columns && k < c->own; k++)
        same += strcmp(name_of(table, k), c->column[k].name) == 0;
    if (same == c->own && table->columns == c->own) {
        for (uint64_t k = 0; k < c->own; k++)
            from[k] = k;
        return QN_OK;
    }
    if (set->count < c->own)
        return refuse_column(c, i, name_of(table, 0),
                             "is not where the first file has it, and others have its name",
                             "give the columns different names, or one order");
    for (uint64_t k = 0; k < table->columns; k++) {
        const uint32_t at = find(set, name_of(table, k));
        if (at == QN__NO_TEXT && !c->choosing)
            return refuse_column(c, i, name_of(table, k), "is not in the first file",
                                 COLUMNS_REMEDY);
        if (at != QN__NO_TEXT && from[at] != UINT64_MAX)
            return refuse_column(c, i, name_of(table, k), "is in the file twice",
                                 "give the columns different names");
        if (at != QN__NO_TEXT)
            from[at] = k;
    }
    return QN_OK;
}

static qn_status take_first(chain *c, const qn__arrow_table *table, qn__text_set *set) {
    const size_t keys = c->files->list->keys;
    c->own = table->columns;
    c->column = qn__pile_alloc(&c->pile, c->own + keys, sizeof *c->column, c->base.err);
    if (!c->column)
        return QN_MEMORY;
    for (uint64_t k = 0; k < c->own; k++) {
        const struct ArrowSchema *type = table->schema.children[k];
        column *a = &c->column[k];
        *a = (column){.name = name_of(table, k),
                      .format = type->format,
                      .values = type->dictionary ? type->dictionary->format : NULL};
        a->readable = qn__arrow_type_of(table, k, &a->type, NULL) == QN_OK;
        if (a->readable && *a->format == '+') /* lists of words become texts */
            a->format = a->type.format;
        const qn__cell cell = {.text = a->name, .size = strlen(a->name)};
        if (qn__text_set_add(set, &cell, c->base.err) != QN_OK)
            return QN_MEMORY;
    }
    return QN_OK;
}

/* Columns of folders hold whole numbers, numbers or texts. */
static void add_keys(chain *c, const qn__text_set *set) {
    const qn__file_list *list = c->files->list;
    c->columns = c->own;
    for (size_t k = 0; k < list->keys; k++) {
        const char *name = list->file[0].key[k].name;
        if (find(set, name) != QN__NO_TEXT)
            continue; /* the files have it themselves */
        const qn__key_kind kind = qn__file_list_key_kind(list, k);
        c->column[c->columns++] = (column){.name = name,
                                           .format = kind == QN__HIVE_TEXT     ? "i"
                                                     : kind == QN__HIVE_NUMBER ? "f"
                                                                               : "l",
                                           .values = kind == QN__HIVE_TEXT ? "U" : NULL,
                                           .key = k + 1};
    }
}

/* ------------------------------------------------------------------ the schema */

static void forget_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static int has_type(const struct ArrowSchema *type, const column *a) {
    return same_text(type->format, a->format) &&
           same_text(type->dictionary ? type->dictionary->format : NULL, a->values);
}

/* The columns of the first file, where their types are those of all, and others in their places. */
static qn_status make_schema(chain *c, struct ArrowSchema *out) {
    const struct ArrowSchema *first = &c->first.table.schema;
    c->children = (struct ArrowSchema **)qn__pile_alloc(&c->pile, c->columns, sizeof *c->children,
                                                        c->base.err);
    c->added = qn__pile_alloc(&c->pile, 2 * c->columns, sizeof *c->added, c->base.err);
    c->base.wanted = qn__pile_alloc(&c->pile, c->columns, 1, c->base.err);
    if (!c->children || !c->added || !c->base.wanted)
        return QN_MEMORY;
    c->base.columns = c->columns;
    memset(c->base.wanted, 1, (size_t)c->columns);
    for (uint64_t k = 0; k < c->columns; k++) {
        const column *a = &c->column[k];
        struct ArrowSchema *own = k < c->own ? first->children[k] : NULL;
        struct ArrowSchema *values = &c->added[c->columns + k];
        c->children[k] = own;
        if (own && has_type(own, a))
            continue;
        *values = (struct ArrowSchema){.format = a->values, .release = forget_schema};
        c->added[k] = (struct ArrowSchema){.format = a->format,
                                           .name = a->name,
                                           .flags = ARROW_FLAG_NULLABLE,
                                           .dictionary = a->values ? values : NULL,
                                           .release = forget_schema};
        c->children[k] = &c->added[k];
    }
    *out = *first;
    out->n_children = (int64_t)c->columns;
    out->children = c->children;
    out->release = forget_schema;
    return QN_OK;
}

static qn_status survey(qn__portions *reader, struct ArrowSchema *out) {
    chain *c = (chain *)reader;
    const size_t count = c->files->list->count;
    qn__text_set set = {0};
    qn_status status = QN_OK;
    c->file = qn__pile_alloc(&c->pile, count, sizeof *c->file, c->base.err);
    if (!c->file)
        return QN_MEMORY;
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        const qn__arrow_table *table = &slot_of(c, i)->table;
        status = open_file(c, i);
        if (status == QN_OK && i == 0)
            status = take_first(c, table, &set);
        if (status == QN_OK &&
            !(c->file[i].from = qn__pile_alloc(&c->pile, c->own, sizeof(uint64_t), c->base.err)))
            status = QN_MEMORY;
        if (status == QN_OK)
            status = match(c, i, table, &set);
        for (uint64_t k = 0; status == QN_OK && i > 0 && k < c->own; k++)
            if (c->file[i].from[k] != UINT64_MAX)
                widen(&c->column[k], table, c->file[i].from[k], i);
        status = leave_file(c, i, status);
    }
    if (status == QN_OK) {
        add_keys(c, &set);
        status = make_schema(c, out);
    }
    qn__text_set_release(&set);
    return status;
}

/* ------------------------------------------------------------------ rows */

/* What is wrong with columns that are read. */
static qn_status check_columns(const chain *c) {
    for (uint64_t k = 0; k < c->own; k++) {
        const column *a = &c->column[k];
        for (size_t i = 0; c->base.wanted[k] && i < c->files->list->count; i++)
            if (c->file[i].from[k] == UINT64_MAX)
                return refuse_column(c, i, a->name, "of the first file is missing",
                                     COLUMNS_REMEDY "; `data.drop` leaves columns out");
        if (c->base.wanted[k] && a->differs > 0)
            return refuse_column(c, a->differs, a->name,
                                 "has another type than in the files before",
                                 "write it with one type in all files, or leave it out with "
                                 "`data.drop`");
    }
    return QN_OK;
}

/* Tells an open file which of its columns are read, and counts its rows. */
static qn_status begin_file(chain *c, size_t i, uint64_t *rows) {
    opened *o = slot_of(c, i);
    qn__pile pile = {0};
    uint8_t *wanted = qn__pile_alloc(&pile, o->table.columns, 1, c->base.err);
    if (!wanted)
        return QN_MEMORY;
    for (uint64_t k = 0; k < c->own; k++)
        if (c->file[i].from[k] != UINT64_MAX)
            wanted[c->file[i].from[k]] = c->base.wanted[k];
    o->file.source.want(&o->file.stream, wanted);
    qn__pile_release(&pile);
    const int failed = o->file.source.rows(&o->file.stream, rows);
    return failed ? *o->file.source.status : QN_OK;
}

/* ------------------------------------------------------------------ values */

static void forget_array(struct ArrowArray *array) { array->release = NULL; }

/* The one value of a dictionary. */
static qn_status make_dictionary(chain *c, const char *value, struct ArrowArray **out) {
    struct ArrowArray *values = qn__pile_alloc(&c->portion, 1, sizeof *values, c->base.err);
    int64_t *offsets = qn__pile_alloc(&c->portion, 2, sizeof *offsets, c->base.err);
    const void **buffers = qn__pile_alloc(&c->portion, 3, sizeof *buffers, c->base.err);
    if (!values || !offsets || !buffers)
        return QN_MEMORY;
    offsets[1] = (int64_t)strlen(value);
    buffers[1] = offsets;
    buffers[2] = value;
    *values = (struct ArrowArray){
        .length = 1, .n_buffers = 3, .buffers = buffers, .release = forget_array};
    *out = values;
    return QN_OK;
}

/* The value of a folder in each of `rows` rows. */
static qn_status make_key(chain *c, const column *a, uint64_t rows, struct ArrowArray *out) {
    const char *value = c->files->list->file[c->at].key[a->key - 1].value;
    const int is_gap = *value == '\0';
    const void **buffers = qn__pile_alloc(&c->portion, 2, sizeof *buffers, c->base.err);
    uint8_t *valid = qn__pile_alloc(&c->portion, rows / 8 + 1, 1, c->base.err);
    uint8_t *values = qn__pile_alloc(&c->portion, rows + 1, 8, c->base.err);
    if (!buffers || !valid || !values)
        return QN_MEMORY;
    buffers[0] = is_gap ? valid : NULL;
    buffers[1] = values;
    *out = (struct ArrowArray){.length = (int64_t)rows,
                               .null_count = is_gap ? (int64_t)rows : 0,
                               .n_buffers = 2,
                               .buffers = buffers,
                               .release = forget_array};
    if (a->values)
        return make_dictionary(c, value, &out->dictionary);
    const int64_t whole = qn__key_whole(value);
    const float number = qn__key_number(value);
    for (uint64_t i = 0; i < rows; i++)
        if (*a->format == 'l')
            memcpy(values + 8 * i, &whole, sizeof whole);
        else
            memcpy(values + 4 * i, &number, sizeof number);
    return QN_OK;
}

/* A column that no file has, or that nobody reads: only its shape counts. */
static void make_empty(const struct ArrowSchema *type, uint64_t rows, const struct ArrowArray *none,
                       struct ArrowArray *out) {
    static const void *buffers[3];
    *out = (struct ArrowArray){.length = (int64_t)rows,
                               .buffers = buffers,
                               .dictionary = type->dictionary ? (struct ArrowArray *)none : NULL,
                               .release = forget_array};
}

static qn_status convert(chain *c, const qn__arrow_table *table, uint64_t k, const column *a,
                         struct ArrowArray *out) {
    const qn_status status = qn__arrow_convert(table, k, &a->type, &c->portion, out, c->base.err);
    out->release = forget_array;
    return status;
}

/* A part of a file as a part of the table. */
static qn_status adapt(chain *c, const struct ArrowArray *part, struct ArrowArray *out) {
    opened *o = slot_of(c, c->at);
    const uint64_t rows = (uint64_t)part->length;
    static const void *no_bits[1];
    struct ArrowArray **child =
        (struct ArrowArray **)qn__pile_alloc(&c->portion, c->columns, sizeof *child, c->base.err);
    struct ArrowArray *made =
        qn__pile_alloc(&c->portion, c->columns + 1, sizeof *made, c->base.err);
    struct ArrowArray *whole = qn__pile_alloc(&c->portion, 1, sizeof *whole, c->base.err);
    if (!child || !made || !whole)
        return QN_MEMORY;
    *whole = *part;
    qn__arrow_table table = o->table;
    table.part = whole;
    table.parts = 1;
    table.rows = rows;
    table.source = NULL;
    qn_status status = QN_OK;
    for (uint64_t k = 0; k < c->columns && status == QN_OK; k++) {
        const column *a = &c->column[k];
        const uint64_t from = k < c->own ? c->file[c->at].from[k] : UINT64_MAX;
        child[k] = &made[k];
        if (!c->base.wanted[k])
            make_empty(c->children[k], rows, &made[c->columns], &made[k]);
        else if (a->key > 0)
            status = make_key(c, a, rows, &made[k]);
        else if (has_type(o->table.schema.children[from], a))
            child[k] = part->children[from];
        else
            status = convert(c, &table, from, a, &made[k]);
    }
    *out = (struct ArrowArray){.length = part->length,
                               .n_buffers = 1,
                               .n_children = (int64_t)c->columns,
                               .buffers = no_bits,
                               .children = child,
                               .release = forget_array};
    return status;
}

/* ------------------------------------------------------------------ the stream */

/* The next file with rows, from the one that comes next. */
static void skip_empty(chain *c) {
    while (c->at < c->files->list->count && c->file[c->at].rows == 0)
        c->at++;
}

static qn_status count_all(qn__portions *reader, uint64_t *rows) {
    chain *c = (chain *)reader;
    qn_status status = check_columns(c);
    *rows = 0;
    for (size_t i = 0; i < c->files->list->count && status == QN_OK; i++) {
        listed *l = &c->file[i];
        status = open_file(c, i);
        if (status == QN_OK)
            status = begin_file(c, i, &l->rows);
        status = leave_file(c, i, status);
        l->first = *rows;
        *rows += l->rows;
    }
    skip_empty(c);
    return status;
}

static qn_status next_part(qn__portions *reader, struct ArrowArray *out) {
    chain *c = (chain *)reader;
    opened *o = slot_of(c, c->at);
    struct ArrowArray part = {0};
    uint64_t rows;
    if (c->at == c->files->list->count)
        return QN_OK;
    if (!c->is_begun) {
        qn_status status = open_file(c, c->at);
        if (status == QN_OK)
            status = begin_file(c, c->at, &rows);
        if (status != QN_OK)
            return status;
        c->is_begun = 1;
    }
    if (o->file.stream.get_next(&o->file.stream, &part) != 0)
        return *o->file.source.status;
    return part.release ? adapt(c, &part, out) : QN_OK;
}

/* A failure to close a file is that of the next call. */
static int more(qn__portions *reader) {
    chain *c = (chain *)reader;
    opened *o = slot_of(c, c->at);
    qn__pile_release(&c->portion);
    if (o->file.source.more(&o->file.stream))
        return 1;
    c->base.status = leave_file(c, c->at, QN_OK);
    c->is_begun = 0;
    c->at++;
    skip_empty(c);
    return c->at < c->files->list->count && c->base.status == QN_OK;
}

static const char *place(struct ArrowArrayStream *stream, uint64_t *item) {
    const chain *c = stream->private_data;
    size_t i = 0;
    while (i + 1 < c->files->list->count && *item >= c->file[i].first + c->file[i].rows)
        i++;
    *item -= c->file[i].first;
    return path_of(c, i);
}

static void release_nothing(qn__portions *reader) { (void)reader; }

static const qn__portions_table portions = {survey, count_all,       next_part,
                                            more,   release_nothing, NULL};

/* ------------------------------------------------------------------ all */

static qn_status read_one(qn__part_files *files, qn__arrow_opener *open,
                          const qn_data_options *options, qn__pool *pool, qn_data *data,
                          qn_error *err) {
    qn__source *source;
    qn__arrow_file file;
    qn_status status = qn__part_files_open(files, 0, &source, err);
    if (status != QN_OK)
        return status;
    status = open(source, pool, &file, err);
    if (status == QN_OK) {
        file.source.stream = &file.stream;
        status = qn__arrow_fill(&file.source, options, data, err);
        file.stream.release(&file.stream);
    }
    return qn__part_files_close(source, status, err);
}

static qn_status fill_from(chain *c, const qn_data_options *options, qn_data *data) {
    qn__arrow_file all;
    qn__portions_stream(&c->base, c->files->name, c->pool, &all);
    all.source.stream = &all.stream;
    all.source.place = place;
    const qn_status status = qn__arrow_fill(&all.source, options, data, c->base.err);
    return status == QN_OK || c->base.status == QN_OK ? status : c->base.status;
}

static qn_status note_keys(const chain *c, qn_data *data) {
    const qn__file_list *list = c->files->list;
    qn_status status = QN_OK;
    for (size_t k = 0; k < list->keys && status == QN_OK; k++) {
        char text[160];
        int is_column = 0;
        for (uint64_t i = c->own; i < c->columns; i++)
            is_column |= c->column[i].key == k + 1;
        snprintf(text, sizeof text,
                 "the column \"%.60s\" is read from the files, not from the names of their folders",
                 list->file[0].key[k].name);
        if (!is_column)
            status = qn__data_add_note(data, text, c->base.err);
    }
    return status;
}

qn_status qn__arrow_read_files(qn__part_files *files, qn__arrow_opener *open,
                               const qn_data_options *options, qn__pool *pool, qn_data *data,
                               qn_error *err) {
    if (files->list->count == 1 && files->list->keys == 0)
        return read_one(files, open, options, pool, data, err);
    chain c = {.base = {.table = &portions, .err = err},
               .files = files,
               .open = open,
               .pool = pool,
               .choosing = options->features != NULL,
               .words = qn__text_items_wanted(options)};
    qn_status status = fill_from(&c, options, data);
    if (status == QN_OK)
        status = note_keys(&c, data);
    status = close_file(&c.now, status, err);
    status = close_file(&c.first, status, err);
    qn__pile_release(&c.portion);
    qn__pile_release(&c.pile);
    return status;
}
