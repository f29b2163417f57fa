/* Searches: who makes which run, and the file that an interrupted one goes on from. */
#include "search/search_share.h"
#include "search/search_state.h"
#include <math.h>
#include <pthread.h>
#include <quern/quern.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --------------------------------------------------------------------- who makes which run */

enum { RANKS = 3 };

/* Ranks of these seconds a run and one worker each, in virtual time: the time until all is done. */
static double simulate(uint64_t runs, const double seconds[RANKS], double dies[RANKS]) {
    qn__share s;
    double until[RANKS], now = 0;
    uint64_t run, having[RANKS];
    uint32_t rank;
    assert_int_equal(qn__share_open(&s, runs, RANKS, NULL), QN_OK);
    for (int r = 0; r < RANKS; ++r) {
        s.rank[r] = (qn__share_rank){.present = 1, .workers = 1};
        until[r] = INFINITY;
    }
    while (s.done < runs) {
        while (qn__share_give(&s, &run, &rank)) {
            assert_int_equal(s.rank[rank].busy, 1);
            assert_true(isinf(until[rank]));
            until[rank] = now + seconds[rank];
            having[rank] = run;
        }
        int next = 0;
        for (int r = 1; r < RANKS; ++r)
            next = fmin(until[r], dies[r]) < fmin(until[next], dies[next]) ? r : next;
        now = fmin(until[next], dies[next]);
        assert_true(now < 1e6); /* else nobody works */
        if (dies[next] <= until[next])
            qn__share_lose(&s, (uint32_t)next);
        else
            qn__share_done(&s, having[next], (uint32_t)next, seconds[next]);
        dies[next] = now == dies[next] ? INFINITY : dies[next];
        until[next] = INFINITY;
    }
    qn__share_close(&s);
    return now;
}

static void test_shares_by_time(void **state) {
    (void)state;
    double never[RANKS] = {INFINITY, INFINITY, INFINITY};
    const double equal[RANKS] = {1, 1, 1}, one_slow[RANKS] = {1, 10, 1};
    assert_true(simulate(9, equal, never) == 3);
    assert_true(simulate(1, one_slow, never) == 1);
    /* The slow one makes one of 30 runs, and no second one near the end. */
    assert_true(simulate(30, one_slow, never) <= 15);
}

static void test_a_dead_rank_loses_its_run_only(void **state) {
    (void)state;
    double dies[RANKS] = {INFINITY, 2.5, 0.5};
    const double equal[RANKS] = {1, 1, 1};
    /* Runs made: 1 until 1, 1 + 1 at 1 and 2, then one rank makes the last of 9 */
    assert_true(simulate(9, equal, dies) == 7);
}

/* ------------------------------------------------------------------------------- the file */

static char folder[] = "search_XXXXXX";
static qn_data *digits;

enum { SETTINGS = 2, FOLDS = 3, RUNS = SETTINGS * FOLDS };

typedef struct watch {
    qn_search *search;
    int stop_after; /* 0: never */
    int told;
    uint64_t done;
} watch;

static void on_run(void *user, const qn_search_event *e) {
    watch *w = user;
    assert_int_equal(e->runs, RUNS);
    assert_true(e->result->done && e->result->items > 0 && e->done == ++w->done);
    if (++w->told == w->stop_after)
        qn_search_stop(w->search);
}

static qn_train_options setting[SETTINGS];
static const qn_train_options *const settings[SETTINGS] = {&setting[0], &setting[1]};
static const char *const names[SETTINGS] = {"lr 0.1", "say \"hi\"\n"};

static qn_search_options options_of(watch *w, const char *dir) {
    qn_search_options o;
    for (int i = 0; i < SETTINGS; ++i) {
        qn_train_options_init(&setting[i]);
        setting[i].model = "dense 10 softmax";
        setting[i].learning_rate = i ? 0.5f : 0.1f;
        setting[i].epochs = 1;
    }
    qn_search_options_init(&o);
    o.setting = settings;
    o.settings = SETTINGS;
    o.folds = FOLDS;
    o.name = names;
    o.folder = dir;
    o.compute.threads = 1;
    o.user = w;
    o.on_run = on_run;
    return o;
}

static qn_status open_search(watch *w, const char *dir, qn_error *err) {
    const qn_search_options o = options_of(w, dir);
    const qn_status status = qn_search_open(&o, digits, &w->search, err);
    w->done = qn_search_done(w->search);
    return status;
}

static void read_file(char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "%s/search.csv", folder);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, size - 1, f) : 0;
    assert_true(n > 0);
    text[n] = '\0';
    fclose(f);
}

static void write_file(const char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "%s/search.csv", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void test_goes_on(void **state) {
    (void)state;
    qn_error err;
    watch alone = {.done = 0}, first = {.stop_after = 2}, second = {.done = 0}, other = {.done = 0};
    uint32_t a[SETTINGS], b[SETTINGS];
    assert_int_equal(open_search(&alone, NULL, &err), QN_OK);
    assert_int_equal(qn_search_order(alone.search, QN_SEARCH_LOSS, a, &err), QN_USAGE);
    assert_int_equal(qn_search_run(alone.search, &err), QN_OK);
    assert_int_equal(open_search(&first, folder, &err), QN_OK);
    assert_int_equal(open_search(&other, folder, &err), QN_BUSY);
    assert_int_equal(qn_search_run(first.search, &err), QN_INTERRUPTED);
    assert_int_equal(qn_search_done(first.search), 2);
    qn_search_close(first.search);
    assert_int_equal(open_search(&second, folder, &err), QN_OK);
    assert_int_equal(second.done, 2);
    assert_int_equal(qn_search_run(second.search, &err), QN_OK);
    assert_int_equal(second.told, RUNS - 2);
    for (uint32_t i = 0; i < RUNS; ++i) {
        qn_search_result x = {.size = sizeof x}, y = {.size = sizeof y};
        assert_int_equal(qn_search_get(alone.search, i / FOLDS, i % FOLDS, &x, &err), QN_OK);
        assert_int_equal(qn_search_get(second.search, i / FOLDS, i % FOLDS, &y, &err), QN_OK);
        assert_string_equal(x.model, y.model);
        assert_true(x.number[QN_SEARCH_LOSS] == y.number[QN_SEARCH_LOSS]);
        assert_true(isnan(x.number[QN_SEARCH_RMSE]));
    }
    assert_int_equal(qn_search_order(alone.search, QN_SEARCH_LOSS, a, &err), QN_OK);
    assert_int_equal(qn_search_order(second.search, QN_SEARCH_LOSS, b, &err), QN_OK);
    assert_memory_equal(a, b, sizeof a);
    qn_search_close(second.search);
    qn_search_close(alone.search);
}

/* Changes the file as `from` says, in `to`; then it is refused at that line. */
static void refused(const char *text, const char *from, const char *to, const char *why) {
    char changed[8192];
    qn_error err;
    watch w = {.done = 0};
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_file(changed, strlen(changed));
    assert_int_not_equal(open_search(&w, folder, &err), QN_OK);
    if (!strstr(err.what, why))
        fail_msg("%s", err.what);
    read_file(changed, sizeof changed);
    assert_non_null(strstr(changed, to)); /* nothing is lost */
}

static void test_changed_by_hand(void **state) {
    (void)state;
    char text[8192];
    qn_error err;
    watch w = {.done = 0};
    read_file(text, sizeof text);
    assert_non_null(strstr(text, ",\"say \"\"hi\"\" \","));
    refused(text, "\n0,0,", "\n1,0,", "line 3");
    refused(text, "0,1,", "0,1,inf,", "line");
    refused(text, ",nan,", ",inf,", "line");
    refused(text, "\n0,0,", "\n0,0\n0,0,", "line 3");
    refused(text, "folds 3", "folds 4", "another search");
    refused(text, "# quern search 2", "a,b,c", "another search");
    refused(text, "model,name", "name", "another search");
    /* What a killed process began is cut off; without results it may be another search's. */
    write_file(text, strlen(text) - 5);
    assert_int_equal(open_search(&w, folder, &err), QN_OK);
    assert_int_equal(w.done, RUNS - 1);
    qn_search_close(w.search);
    for (size_t size = 0; size < 90; size += 7) {
        text[40] = 'x';
        write_file(text, size);
        assert_int_equal(open_search(&w, folder, &err), QN_OK);
        assert_int_equal(w.done, 0);
        qn_search_close(w.search);
    }
}

static int asked_may = 1;
static int may(void *user) {
    (void)user;
    return asked_may;
}

/* A rank goes on for another one, whose process may be stopped: that one writes nothing more. */
static void test_takes_over(void **state) {
    (void)state;
    qn_error err;
    const qn__owner owner = {.id = 7, .may = may}, other = {.id = 8, .may = may};
    qn__search_file old = {.file = -1}, next = {.file = -1};
    qn_search_result result[RUNS] = {{.size = sizeof *result, .items = 0}};
    const qn__search_table table = {.settings = SETTINGS, .folds = FOLDS, .result = result};
    write_file("", 0);
    assert_int_equal(qn__search_file_open(&old, folder, &owner, "key", &table, &err), QN_OK);
    assert_int_equal(qn__search_file_add(&old, &table, 0, "first", &err), QN_OK);
    assert_int_equal(qn__search_file_open(&next, folder, NULL, "key", &table, &err), QN_BUSY);
    qn__search_file_close(&next);
    assert_int_equal(qn__search_file_open(&next, folder, &other, "key", &table, &err), QN_BUSY);
    assert_non_null(strstr(err.what, "the folder of the search is in use by process"));
    qn__search_file_close(&next);
    assert_int_equal(qn__search_file_open(&next, folder, &owner, "key", &table, &err), QN_OK);
    assert_true(next.kept[0] && !next.kept[1]);
    assert_int_equal(qn__search_file_add(&old, &table, 1, "late", &err), QN_BUSY);
    const ssize_t late = write(old.file, "late\n", 5); /* it was stopped just before that */
    assert_int_equal(late, 5);
    assert_int_equal(qn__search_file_add(&next, &table, 1, "second", &err), QN_OK);
    qn__search_file_close(&old);
    assert_int_equal(qn__search_file_open(&old, folder, NULL, "key", &table, &err), QN_BUSY);
    qn__search_file_close(&old);
    qn__search_file_close(&next);
    assert_int_equal(qn__search_file_open(&next, folder, NULL, "key", &table, &err), QN_OK);
    assert_true(next.kept[0] && next.kept[1]);
    qn__search_file_close(&next);
}

static void test_refused(void **state) {
    (void)state;
    qn_error err;
    watch w = {.done = 0};
    qn_search_options o = options_of(&w, NULL);
    o.folds = 1;
    assert_int_equal(qn_search_open(&o, digits, &w.search, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "1 folds"));
    o = options_of(&w, NULL);
    setting[1].runs = "runs.sqlite";
    assert_int_equal(qn_search_open(&o, digits, &w.search, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "`train.runs` does nothing"));
    o = options_of(&w, "nowhere");
    setting[1].learning_rate = -1;
    assert_int_equal(qn_search_open(&o, digits, &w.search, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "setting say"));
    assert_int_not_equal(access("nowhere", F_OK), 0);
}

static int set_up(void **state) {
    (void)state;
    return mkdtemp(folder) && qn_data_synth_digits(3, 0, 60, &digits, NULL) == QN_OK ? 0 : -1;
}

static int tear_down(void **state) {
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/search.csv", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/search.lock", folder);
    unlink(path);
    rmdir(folder);
    qn_data_close(digits);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_by_time),
        cmocka_unit_test(test_a_dead_rank_loses_its_run_only),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_changed_by_hand),
        cmocka_unit_test(test_takes_over),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
