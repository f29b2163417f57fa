/* Exact values beside the matrix of a table: in views, parts, snapshots and other orders of
 * columns, and in the digest. */
#include "base/memory.h"
#include "data/open/data_snapshot.h"
#include "data/prepare/encode.h"
#include "data/prepare/fill.h"
#include "data/table/rules.h"
#include "data/table/testing.h"
#include "data/table/wide.h"
#include "data/table/kept.h"
#include <quern/convert.h>

enum { ITEMS = 40 };

/* Column 0: days, whole; 1: small numbers; 2: seconds, real, one of them missing. */
static qn_data *make_table(void) {
    static float values[ITEMS * 3];
    static int32_t labels[ITEMS];
    const qn__exact exact[3] = {QN__EXACT_WHOLE, QN__EXACT_NONE, QN__EXACT_REAL};
    qn_data *data;
    for (int i = 0; i < ITEMS; i++) {
        labels[i] = i % 2;
        values[3 * i] = (float)(20230101 + i);
        values[3 * i + 1] = (float)i;
        values[3 * i + 2] = (float)(1.7e9 + i * 0.25);
    }
    assert_int_equal(qn_data_from_arrays(QN_F32, ITEMS, 3, values, labels, &data, NULL), QN_OK);
    assert_int_equal(qn__wide_make(data, exact, NULL), QN_OK);
    for (int i = 0; i < ITEMS; i++) {
        qn__wide_of(data->wide, 0)[i].whole = 20230101 + i;
        if (i != 5)
            qn__wide_of(data->wide, 1)[i].real = 1.7e9 + i * 0.25;
    }
    qn__set_missing((float *)data->memory + 3 * 5 + 2);
    data->missing = 1;
    return data;
}

static void check_rows(const qn_data *data, uint32_t day, uint32_t second) {
    const qn__wide_value *days = qn__wide_column(data, day), *all = qn__wide_column(data, second);
    assert_non_null(days);
    assert_non_null(all);
    for (uint64_t i = 0; i < data->items; i++) {
        const uint64_t row = qn__data_row(data, i);
        const double real = all[row].real;
        const int64_t whole = days[row].whole;
        assert_true(((const float *)qn__data_item(data, i))[day] == (float)whole);
        assert_true(whole == 20230106 ? real != real
                                      : real == 1.7e9 + (double)(whole - 20230101) * 0.25);
    }
}

static void test_kinds(void **state) {
    (void)state;
    qn_data *data = make_table();
    char rules[QN_RULES_TEXT];
    assert_int_equal(qn__wide_kind(data, 0), QN__EXACT_WHOLE);
    assert_int_equal(qn__wide_kind(data, 1), QN__EXACT_NONE);
    assert_int_equal(qn__wide_kind(data, 2), QN__EXACT_REAL);
    assert_null(qn__wide_column(data, 1));
    assert_int_equal(qn__wide_bytes(data->wide), 2 * ITEMS * 8);
    assert_int_equal(qn__wide_bytes(NULL), 0);
    assert_int_equal(qn__wide_missing(QN__EXACT_WHOLE), INT64_MIN);
    assert_int_equal(qn__schema_is_trivial(data->schema), 0);
    qn_data_rules(data, rules, sizeof rules);
    assert_string_equal(rules, "exact");
    check_rows(data, 0, 2);
    qn_data_close(data);
}

/* Floats that are equal do not hide that exact values differ. */
static void test_digest(void **state) {
    (void)state;
    qn_data *data = make_table();
    char one[65], other[65];
    qn__data_digest(data, NULL, one);
    qn__wide_of(data->wide, 0)[7].whole ^= 1;
    qn__data_digest(data, NULL, other);
    assert_string_not_equal(one, other);
    qn__wide_of(data->wide, 0)[7].whole ^= 1;
    data->schema->feature[0].exact = QN__EXACT_REAL;
    qn__data_digest(data, NULL, other);
    assert_string_not_equal(one, other);
    data->schema->feature[0].exact = QN__EXACT_WHOLE;
    qn__wide *wide = data->wide;
    data->wide = NULL;
    qn__data_digest(data, NULL, other);
    assert_string_not_equal(one, other);
    data->wide = wide;
    qn__data_digest(data, NULL, other);
    assert_string_equal(one, other);
    qn_data_close(data);
}

static void test_views_and_parts(void **state) {
    (void)state;
    const uint64_t shares[2] = {3, 1};
    qn_data *data = make_table(), *part[2], *train, *valid;
    assert_int_equal(qn__data_split(data, 0.25f, 7, &train, &valid, NULL), QN_OK);
    check_rows(train, 0, 2);
    check_rows(valid, 0, 2);
    qn_data_close(train);
    qn_data_close(valid);
    assert_int_equal(qn_data_split(data, shares, 2, 7, 0, part, NULL), QN_OK);
    qn_data_close(data);
    for (int j = 0; j < 2; j++) {
        check_rows(part[j], 0, 2);
        qn_data_close(part[j]);
    }
}

/* A part with all items. */
static qn_data *whole_part(const qn_data *data) {
    const uint64_t all = 1;
    qn_data *part;
    assert_int_equal(qn_data_split(data, &all, 1, 7, 0, &part, NULL), QN_OK);
    return part;
}

/* A part whose values are float32 has no wide columns, as a file with these items has none. */
static void test_settle(void **state) {
    (void)state;
    qn_data *data = make_table(), *part = whole_part(data);
    assert_int_equal(part->wide->columns, 2);
    assert_null(part->kept);
    qn_data_close(part);
    for (int i = 0; i < ITEMS; i++)
        qn__wide_of(data->wide, 0)[i].whole = (int64_t)((float *)data->memory)[3 * i];
    part = whole_part(data);
    assert_int_equal(part->wide->columns, 1);
    assert_int_equal(qn__wide_kind(part, 0), QN__EXACT_NONE);
    assert_true(qn__wide_column(part, 2)[4].real == 1.7e9 + 1);
    qn_data_close(part);
    for (int i = 0; i < ITEMS; i++) {
        qn__wide_of(data->wide, 1)[i].real = 0.1;
        ((float *)data->memory)[3 * i + 2] = 0.1f;
    }
    part = whole_part(data); /* one number alone, which a writer has in full */
    assert_null(part->wide);
    assert_int_equal(part->rules, 0);
    assert_int_equal(qn__kept_column(part, 2), 1);
    assert_true(qn__kept_value(part, 1, 4) == 0.1);
    qn_data_close(part);
    for (int i = 0; i < ITEMS; i++) {
        qn__wide_of(data->wide, 1)[i].real = 1.7e9 + i;
        ((float *)data->memory)[3 * i + 2] = (float)(1.7e9 + i);
    }
    part = whole_part(data); /* doubles that are all whole */
    assert_int_equal(qn__wide_kind(part, 2), QN__EXACT_WHOLE);
    assert_true(qn__wide_column(part, 2)[4].whole == 1700000004);
    qn_data_close(part);
    qn_data_close(data);
}

static void test_snapshot(void **state) {
    (void)state;
    qn_data *data = make_table(), *again;
    char digest[65];
    const uint64_t bytes = qn__data_snapshot_bytes(data);
    uint8_t *snapshot = qn__alloc(bytes, 1, NULL);
    assert_non_null(snapshot);
    qn__data_snapshot_write(data, snapshot);
    assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, NULL), QN_OK);
    check_rows(again, 0, 2);
    assert_int_equal(again->rules, QN__RULE_EXACT);
    qn__data_digest(again, NULL, digest);
    assert_string_equal(digest, qn_data_digest(data));
    qn_data_close(again);
    /* A damaged head or text is refused, or is a table of the same size. */
    for (uint64_t at = 0; at < bytes; at += at < 256 || at + 256 > bytes ? 1 : 61) {
        const uint8_t before = snapshot[at];
        snapshot[at] ^= 3;
        if (qn__data_snapshot_map(snapshot, bytes, &again, NULL) == QN_OK) {
            assert_int_equal(qn__data_snapshot_bytes(again), bytes);
            check_whole(again);
            qn_data_close(again);
        }
        snapshot[at] = before;
    }
    qn__free(snapshot);
    qn_data_close(data);
}

/* The model has the columns `name`; `day` and `second` are wide in it. */
static void check_order(const char *const *name, uint32_t features, uint32_t day, uint32_t second) {
    qn_data *data = make_table(), *made;
    qn__schema *schema = qn__schema_create(features, NULL);
    static const char *const own[3] = {"day", "number", "second"};
    for (uint32_t k = 0; k < 3; k++)
        data->schema->feature[k].name = qn__copy_text(own[k], NULL);
    for (uint32_t k = 0; k < features; k++)
        schema->feature[k].name = qn__copy_text(name[k], NULL);
    schema->target = QN__TARGET_INDEX;
    if (day < features) {
        schema->feature[day].exact = QN__EXACT_WHOLE;
        schema->feature[second].exact = QN__EXACT_REAL;
    }
    const qn__fitting to = {.schema = schema, .features = features, .outputs = 2, .what = "it"};
    assert_int_equal(qn__encode(&to, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_non_null(made);
    if (day < features)
        check_rows(made, day, second);
    else
        assert_null(made->wide);
    assert_int_equal(made->rules, day < features ? QN__RULE_EXACT : 0);
    qn_data_close(made);
    qn_data_close(data);
    qn__schema_free(schema);
}

static void test_columns_in_order_of_a_model(void **state) {
    (void)state;
    check_order((const char *const[]){"second", "number", "day"}, 3, 2, 0);
    check_order((const char *const[]){"second", "day"}, 2, 1, 0);
    check_order((const char *const[]){"number"}, 1, 9, 9);
    check_order((const char *const[]){"day", "number", "second"}, 3, 9, 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_digest),
        cmocka_unit_test(test_views_and_parts), cmocka_unit_test(test_settle),
        cmocka_unit_test(test_snapshot),        cmocka_unit_test(test_columns_in_order_of_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
