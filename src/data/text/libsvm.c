/* LIBSVM (SVMlight) text: lines `LABEL INDEX:VALUE ...`, made into a dense table
 * (docs/exactness.md 2.1.11).
 *
 * The text is in memory and is cut into blocks of about 1 MiB at line ends. A first pass of all
 * threads counts lines, finds the greatest index and whether an index 0 or a value that is not a
 * byte occurs; so it decides the shape and the type. A second pass writes labels and values. */
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/label_values.h"
#include "data/cells/readers.h"
#include "data/table/missing.h"
#include "data/table/table_space.h"
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1 << 20)
/* Values that a text may demand: 64 for each of its bytes, and 64 Mi more (docs/formats.md). */
#define VALUES_PER_BYTE 64.0
#define VALUES_FREE 0x1p26

typedef enum fault {
    FINE,
    LABEL_MISSING,
    LABEL_TEXT,
    LABEL_LIST,
    LABEL_INFINITE,
    NO_PAIR,
    NO_INDEX,
    ORDER,
    INFINITE_VALUE,
    RANGE
} fault;

/* The lines that begin in a block, and what the first pass found in them. */
typedef struct block {
    const char *begin, *end;
    uint64_t first_row, rows;
    int64_t greatest; /* index, or -1 */
    int zero, odd, missing, queries;
    fault fault;
    const char *at; /* of the fault */
    size_t size;    /* of the text that is wrong */
} block;

/* The text of a file among those of others. */
struct piece {
    const char *path;
    size_t end; /* of it in the whole text, with the line end after it */
};

typedef struct table {
    const char *path;
    const char *text;
    size_t size;
    block *block;
    size_t blocks;
    atomic_size_t next;
    qn_data *data;
    double *label;             /* NULL: unlabelled */
    uint32_t base;             /* the index of the first feature */
    const struct piece *piece; /* where the text of each file ends */
} table;

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static int ends_line(char c) { return c == '\n' || c == '#'; }

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static const char *word_end(const char *at, const char *end) {
    while (at < end && !is_blank(*at) && !ends_line(*at))
        at++;
    return at;
}

static const char *fail(block *b, fault what, const char *at, const char *end) {
    b->fault = what;
    b->at = at;
    b->size = (size_t)(end - at);
    return NULL;
}

/* ------------------------------------------------------------------ numbers */

static fault round_value(const qn__cell *cell, const qn__decimal *decimal, float *value) {
    if (qn__decimal_to_float(decimal, value))
        return FINE;
    return qn__parse_float(cell->text, cell->size, value) && isfinite(*value) ? FINE : RANGE;
}

/* A value in any form; a missing one is a NaN. */
static fault read_value(const qn__cell *cell, float *value) {
    qn__decimal decimal;
    if (cell->size == 0)
        return NO_PAIR;
    if (qn__cell_number(cell, &decimal))
        return round_value(cell, &decimal, value);
    const qn__content content = qn__cell_content(cell);
    qn__set_missing(value);
    return content == QN__CONTENT_INFINITE ? INFINITE_VALUE
           : content == QN__CONTENT_TEXT   ? NO_PAIR
                                           : FINE;
}

/* A whole label as it is, another one as the float that it rounds to. Where that is whole, the next
 * double stands for it, which rounds to the same float and is not taken for a class number. */
static fault read_label(const qn__cell *cell, double *label) {
    qn__decimal decimal;
    int32_t whole;
    float value;
    if (!qn__cell_number(cell, &decimal)) {
        const qn__content content = qn__cell_content(cell);
        return content == QN__CONTENT_INFINITE       ? LABEL_INFINITE
               : memchr(cell->text, ':', cell->size) ? LABEL_MISSING
               : memchr(cell->text, ',', cell->size) ? LABEL_LIST
               : content == QN__CONTENT_TEXT         ? LABEL_TEXT
                                                     : LABEL_MISSING;
    }
    const qn__row_fault kind = qn__decimal_to_label(&decimal, &whole);
    if (kind == QN__ROW_FINE) {
        *label = whole;
        return FINE;
    }
    const fault what = round_value(cell, &decimal, &value);
    *label = (double)value;
    if (what != FINE || kind != QN__ROW_LABEL_BROKEN || *label != floor(*label))
        return what;
    *label = nextafter(*label, HUGE_VAL);
    return FINE;
}

/* ------------------------------------------------------------------ lines */

/* The digits before a colon; NULL: these are none, or the index is too large. */
static const char *read_index(const char *at, const char *end, int64_t *index) {
    int64_t sum = 0;
    const char *first = at;
    for (; at < end && *at >= '0' && *at <= '9' && sum < UINT32_MAX; at++)
        sum = sum * 10 + (*at - '0');
    *index = sum;
    return at > first && at < end && *at == ':' && sum < UINT32_MAX ? at + 1 : NULL;
}

/* Digits alone, up to 255, as most values of images are; NULL: read it in another way. */
static const char *read_byte(const char *at, const char *end, float *value) {
    unsigned sum = 0;
    const char *first = at;
    for (; at < end && *at >= '0' && *at <= '9' && sum <= 255; at++)
        sum = sum * 10 + (unsigned)(*at - '0');
    *value = (float)sum;
    return at > first && sum <= 255 && (at == end || is_blank(*at) || ends_line(*at)) ? at : NULL;
}

static const char *read_number(block *b, const char *at, const char *end, float *value) {
    qn__decimal decimal;
    const char *after = read_byte(at, end, value);
    if (after)
        return after;
    b->odd = 1;
    after = qn__decimal_read(at, end, &decimal);
    if (after && (after == end || is_blank(*after) || ends_line(*after)) &&
        qn__decimal_to_float(&decimal, value))
        return after;
    const qn__cell cell = {.text = at, .size = (size_t)(word_end(at, end) - at)};
    const fault what = read_value(&cell, value);
    if (what != FINE)
        return fail(b, what, at, at + cell.size);
    b->missing |= qn__is_missing(*value);
    return at + cell.size;
}

/* `qid:7` groups items for ranking, which nothing here does. */
static int is_query(const char *at, const char *end) {
    return end - at > 4 && memcmp(at, "qid:", 4) == 0;
}

static void put(const table *t, uint64_t row, int64_t index, float value) {
    const size_t at = (size_t)row * t->data->features + (size_t)(index - t->base);
    if (t->data->type == QN_U8)
        ((uint8_t *)qn__table_space_values(t->data))[at] = (uint8_t)value;
    else
        ((float *)qn__table_space_values(t->data))[at] = value;
}

static const char *read_pairs(const table *t, block *b, uint64_t row, const char *at,
                              const char *end) {
    int64_t last = -1, index;
    for (at = skip_blanks(at, end); at < end && !ends_line(*at); at = skip_blanks(at, end)) {
        const char *word = at;
        float value;
        if (*at == 'q' && last < 0 && is_query(at, word_end(at, end))) {
            b->queries = 1;
            at = word_end(at, end);
            continue;
        }
        if (!(at = read_index(at, end, &index)))
            return fail(b, NO_INDEX, word, word_end(word, end));
        if (index <= last)
            return fail(b, ORDER, word, word_end(word, end));
        if (!(at = read_number(b, at, end, &value)))
            return NULL;
        last = index;
        b->zero |= index == 0;
        b->greatest = index > b->greatest ? index : b->greatest;
        if (t->data->memory)
            put(t, row, index, value);
    }
    return at;
}

/* An item; NULL: b says what is wrong. */
static const char *read_item(const table *t, block *b, uint64_t row, const char *at,
                             const char *end) {
    const char *after = word_end(at, end);
    const qn__cell cell = {.text = at, .size = (size_t)(after - at)};
    double label = 0;
    const fault what = read_label(&cell, &label);
    if (what != FINE)
        return fail(b, what, at, after);
    if (t->label && t->data->memory)
        t->label[row] = label;
    return read_pairs(t, b, row, after, end);
}

static void read_block(const table *t, block *b) {
    uint64_t row = b->first_row;
    for (const char *at = b->begin; at < b->end;) {
        at = skip_blanks(at, b->end);
        if (at < b->end && !ends_line(*at)) {
            if (!(at = read_item(t, b, row, at, b->end)))
                return;
            row++;
        }
        const char *line = at < b->end ? memchr(at, '\n', (size_t)(b->end - at)) : NULL;
        at = line ? line + 1 : b->end;
    }
    b->rows = row - b->first_row;
}

static void read_blocks(void *context, int thread) {
    table *t = context;
    size_t i;
    (void)thread;
    while ((i = atomic_fetch_add(&t->next, 1)) < t->blocks)
        read_block(t, &t->block[i]);
}

static qn_status cut(table *t, qn_error *err) {
    t->blocks = t->size / BLOCK + 1;
    t->block = qn__alloc(t->blocks, sizeof *t->block, err);
    if (!t->block)
        return QN_MEMORY;
    const char *at = t->text, *end = t->text + t->size;
    for (size_t i = 0; i < t->blocks; i++) {
        const size_t done = (size_t)(at - t->text), goal = (i + 1) * BLOCK;
        const char *line =
            goal < t->size && goal > done ? memchr(t->text + goal, '\n', t->size - goal) : NULL;
        t->block[i] = (block){.begin = at, .greatest = -1};
        at = goal <= done ? at : line ? line + 1 : end;
        t->block[i].end = at;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ refusals */

static qn_status say_fault(const block *b, const char *word, qn_error *err) {
    switch (b->fault) {
    case LABEL_MISSING:
        return qn__fail(err, QN_INPUT, "a label is missing: \"%s\"", word);
    case LABEL_TEXT:
        return qn__fail(err, QN_INPUT, "the label \"%s\" is not a number", word);
    case LABEL_LIST:
        return qn__fail(err, QN_INPUT, "\"%s\" is a list of labels, and an item has one", word);
    case LABEL_INFINITE:
        return qn__fail(err, QN_INPUT, "the label \"%s\" is infinite", word);
    case ORDER:
        return qn__fail(err, QN_INPUT, "the index of \"%s\" is not greater than the one before it",
                        word);
    case INFINITE_VALUE:
        return qn__fail(err, QN_INPUT, "the value \"%s\" is infinite", word);
    case RANGE:
        return qn__fail(err, QN_INPUT, "the number \"%s\" is beyond the range of float32", word);
    case NO_PAIR:
        return qn__fail(err, QN_INPUT, "the value \"%s\" is not a number", word);
    default:
        return qn__fail(err, QN_INPUT, "\"%s\" is not INDEX:VALUE", word);
    }
}

static const char *remedy_of(fault what) {
    switch (what) {
    case LABEL_MISSING:
    case LABEL_TEXT:
    case LABEL_LIST:
        return "begin each line with one number, its label; a table with texts can be written as "
               "CSV";
    case ORDER:
        return "sort the pairs of each line by index, each index once";
    case INFINITE_VALUE:
    case LABEL_INFINITE:
    case RANGE:
        return "scale or replace the value; nan is read as a missing value, but not as a label";
    default:
        return "write a whole index from 0 below 2^32 - 1, a colon and a number, such as 3:0.5";
    }
}

static qn_status refuse(const table *t, const block *b, qn_error *err) {
    uint64_t line = 1;
    char word[64];
    const struct piece *piece = t->piece;
    const char *begin = t->text;
    for (; (size_t)(b->at - t->text) >= piece->end && piece->end < t->size; piece++)
        begin = t->text + piece->end;
    for (const char *p = begin; p < b->at && (p = memchr(p, '\n', (size_t)(b->at - p))); p++)
        line++;
    qn__cell_show(&(qn__cell){.text = b->at, .size = b->size}, word);
    say_fault(b, word, err);
    qn__at(err, "%s, line %" PRIu64 ", byte %zu", piece->path, line, (size_t)(b->at - begin));
    return qn__remedy(err, QN_INPUT, "%s", remedy_of(b->fault));
}

static qn_status refuse_shape(const table *t, const char *remedy, qn_error *err) {
    qn__at(err, "%s", t->path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* ------------------------------------------------------------------ the table */

/* What all blocks have found together. */
static block sum_up(const table *t, uint64_t *rows) {
    block all = {.greatest = -1};
    *rows = 0;
    for (size_t i = 0; i < t->blocks && all.fault == FINE; i++) {
        block *b = &t->block[i];
        b->first_row = *rows;
        *rows += b->rows;
        all.greatest = b->greatest > all.greatest ? b->greatest : all.greatest;
        all.zero |= b->zero;
        all.odd |= b->odd;
        all.missing |= b->missing;
        all.queries |= b->queries;
        all.fault = b->fault;
        all.at = b->at;
        all.size = b->size;
    }
    return all;
}

static qn_status add_note(qn_data *data, const char *note, qn_error *err) {
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", data->note ? data->note : "", data->note ? "\n" : "",
             note);
    qn__free(data->note);
    data->note = qn__copy_text(text, err);
    return data->note ? QN_OK : QN_MEMORY;
}

/* Items without the last features, as in most test files, get them as zeros. */
static qn_status choose_width(table *t, const block *all, uint32_t expected, qn_error *err) {
    char text[256];
    t->base = !all->zero;
    t->data->features = (uint32_t)(all->greatest + 1 - t->base);
    const uint32_t own = t->data->features;
    if (expected <= own || all->zero)
        t->data->features = own > expected ? own : expected;
    else {
        t->data->features = expected;
        snprintf(text, sizeof text,
                 "the greatest index is %" PRIu32 " of %" PRIu32
                 ", and none is 0, so indices count from 1; where those of the other data count "
                 "from 0, write 0:0 into an item",
                 own, expected);
        return add_note(t->data, text, err);
    }
    return QN_OK;
}

static qn_status check_size(const table *t, qn_error *err) {
    const double values = (double)t->data->items * (double)t->data->features;
    if (values <= VALUES_PER_BYTE * (double)t->size + VALUES_FREE)
        return QN_OK;
    qn__fail(err, QN_INPUT,
             "the dense table of %" PRIu64 " items with %" PRIu32
             " features is too large for a text of %zu bytes",
             t->data->items, t->data->features, t->size);
    return refuse_shape(t,
                        "tables are dense here: select or hash the features first, so that there "
                        "are fewer",
                        err);
}

static qn_status reserve(table *t, const block *all, const qn_data_options *options,
                         qn_error *err) {
    qn_data *data = t->data;
    if (all->greatest < 0 || (all->greatest == 0 && !all->zero)) {
        qn__fail(err, QN_INPUT, "no item has a feature");
        return refuse_shape(t, "write features as INDEX:VALUE after the label", err);
    }
    qn_status status = choose_width(t, all, options->expected_features, err);
    if (status == QN_OK)
        status = check_size(t, err);
    if (status == QN_OK && all->queries)
        status = add_note(data, "the query ids (qid) are not used", err);
    if (status != QN_OK)
        return status;
    data->type = all->odd ? QN_F32 : QN_U8;
    data->missing = all->missing;
    status = qn__table_space_make(data, err);
    if (status == QN_OK && !options->unlabelled &&
        !(t->label = qn__alloc(data->items, sizeof *t->label, err)))
        return QN_MEMORY;
    return status;
}

static void run(table *t, qn__pool *pool) {
    atomic_store(&t->next, 0);
    qn__pool_run(pool, read_blocks, t);
}

static qn_status fill(table *t, const qn_data_options *options, qn__pool *pool, qn_error *err) {
    uint64_t item = 0;
    qn_status status = cut(t, err);
    if (status != QN_OK)
        return status;
    run(t, pool);
    const block all = sum_up(t, &t->data->items);
    if (all.fault != FINE)
        return refuse(t, &all, err);
    status = reserve(t, &all, options, err);
    if (status != QN_OK)
        return status;
    run(t, pool);
    if (!t->label)
        return QN_OK;
    status = qn__labels_from_numbers(t->data, t->label, options->task, &item, err);
    return status == QN_INPUT ? refuse_shape(t, QN__LABEL_RANGE_REMEDY, err) : status;
}

/* ------------------------------------------------------------------ files */

/* Appends the text of a file, which ends with a line end then. */
static qn_status append(qn__contents *all, qn__source *source, qn_error *err) {
    qn__contents text;
    const qn_status status = qn__source_contents(source, &text, err);
    if (status != QN_OK)
        return status;
    if (!all->memory) {
        *all = text;
        return QN_OK;
    }
    const size_t size = all->size + 1 + text.size;
    char *longer = realloc(all->memory, size + QN__DATA_MARGIN);
    if (longer) {
        longer[all->size] = '\n';
        memcpy(longer + all->size + 1, text.data, text.size);
        memset(longer + size, 0, QN__DATA_MARGIN);
        *all = (qn__contents){longer, size, longer, NULL};
    }
    qn__contents_release(&text);
    /* cppcheck-suppress memleak; `all` has it */
    return longer ? QN_OK : qn__fail_memory(err, size, 1);
}

/* The texts of all files, one after the other: the last index of a line is that of all. */
static qn_status read_texts(qn__part_files *files, struct piece *piece, qn__contents *all,
                            qn_error *err) {
    qn_status status = QN_OK;
    for (size_t i = 0; i < files->list->count && status == QN_OK; i++) {
        qn__source *source;
        status = qn__part_files_open(files, i, &source, err);
        if (status == QN_OK)
            status = qn__part_files_close(source, append(all, source, err), err);
        piece[i] = (struct piece){files->list->file[i].path, all->size + 1};
    }
    return status;
}

static qn_status read_libsvm(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                             qn_data *data, qn_error *err) {
    qn__contents text = {0};
    const int one = qn__part_files_are_one(files);
    struct piece *piece = qn__alloc(files->list->count, sizeof *piece, err);
    qn_status status = piece ? read_texts(files, piece, &text, err) : QN_MEMORY;
    if (status == QN_OK) {
        if (one)
            piece->path = files->name; /* it may be the standard input */
        table t = {.path = files->name,
                   .text = text.data,
                   .size = text.size,
                   .data = data,
                   .piece = piece};
        status = fill(&t, options, pool, err);
        qn__free(t.block);
        qn__free(t.label);
    }
    qn__contents_release(&text);
    qn__free(piece);
    return status;
}

/* ------------------------------------------------------------------ the probe */

static int is_value(const char *at, const char *end) {
    float value;
    return read_value(&(qn__cell){.text = at, .size = (size_t)(end - at)}, &value) != NO_PAIR;
}

static int is_label(const char *at, const char *end) {
    qn__decimal decimal;
    for (; at < end; at++) { /* a list of labels too, for its message */
        at = qn__decimal_read(at, end, &decimal);
        if (!at || (at < end && *at != ','))
            return 0;
    }
    return 1;
}

/* 1: a label and pairs; 0: a label alone, or nothing; -1: something else. Without a separator of
 * CSV a pair after the first word is enough, so that what is wrong after it is named. `cut`: the
 * last word may go on after `end`. */
static int probe_line(const char *at, const char *end, int cut) {
    int64_t index = -1, last = -1;
    int pairs = 0, separators = 0, needed = 1;
    for (const char *p = at; p < end && !ends_line(*p); p++) {
        separators |= *p == ',' || *p == ';' || *p == '\t';
        needed = *p == '\t' ? 2 : needed; /* one may be a column of times of the day */
    }
    const char *after = word_end(at = skip_blanks(at, end), end);
    if (separators && !is_label(at, after))
        return -1;
    for (at = skip_blanks(after, end); at < end && !ends_line(*at); at = skip_blanks(after, end)) {
        after = word_end(at, end);
        if (cut && after == end)
            break;
        const char *value = read_index(at, after, &index);
        if (!is_query(at, after) &&
            (!value || !is_value(value, after) || (separators && index <= last)))
            return pairs > 0 && !separators ? 1 : -1;
        last = index;
        pairs++;
    }
    return pairs >= needed ? 1 : pairs > 0 ? -1 : 0;
}

static int probe(const uint8_t *first, size_t size, const char *path) {
    const char *at = (const char *)first, *end = at + size;
    (void)path;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const int found = probe_line(at, line ? line : end, !line && size == QN__PROBE_BYTES);
        if (found != 0)
            return found > 0 ? QN__PROBE_MAGIC : QN__PROBE_NO;
        at = line ? line + 1 : end;
    }
    return QN__PROBE_NO;
}

const qn__reader qn__libsvm_reader = {
    .name = QN__PACKED_NAMES("libsvm"),
    .about = "LIBSVM: numbers without zeros",
    .endings = {"libsvm", "svm", "svmlight"},
    .text = 1,
    .quantities = 1,
    .labels_remedy = "the label is the first number of each line: leave the option out",
    .probe = probe,
    .read_parts = read_libsvm,
};
