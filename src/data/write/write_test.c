/* Written data reads back as the same data; what cannot be written is refused before the first
 * byte. */
#include "data/table/data.h"
#include <quern/convert.h>
#include "data/table/testing.h"

/* Writes as CSV or IDX, reads again, compares the digests, removes the files. */
static void check_csv(const qn_data *data) {
    char path[64];
    strcpy(path, in_folder("out.csv"));
    qn_error err;
    assert_int_equal(qn_data_write_csv(data, path, &err), QN_OK);
    qn_data_options options;
    qn_data_options_init(&options);
    options.unlabelled = qn_data_labels(data) == NULL;
    qn_data *back;
    assert_int_equal(qn_data_open(path, &options, &back, &err), QN_OK);
    assert_string_equal(qn_data_digest(back), qn_data_digest(data));
    qn_data_close(back);
    assert_int_equal(unlink(path), 0);
}

static void check_idx(const qn_data *data, int with_labels) {
    char images[64], labels[64];
    strcpy(images, in_folder("out.idx"));
    strcpy(labels, in_folder("out.labels"));
    qn_error err;
    assert_int_equal(qn_data_write_idx(data, images, with_labels ? labels : NULL, &err), QN_OK);
    if (with_labels) {
        assert_int_equal(qn_data_write_idx(data, images, images, &err), QN_USAGE);
        assert_non_null(strstr(err.what, "one file"));
    }
    qn_data_options options;
    qn_data_options_init(&options);
    options.labels_path = with_labels ? labels : NULL;
    qn_data *back;
    assert_int_equal(qn_data_open(images, &options, &back, &err), QN_OK);
    assert_memory_equal(qn_data_values(back), qn_data_values(data),
                        (size_t)qn_data_items(data) * qn_data_features(data));
    assert_int_equal(back->rows, data->rows);
    if (with_labels) {
        assert_string_equal(qn_data_digest(back), qn_data_digest(data));
        assert_int_equal(unlink(labels), 0);
    }
    qn_data_close(back);
    assert_int_equal(unlink(images), 0);
}

static void test_digits(void **state) {
    (void)state;
    qn_data *data;
    assert_int_equal(qn_data_synth_digits(3, 0, 300, &data, NULL), QN_OK);
    check_csv(data);
    check_idx(data, 0);
    check_idx(data, 1);
    qn_data_close(data);
}

/* All classes of floats keep their bits. */
static void test_floats(void **state) {
    (void)state;
    static const float values[] = {0.1f,  -0.0f,    0x1p-149f, 0x1.fffffep127f,
                                   1e20f, 16777218, -3.25f,    0x1.000002p0f,
                                   255,   1.0f / 3, 1e-10f,    12345.678f};
    static const int32_t labels[] = {3, 0, 2};
    qn_data *data;
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, 4, values, labels, &data, NULL), QN_OK);
    check_csv(data);
    qn_error err;
    assert_int_equal(qn_data_write_idx(data, in_folder("no.idx"), NULL, &err), QN_INPUT);
    assert_non_null(strstr(err.remedy, "CSV"));
    qn_data_close(data);
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, 4, values, NULL, &data, NULL), QN_OK);
    check_csv(data);
    qn_data_close(data);
}

/* Names, categories, classes, missing values and targets read back as they were. */
static void test_typed(void **state) {
    (void)state;
    static const char *const texts[] = {
        "kind,\"a,b\",city,size\ncat,1,\"B\"\"ern\"\"\",\ndog,,\"x;y\",-0.5\ncat,3,,2\n",
        "price,city\n1.5,\" Bern\"\n-2.25,Basel\n1e10,\n",
        "y,x\n-1,2\n900,4\n-1,5\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        qn_data *data;
        qn__text before = {0}, after = {0};
        assert_int_equal(open_bytes("t.csv", texts[i], strlen(texts[i]), NULL, &data, NULL), QN_OK);
        assert_int_equal(qn_data_write_csv(data, in_folder("w.csv"), NULL), QN_OK);
        qn_data *again;
        assert_int_equal(qn_data_open(in_folder("w.csv"), NULL, &again, NULL), QN_OK);
        qn__schema_add_json(data->schema, &before);
        qn__schema_add_json(again->schema, &after);
        assert_string_equal(before.data, after.data);
        assert_string_equal(qn_data_digest(data), qn_data_digest(again));
        qn__text_release(&before);
        qn__text_release(&after);
        qn_data_close(data);
        qn_data_close(again);
        assert_int_equal(unlink(in_folder("w.csv")), 0);
    }
}

static void test_header(void **state) {
    (void)state;
    static const uint8_t values[] = {1, 2, 3, 4};
    static const int32_t labels[] = {5, 300};
    qn_data *data;
    qn_error err;
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 2, values, labels, &data, NULL), QN_OK);
    assert_int_equal(qn_data_write_csv(data, in_folder("head.csv"), &err), QN_OK);
    char text[64] = "";
    FILE *file = fopen(in_folder("head.csv"), "rb");
    assert_non_null(file);
    fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_int_equal(unlink(in_folder("head.csv")), 0);
    assert_string_equal(text, "label,f0,f1\n5,1,2\n300,3,4\n");
    assert_int_equal(qn_data_write_idx(data, in_folder("a"), "b", &err), QN_INPUT); /* label 300 */
    assert_non_null(strstr(err.remedy, "CSV"));
    qn_data_close(data);
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 2, values, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn_data_write_idx(data, in_folder("a"), "b", &err), QN_INPUT); /* no labels */
    assert_non_null(strstr(err.remedy, "`data.labels_path`"));
    assert_int_not_equal(qn_data_write_csv(data, "no/such/folder/x.csv", &err), QN_OK);
    assert_true(strlen(err.what) > 0);
    qn_data_close(data);
}

/* A view is written with its own items. */
static void test_view(void **state) {
    (void)state;
    static const uint8_t values[] = {1, 2, 3, 4, 5, 6};
    qn_data *data, *train, *valid;
    assert_int_equal(qn_data_from_arrays(QN_U8, 6, 1, values, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn__data_split(data, 0.34f, 1, &train, &valid, NULL), QN_OK);
    assert_int_equal(qn_data_write_idx(train, in_folder("view"), NULL, NULL), QN_OK);
    qn_data *back;
    assert_int_equal(qn_data_open(in_folder("view"), NULL, &back, NULL), QN_OK);
    assert_int_equal(qn_data_items(back), 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(*(const uint8_t *)qn__data_item(back, i),
                         *(const uint8_t *)qn__data_item(train, i));
    assert_int_equal(unlink(in_folder("view")), 0);
    qn_data_close(back);
    qn_data_close(train);
    qn_data_close(valid);
    qn_data_close(data);
}

/* What qn_data_reading says, as options; `texts` holds the values. */
static void options_of(const qn_data *data, const char *format, qn_data_options *options,
                       char texts[240]) {
    static const struct {
        const char *name;
        size_t at;
    } known[] = {{"`data.weight` ", offsetof(qn_data_options, weight)},
                 {"`data.task` ", offsetof(qn_data_options, task)},
                 {"`data.header` ", offsetof(qn_data_options, header)},
                 {"`data.category` ", offsetof(qn_data_options, category)}};
    char text[240];
    qn_data_options_init(options);
    qn_data_reading(data, format, text, sizeof text);
    options->unlabelled = strstr(text, "`data.unlabelled`") != NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *found = strstr(text, known[i].name);
        if (!found)
            continue;
        strcpy(texts, found + strlen(known[i].name));
        texts[strcspn(texts, ";`")] = '\0';
        if (*texts && texts[strlen(texts) - 1] == ' ')
            texts[strlen(texts) - 1] = '\0';
        *(const char **)((char *)options + known[i].at) = texts;
        texts += strlen(texts) + 1;
    }
}

/* Writes, reads as qn_data_reading says, and compares the digests. */
static void check_format(const qn_data *data, const char *format) {
    char path[64], labels[64], texts[240];
    qn_data_options options;
    qn_error err;
    strcpy(path, in_folder("out.npz")); /* archives are known by their content, not their name */
    strcpy(labels, in_folder("out.labels"));
    const int apart = strcmp(format, "npy") == 0 || strcmp(format, "idx") == 0;
    assert_int_equal(qn_data_write(data, format, path, apart ? labels : NULL, &err), QN_OK);
    options_of(data, format, &options, texts);
    options.labels_path = apart ? labels : NULL;
    qn_data *back;
    const qn_status status = qn_data_open(path, &options, &back, &err);
    if (status == QN_OK)
        assert_string_equal(qn_data_digest(back), qn_data_digest(data));
    else if (status != QN_UNSUPPORTED) /* NPZ in a build without zlib */
        fail_msg("%s: %s", format, err.what);
    qn_data_close(back);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(apart ? unlink(labels) : 0, 0);
}

static qn_data *open_text(const char *text, const char *weight, const char *category,
                          const char *task) {
    qn_data_options options;
    qn_data *data;
    qn_data_options_init(&options);
    options.weight = weight;
    options.category = category;
    options.task = task;
    assert_int_equal(open_bytes("t.csv", text, strlen(text), &options, &data, NULL), QN_OK);
    return data;
}

/* Every format holds what it takes: bytes, floats that look like bytes, gaps, signs of zeros. */
static void test_formats(void **state) {
    (void)state;
    static const struct {
        const char *text, *weight, *category, *task, *formats;
    } cases[] = {
        {"y,a,b\n0,10,2\n1,0,0\n", NULL, NULL, NULL, "csv npy npz libsvm idx"},
        {"y,a,b\n0,10.0,2\n1,0,20\n", NULL, NULL, NULL, "csv npy npz libsvm"},
        {"y,a,b\n0,0.0,0\n1,0,0\n", NULL, NULL, NULL, "csv npy npz libsvm"},
        {"y,a,b\n-1,,-0\n1,1e-40,3e38\n", NULL, NULL, NULL, "csv npy npz libsvm"},
        {"y,a,b\n3,2,1\n5,1,0.5\n", NULL, NULL, "regress", "csv npy npz libsvm"},
        {"y,a,b\n3.5,2,1\n5,1,0.5\n", NULL, NULL, "classify", "csv npy npz libsvm"},
        {"y,a,b\ncat,2,1\nd\u00f6g,1,0.5\n", NULL, NULL, NULL, "csv npy npz"},
        {"y,a,b\n\"a,\"\"b\",2,1\n7,1,0.5\nx,1,1\n", NULL, NULL, NULL, "csv npz"},
        {"y,a,w\n0,2,1\n1,1,0.5\n", "w", NULL, NULL, "csv npz"},
        {"y,zip,c\ncat,2,x\ndog,1,y\n", NULL, "zip", NULL, "csv"},
        {"y,3,zip\ncat,2,8\ndog,1,9\n", NULL, "zip", NULL, "csv"},
        {"900,5\n2,4\n900,1\n", NULL, NULL, NULL, "csv npy npz libsvm idx"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_data *data = open_text(cases[i].text, cases[i].weight, cases[i].category, cases[i].task);
        static const char *const all[] = {"csv", "npy", "npz", "libsvm", "idx"};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            qn_error err;
            if (strstr(cases[i].formats, all[k]))
                check_format(data, all[k]);
            else if (strcmp(all[k], "npy") !=
                     0) /* a format that has no space for labels or texts */
                assert_int_equal(qn_data_write(data, all[k], in_folder("no"), NULL, &err),
                                 QN_INPUT);
        }
        qn_data_close(data);
    }
}

/* What is refused names a remedy and leaves no file; labels that are counted anew are told. */
static void test_format_refusals(void **state) {
    (void)state;
    qn_data *data = open_text("y,c\nNA1,x\nb,\"inf\"\n", NULL, NULL, NULL);
    qn_error err;
    char text[200];
    assert_int_equal(qn_data_write(data, NULL, in_folder("a.xls"), NULL, &err), QN_USAGE);
    assert_non_null(strstr(err.remedy, "`write.format`"));
    assert_int_equal(qn_data_write(data, "xml", "a", NULL, &err), QN_USAGE);
    assert_int_equal(qn_data_write(data, "csv", "a", "b", &err), QN_USAGE);
    assert_int_equal(qn_data_write(data, "npz", in_folder("a.npz"), NULL, &err), QN_INPUT);
    assert_non_null(strstr(err.remedy, "CSV"));
    qn_data_reading(data, "csv", text, sizeof text);
    assert_non_null(strstr(text, "`data.category` 2"));
    qn_data_close(data);
    static const int32_t labels[] = {5, 300};
    static const uint8_t values[] = {1, 2};
    static const char *const names[] = {"b", "NA"};
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 1, values, labels, &data, NULL), QN_OK);
    qn_data_reading(data, "npz", text, sizeof text);
    assert_non_null(strstr(text, "other numbers"));
    qn_data_reading(data, "idx", text, sizeof text);
    assert_null(strstr(text, "other numbers"));
    qn_data_close(data);
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    arrays.type = QN_U8;
    arrays.items = 2;
    arrays.features = 1;
    arrays.values = values;
    arrays.labels = (const int32_t[]){0, 1};
    arrays.class_name = names;
    arrays.classes = 2;
    assert_int_equal(qn_data_lend(&arrays, &data, NULL), QN_OK);
    assert_int_equal(qn_data_write(data, "csv", in_folder("a"), NULL, &err), QN_INPUT);
    assert_non_null(strstr(err.what, "missing"));
    qn_data_reading(data, "npz", text, sizeof text); /* the names do not ascend */
    assert_non_null(strstr(text, "other numbers"));
    qn_data_close(data);
}

/* Parts together are the whole, each keeps the order, and the first is the validation set. */
static void test_parts(void **state) {
    (void)state;
    enum { ITEMS = 1000 };
    static const uint64_t shares[] = {200, 300, 500};
    qn_data *data, *part[3], *train, *valid;
    assert_int_equal(qn_data_synth_digits(3, 0, ITEMS, &data, NULL), QN_OK);
    for (int stratify = 0; stratify < 2; stratify++) {
        uint64_t counts[3][10] = {{0}}, all = 0;
        assert_int_equal(qn_data_split(data, shares, 3, 9, stratify, part, NULL), QN_OK);
        for (uint64_t i = 0, at[3] = {0}; i < ITEMS; i++)
            for (int j = 0, found = 0; j < 3 && !found; j++) {
                found = at[j] < part[j]->items &&
                        memcmp(qn__data_item(part[j], at[j]), qn__data_item(data, i), 784) == 0;
                if (found) {
                    counts[j][data->labels[i]]++;
                    assert_int_equal(part[j]->labels[at[j]++], data->labels[i]);
                    all++;
                }
            }
        assert_int_equal(all, ITEMS);
        for (int c = 0; c < 10 && stratify; c++) {
            const uint64_t n = counts[0][c] + counts[1][c] + counts[2][c];
            assert_int_equal(counts[0][c], (n * 200 + 500) / 1000);
            assert_int_equal(counts[0][c] + counts[1][c], (n * 500 + 500) / 1000);
        }
        if (!stratify) {
            assert_int_equal(qn__data_split(data, 0.2f, 9, &train, &valid, NULL), QN_OK);
            assert_int_equal(part[0]->items, valid->items);
            for (uint64_t i = 0; i < valid->items; i++)
                assert_memory_equal(qn__data_item(part[0], i), qn__data_item(valid, i), 784);
            qn_data_close(train);
            qn_data_close(valid);
        }
        for (int j = 0; j < 3; j++)
            qn_data_close(part[j]);
    }
    qn_error err;
    assert_int_equal(qn_data_split(data, (const uint64_t[]){1, 1000000}, 2, 1, 0, part, &err),
                     QN_INPUT);
    assert_null(part[1]);
    assert_int_equal(qn_data_split(data, (const uint64_t[]){1, 0}, 2, 1, 0, part, &err), QN_USAGE);
    assert_int_equal(qn_data_split(data, shares, 257, 1, 0, part, &err), QN_USAGE);
    qn_data_close(data);
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 1, "ab", NULL, &data, NULL), QN_OK);
    assert_int_equal(qn_data_split(data, (const uint64_t[]){1, 1}, 2, 1, 1, part, &err), QN_USAGE);
    assert_non_null(strstr(err.remedy, "`split.stratify`"));
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_format_refusals),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
