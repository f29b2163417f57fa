/* The CSV reader: accepted and refused input, and independence of the number of threads. */
#include "data/table/testing.h"
#include "data/cells/cell.h"
#include "data/text/csv_quotes.h"

typedef struct good {
    const char *text;
    const char *label; /* NULL: the first column; "-": none */
    qn_data_type type;
    uint64_t items;
    uint32_t features;
    float values[4];
    int32_t labels[2];
} good;

static const good goods[] = {
    {"1,2\n3,4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"1,2\n3,4", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"1,2\r\n3,4\r\n\r\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"\xEF\xBB\xBF"
     "1,2\n3,4\n",
     NULL,
     QN_U8,
     2,
     1,
     {2, 4},
     {1, 3}},
    {"1;2\n3;4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"1\t2\n3\t4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {" 1 , 2 \n\t3,4 \n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"\"1\",\"2\"\n\" 3\",4\n", "-", QN_F32, 0, 0, {0}, {0}}, /* blanks inside quotes: refused */
    {"\"1\",\"2\" \n\"3\",4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"class,size\n1,2\n3,4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"size,class\n2,1\n4,3\n", "class", QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"size,class\n2,1\n4,3\n", "last", QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"size,class\n2,1\n4,3\n", "2", QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"last,class\n1,2\n3,4\n", "last", QN_U8, 2, 1, {2, 4}, {1, 3}}, /* a name takes precedence */
    {"2,x\n1,2\n3,4\n", "2", QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"a,\"b,\"\"\nc\"\n1,2\n3,4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"a,\"b\"\"c\"\n2,1\n4,3\n", "b\"c", QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"1,2\n3,4\n", "-", QN_U8, 2, 2, {1, 2, 3, 4}, {0}},
    {"7\n8\n", "-", QN_U8, 2, 1, {7, 8}, {0}},
    {"1,0255\n3,000\n", NULL, QN_U8, 2, 1, {255, 0}, {1, 3}},
    {"1,256\n3,4\n", NULL, QN_F32, 2, 1, {256, 4}, {1, 3}},
    {"1,+2\n3,4\n", NULL, QN_F32, 2, 1, {2, 4}, {1, 3}},
    {"1,-2\n3,4.\n", NULL, QN_F32, 2, 1, {-2, 4}, {1, 3}},
    {"1,2\n3,4.0\n", NULL, QN_F32, 2, 1, {2, 4}, {1, 3}},
    {"1,2e0\n3,.5E+1\n", NULL, QN_F32, 2, 1, {2, 5}, {1, 3}},
    {"1.0,2\n30e-1,4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"3,2\n-0,4\n2,5\n2,6\n1,7\n", NULL, QN_U8, 5, 1, {2, 4, 5, 6}, {3, 0}},
    {"1.00000000000000000000000,2\n3,4\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    /* rounded once: the first two are half-way between floats and beyond in the last digit */
    {"1,16777217\n3,16777217.00000000000000000001\n",
     NULL,
     QN_F32,
     2,
     1,
     {16777216, 16777218},
     {1, 3}},
    {"1,4.226412057876587\n3,4.938138246536255\n",
     NULL,
     QN_F32,
     2,
     1,
     {0x1.0e7d8a0000000p+2f, 0x1.3c0a760000000p+2f},
     {1, 3}},
    {"1,4.717070817947388\n3,4.498105287551880\n",
     NULL,
     QN_F32,
     2,
     1,
     {0x1.2de47e0000000p+2f, 0x1.1fe0f60000000p+2f},
     {1, 3}},
    {"1,1e-45\n3,3.4028235e38\n", NULL, QN_F32, 2, 1, {0x1p-149f, 0x1.fffffep127f}, {1, 3}},
    {"1,2\n3,4\n \n  \r\n\n", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    {"1;2\n3;4  \n   ", NULL, QN_U8, 2, 1, {2, 4}, {1, 3}},
    /* a quote inside a cell of the first line, and CR inside cells of others */
    {"x 5\" y,n\n8\"\rb,1\n9\rc,2\n", "n", QN_F32, 2, 1, {0, 1}, {1, 2}},
    {"1,1e-99999999999\n3,0.1\n", NULL, QN_F32, 2, 1, {0, 0.1f}, {1, 3}},
};

static qn_data_options options_for(const char *label) {
    qn_data_options options;
    qn_data_options_init(&options);
    if (label && strcmp(label, "-") == 0)
        options.unlabelled = 1;
    else
        options.label_column = label;
    return options;
}

static void check_values(const good *g, const qn_data *data) {
    size_t count = (size_t)g->items * g->features < 4 ? (size_t)g->items * g->features : 4;
    const uint8_t *bytes = qn_data_values(data);
    const float *floats = qn_data_values(data);
    for (size_t i = 0; i < count; i++)
        assert_true((g->type == QN_U8 ? (float)bytes[i] : floats[i]) == g->values[i]);
}

static void test_good(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        const good *g = &goods[i];
        qn_data_options options = options_for(g->label);
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("good.csv", g->text, strlen(g->text), &options, &data, &err);
        if (g->items == 0) {
            assert_int_equal(status, QN_INPUT);
            continue;
        }
        if (status != QN_OK)
            fail_msg("case %zu: %s (%s)", i, err.what, err.where);
        if (qn_data_type_of(data) != g->type || qn_data_items(data) != g->items ||
            qn_data_features(data) != g->features)
            fail_msg("case %zu has another type or size", i);
        check_values(g, data);
        assert_true((qn_data_labels(data) == NULL) == options.unlabelled);
        const size_t known = g->items < 2 ? (size_t)g->items : 2;
        if (qn_data_labels(data))
            assert_memory_equal(qn_data_labels(data), g->labels, sizeof(int32_t) * known);
        assert_string_equal(qn_data_format(data), "csv");
        check_whole(data);
        qn_data_close(data);
    }
}

typedef struct bad {
    const char *text;
    const char *label;
    const char *what, *where, *remedy; /* parts that the message must have */
} bad;

static const bad bads[] = {
    {"", NULL, "empty", "bad.csv", ""},
    {"\n\r\n", NULL, "no line of data", "line 1", ""},
    {"a,b\n", NULL, "header and no items", "line 1", ""},
    {"1,2\n3\n", NULL, "has 1 cell, the first line has 2", "line 2", ""},
    {"h,i\n1,2\n3,4,5\n", NULL, "has 3 cells", "line 3", ""},
    {"1,2\n\n3,4\n", NULL, "line is empty", "line 2", ""},
    {"1,2\n3,x y\n", NULL, "\"x y\" is not a number", "line 2, column 2", "`data.label_column`"},
    {"lab,size\n1,2\n3,\xC3\xA4\n", NULL, "\"\xC3\xA4\"", "line 3, column 2 (size)",
     "`data.label_column`"},
    {"1,2\n3,\xFF\x01\n", NULL, "\"??\"", "line 2", ""},
    {"1,2\n3,0x10\n", NULL, "0x10", "column 2", ""},
    {"1,2\n3,4e\n", NULL, "4e", "column 2", ""},
    {"1,2\n3,-Infinity\n", NULL, "finite", "line 2", ""},
    {"1,\n3,inf\n", NULL, "finite", "line 2", ""},
    {"1,2\nsetosa,4\n", NULL, "\"setosa\" is not a number", "line 2", "`data.label_column`"},
    {"1.5,2\n?,4\n", NULL, "label is missing", "line 2", "`data.label_column`"},
    {"1,a\n2,b\n2,c\n2,\"d\n3,x\n", NULL, "quotes", "line 4, column 2", "close the quote"},
    {"1,a\n2,b\n2,\xE4\n3,x\n", NULL, "not UTF-8", "line 3, column 2", "iconv"},
    {"a,b\r1,2\r3,4\r", NULL, "CR alone", "line 1", "tr "},
    {"1 2 3\n4 5 6\n", "-", "separated by blanks", "line 1", "commas"},
    {"a b c\n  4  5 6\n", NULL, "separated by blanks", "line 1", "commas"},
    {"a\n1\n\n2\n", "-", "line is empty", "line 3", ""},
    {"1,2\n# so far\n3,4\n", NULL, "comment below the first line", "line 2", "grep -v"},
    {"a,b\n1,2\n3,4\n  # the, end, of it", NULL, "comment below", "line 4", "grep -v"},
    {"a\n1\n# x\n2\n", "-", "comment below", "line 3", "grep -v"},
    {"a,b\n1,2\n \n3,4\n", NULL, "line is empty", "line 3", "sed"},
    {"# only\n# comments\n", NULL, "no line of data", "bad.csv", ""},
    {"1,2\n3,1e39\n", NULL, "range", "line 2", ""},
    {"1,2\n3,3.4028236e38\n", NULL, "range", "line 2", ""},
    {"1,2\n,4\n", NULL, "label is missing", "line 2, column 1", "`data.label_column`"},
    {"1,2\n2147483648,4\n", NULL, "2^31", "line 2", "`data.label_column`"},
    {"1,2\n1e300,4\n", NULL, "2^31", "line 2", "`data.label_column`"},
    {"class,size\n1,2\n", "clas", "no label column \"clas\"", "line 1",
     "`data.label_column` class"},
    {"class,size\n1,2\n", "3", "no label column", "line 1", "from 1 to 2"},
    {"1,2\n", "0", "no label column", "line 1", "from 1 to 2"},
    {"a,a\n1,2\n", "a", "2 columns have the name", "line 1", "number"},
    {"1\n2\n", NULL, "no features", "line 1", "`data.unlabelled`"},
    {"1,2\n3,\"4\n5,6\n", NULL, "quotes", "line 2, column 2", ""},
    {"1,2\n3,\"4\"5\n", NULL, "quotes", "line 2, column 2", ""},
    {"\"a,b\n1,2\n", NULL, "quote", "line 1", ""},
    {"\xFF\xFE"
     "a,b\n",
     NULL, "UTF-16", "bad.csv", "UTF-8"},
    /* a first line that promises more cells than the lines can hold */
    {"1,2,3,4,5,6,7,8,9\n\n\n\n\n\n\n\n\n1\n", NULL, "line is empty", "line 2", ""},
};

static void test_bad(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        const bad *b = &bads[i];
        qn_data_options options = options_for(b->label);
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("bad.csv", b->text, strlen(b->text), &options, &data, &err);
        if (status != QN_INPUT)
            fail_msg("case %zu was taken", i);
        check_refusal(status, data, &err);
        if (!strstr(err.what, b->what) || !strstr(err.where, b->where) ||
            !strstr(err.remedy, b->remedy))
            fail_msg("case %zu: %s / %s / %s", i, err.what, err.where, err.remedy);
    }
}

static void test_missing(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    qn_status status = qn_data_open(in_folder("none.csv"), NULL, &data, &err);
    check_refusal(status, data, &err);
    assert_int_equal(err.status, QN_INPUT);
    status = qn_data_open(test_folder, NULL, &data, &err);
    check_refusal(status, data, &err);
    assert_non_null(strstr(err.what, "folder"));
    qn_data_options options;
    qn_data_options_init(&options);
    options.labels_path = "labels";
    status = open_bytes("a.csv", "1,2\n", 4, &options, &data, &err);
    check_refusal(status, data, &err);
    assert_non_null(strstr(err.remedy, "`data.label_column`"));
    options.unlabelled = 1;
    assert_int_equal(qn_data_open("a.csv", &options, &data, NULL), QN_USAGE);
}

/* A table of several blocks with unusual lines; and lines that are longer than a block. */
enum { ROWS = 60000, WIDE = 1048575 };

static size_t make_large(char *text, int wrong_row) {
    size_t size = 0;
    for (int row = 0; row < ROWS; row++)
        size += (size_t)sprintf(text + size,
                                row == wrong_row ? "%d,%d.5,oops,%d\n"
                                : row % 977 == 0 ? "%d, \"%d.25\" ,-1e2,%d\r\n"
                                                 : "%d,%d.125,12345.678,%d\n",
                                row % 10, row, row * 7);
    return size;
}

static void test_threads(void **state) {
    (void)state;
    char *text = malloc((size_t)ROWS * 48);
    char digest[65] = "";
    size_t size = make_large(text, -1);
    for (int threads = 1; threads <= 5; threads += 2) {
        qn_data_options options;
        qn_data_options_init(&options);
        options.threads = threads;
        qn_data *data;
        qn_error err;
        assert_int_equal(open_bytes("large.csv", text, size, &options, &data, &err), QN_OK);
        assert_int_equal(qn_data_items(data), ROWS);
        const float *values = qn_data_values(data);
        for (int row = 0; row < ROWS; row++) {
            float first = (float)row + (row % 977 == 0 ? 0.25f : 0.125f);
            assert_true(values[row * 3] == first && values[row * 3 + 2] == (float)(row * 7));
            assert_int_equal(qn_data_labels(data)[row], row % 10);
        }
        if (digest[0])
            assert_string_equal(digest, qn_data_digest(data));
        strcpy(digest, qn_data_digest(data));
        qn_data_close(data);
    }
    free(text);
}

/* Of several invalid rows the first is reported, whichever thread finds it. */
static void test_first_wrong(void **state) {
    (void)state;
    char *text = malloc((size_t)ROWS * 48);
    for (int trial = 0; trial < 6; trial++) {
        int wrong = ROWS / 7 * trial + 1;
        size_t size = make_large(text, wrong);
        memcpy(text + size - 4, "x\n\n", 3);
        qn_data_options options;
        qn_data_options_init(&options);
        options.threads = 4;
        qn_data *data;
        qn_error err;
        qn_status status = open_bytes("large.csv", text, size, &options, &data, &err);
        check_refusal(status, data, &err);
        char where[64];
        snprintf(where, sizeof where, "line %d, column 3", wrong + 1);
        assert_non_null(strstr(err.where, where));
    }
    free(text);
}

static void test_long_line(void **state) {
    (void)state;
    char *text = malloc((size_t)WIDE * 4 + 64);
    for (int lines = 1; lines <= 2; lines++) {
        size_t size = 0;
        text[size++] = ' '; /* now the first line ends with the last byte that block 1 checks */
        for (int line = 0; line < lines; line++) {
            for (int i = 0; i < WIDE; i++) {
                text[size++] = (char)('0' + i % 10);
                text[size++] = i + 1 < WIDE ? ',' : '\n';
            }
        }
        qn_data *data;
        qn_error err;
        assert_int_equal(open_bytes("wide.csv", text, size, NULL, &data, &err), QN_OK);
        assert_int_equal(qn_data_items(data), lines);
        assert_int_equal(qn_data_features(data), WIDE - 1);
        const uint8_t *values = qn_data_values(data);
        for (int i = 0; i < lines * (WIDE - 1); i++)
            assert_int_equal(values[i], (i % (WIDE - 1) + 1) % 10);
        qn_data_close(data);
    }
    free(text);
}

/* Where the rows of a text end by its cells. */
static uint64_t rows_of_cells(const char *text, const char *end, const char **ends) {
    uint64_t rows = 0;
    for (const char *at = text; at < end; at++) {
        qn__cell cell;
        at = qn__cell_read(at, end, ',', &cell);
        if (at < end && *at == '\n')
            ends[rows++] = at;
    }
    return rows;
}

/* Single bytes; or cells, of which one of `sparse` has quotes that begin it, or now and then do
 * not.
 */
static void make_text(char *to, size_t size, uint32_t *draw, uint32_t sparse) {
    static const char letters[] = "\"\"\",,\n\naa \r";
    static const char *const cells[] = {"12,",         "7.5\n", "\"x\",", "\"a\n,b\",",
                                        "\"\"\"q\"\n", "\"\",", "a\"b,",  " \"c\n\" d,"};
    for (size_t at = 0; at < size;) {
        *draw = *draw * 1664525 + 1013904223;
        const uint32_t high = *draw >> 16, pick = high >> 8;
        if (sparse == 0) {
            to[at++] = letters[high % (sizeof letters - 1)];
            continue;
        }
        const uint32_t quoted = pick < (sparse > 1 ? 128 : 250) ? 2 + pick % 4 : 6 + pick % 2;
        for (const char *c = cells[high % sparse ? pick % 2 : quoted]; *c && at < size; c++)
            to[at++] = *c;
    }
}

/* A text that is cut anywhere has the same rows: pieces are walked by themselves, and joined. */
static void test_pieces(void **state) {
    (void)state;
    uint32_t draw = 1;
    for (int trial = 0; trial < 4000; trial++) {
        char text[500];
        const char *ends[500];
        make_text(text, sizeof text, &draw, (const uint32_t[]){0, 1, 40}[trial % 3]);
        const char *const end = text + sizeof text, *at = text;
        const uint64_t rows = rows_of_cells(text, end, ends);
        for (uint64_t i = 0; i < rows; i++, at++)
            assert_ptr_equal(at = qn__csv_row_end(at, end, ',', QN__CSV_CELL), ends[i]);
        assert_ptr_equal(qn__csv_row_end(at, end, ',', QN__CSV_CELL), end);
        uint8_t now = QN__CSV_CELL;
        uint64_t found = 0, line_ends = 0;
        for (size_t from = 0; from < sizeof text;) {
            const size_t size = 1 + (draw >> from % 24) % (sizeof text - from);
            qn__csv_piece piece;
            qn__csv_piece_walk(text + from, text + from + size, ',', &piece);
            const char *first = qn__csv_row_end(text + from, end, ',', (qn__csv_state)now);
            assert_ptr_equal(first, found < rows ? ends[found] : end);
            found += piece.rows[now];
            line_ends += piece.line_ends;
            now = piece.after[now];
            from += size;
        }
        assert_int_equal(found, rows);
        assert_int_equal(line_ends, qn__csv_line_ends(text, end));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_missing),     cmocka_unit_test(test_threads),
        cmocka_unit_test(test_first_wrong), cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
