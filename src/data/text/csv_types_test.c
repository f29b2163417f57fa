/* Typed CSV: what columns and labels become, which first lines are headers, which columns are read.
 * Tables are compared as one text: the schema, then the values of each item and its label. */
#include "base/memory.h"
#include "data/table/data.h"
#include "data/table/testing.h"
#include <math.h>

/* name:{category,...} for each feature, "|", label:target[classes], then items. */
static void print_schema(const qn_data *data, char *text) {
    for (uint32_t k = 0; k < qn_data_features(data); ++k) {
        const char *name = qn_data_feature_name(data, k);
        text += sprintf(text, "%s%s", k ? " " : "", name ? name : "-");
        for (uint32_t i = 0; i < qn_data_categories(data, k); ++i)
            text += sprintf(text, "%s%s", i ? "," : ":", qn_data_category(data, k, i));
    }
    static const char *const targets[] = {"none", "index", "class", "real"};
    const char *label = qn_data_label_name(data);
    text += sprintf(text, " | %s:%s", label ? label : "-", targets[qn_data_target(data)]);
    for (uint32_t i = 0; i < qn_data_classes(data) && qn_data_class_name(data, i); ++i)
        text += sprintf(text, " %s", qn_data_class_name(data, i));
}

static void print_items(const qn_data *data, char *text) {
    const uint32_t features = qn_data_features(data);
    const uint8_t *bytes = qn_data_values(data);
    const float *floats = qn_data_values(data);
    for (uint64_t i = 0; i < qn_data_items(data); ++i) {
        text += sprintf(text, "%s", i ? "; " : "");
        for (uint64_t k = i * features; k < (i + 1) * features; ++k) {
            const float value = qn_data_type_of(data) == QN_U8 ? (float)bytes[k] : floats[k];
            text += isnan(value) ? sprintf(text, "? ") : sprintf(text, "%g ", (double)value);
        }
        if (qn_data_labels(data))
            text += sprintf(text, "= %d", (int)qn_data_labels(data)[i]);
        else if (qn_data_targets(data))
            text += sprintf(text, "= %g", (double)qn_data_targets(data)[i]);
    }
}

typedef struct typed {
    const char *text;
    qn_data_options options;
    qn_data_type type;
    const char *schema, *items;
} typed;

#define LAST .label_column = "last"

static const typed cases[] = {
    /* columns that hold categories in other data */
    {"y,s,x\n0,none,1\n1,,2\n",
     {.expected_categories = "s,other", .expected_rules = ""},
     QN_F32,
     "s:none x | y:index",
     "0 1 = 0; ? 2 = 1"},
    {"y,s,x\n0,none,1\n1,a,2\n",
     {.expected_categories = "s,other"},
     QN_F32,
     "s:a x | y:index",
     "? 1 = 0; 0 2 = 1"},
    {"y,\"a,\"\"b\",x\n0,01,1\n1,2,2\n1,A,3\n",
     {.expected_categories = "\"a,\"\"b\""},
     QN_F32,
     "a,\"b:01,2,A x | y:index",
     "0 1 = 0; 1 2 = 1; 2 3 = 1"},
    {"y,s,x\n0,,1\n1,,2\n",
     {.expected_categories = "s"},
     QN_F32,
     "s x | y:index",
     "? 1 = 0; ? 2 = 1"},
    {"y,s\n0,01\n1,2\n", {.expected_categories = "2,last,1"}, QN_U8, "s | y:index", "1 = 0; 2 = 1"},
    /* by places, where the file or the list has no names; the label is not a feature */
    {"1,7,0\n2,07,1\n3,7,0\n",
     {LAST, .expected_categories = "\"zip\",2"},
     QN_F32,
     "- -:07,7 | -:index",
     "1 1 = 0; 2 0 = 1; 3 1 = 0"},
    {"0,1,none\n1,2,5\n",
     {.expected_categories = "2", .header = "no", .expected_rules = ""},
     QN_F32,
     "- -:5,none | -:index",
     "1 1 = 0; 2 0 = 1"},
    {"y,a,b\n0,1,7\n1,2,8\n",
     {.expected_categories = "2"},
     QN_F32,
     "a b:7,8 | y:index",
     "1 0 = 0; 2 1 = 1"},
    {"y,a,b\n0,1,7\n1,2,8\n",
     {.expected_categories = "\"x\",2"},
     QN_U8,
     "a b | y:index",
     "1 7 = 0; 2 8 = 1"},
    /* numbers that a user calls categories */
    {"y,zip,n\n0,007,1\n1,7,2\n0,,3\n",
     {.category = "zip"},
     QN_F32,
     "zip:007,7 n | y:index",
     "0 1 = 0; 1 2 = 1; ? 3 = 0"},
    {"y,zip,n\n0,2,1\n1,1,2\n",
     {.category = "2-last", .drop = "n"},
     QN_F32,
     "zip:1,2 | y:index",
     "1 = 0; 0 = 1"},
    {"0,10,1\n1,9,2\n", {.category = "2"}, QN_F32, "-:10,9 - | -:index", "0 1 = 0; 1 2 = 1"},
    /* labels */
    {"x,y\n1,cat\n2,dog\n3,cat\n", {LAST}, QN_U8, "x | y:class cat dog", "1 = 0; 2 = 1; 3 = 0"},
    {"x,y\n1,True\n2,False\n", {LAST}, QN_U8, "x | y:class False True", "1 = 1; 2 = 0"},
    {"x,y\n1,1.0\n2,0\n", {LAST}, QN_U8, "x | y:index", "1 = 1; 2 = 0"},
    {"x,y\n1,-1\n2,1\n3,-1.0\n", {LAST}, QN_U8, "x | y:class -1 1", "1 = 0; 2 = 1; 3 = 0"},
    {"x,y\n1,5\n2,20\n3,5\n", {LAST}, QN_U8, "x | y:class 5 20", "1 = 0; 2 = 1; 3 = 0"},
    {"x,y\n1,5\n2,20\n", {LAST, .classes = 21}, QN_U8, "x | y:index", "1 = 5; 2 = 20"},
    {"x,y\n1,0\n2,3\n3,2\n", {LAST}, QN_U8, "x | y:index", "1 = 0; 2 = 3; 3 = 2"},
    {"x,y\n1,0.5\n2,20\n", {LAST}, QN_U8, "x | y:real", "1 = 0.5; 2 = 20"},
    {"x,y\n1,1\n2,20\n", {LAST, .task = "regress"}, QN_U8, "x | y:real", "1 = 1; 2 = 20"},
    {"x,y\n1,0.5\n2,20\n3,.50\n",
     {LAST, .task = "classify"},
     QN_U8,
     "x | y:class 0.5 20",
     "1 = 0; 2 = 1; 3 = 0"},
    {"x,y\n1,10\n2,9\n3,b\n4,a\n",
     {LAST, .task = "classify"},
     QN_U8,
     "x | y:class 9 10 a b",
     "1 = 1; 2 = 0; 3 = 3; 4 = 2"},
    {"x,y\n1,none\n2,mild\n", {LAST}, QN_U8, "x | y:class mild none", "1 = 1; 2 = 0"},
    {"x,y\n1,\"a, \"\"b\"\"\"\n2, c \n", {LAST}, QN_U8, "x | y:class a, \"b\" c", "1 = 0; 2 = 1"},
    /* features */
    {"y,city,n\n0,Bern,1\n1,Basel,2\n0,Bern,3\n",
     {0},
     QN_F32,
     "city:Basel,Bern n | y:index",
     "1 1 = 0; 0 2 = 1; 1 3 = 0"},
    {"y,a,b\n0,,1\n1,2,NaN\n0,?,n/a\n", {0}, QN_F32, "a b | y:index", "? 1 = 0; 2 ? = 1; ? ? = 0"},
    {"y,c\n0,x\n1,\n0,none\n1,2\n0,y\n",
     {.expected_rules = ""},
     QN_F32,
     "c:2,none,x,y | y:index",
     "2 = 0; ? = 1; 1 = 0; 0 = 1; 3 = 0"},
    {"y,c\n0,x\n1,\n0,none\n1,2\n0,y\n",
     {0},
     QN_F32,
     "c:2,x,y | y:index",
     "1 = 0; ? = 1; ? = 0; 0 = 1; 2 = 0"},
    {"y,c\n0,none\n1,2\n0,3\n", {0}, QN_F32, "c | y:index", "? = 0; 2 = 1; 3 = 0"},
    {"y,c\n0,\n1,\n", {0}, QN_F32, "c | y:index", "? = 0; ? = 1"},
    {"y,c\n0,\"x\"\n1,x\n1, \"y\"\"\" \n", {0}, QN_F32, "c:x,y\" | y:index", "0 = 0; 0 = 1; 1 = 1"},
    {"y,c\n0,5\" pipe\n1,a \"b\" c\n",
     {0},
     QN_F32,
     "c:5\" pipe,a \"b\" c | y:index",
     "0 = 0; 1 = 1"},
    /* headers */
    {"5.1,setosa\n4,setosa\n", {LAST}, QN_F32, "- | -:class setosa", "5.1 = 0; 4 = 0"},
    {"5.1,setosa\n4,virginica\n", {LAST}, QN_F32, "- | -:class setosa virginica", "5.1 = 0; 4 = 1"},
    {"2019,name\n4,virginica\n",
     {LAST, .header = "yes"},
     QN_U8,
     "2019 | name:class virginica",
     "4 = 0"},
    {"p,x\ne,x\np,y\n", {0}, QN_F32, "-:x,y | -:class e p", "0 = 1; 0 = 0; 1 = 1"},
    {"kind,cap\ne,x\np,y\n", {0}, QN_F32, "cap:x,y | kind:class e p", "0 = 0; 1 = 1"},
    {"kind,cap\ne,x\np,y\n",
     {.header = "no"},
     QN_F32,
     "-:cap,x,y | -:class e kind p",
     "0 = 1; 1 = 0; 2 = 2"},
    {"0,1,2\n1,.5,.25\n0,1.5,2.5\n", {0}, QN_F32, "1 2 | 0:index", "0.5 0.25 = 1; 1.5 2.5 = 0"},
    {"0,1,2\n1,.5,4\n0,1.5,5\n", {0}, QN_F32, "- - | -:index", "1 2 = 0; 0.5 4 = 1; 1.5 5 = 0"},
    {",0,1\n0,5,6\n1,7,8\n", {0}, QN_U8, "0 1 | -:index", "5 6 = 0; 7 8 = 1"},
    {"# made by hand\n\n# y, x\n0,5\n1,7\n", {0}, QN_U8, "x | y:index", "5 = 0; 7 = 1"},
    {"# a, comment\ny,x\n0,5\n1,7\n", {0}, QN_U8, "x | y:index", "5 = 0; 7 = 1"},
    {"\n \r\ny,x\n0,5\n1,7\n", {0}, QN_U8, "x | y:index", "5 = 0; 7 = 1"},
    {"y,x \"1\";2\n0,5\n1,7\n", {0}, QN_U8, "x \"1\";2 | y:index", "5 = 0; 7 = 1"},
    {"y,gr\xFC\xDF\n0,5\n1,7\n",
     {0},
     QN_U8,
     "gr\xEF\xBF\xBD\xEF\xBF\xBD | y:index",
     "5 = 0; 7 = 1"},
    /* columns */
    {"id,y,a,b\nk1,0,2,3\nk2,1,4,5\n", {.drop = "id"}, QN_U8, "a b | y:index", "2 3 = 0; 4 5 = 1"},
    {"id,y,a,b\nk1,0,2,3\nk2,1,4,5\n",
     {.features = "b,3", .label_column = "y"},
     QN_U8,
     "a b | y:index",
     "2 3 = 0; 4 5 = 1"},
    {"y,\"a,b\",2-3,c\n0,1,2,3\n1,4,5,6\n",
     {.drop = "\"a,b\",4"},
     QN_U8,
     "2-3 | y:index",
     "2 = 0; 5 = 1"},
    {"1,2,3,4\n0,4,5,6\n", {.drop = "2-3"}, QN_U8, "- | -:index", "4 = 1; 6 = 0"},
    {"1,2,3,4\n0,4,5,6\n", {.features = "3-last"}, QN_U8, "- - | -:index", "3 4 = 1; 5 6 = 0"},
    {"1,2\n,4\n", {.unlabelled = 1}, QN_F32, "- - | -:none", "1 2 ; ? 4 "},
};

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const typed *c = &cases[i];
        qn_data_options options = c->options;
        options.size = sizeof options;
        char text[1024];
        qn_data *data;
        qn_error err;
        if (open_bytes("t.csv", c->text, strlen(c->text), &options, &data, &err) != QN_OK)
            fail_msg("case %zu: %s (%s)", i, err.what, err.where);
        if (qn_data_type_of(data) != c->type)
            fail_msg("case %zu has another type", i);
        print_schema(data, text);
        if (strcmp(text, c->schema) != 0)
            fail_msg("case %zu: %s", i, text);
        print_items(data, text);
        if (strcmp(text, c->items) != 0)
            fail_msg("case %zu: %s", i, text);
        check_whole(data);
        qn_data_close(data);
    }
}

typedef struct refusal {
    const char *text;
    qn_data_options options;
    qn_status status;
    const char *what, *remedy;
} refusal;

static const refusal refusals[] = {
    {"y,a\n1,2\n", {.features = "b"}, QN_INPUT, "no column \"b\"", "`data.features`"},
    {"y,age\n1,2\n", {.drop = "agee"}, QN_INPUT, "no column \"agee\"", "age"},
    {"y,a\n1,2\n", {.drop = "3-4"}, QN_INPUT, "no column \"3-4\"", "from 1 to 2"},
    {"y,a,a\n1,2,3\n", {.drop = "a"}, QN_INPUT, "2 columns have the name", "number"},
    {"y,a\n1,2\n", {.drop = "a"}, QN_INPUT, "no column is left", ""},
    {"y,a,b\n1,2,3\n",
     {.drop = "y", .label_column = "y"},
     QN_INPUT,
     "the label cannot",
     "`data.drop`"},
    {"y,a\n1,2\n", {.category = "b"}, QN_INPUT, "no column \"b\"", "`data.category`"},
    {"y,a\n1,2\n", {.category = "1-2"}, QN_INPUT, "the label cannot", "`data.category`"},
    {"y,a\n1,2\n", {.drop = "\"a"}, QN_USAGE, "quotes", "`data.drop`"},
    {"y,a\n1,2\n", {.drop = "a", .features = "a"}, QN_USAGE, "both", "`data.features`"},
    {"y,a\n1,2\n", {.task = "sort"}, QN_USAGE, "\"sort\" is not a task", "regress"},
    {"y,a\n1,2\n", {.header = "maybe"}, QN_USAGE, "\"maybe\"", "`data.header`"},
    {"y,a\n1,2\nb,2\n", {.task = "regress"}, QN_INPUT, "\"b\" is not a number", "`data.task`"},
    {"y,a\n5000000000,2\n1,2\n", {0}, QN_INPUT, "2^31", "regress"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        qn_data_options options = r->options;
        options.size = sizeof options;
        qn_data *data;
        qn_error err;
        if (open_bytes("r.csv", r->text, strlen(r->text), &options, &data, &err) != r->status)
            fail_msg("case %zu: %s", i, err.what);
        if (!strstr(err.what, r->what) || !strstr(err.remedy, r->remedy))
            fail_msg("case %zu: %s / %s", i, err.what, err.remedy);
    }
}

/* Which sentences a reader says about a first line. */
static void test_notes(void **state) {
    (void)state;
    static const struct {
        const char *text, *note; /* NULL: none */
    } notes[] = {
        {"y,a\n1,2\n", NULL},
        {"a,x\nb,x\na,y\n", NULL},
        {"0,1,2\n1,.5,.5\n", "`data.header` no"},
        {"0,1,2\n1,5,6\n", "`data.header` yes"},
        {"1,a\n2,b\n", "`data.header` yes"},
        {"kind,cap\ne,x\n", "`data.header` no"},
        {"y,a\n.5,2\n", "column 1, y, which holds real numbers"},
        {"y,a\n1,2024-02-29\n2,2025-01-01T08:30\n",
         "the column \"a\" holds dates, of which a network gets year"},
        {"y,a,b,c\n1,1.2.2024,12:30,x\n2,,8:05:17.5,y\n", "the columns \"a\", \"b\" hold dates"},
        {"1,2,2024-02-29\n2,3,2024/3/1 8:30Z\n", "column 3 holds dates"},
        {"y,a\n1,2024-02-29\n2,2025-01-01x\n", NULL},
        {"y,a\n1,2024-02\n2,x\n", NULL},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        qn_data *data;
        assert_int_equal(
            open_bytes("n.csv", notes[i].text, strlen(notes[i].text), NULL, &data, NULL), QN_OK);
        const char *note = qn_data_note(data);
        if (notes[i].note ? !note || !strstr(note, notes[i].note) : note != NULL)
            fail_msg("case %zu: %s", i, note ? note : "no note");
        qn_data_close(data);
    }
}

/* A large table of texts, the same with any number of threads; some texts come late and in one
 * block alone, and the first number that is not a byte too. */
enum { ROWS = 90000 };

static size_t make_large(char *text) {
    size_t size = (size_t)sprintf(text, "class,n,city,late\n");
    for (int row = 0; row < ROWS; row++)
        size += (size_t)sprintf(text + size, "c%d,%s,town %d of %d,%s\n", row * 7919 % 13,
                                row % 31 == 5 ? "" : "17", row * 31 % 211, row % 3,
                                row == ROWS - 2 ? "0.5" : "4");
    return size;
}

static void test_threads(void **state) {
    (void)state;
    char *text = malloc((size_t)ROWS * 48), digest[65] = "";
    const size_t size = make_large(text);
    for (int threads = 1; threads <= 5; threads += 2) {
        qn_data_options options;
        qn_data_options_init(&options);
        options.threads = threads;
        qn_data *data;
        assert_int_equal(open_bytes("large.csv", text, size, &options, &data, NULL), QN_OK);
        assert_int_equal(qn_data_classes(data), 13);
        assert_int_equal(qn_data_categories(data, 1), 211 * 3);
        assert_string_equal(qn_data_class_name(data, 2), "c10");
        const float *values = qn_data_values(data);
        for (int row = 0; row < ROWS; row++) {
            char name[48];
            sprintf(name, "c%d", row * 7919 % 13);
            assert_string_equal(qn_data_class_name(data, (uint32_t)qn_data_labels(data)[row]),
                                name);
            sprintf(name, "town %d of %d", row * 31 % 211, row % 3);
            assert_string_equal(qn_data_category(data, 1, (uint32_t)values[row * 3 + 1]), name);
            assert_true(row % 31 == 5 ? isnan(values[row * 3]) : values[row * 3] == 17);
        }
        if (digest[0])
            assert_string_equal(digest, qn_data_digest(data));
        strcpy(digest, qn_data_digest(data));
        qn_data_close(data);
    }
    free(text);
}

/* Which features alone would make a table of bytes: a letter for each. The odd cell is in the last
 * line, which another thread may read than the first one. */
static void check_bytes(const char *first, const char *line, const char *last, const char *wanted) {
    enum { LINES = 140000 }; /* more than a block of 1 MiB */
    const size_t size = strlen(line);
    char *text = malloc(2 * 64 + LINES * size), *at = text;
    at += sprintf(at, "%s", first);
    for (int i = 0; i < LINES; i++, at += size)
        memcpy(at, line, size);
    at += sprintf(at, "%s", last);
    for (int threads = 1; threads <= 4; threads += 3) {
        qn_data_options options;
        qn_data_options_init(&options);
        options.threads = threads;
        qn_data *data;
        assert_int_equal(open_bytes("bytes.csv", text, (size_t)(at - text), &options, &data, NULL),
                         QN_OK);
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(qn_data_feature_type(data, k), wanted[k] == 'b' ? QN_U8 : QN_F32);
        qn_data_close(data);
    }
    free(text);
}

static void test_bytes_beside_floats(void **state) {
    (void)state;
    check_bytes("y,a,b,c\n", "1,7,255,3\n", "0,8,1,2\n", "bbb");
    check_bytes("y,a,b,c\n", "1,7,\"255\",3\n", "0,008,1.0,2\n", "bfb");
    check_bytes("y,a,b,c\n", "1,7,x,3\n", "0,+8,y,2\n", "ffb"); /* a category */
    check_bytes("y,a,b,c\n", "1,7,25,0\n", "0,,256,-0\n", "fff");
}

/* More texts than are held. */
static void test_too_many(void **state) {
    (void)state;
    char *text = malloc(2000000);
    size_t size = (size_t)sprintf(text, "y,a,name\n");
    for (int row = 0; row < 100001; row++)
        size += (size_t)sprintf(text + size, "%d,1,x%d\n", row % 2, row);
    qn_data *data;
    qn_error err;
    assert_int_equal(open_bytes("many.csv", text, size, NULL, &data, &err), QN_INPUT);
    assert_non_null(strstr(err.what, "column \"name\" has more than 100000 different texts"));
    assert_non_null(strstr(err.remedy, "`data.drop`"));
    qn_data_options options;
    qn_data_options_init(&options);
    options.drop = "name";
    assert_int_equal(open_bytes("many.csv", text, size, &options, &data, NULL), QN_OK);
    assert_int_equal(qn_data_type_of(data), QN_U8);
    qn_data_close(data);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bytes_beside_floats),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
