/* The tables: every name has its value and back, and a wrong name a good suggestion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/recipe/option_rows.h"
#include "model/recipe/recipe.h"
#include "model/recipe/tables.h"

#include <quern/choices.h>
#include <quern/defaults.h>
#include <stdio.h>
#include <string.h>

static const qn__table *const all[] = {&qn__activations,     &qn__losses,   &qn__optimizers,
                                       &qn__initialisations, &qn__scalings, &qn__schedules,
                                       &qn__arithmetics};
enum { TABLES = sizeof all / sizeof all[0] };

static void test_every_row_is_found(void **state) {
    (void)state;
    for (size_t t = 0; t < TABLES; ++t)
        for (size_t i = 0; i < all[t]->count; ++i) {
            const qn__choice *row = &all[t]->row[i];
            int value = -1;
            char upper[32] = "";
            for (size_t k = 0; row->name[k] != '\0'; ++k)
                upper[k] = (char)(row->name[k] >= 'a' ? row->name[k] - 'a' + 'A' : row->name[k]);
            assert_int_equal(qn__table_find(all[t], row->name, &value, NULL), QN_OK);
            assert_int_equal(value, row->value);
            assert_int_equal(qn__table_find(all[t], upper, &value, NULL), QN_OK);
            assert_int_equal(value, row->value);
            /* A recipe has numbers for this name. */
            const int second = strcmp(row->name, "imagenet") == 0;
            assert_string_equal(qn__table_name(all[t], row->value), second ? "channel" : row->name);
            assert_true(strlen(row->about) > 10);
        }
}

static void test_values_are_all_there(void **state) {
    (void)state;
    const size_t counts[TABLES] = {
        QN__ACT_GELU_TANH + 1, QN__LOSS_BINARY + 1,          QN__OPT_ADAMW + 2, QN__INIT_LECUN + 1,
        QN__SCALE_ROBUST + 2,  QN__SCHEDULE_EXPONENTIAL + 1, QN__ARITH_I21 + 1};
    for (size_t t = 0; t < TABLES; ++t) {
        assert_int_equal(all[t]->count, counts[t]);
        for (size_t v = 0; v < counts[t]; ++v) {
            const int nameless = (all[t] == &qn__optimizers && v == QN__OPT_NESTEROV) ||
                                 (all[t] == &qn__scalings && v > QN__SCALE_ROBUST);
            assert_true(nameless == (strcmp(qn__table_name(all[t], (int)v), "?") == 0));
        }
    }
    assert_string_equal(qn__table_name(&qn__optimizers, QN__OPT_LBFGS), "lbfgs");
    assert_string_equal(qn__table_name(&qn__losses, 99), "?");
}

static void check_failure(const qn__table *table, const char *word, const char *what,
                          const char *where, const char *remedy) {
    qn_error err = {0};
    int value = 77;
    assert_int_equal(qn__table_find(table, word, &value, &err), QN_USAGE);
    assert_int_equal(err.status, QN_USAGE);
    assert_string_equal(err.what, what);
    assert_string_equal(err.where, where);
    assert_string_equal(err.remedy, remedy);
    assert_int_equal(value, 77);
}

static void test_failures_give_advice(void **state) {
    (void)state;
    check_failure(&qn__losses, "cross-entropi", "unknown loss \"cross-entropi\"", "`train.loss`",
                  "did you mean \"cross-entropy\"? there are: cross-entropy, mse, mae, "
                  "huber, binary");
    check_failure(&qn__optimizers, "ADMA", "unknown optimizer \"ADMA\"", "`train.optimizer`",
                  "did you mean \"adam\"? there are: sgd, momentum, adam, adamw, lbfgs");
    check_failure(&qn__schedules, "", "unknown schedule \"\"", "`train.schedule`",
                  "there are: constant, step, cosine, exponential");
    check_failure(&qn__scalings, NULL, "unknown scaling \"\"", "`train.scale`",
                  "there are: none, unit, fraction, standard, channel, imagenet, minmax, robust");
    check_failure(&qn__initialisations, "zeros", "unknown initialisation \"zeros\"", "`train.init`",
                  "there are: auto, glorot, he, lecun");
}

/* A word far longer than any buffer, and words that are prefixes of names. */
static void test_odd_words(void **state) {
    (void)state;
    char longest[5000];
    int value;
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(qn__table_find(&qn__losses, longest, &value, NULL), QN_USAGE);
    assert_int_equal(qn__table_find(&qn__optimizers, "ada", &value, NULL), QN_USAGE);
    assert_int_equal(qn__table_find(&qn__optimizers, "adamww", &value, NULL), QN_USAGE);
    assert_non_null(qn__table_row(&qn__optimizers, "adamw", 4));
    assert_int_equal(qn__table_row(&qn__optimizers, "adamw", 4)->value, QN__OPT_ADAM);

    char little[12];
    qn__table_advise(&qn__losses, "mse", little, sizeof little);
    assert_true(strlen(little) < sizeof little);
}

/* Names in other tools, and other spellings of a name. */
static void test_other_names(void **state) {
    (void)state;
    static const struct {
        qn_choice_kind kind;
        const char *word, *name;
    } cases[] = {
        {QN_CHOICE_OPTIMIZER, "AdamW", "adamw"},
        {QN_CHOICE_OPTIMIZER, "Adam_W", "adamw"},
        {QN_CHOICE_LOSS, "crossentropy", "cross-entropy"},
        {QN_CHOICE_LOSS, "CrossEntropyLoss", "cross-entropy"},
        {QN_CHOICE_LOSS, "nll", "cross-entropy"},
        {QN_CHOICE_LOSS, "mean_squared_error", "mse"},
        {QN_CHOICE_LOSS, "mes", "mse"},
        {QN_CHOICE_ACTIVATION, "elu", "relu"},
        {QN_CHOICE_ACTIVATION, "linear", "none"},
        {QN_CHOICE_INIT, "xavier_uniform", "glorot"},
        {QN_CHOICE_SCALE, "StandardScaler", "standard"},
        {QN_CHOICE_ARITH, "bf16", "i14"},
        {QN_CHOICE_SCHEDULE, "CosineAnnealingLR", "cosine"},
        {QN_CHOICE_LOSS, "", NULL},
        {QN_CHOICE_LOSS, "--", NULL},
        {QN_CHOICE_LOSS, "e", NULL},
        {QN_CHOICE_NONE, "mse", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const char *near = qn_choice_near(cases[i].kind, cases[i].word);
        if (cases[i].name)
            assert_string_equal(near ? near : "", cases[i].name);
        else
            assert_null(near);
    }
    assert_null(qn_choice_near(QN_CHOICE_LOSS, NULL));
}

/* The public list equals the table, row by row, including its end. */
static void test_public_list(void **state) {
    (void)state;
    static const qn_choice_kind kinds[TABLES] = {
        QN_CHOICE_ACTIVATION, QN_CHOICE_LOSS,     QN_CHOICE_OPTIMIZER, QN_CHOICE_INIT,
        QN_CHOICE_SCALE,      QN_CHOICE_SCHEDULE, QN_CHOICE_ARITH};
    for (size_t t = 0; t < TABLES; ++t) {
        const uint32_t count = (uint32_t)all[t]->count;
        for (uint32_t i = 0; i < count; ++i) {
            assert_string_equal(qn_choice_name(kinds[t], i), all[t]->row[i].name);
            assert_string_equal(qn_choice_about(kinds[t], i), all[t]->row[i].about);
        }
        assert_null(qn_choice_name(kinds[t], count));
        assert_null(qn_choice_about(kinds[t], UINT32_MAX));
    }
    assert_null(qn_choice_name(QN_CHOICE_NONE, 0));
    assert_null(qn_choice_about((qn_choice_kind)99, 0));
}

static void test_members_of_some_names_only(void **state) {
    (void)state;
    static const struct {
        const char *name, *member;
        qn_choice_kind kind;
        int takes;
    } cases[] = {
        {"adam", "beta1", QN_CHOICE_OPTIMIZER, 1},
        {"AdamW", "epsilon", QN_CHOICE_OPTIMIZER, 1},
        {"sgd", "beta1", QN_CHOICE_OPTIMIZER, 0},
        {"momentum", "momentum", QN_CHOICE_OPTIMIZER, 1},
        {"adam", "batch", QN_CHOICE_OPTIMIZER, 0},
        {"adam", "beta", QN_CHOICE_OPTIMIZER, 0},
        {"step", "lr_gamma", QN_CHOICE_SCHEDULE, 1},
        {"cosine", "lr_step", QN_CHOICE_SCHEDULE, 0},
        {"huber", "delta", QN_CHOICE_LOSS, 1},
        {"none", "delta", QN_CHOICE_LOSS, 0},
        {"adam", "beta1", QN_CHOICE_NONE, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_int_equal(qn_choice_takes(cases[i].kind, cases[i].name, cases[i].member),
                         cases[i].takes);
}

/* What a help, a parser and a recipe need of each row. */
static void test_option_rows(void **state) {
    (void)state;
    const qn_option *o, *other;
    qn_train_options options;
    char text[256];
    qn_train_options_init(&options);
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; ++i) {
        assert_int_equal(o->size, sizeof *o);
        assert_int_equal(strncmp(o->field, "train.", 6), 0);
        assert_true(o->offset >= sizeof o->size && o->offset < sizeof options);
        assert_true((o->value == NULL) == (o->type == QN_OPTION_FLAG));
        assert_true(strlen(o->help) > 5 && o->help[strlen(o->help) - 1] != '.');
        assert_true((o->type == QN_OPTION_NAME) <= (qn_choice_name(o->from, 0) != NULL));
        assert_true(o->type == QN_OPTION_FLAG || o->fallback ||
                    qn_default_text(o->field, text, sizeof text));
        for (uint32_t k = 0; (other = qn_train_option(k)) != NULL; ++k)
            assert_true(k == i ||
                        (strcmp(o->name, other->name) != 0 && o->offset != other->offset &&
                         strcmp(o->field, other->field) != 0));
        int takers = 0;
        for (uint32_t k = 0; o->only && qn_choice_name(o->only, k); ++k)
            takers += qn_choice_takes(o->only, qn_choice_name(o->only, k), o->field + 6);
        assert_true((takers > 0) == (o->only != QN_CHOICE_NONE));
    }
    assert_null(qn_train_option(UINT32_MAX));
    for (const qn__option *row = qn__options; row->key; ++row) {
        assert_true(row->contract >= 1 &&
                    (row == qn__options || row->contract >= row[-1].contract));
        for (const qn__option *before = qn__options; before < row; ++before)
            assert_true(strcmp(row->key, before->key) != 0 && row->place != before->place);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_option_rows),
        cmocka_unit_test(test_every_row_is_found),
        cmocka_unit_test(test_values_are_all_there),
        cmocka_unit_test(test_failures_give_advice),
        cmocka_unit_test(test_odd_words),
        cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_public_list),
        cmocka_unit_test(test_members_of_some_names_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
