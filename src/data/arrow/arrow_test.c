/* Tables by the Arrow C interfaces, built here by hand as the specification says. */
#include "base/memory.h"
#include "data/arrow/arrow_build.h"
#include "data/arrow/arrow_table.h"
#include "data/cells/labels.h"
#include "data/table/testing.h"
#include <errno.h>
#include <math.h>
#include <quern/arrow.h>

/* A column of a part: null-terminated lists of buffers would not do, as any may be NULL. */
typedef struct column {
    const void *buffer[4];
    int buffers;
    int64_t nulls, offset;
    struct column *dictionary;
} column;

enum { COLUMNS = 4, PARTS = 3 };

/* What a stream hands out: `rows` and columns of each part. */
typedef struct table {
    const char *format[COLUMNS], *name[COLUMNS], *dictionary[COLUMNS];
    int columns, parts;
    int64_t rows[PARTS], offset[PARTS];
    column column[PARTS][COLUMNS];
    int fails_at; /* get_next fails there; -1: never */
    int lie;      /* rows that are counted and not there */
    int portion;  /* the part that is handed out now */
    const char *metadata;
    /* What the stream did. */
    int given, schemas, arrays, streams; /* schemas, arrays: alive; streams: released */
} table;

/* ------------------------------------------------------------------ a producer */

static void release_schema(struct ArrowSchema *s) {
    for (int64_t i = 0; i < s->n_children; i++) {
        if (s->children[i]->dictionary)
            free(s->children[i]->dictionary);
        free(s->children[i]);
    }
    free((void *)s->children);
    --*(int *)s->private_data;
    s->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    table *t = stream->private_data;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .metadata = t->metadata,
                                .n_children = t->columns,
                                .release = release_schema,
                                .private_data = &t->schemas};
    out->children = calloc(COLUMNS, sizeof *out->children);
    for (int i = 0; i < t->columns; i++) {
        out->children[i] = calloc(1, sizeof **out->children);
        out->children[i]->format = t->format[i];
        out->children[i]->name = t->name[i];
        if (t->dictionary[i]) {
            out->children[i]->dictionary = calloc(1, sizeof **out->children);
            out->children[i]->dictionary->format = t->dictionary[i];
        }
    }
    t->schemas++;
    return 0;
}

static void release_array(struct ArrowArray *a) {
    for (int64_t i = 0; i < a->n_children; i++) {
        free(a->children[i]->dictionary);
        free(a->children[i]);
    }
    free((void *)a->children);
    --*(int *)a->private_data;
    a->release = NULL;
}

static struct ArrowArray *make_column(const column *c, int64_t length) {
    struct ArrowArray *a = calloc(1, sizeof *a);
    *a = (struct ArrowArray){.length = length,
                             .null_count = c->nulls,
                             .offset = c->offset,
                             .n_buffers = c->buffers,
                             .buffers = (const void **)(uintptr_t)c->buffer};
    if (c->dictionary)
        a->dictionary = make_column(c->dictionary, 3);
    return a;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    table *t = stream->private_data;
    *out = (struct ArrowArray){0};
    if (t->given == t->fails_at)
        return EIO;
    if (t->given == t->parts)
        return 0;
    static const void *no_buffer[1];
    *out = (struct ArrowArray){.length = t->rows[t->given],
                               .offset = t->offset[t->given],
                               .n_buffers = 1,
                               .buffers = no_buffer,
                               .n_children = t->columns,
                               .release = release_array,
                               .private_data = &t->arrays};
    out->children = calloc(COLUMNS, sizeof *out->children);
    for (int i = 0; i < t->columns; i++)
        out->children[i] =
            make_column(&t->column[t->given][i], t->rows[t->given] + t->offset[t->given]);
    t->arrays++;
    t->given++;
    return 0;
}

static const char *last_error(struct ArrowArrayStream *stream) {
    (void)stream;
    return "the disk is gone";
}

static void release_stream(struct ArrowArrayStream *stream) {
    ++((table *)stream->private_data)->streams;
    stream->release = NULL;
}

/* Reads the table, and checks that all was released, once. */
static qn_status take(table *t, const qn_data_options *options, qn_data **data, qn_error *err) {
    struct ArrowArrayStream stream = {get_schema, get_next, last_error, release_stream, t};
    if (!t->fails_at)
        t->fails_at = -1;
    const qn_status status = qn_data_from_arrow(&stream, options, data, err);
    assert_int_equal(t->schemas, 0);
    assert_int_equal(t->arrays, 0);
    assert_int_equal(t->streams, 1);
    assert_null(stream.release);
    t->given = t->streams = 0;
    return status;
}

/* ------------------------------------------------------------------ tables */

static const int32_t ages[] = {31, 42, 53, 64};
static const double weights[] = {1.5, -2, 0, 3.25};
static const uint8_t not_the_third[] = {0xB}; /* bits 0, 1, 3 */
static const char letters[] = "catdogbird";
static const int64_t wide_offsets[] = {0, 3, 6, 10};
static const int8_t indices[] = {2, 0, 2, 1};

/* A label of texts, an int32, a double with a null and a dictionary; four rows in one part. */
static table mixed(void) {
    static column animals = {.buffer = {NULL, wide_offsets, letters}, .buffers = 3};
    static const int32_t label_offsets[] = {0, 1, 2, 3, 4};
    table t = {.format = {"u", "i", "g", "c"},
               .name = {"kind", "age", "weight", "animal"},
               .dictionary = {NULL, NULL, NULL, "U"},
               .columns = 4,
               .parts = 1,
               .rows = {4}};
    t.column[0][0] = (column){.buffer = {NULL, label_offsets, "baab"}, .buffers = 3};
    t.column[0][1] = (column){.buffer = {NULL, ages}, .buffers = 2};
    t.column[0][2] = (column){.buffer = {not_the_third, weights}, .buffers = 2, .nulls = 1};
    t.column[0][3] = (column){.buffer = {NULL, indices}, .buffers = 2, .dictionary = &animals};
    return t;
}

/* The metadata of a schema: pairs of these texts. */
static void put_metadata(char *to, int pairs, const char *const *texts) {
    const int32_t count = pairs;
    memcpy(to, &count, sizeof count);
    to += sizeof count;
    for (int i = 0; i < 2 * pairs; i++) {
        const int32_t size = (int32_t)strlen(texts[i]);
        memcpy(to, &size, sizeof size);
        memcpy(to + sizeof size, texts[i], (size_t)size);
        to += sizeof size + (size_t)size;
    }
}

static void check_index(const char *json, const char *label, const char *rules, uint32_t features,
                        const char *told) {
    char metadata[512], text[QN_RULES_TEXT];
    const char *const pairs[] = {"other", "{\"index_columns\": [\"age\"]}", "pandas", json};
    table t = mixed();
    qn_data *data;
    qn_error err;
    qn_data_options options;
    qn_data_options_init(&options);
    options.label_column = label;
    options.expected_rules = rules;
    put_metadata(metadata, 2, pairs);
    t.metadata = metadata;
    assert_int_equal(take(&t, &options, &data, &err), QN_OK);
    assert_int_equal(qn_data_features(data), features);
    qn_data_rules(data, text, sizeof text);
    assert_string_equal(text, told);
    assert_int_equal(qn_data_note(data) != NULL && strstr(qn_data_note(data), "its index") != NULL,
                     features < 3);
    qn_data_close(data);
}

static void test_index_of_pandas(void **state) {
    (void)state;
    check_index("{\"index_columns\": [\"animal\"]}", NULL, NULL, 2, "index");
    check_index("{\"index_columns\": [\"animal\", \"weight\"]}", NULL, NULL, 1, "index");
    check_index("{\"index_columns\": [\"animal\"]}", NULL, "", 3, ""); /* of an old model */
    check_index("{\"index_columns\": [\"animal\"]}", NULL, "orientation", 3, "");
    check_index("{\"index_columns\": [\"animal\"]}", NULL, "index", 2, "index");
    check_index("{\"index_columns\": [\"kind\"]}", "kind", NULL, 3, ""); /* who names it has it */
    check_index("{\"index_columns\": [\"animal\", \"weight\"]}", "last", NULL, 1, "index");
    check_index("{\"index_columns\": [{\"kind\": \"range\"}]}", NULL, NULL, 3, "");
    check_index("{\"index_columns\": [\"nothing\"]}", NULL, NULL, 3, "");
    check_index("{\"index_columns\": {\"animal\": 1}}", NULL, NULL, 3, "");
    check_index("{\"index_columns\": [\"animal\"", NULL, NULL, 3, "");
    check_index("", NULL, NULL, 3, "");
}

static void test_mixed(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    table t = mixed();
    assert_int_equal(take(&t, NULL, &data, &err), QN_OK);
    check_whole(data);
    assert_int_equal(qn_data_items(data), 4);
    assert_int_equal(qn_data_features(data), 3);
    assert_string_equal(qn_data_format(data), "arrow");
    assert_string_equal(qn_data_label_name(data), "kind");
    assert_int_equal(qn_data_target(data), QN_TARGET_CLASS);
    assert_string_equal(qn_data_class_name(data, 0), "a");
    assert_string_equal(qn_data_class_name(data, 1), "b");
    assert_memory_equal(qn_data_labels(data), ((int32_t[]){1, 0, 0, 1}), 16);
    assert_string_equal(qn_data_feature_name(data, 1), "weight");
    assert_int_equal(qn_data_categories(data, 2), 3);
    assert_string_equal(qn_data_category(data, 2, 0), "bird");
    for (uint32_t k = 0; k < 3; k++)
        assert_int_equal(qn_data_feature_type(data, k), k == 0 ? QN_U8 : QN_F32);
    const float wanted[] = {31, 1.5f, 0, 42, -2, 1, 53, NAN, 0, 64, 3.25f, 2};
    const float *values = qn_data_values(data);
    for (int i = 0; i < 12; i++)
        assert_true(values[i] == wanted[i] || (isnan(values[i]) && isnan(wanted[i])));
    qn_data_close(data);
}

/* The same rows in parts, with offsets in part and column, an empty part between them. */
static void test_parts(void **state) {
    (void)state;
    qn_data *data, *parts;
    table t = mixed();
    assert_int_equal(take(&t, NULL, &data, NULL), QN_OK);
    table cut = mixed();
    cut.parts = 3;
    cut.rows[0] = 1;
    cut.rows[1] = 0;
    cut.rows[2] = 3;
    memcpy(cut.column[1], cut.column[0], sizeof *cut.column);
    memcpy(cut.column[2], cut.column[0], sizeof *cut.column);
    cut.offset[2] = 1; /* of the part */
    assert_int_equal(take(&cut, NULL, &parts, NULL), QN_OK);
    assert_string_equal(qn_data_digest(parts), qn_data_digest(data));
    qn_data_close(parts);
    cut.offset[2] = 0;
    for (int i = 0; i < COLUMNS; i++)
        cut.column[2][i].offset = 1; /* of each column */
    assert_int_equal(take(&cut, NULL, &parts, NULL), QN_OK);
    assert_string_equal(qn_data_digest(parts), qn_data_digest(data));
    qn_data_close(parts);
    qn_data_close(data);
}

/* ------------------------------------------------------------------ portions */

/* A part at a time, as a reader of a large file hands them out. */
static int get_portion(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    const table *t = stream->private_data;
    *out = (struct ArrowArray){0};
    return t->given == t->portion ? get_next(stream, out) : 0;
}

static int more(struct ArrowArrayStream *stream) {
    table *t = stream->private_data;
    assert_int_equal(t->arrays, 0); /* the parts before are released */
    return ++t->portion < t->parts;
}

static int count_rows(struct ArrowArrayStream *stream, uint64_t *rows) {
    const table *t = stream->private_data;
    *rows = (uint64_t)(t->rows[0] + t->rows[1] + t->rows[2] + t->lie);
    return 0;
}

/* `counted` 0: the number of rows is not known before the end of the stream. */
static qn_status take_portions(table *t, int counted, qn_data **out, qn_error *err) {
    struct ArrowArrayStream stream = {get_schema, counted ? get_portion : get_next, last_error,
                                      release_stream, t};
    const qn__arrow_source source = {.stream = &stream,
                                     .name = "portions",
                                     .rows = counted ? count_rows : NULL,
                                     .more = counted ? more : NULL,
                                     .portion_rows = 1};
    qn_data_options options;
    qn_data_options_init(&options);
    qn_data *data = *out = qn__alloc(1, sizeof *data, NULL);
    t->fails_at = -1;
    t->given = t->portion = 0;
    qn_status status = qn__arrow_fill(&source, &options, data, err);
    if (status == QN_OK)
        status = qn__labels_settle(data, &options, 1, "portions", err);
    if (status == QN_OK)
        qn__data_finish(data, NULL);
    assert_int_equal(t->arrays, 0);
    t->given = 0;
    return status;
}

/* The table in portions is the same as at once. */
static void check_portions_of(table *t, int counted, qn_data_type type) {
    qn_data *data, *portions;
    qn_error err = {0};
    assert_int_equal(take(t, NULL, &data, &err), QN_OK);
    assert_int_equal(take_portions(t, counted, &portions, &err), QN_OK);
    assert_int_equal(qn_data_items(portions), qn_data_items(data));
    assert_int_equal(qn_data_type_of(portions), type);
    assert_string_equal(qn_data_digest(portions), qn_data_digest(data));
    for (uint32_t k = 0; k < qn_data_features(data); k++) {
        assert_int_equal(qn_data_feature_type(portions, k), qn_data_feature_type(data, k));
        assert_int_equal(qn_data_categories(portions, k), qn_data_categories(data, k));
        for (uint32_t i = 0; i < qn_data_categories(data, k); i++)
            assert_string_equal(qn_data_category(portions, k, i), qn_data_category(data, k, i));
    }
    qn_data_close(data);
    qn_data_close(portions);
}

static void check_portions(table *t, qn_data_type type) {
    check_portions_of(t, 1, type);
    check_portions_of(t, 0, type);
}

static table three_parts(void) {
    table t = mixed();
    t.parts = 3;
    for (int i = 0; i < 3; i++) {
        memcpy(t.column[i], t.column[0], sizeof *t.column);
        t.offset[i] = i;
        t.rows[i] = 4 - i;
    }
    return t;
}

static void test_portions(void **state) {
    (void)state;
    table t = three_parts();
    check_portions(&t, QN_F32);
    t.rows[1] = 0;
    check_portions(&t, QN_F32);
}

/* Whole numbers, which are bytes in the first portions at most. */
static void test_portions_of_bytes(void **state) {
    (void)state;
    static const uint8_t all[] = {0xFF};
    int32_t late[] = {1, 2, 255, 0};
    table t = three_parts();
    t.columns = 2;
    for (int i = 0; i < 3; i++)
        t.column[i][0] = t.column[i][1];
    t.format[0] = "i";
    check_portions(&t, QN_U8);
    t.column[2][0].buffer[1] = late;
    check_portions(&t, QN_U8);
    late[2] = 256;
    t.column[2][1].buffer[1] = late;
    check_portions(&t, QN_F32);
    t.column[2][1] = (column){.buffer = {not_the_third, ages}, .buffers = 2, .nulls = 1};
    check_portions(&t, QN_F32);
    t.column[0][1] = (column){.buffer = {all, ages}, .buffers = 2, .nulls = -1};
    check_portions(&t, QN_F32);
}

static void test_portions_that_change(void **state) {
    (void)state;
    for (int lie = -7; lie <= 1; lie += 4) { /* in the second portion, the third, after all */
        table t = three_parts();
        qn_data *data;
        qn_error err = {0};
        t.lie = lie;
        assert_int_equal(take_portions(&t, 1, &data, &err), QN_INPUT);
        assert_string_equal(err.what, "the file changed while it was read");
        qn_data_close(data);
    }
}

/* ------------------------------------------------------------------ kinds of columns */

/* A column of four numbers as the only feature, unlabelled; its values as text. */
static void check_numbers(const char *format, const void *bytes, const char *wanted) {
    table t = {.format = {format}, .name = {NULL}, .columns = 1, .parts = 1, .rows = {4}};
    t.column[0][0] = (column){.buffer = {NULL, bytes}, .buffers = 2};
    qn_data_options options;
    qn_data *data;
    qn_error err;
    qn_data_options_init(&options);
    options.unlabelled = 1;
    if (take(&t, &options, &data, &err) != QN_OK)
        fail_msg("format %s: %s", format, err.what);
    char text[128] = "";
    for (int i = 0; i < 4; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %.9g",
                 qn_data_type_of(data) == QN_U8 ? (double)((const uint8_t *)qn_data_values(data))[i]
                                                : (double)((const float *)qn_data_values(data))[i]);
    assert_string_equal(text + 1, wanted);
    assert_int_equal(qn_data_type_of(data),
                     strpbrk(wanted, "-.e") || strlen(wanted) > 15 ? QN_F32 : QN_U8);
    qn_data_close(data);
}

static void test_numbers(void **state) {
    (void)state;
    check_numbers("b", "\x05", "1 0 1 0");
    check_numbers("c", ((const int8_t[]){-128, 127, 0, -1}), "-128 127 0 -1");
    check_numbers("C", ((const uint8_t[]){255, 127, 0, 1}), "255 127 0 1");
    check_numbers("s", ((const int16_t[]){-32768, 32767, 0, 1}), "-32768 32767 0 1");
    check_numbers("S", ((const uint16_t[]){255, 254, 0, 1}), "255 254 0 1");
    check_numbers("i", ((const int32_t[]){-1, 16777217, 16777219, 0}), "-1 16777216 16777220 0");
    check_numbers("I", ((const uint32_t[]){UINT32_MAX, 1, 2, 3}), "4.2949673e+09 1 2 3");
    check_numbers("l", ((const int64_t[]){INT64_MIN, 9007199791611905, 1, 2}),
                  "-9.22337204e+18 9.00720033e+15 1 2"); /* rounded once, not by way of double */
    check_numbers("L", ((const uint64_t[]){UINT64_MAX, 1, 2, 3}), "1.84467441e+19 1 2 3");
    check_numbers("e", ((const uint16_t[]){0x3C00, 0xC100, 1, 0x7BFF}),
                  "1 -2.5 5.96046448e-08 65504");
    check_numbers("f", ((const float[]){0.5f, -0.0f, 1, 2}), "0.5 -0 1 2");
    check_numbers("g", ((const double[]){0.1, 1e-60, -1, 2}), "0.100000001 0 -1 2");
}

/* utf8_view: short texts stand in the view, long ones in a buffer. */
static void test_views(void **state) {
    (void)state;
    static const char text[] = "..a long text of 25 bytes";
    const int64_t sizes[] = {sizeof text - 1};
    struct {
        int32_t size;
        char first[4];
        int32_t buffer, offset;
    } views[3] = {{3, "dog", 0, 0}, {23, "a lo", 0, 2}, {3, "dog", 0, 0}};
    table t = {.format = {"vu"}, .name = {"v"}, .columns = 1, .parts = 1, .rows = {3}};
    t.column[0][0] = (column){.buffer = {NULL, views, text, sizes}, .buffers = 4};
    qn_data_options options;
    qn_data *data;
    qn_error err;
    qn_data_options_init(&options);
    options.unlabelled = 1;
    assert_int_equal(take(&t, &options, &data, &err), QN_OK);
    assert_int_equal(qn_data_categories(data, 0), 2);
    assert_string_equal(qn_data_category(data, 0, 0), "a long text of 25 bytes");
    assert_string_equal(qn_data_category(data, 0, 1), "dog");
    assert_memory_equal(qn_data_values(data), ((float[]){1, 0, 1}), 12);
    qn_data_close(data);
    views[1].offset = 3;
    assert_int_equal(take(&t, &options, &data, &err), QN_INPUT);
    check_refusal(QN_INPUT, data, &err);
}

static void test_label_choice(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    qn_data_options options;
    qn_data_options_init(&options);
    options.label_column = "weight";
    options.drop = "animal,kind";
    options.task = "regress";
    options.expected_categories = "age"; /* of CSV alone: a column has its type */
    table t = mixed();
    t.column[0][2].nulls = 0; /* then the bits say nothing */
    assert_int_equal(take(&t, &options, &data, &err), QN_OK);
    assert_int_equal(qn_data_target(data), QN_TARGET_REAL);
    assert_memory_equal(qn_data_targets(data), ((float[]){1.5f, -2, 0, 3.25f}), 16);
    assert_int_equal(qn_data_features(data), 1);
    assert_string_equal(qn_data_feature_name(data, 0), "age");
    assert_int_equal(qn_data_type_of(data), QN_U8);
    qn_data_close(data);
}

/* Numbers that somebody calls categories are the texts that a CSV file would have. */
static void test_codes(void **state) {
    (void)state;
    static const int32_t codes[] = {7, 10, 7, -9};
    static const double marks[] = {1, 2.5, NAN, 1e6};
    qn_data *data;
    qn_data_options options;
    qn_data_options_init(&options);
    options.unlabelled = 1;
    options.category = "code,mark";
    table t = {
        .format = {"i", "g"}, .name = {"code", "mark"}, .columns = 2, .parts = 1, .rows = {4}};
    t.column[0][0] = (column){.buffer = {NULL, codes}, .buffers = 2};
    t.column[0][1] = (column){.buffer = {NULL, marks}, .buffers = 2};
    assert_int_equal(take(&t, &options, &data, NULL), QN_OK);
    static const char *const texts[2][3] = {{"-9", "10", "7"}, {"1", "1000000", "2.5"}};
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(qn_data_categories(data, k), 3);
        for (uint32_t i = 0; i < 3; i++)
            assert_string_equal(qn_data_category(data, k, i), texts[k][i]);
    }
    const float wanted[] = {2, 0, 1, 2, 2, NAN, 0, 1}, *values = qn_data_values(data);
    for (int i = 0; i < 8; i++)
        assert_true(values[i] == wanted[i] || (isnan(values[i]) && isnan(wanted[i])));
    qn_data_close(data);
}

/* Whole targets beyond int64 are rounded once. */
static void test_large_targets(void **state) {
    (void)state;
    static const uint64_t counts[] = {UINT64_MAX, 9007199791611905, 0, 1};
    qn_data *data;
    qn_data_options options;
    qn_data_options_init(&options);
    options.label_column = "n";
    options.task = "regress";
    table t = {.format = {"i", "L"}, .name = {"x", "n"}, .columns = 2, .parts = 1, .rows = {4}};
    t.column[0][0] = (column){.buffer = {NULL, ages}, .buffers = 2};
    t.column[0][1] = (column){.buffer = {NULL, counts}, .buffers = 2};
    assert_int_equal(take(&t, &options, &data, NULL), QN_OK);
    assert_memory_equal(qn_data_targets(data), ((float[]){0x1p64f, 0x1.000002p53f, 0, 1}), 16);
    qn_data_close(data);
}

/* ------------------------------------------------------------------ what is refused */

static void check_refused(table *t, const qn_data_options *options, const char *what,
                          const char *where) {
    qn_data *data;
    qn_error err = {0};
    const qn_status status = take(t, options, &data, &err);
    check_refusal(QN_INPUT, data, &err);
    assert_int_equal(status, QN_INPUT);
    if (!strstr(err.what, what) || !strstr(err.where, where))
        fail_msg("\"%s\" at \"%s\" lacks \"%s\" or \"%s\"", err.what, err.where, what, where);
}

static void test_refused(void **state) {
    (void)state;
    static const double infinite[] = {1, 2, INFINITY, 4};
    static const int8_t beyond[] = {0, 3, 0, 0};
    static const int32_t backwards[] = {0, 3, 2, 10, 10};
    table t = mixed();
    t.fails_at = 1;
    check_refused(&t, NULL, "the disk is gone", "Arrow stream");
    t = mixed();
    t.format[1] = "tiD";
    check_refused(&t, NULL, "intervals", "column 2, age");
    t.format[1] = "t";
    check_refused(&t, NULL, "dates or times", "column 2, age");
    t.format[1] = "+l";
    check_refused(&t, NULL, "lists", "column 2, age");
    t.format[1] = "d:10,200";
    check_refused(&t, NULL, "decimals", "column 2, age");
    t.format[1] = "d:10,2,24";
    check_refused(&t, NULL, "decimals", "column 2, age");
    t = mixed();
    t.dictionary[3] = "tiD";
    check_refused(&t, NULL, "in a dictionary", "column 4, animal");
    t = mixed();
    t.column[0][2] = (column){.buffer = {NULL, infinite}, .buffers = 2};
    check_refused(&t, NULL, "infinite", "item 2, column 3, weight");
    t = mixed();
    t.column[0][3].buffer[1] = beyond;
    check_refused(&t, NULL, "contradicts", "item 1, column 4, animal");
    t = mixed();
    t.column[0][0].buffer[1] = backwards;
    check_refused(&t, NULL, "contradicts", "item 1, column 1, kind");
    t = mixed();
    t.column[0][0].buffer[0] = not_the_third;
    t.column[0][0].nulls = -1; /* unknown */
    check_refused(&t, NULL, "label is missing", "item 2, column 1, kind");
    t = mixed();
    t.column[0][0].buffer[2] = "ba\xffz";
    check_refused(&t, NULL, "UTF-8", "item 2, column 1, kind");
    t = mixed();
    t.rows[0] = 0;
    check_refused(&t, NULL, "no rows", "Arrow stream");
    t = mixed();
    t.columns = 0;
    check_refused(&t, NULL, "no columns", "Arrow stream");
    t = mixed();
    qn_data_options options;
    qn_data_options_init(&options);
    options.label_column = "kin";
    check_refused(&t, &options, "no label column \"kin\"", "schema of the Arrow stream");
}

/* The stream is released when the call itself is wrong, too. */
static void test_usage(void **state) {
    (void)state;
    qn_error err;
    qn_data *data;
    table t = mixed();
    assert_int_equal(take(&t, NULL, NULL, &err), QN_USAGE);
    qn_data_options options;
    qn_data_options_init(&options);
    options.labels_path = "labels";
    assert_int_equal(take(&t, &options, &data, &err), QN_USAGE);
    assert_null(data);
    struct ArrowArrayStream over = {get_schema, get_next, last_error, NULL, &t};
    assert_int_equal(qn_data_from_arrow(&over, NULL, &data, &err), QN_INPUT);
    check_refusal(QN_INPUT, data, &err);
}

/* The digest is that of the same values as arrays. */
static void test_digest(void **state) {
    (void)state;
    static const uint8_t pixels[] = {1, 2, 3, 250};
    static const int64_t classes[] = {0, 1, 1, 0};
    table t = {.format = {"C", "l"}, .name = {"p", "y"}, .columns = 2, .parts = 1, .rows = {4}};
    t.column[0][0] = (column){.buffer = {NULL, pixels}, .buffers = 2};
    t.column[0][1] = (column){.buffer = {NULL, classes}, .buffers = 2};
    qn_data_options options;
    qn_data_options_init(&options);
    options.label_column = "y";
    qn_data *data, *same;
    assert_int_equal(take(&t, &options, &data, NULL), QN_OK);
    assert_int_equal(qn_data_from_arrays(QN_U8, 4, 1, pixels, (int32_t[]){0, 1, 1, 0}, &same, NULL),
                     QN_OK);
    assert_string_equal(qn_data_digest(data), qn_data_digest(same));
    qn_data_close(same);
    qn_data_close(data);
}

/* ------------------------------------------------------------------ columns that grow */

/* Ten rows of an id, a column that becomes real at row 3, one that is empty until row 8, a text
 * with a gap, a float and a truth value. */
static qn__arrow_build *grow_columns(void) {
    static const struct {
        const char *name;
        qn__build_type type;
    } added[] = {{"id", QN__BUILD_INT},      {"size", QN__BUILD_INT},    {"late", QN__BUILD_EMPTY},
                 {"kind", QN__BUILD_TEXT},   {"share", QN__BUILD_FLOAT}, {"truth", QN__BUILD_BOOL},
                 {"other", QN__BUILD_EMPTY}, {"none", QN__BUILD_EMPTY}};
    qn__arrow_build *b;
    qn_status status;
    assert_int_equal(qn__build_create(&b, NULL), QN_OK);
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        assert_int_equal(
            qn__build_add(b, added[i].name, strlen(added[i].name), added[i].type, NULL), QN_OK);
    for (uint64_t row = 0; row < 10; row++) {
        assert_int_equal(qn__build_put_whole(b, 0, (int64_t)row % 3, NULL), QN_OK);
        if (row == 3) {
            assert_int_equal(qn__build_widen(b, 1, QN__BUILD_TEXT, &status, NULL), 0);
            assert_int_equal(qn__build_widen(b, 1, QN__BUILD_DOUBLE, &status, NULL), 1);
        }
        if (row < 3)
            assert_int_equal(qn__build_put_whole(b, 1, -(int64_t)row, NULL), QN_OK);
        else
            assert_int_equal(qn__build_put_number(b, 1, (double)row + 0.5, NULL), QN_OK);
        if (row == 8)
            assert_int_equal(qn__build_widen(b, 2, QN__BUILD_TEXT, &status, NULL), 1);
        if (row == 9)
            assert_int_equal(qn__build_put_text(b, 2, "z", 1, NULL), QN_OK);
        if (row != 4)
            assert_int_equal(qn__build_put_text(b, 3, row % 2 ? "odd!" : "even", 4, NULL), QN_OK);
        assert_int_equal(qn__build_put_number(b, 4, 0.1, NULL), QN_OK);
        assert_int_equal(qn__build_put_whole(b, 5, row > 8, NULL), QN_OK);
        assert_int_equal(qn__build_pad(b, row + 1, NULL), QN_OK);
    }
    assert_int_equal(qn__build_widen(b, 6, QN__BUILD_INT, &status, NULL), 1);
    assert_true(qn__build_columns(b) == 8 && qn__build_rows(b, 7) == 10);
    assert_int_equal(qn__build_type_of(b, 6), QN__BUILD_INT);
    assert_true(qn__build_bytes(b) > 10 * 4 * 8);
    return b;
}

static void test_build(void **state) {
    (void)state;
    static const float want[10][7] = {
        {0, NAN, 0, 0.1f, 0, NAN, NAN},      {-1, NAN, 1, 0.1f, 0, NAN, NAN},
        {-2, NAN, 0, 0.1f, 0, NAN, NAN},     {3.5f, NAN, 1, 0.1f, 0, NAN, NAN},
        {4.5f, NAN, NAN, 0.1f, 0, NAN, NAN}, {5.5f, NAN, 1, 0.1f, 0, NAN, NAN},
        {6.5f, NAN, 0, 0.1f, 0, NAN, NAN},   {7.5f, NAN, 1, 0.1f, 0, NAN, NAN},
        {8.5f, NAN, 0, 0.1f, 0, NAN, NAN},   {9.5f, 0, 1, 0.1f, 1, NAN, NAN}};
    struct ArrowArrayStream stream;
    qn_data *data;
    qn__build_stream(grow_columns(), &stream);
    assert_int_equal(qn_data_from_arrow(&stream, NULL, &data, NULL), QN_OK);
    assert_null(stream.release);
    assert_int_equal(qn_data_items(data), 10);
    assert_int_equal(qn_data_features(data), 7);
    const float *values = qn_data_values(data);
    for (int i = 0; i < 70; i++)
        assert_true(isnan((&want[0][0])[i]) ? isnan(values[i]) : values[i] == (&want[0][0])[i]);
    for (int i = 0; i < 10; i++)
        assert_int_equal(qn_data_labels(data)[i], i % 3);
    assert_string_equal(qn_data_category(data, 1, 0), "z");
    assert_string_equal(qn_data_category(data, 2, 1), "odd!");
    assert_string_equal(qn_data_feature_name(data, 6), "none");
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_label_choice),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_large_targets),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_index_of_pandas),
        cmocka_unit_test(test_portions),
        cmocka_unit_test(test_portions_of_bytes),
        cmocka_unit_test(test_portions_that_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
