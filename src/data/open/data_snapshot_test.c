/* Serialised data sets: a round trip, and malformed input. */
#include "base/memory.h"
#include "data/open/data_snapshot.h"
#include "data/table/rules.h"
#include "data/table/testing.h"

static void *snapshot_of(const qn_data *data, uint64_t *bytes) {
    *bytes = qn__data_snapshot_bytes(data);
    assert_true(*bytes > 0);
    void *snapshot = qn__alloc(*bytes, 1, NULL);
    assert_non_null(snapshot);
    qn__data_snapshot_write(data, snapshot);
    return snapshot;
}

static void check_equal(const qn_data *a, const qn_data *b) {
    uint32_t rows[2], columns[2];
    assert_int_equal(qn_data_items(a), qn_data_items(b));
    assert_int_equal(qn_data_features(a), qn_data_features(b));
    assert_int_equal(qn_data_type_of(a), qn_data_type_of(b));
    assert_int_equal(qn_data_classes(a), qn_data_classes(b));
    assert_string_equal(qn_data_digest(a), qn_data_digest(b));
    assert_string_equal(qn_data_format(a), qn_data_format(b));
    assert_int_equal(qn_data_context(a), qn_data_context(b));
    qn_data_image_size(a, &rows[0], &columns[0]);
    qn_data_image_size(b, &rows[1], &columns[1]);
    assert_int_equal(rows[0], rows[1]);
    assert_int_equal(columns[0], columns[1]);
    assert_int_equal(qn_data_image_channels(a), qn_data_image_channels(b));
    assert_memory_equal(qn_data_values(a), qn_data_values(b),
                        qn__data_bytes_of(a, qn_data_items(a)));
    assert_int_equal(qn_data_labels(a) == NULL, qn_data_labels(b) == NULL);
    if (qn_data_labels(a))
        assert_memory_equal(qn_data_labels(a), qn_data_labels(b),
                            (size_t)qn_data_items(a) * sizeof(int32_t));
}

/* Names of files, in a view too. */
static void test_names(void **state) {
    (void)state;
    static const char text[] = "a/1\0a/2\0b/\xff";
    qn_data *data = NULL, *again = NULL, *train = NULL, *valid = NULL;
    qn_error err;
    uint64_t bytes;
    assert_int_equal(qn_data_synth_digits(3, 0, 3, &data, NULL), QN_OK);
    assert_int_equal(qn__item_names_take(text, sizeof text, 2, &data->names, &err), QN_FORMAT);
    assert_int_equal(qn__item_names_take(text, sizeof text, 4, &data->names, &err), QN_FORMAT);
    assert_int_equal(qn__item_names_take(text, sizeof text - 1, 3, &data->names, &err), QN_FORMAT);
    assert_int_equal(qn__item_names_take(text, sizeof text, 3, &data->names, &err), QN_OK);
    qn__item_size sizes[] = {{480, 640}, {1, 65535}, {0x1234abcd, 7}};
    qn__text told = {0};
    data->names->seen = sizes;
    qn__item_sizes_add(data->names, 3, &told);
    data->names->seen = NULL;
    assert_int_equal(qn__item_sizes_take(told.data, told.size, 2, data->names, &err), QN_FORMAT);
    assert_int_equal(qn__item_sizes_take(told.data, told.size, 3, data->names, &err), QN_OK);
    told.data[6] = 'g';
    qn__item_names broken = {0};
    assert_int_equal(qn__item_sizes_take(told.data, told.size, 3, &broken, &err), QN_FORMAT);
    qn__free(broken.seen);
    qn__text_release(&told);
    data->resize = (qn__resize){3, QN__FILTER_BICUBIC, 2, 1};
    data->rules = QN__RULE_ORIENTATION;
    void *snapshot = snapshot_of(data, &bytes);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, NULL), QN_OK);
    assert_memory_equal(&again->resize, &data->resize, sizeof data->resize);
    assert_int_equal(again->rules, data->rules);
    assert_memory_equal(again->names->seen, sizes, sizeof sizes);
    assert_string_equal(qn_data_item_name(again, 0), "a/1");
    assert_string_equal(qn_data_item_name(again, 2), "b/\xff");
    assert_null(qn_data_item_name(again, 3));
    assert_int_equal(qn__data_split(again, 0.34f, 7, &train, &valid, NULL), QN_OK);
    assert_string_equal(qn_data_item_name(valid, 0), qn_data_item_name(again, valid->index[0]));
    assert_null(qn_data_item_name(valid, 1));
    qn_data_close(train);
    qn_data_close(valid);
    qn_data_close(again);
    qn__free(snapshot);
    qn_data_close(data);
}

static void check_round_trip(qn_data *data) {
    uint64_t bytes;
    char digest[65];
    qn_data *again;
    void *snapshot = snapshot_of(data, &bytes);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, NULL), QN_OK);
    check_equal(data, again);
    qn__data_digest(again, NULL, digest);
    assert_string_equal(digest, qn_data_digest(data));
    if (qn_data_items(data) > 8) { /* a view of a mapped table owns its labels */
        qn_data *train, *valid;
        assert_int_equal(qn__data_split(again, 0.25f, 7, &train, &valid, NULL), QN_OK);
        qn_data_close(train);
        qn_data_close(valid);
    }
    qn_data_close(again);
    qn__free(snapshot);
    qn_data_close(data);
}

static qn_data *digits(uint64_t items) {
    qn_data *data;
    assert_int_equal(qn_data_synth_digits(3, 0, items, &data, NULL), QN_OK);
    return data;
}

static void test_round_trips(void **state) {
    (void)state;
    const float values[6] = {1.5f, -2, 3, 4, -0.0f, 1e-40f};
    const int32_t labels[3] = {2, 0, 7};
    qn_data *data;
    check_round_trip(digits(37));
    check_round_trip(digits(1));
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, 2, values, labels, &data, NULL), QN_OK);
    check_round_trip(data);
    assert_int_equal(qn_data_from_arrays(QN_F32, 2, 3, values, NULL, &data, NULL), QN_OK);
    check_round_trip(data);
    uint32_t tokens[31];
    for (uint32_t i = 0; i < 31; i++)
        tokens[i] = UINT32_MAX - i;
    qn_data_arrays corpus;
    qn_data_arrays_init(&corpus);
    corpus.type = QN_TOKENS32;
    corpus.items = 10;
    corpus.features = 4;
    corpus.item_step = 3;
    corpus.feature_step = 1;
    corpus.values = tokens;
    assert_int_equal(qn_data_lend(&corpus, &data, NULL), QN_OK);
    check_round_trip(data);
}

/* Each byte of the header set to several other values: refused, or a valid data set of the same
 * size; never a read outside (the sanitizers check). */
static void test_hostile_heads(void **state) {
    (void)state;
    static const uint8_t wrong[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    uint64_t bytes;
    qn_data *data = digits(9), *again;
    qn_error err;
    uint8_t *snapshot = snapshot_of(data, &bytes);
    int refused = 0;
    for (size_t at = 0; at < 256; at++)
        for (size_t w = 0; w < sizeof wrong; w++) {
            const uint8_t before = snapshot[at];
            snapshot[at] = wrong[w];
            if (qn__data_snapshot_map(snapshot, bytes, &again, &err) == QN_OK) {
                assert_int_equal(qn__data_snapshot_bytes(again), bytes);
                check_whole(again);
                qn_data_close(again);
            } else {
                assert_int_equal(err.status, QN_FORMAT);
                assert_null(again);
                assert_true(strlen(err.remedy) > 0);
                refused++;
            }
            snapshot[at] = before;
        }
    print_message("%d changed heads refused\n", refused);
    assert_true(refused > 500);
    for (uint64_t size = 0; size < bytes; size += size < 400 ? 1 : 777)
        assert_int_equal(qn__data_snapshot_map(snapshot, size, &again, NULL), QN_FORMAT);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes + 64, &again, NULL), QN_FORMAT);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, NULL), QN_OK);
    qn_data_close(again);
    qn__free(snapshot);
    qn_data_close(data);
}

static void test_negative_label(void **state) {
    (void)state;
    uint64_t bytes;
    qn_data *data = digits(9), *again;
    qn_error err;
    uint8_t *snapshot = snapshot_of(data, &bytes);
    /* Nine digits take 7,056 bytes after the header; their labels follow the margin, and 6 bytes of
     * texts those. */
    const size_t labels = (size_t)bytes - ((9 * 4 + 64 + 63) / 64 * 64) - (6 + 64 + 63) / 64 * 64;
    assert_int_equal(snapshot[labels], qn_data_labels(data)[0]);
    memset(snapshot + labels + 8, 0xff, 4);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, &err), QN_FORMAT);
    assert_non_null(strstr(err.what, "negative"));
    qn__free(snapshot);
    qn_data_close(data);
}

/* Names, categories, missing values, notes and targets arrive as well. */
static void test_typed(void **state) {
    (void)state;
    static const char csv[] = "price,city,size,age\n1.5,Bern,,30\n2.5,Basel,3,40\n";
    qn_data *data, *again;
    uint64_t bytes;
    assert_int_equal(open_bytes("t.csv", csv, strlen(csv), NULL, &data, NULL), QN_OK);
    uint8_t *snapshot = snapshot_of(data, &bytes);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, NULL), QN_OK);
    assert_int_equal(qn_data_target(again), QN_TARGET_REAL);
    assert_true(qn_data_targets(again)[1] == 2.5f);
    assert_null(qn_data_labels(again));
    assert_string_equal(qn_data_label_name(again), "price");
    assert_string_equal(qn_data_feature_name(again, 1), "size");
    assert_string_equal(qn_data_category(again, 0, 1), "Bern");
    assert_string_equal(qn_data_note(again), qn_data_note(data));
    assert_string_equal(qn_data_digest(again), qn_data_digest(data));
    assert_int_equal(again->missing, 1);
    for (uint32_t k = 0; k < 3; ++k)
        assert_int_equal(qn_data_feature_type(again, k), k == 2 ? QN_U8 : QN_F32);
    qn_data_close(again);
    /* the texts, and that they fit the table: every byte of them may be wrong */
    const size_t texts = (size_t)bytes - (strlen(qn_data_note(data)) + 200 + 128) / 64 * 64;
    for (size_t i = texts; i < bytes; ++i) {
        const uint8_t before = snapshot[i];
        snapshot[i] ^= 1;
        if (qn__data_snapshot_map(snapshot, bytes, &again, NULL) == QN_OK)
            qn_data_close(again);
        snapshot[i] = before;
    }
    qn__free(snapshot);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_hostile_heads), cmocka_unit_test(test_negative_label),
        cmocka_unit_test(test_typed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}