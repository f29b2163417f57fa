/* Plans: valid and invalid descriptions, and the results. All on a virtual clock, so every number
 * is the same on every machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/plan_scale.h"
#include <math.h>
#include <quern/plan.h>
#include <stdio.h>
#include <string.h>

static const char network[] = "dense 500 tanh; dense 10 softmax";

static qn_status make(const char *team, uint32_t batch, uint64_t items, qn_plan **plan,
                      qn_error *err) {
    qn_train_options job;
    qn_plan_options o;
    qn_train_options_init(&job);
    job.model = network;
    job.batch = batch;
    job.epochs = 1;
    qn_plan_options_init(&o);
    o.job = &job;
    o.features = 784;
    o.items = items;
    o.team = &team;
    o.teams = 1;
    return qn_plan_make(&o, plan, err);
}

static qn_plan_report planned(const char *team, uint32_t batch, uint64_t items, qn_plan **plan) {
    qn_error err;
    if (make(team, batch, items, plan, &err) != QN_OK)
        fail_msg("%s: %s\n%s", team, err.what, err.where);
    return *qn_plan_report_of(*plan);
}

/* -------------------------------------------------------------------------------------- results */

/* By hand: 640 steps of 64 items at 640 items/s, an update of 397,510 x 16 bytes at 1 GB/s. */
static void test_one_device_alone(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r = planned("host(cpu 640); memory 1GB/s", 64, 40960, &plan);
    const double update = 397510 * 16.0 / 1e9;
    assert_int_equal(r.steps, 640);
    assert_int_equal(r.ranks, 1);
    assert_true(fabs(r.seconds / (640 * (0.1 + update)) - 1) < 1e-6);
    assert_true(fabs(r.bound / 64.0 - 1) < 1e-9);
    assert_true(fabs(r.computing + r.updating - 1) < 1e-6);
    assert_int_equal(r.mores, 0);
    qn_plan_free(plan);
}

/* Two equal hosts over a slow network: half the grains each, the sums sent both ways. */
static void test_two_hosts(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r =
        planned("2*host(cpu 640); memory 1TB/s; net 1ms 100MB/s", 128, 128 * 500, &plan);
    const double bytes = 397510 * 8.0;
    const double exchange = 2 * (0.001 + bytes / 2 / 100e6);
    assert_true(fabs(r.exchange / exchange - 1) < 0.01);
    assert_true(fabs(r.step / (0.1 + exchange) - 1) < 0.01);
    assert_true(fabs(r.rank[0]->share - 0.5) < 1e-3);
    assert_true(fabs(r.rank[1]->bytes_out / (500 * bytes) - 1) < 1e-6);
    assert_int_equal(r.mores, 1);
    qn_plan_free(plan);
}

/* The same with sums of 5 bytes, and with items that need longer than all else. */
static void test_bytes_that_travel(void **state) {
    (void)state;
    static const char team[] = "2*host(cpu 640); memory 1TB/s; net 1ms 100MB/s; sums 5B";
    qn_plan *plan;
    qn_plan_report r = planned(team, 128, 128 * 500, &plan);
    const double bytes = 397510 * 5.0;
    const double exchange = 2 * (0.001 + bytes / 2 / 100e6);
    assert_true(fabs(r.exchange / exchange - 1) < 0.01);
    assert_true(fabs(r.rank[1]->bytes_out / (500 * bytes) - 1) < 1e-6);
    qn_plan_free(plan);
    /* Each host receives half of its 64 items: in the shadow of computing, or not. */
    r = planned("2*host(cpu 640); memory 1TB/s; net 1ms 100MB/s; sums 5B; parts 100kB", 128,
                128 * 500, &plan);
    assert_true(fabs(r.step / (0.1 + exchange) - 1) < 0.01);
    assert_true(fabs(r.rank[1]->bytes_out / (500 * (bytes + 32 * 100e3)) - 1) < 1e-6);
    qn_plan_free(plan);
    r = planned("2*host(cpu 640); memory 1TB/s; net 1ms 100MB/s; sums 5B; parts 1MB", 128,
                128 * 5000, &plan);
    assert_true(fabs(r.step / (32 * 1e6 / 100e6 + exchange) - 1) < 0.01);
    assert_true(r.waiting > 0.5);
    qn_plan_free(plan);
}

/* By hand: 640 s of computing and 4 s of updates at 10 W, and twice the host's 5 W. */
static void test_energy_and_price(void **state) {
    (void)state;
    qn_plan *plan;
    qn_plan_report r = planned("host(cpu 640 power 10W idle 1W) power 5W price 36/h; "
                               "memory 1TB/s",
                               64, 40960, &plan);
    assert_true(fabs(r.joules / (r.seconds * 15) - 1) < 1e-6);
    assert_true(fabs(r.price / (r.seconds / 100) - 1) < 1e-6);
    assert_int_equal(r.scales, 0);
    qn_plan_free(plan);
    /* The faster waits for the slower, which has the only grain. */
    r = planned("host(a 640 power 10W idle 1W | b 64 power 10W idle 1W) price 36/h; memory 1TB/s",
                32, 32 * 500, &plan);
    assert_true(fabs(r.joules / (r.seconds * 11) - 1) < 0.05);
    qn_plan_free(plan);
    r = planned("host(a 640 power 10W) price 1/h host(a 640); net 1us 1GB/s", 64, 6400, &plan);
    assert_true(isnan(r.joules) && isnan(r.price));
    assert_true(isnan(r.scale[1]->price) && r.scale[0]->price > 0 && r.scale[0]->joules > 0);
    qn_plan_free(plan);
}

/* A step has eight grains, so more hosts than that do not help. */
static void test_where_it_stops_scaling(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r =
        planned("2*host(a 1k) host(b 1k | b 1k); net 1us 100GB/s; memory 1TB/s; die 0 at 1ms", 256,
                256 * 100, &plan);
    assert_int_equal(r.scales, 10); /* 1,024 hosts have too many */
    assert_int_equal(r.scale[1]->hosts, 2);
    assert_int_equal(r.scale[1]->ranks, 2);
    assert_int_equal(r.scale[2]->ranks, 5); /* three of the first kind */
    assert_int_equal(r.scale[9]->ranks, 682);
    assert_true(fabs(r.scale[0]->seconds / r.scale[1]->seconds - 2) < 0.1);
    assert_true(r.scale[9]->seconds > 0.95 * r.scale[3]->seconds);
    assert_int_equal(r.enough, 8);
    qn_plan_free(plan);
}

static void test_unequal_hosts(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r = planned("host(a 1k) host(b 2k) host(c 4k); net 1us 100GB/s; "
                                     "memory 1TB/s",
                                     64 * 32, 64 * 32 * 1000, &plan);
    assert_true(r.bound / r.seconds > 0.97);
    assert_true(r.bound / r.equal < 0.43 && r.bound / r.equal > 0.40);
    assert_true(fabs(r.rank[2]->share - 4 / 7.0) < 0.02);
    double sum = 0;
    for (uint32_t i = 0; i < r.ranks; ++i) {
        const qn_plan_rank *k = r.rank[i];
        sum += k->share;
        assert_true(fabs(k->computing + k->waiting + k->exchanging + k->updating + k->recovering -
                         1) < 1e-3);
    }
    assert_true(fabs(sum - 1) < 1e-9);
    qn_plan_free(plan);
}

/* Skipping gives the same as single steps: a plan without any, and one a hundred times as long. */
static void test_leaps_change_nothing(void **state) {
    (void)state;
    static const char team[] = "host(a 1k) host(b 2k + c 3k start 1ms); net 1us 100GB/s";
    qn_plan *plan;
    const qn_plan_report one = planned(team, 64 * 32, 64 * 32 * 40, &plan); /* nothing skipped */
    qn_plan_free(plan);
    const qn_plan_report two = planned(team, 64 * 32, 64 * 32 * 4000, &plan);
    qn_plan_free(plan);
    assert_true(fabs(two.step / one.step - 1) < 0.02);
    assert_true(fabs(two.seconds / (4000 * one.step) - 1) < 0.02);
}

static void test_slower_and_faster(void **state) {
    (void)state;
    qn_plan *plan;
    /* Two of 1000 items/s; after 10 s one is half as fast: 20,000 items done, 80,000 at 1500. */
    const qn_plan_report r = planned("2*host(a 1k); net 1us 100GB/s; slow 1 at 10s x0.5; "
                                     "memory 1TB/s",
                                     64 * 32, 100000, &plan);
    assert_true(fabs(r.bound - (10 + 80000 / 1500.0)) < 1e-6);
    assert_true(r.bound / r.seconds > 0.95);
    qn_plan_free(plan);
    /* And back again. */
    const qn_plan_report s = planned("2*host(a 1k); net 1us 100GB/s; slow 1 at 10s x0.5; "
                                     "slow 1 at 20s x2; memory 1TB/s",
                                     64 * 32, 100000, &plan);
    assert_true(fabs(s.bound - (20 + 65000 / 2000.0)) < 1e-6);
    assert_true(s.bound / s.seconds > 0.95);
    qn_plan_free(plan);
}

static void test_deaths(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r = planned("4*host(a 1k); net 10us 1GB/s; die 3 at 10s; die 0 at 12s; "
                                     "memory 1TB/s",
                                     64 * 32, 200000, &plan);
    assert_int_equal(r.deaths, 2);
    assert_true(r.rank[3]->died && r.rank[0]->died && !r.rank[1]->died);
    assert_true(fabs(r.bound - (12 + (200000 - 46000) / 2000.0)) < 1e-6);
    assert_true(r.bound / r.seconds > 0.93);
    assert_true(r.items_again > 0 && r.items_again <= 2 * 64 * 32);
    qn_plan_free(plan);
    qn_error err;
    assert_int_equal(
        make("2*host(a 1k); net 10us 1GB/s; die 0 at 5s; die 1 at 6s", 64, 100000, &plan, &err),
        QN_CLUSTER);
    assert_null(plan);
    assert_non_null(strstr(err.what, "no rank is left"));
}

/* Events after the end change nothing, and are counted. */
static void test_events_after_the_end(void **state) {
    (void)state;
    static const char *const events[] = {"", "; slow 0 at 9s x0.5", "; die 1 at 12s",
                                         "; slow 0 at 1h x0.1; die 1 at 2h; slow 1 at 9s x0.5"};
    static const uint32_t late[] = {0, 0, 1, 2};
    char team[128];
    for (int i = 0; i < 4; ++i) {
        qn_plan *plan;
        snprintf(team, sizeof team, "2*host(a 1k); net 0s 1000GB/s; memory 100GB/s%s", events[i]);
        const qn_plan_report r = planned(team, 2048, 20480, &plan);
        qn_plan_free(plan);
        assert_true(r.seconds > 10 && r.seconds < 12);
        assert_int_equal(r.late, late[i]);
        assert_int_equal(r.events, i < 3 ? i > 0 : 3);
        assert_int_equal(r.deaths, 0);
    }
}

/* One rank of two: the other one takes over its work. */
static void test_one_rank_of_a_host(void **state) {
    (void)state;
    qn_plan *plan;
    qn_error err;
    const qn_plan_report r =
        planned("host(a 1k | a 1k); die 0.1 at 10s; memory 1TB/s", 64 * 32, 200000, &plan);
    assert_int_equal(r.deaths, 1);
    assert_true(r.rank[1]->died && !r.rank[0]->died);
    assert_true(fabs(r.bound - (10 + 180000 / 1000.0)) < 1e-6);
    assert_true(r.bound / r.seconds > 0.98);
    qn_plan_free(plan);
    const qn_plan_report s =
        planned("2*host(a 1k | a 1k); slow 1.0 at 10s x0.5; net 1us 100GB/s; memory 1TB/s", 64 * 32,
                200000, &plan);
    assert_true(fabs(s.bound - (10 + 160000 / 3500.0)) < 1e-6);
    assert_true(s.rank[2]->share < 0.8 * s.rank[3]->share);
    assert_true(s.rank[0]->share > 0.9 * s.rank[3]->share);
    qn_plan_free(plan);
    assert_int_equal(make("host(a 1k | a 1k); die 0.2 at 10s", 64, 100000, &plan, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "host 0 has no rank 2"));
    assert_int_equal(make("host(a 1k); die 1.0 at 10s", 64, 100000, &plan, &err), QN_USAGE);
    assert_int_equal(make("host(a 1k); die 0.x at 10s", 64, 100000, &plan, &err), QN_USAGE);
}

static void test_ranks_of_a_host_share_memory(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r = planned("host(a 1k | a 1k)", 64, 6400, &plan);
    assert_int_equal(r.hosts, 1);
    assert_int_equal(r.ranks, 2);
    assert_true(r.rank[0]->bytes_out <= 0);
    qn_plan_free(plan);
}

static void test_a_repeat_is_equal(void **state) {
    (void)state;
    static const char team[] = "7*host(a 1k noise 10% + b 5k start 1ms noise 20%); net 1us 1GB/s; "
                               "slow 2 at 3s x0.3; die 5 at 7s";
    qn_plan *plan;
    double seconds[2];
    for (int i = 0; i < 2; ++i) {
        seconds[i] = planned(team, 2048, 200000, &plan).seconds;
        qn_plan_free(plan);
    }
    assert_memory_equal(&seconds[0], &seconds[1], sizeof seconds[0]);
}

static void test_as_many_as_there_can_be(void **state) {
    (void)state;
    qn_plan *plan;
    const qn_plan_report r = planned("1024*host(8*a 1k); net 10us 10GB/s", 1 << 20, 1 << 23, &plan);
    assert_int_equal(r.devices, 8192);
    assert_int_equal(r.mores, 1);
    assert_true(isnan(r.more[0]->seconds)); /* one more is too many */
    qn_plan_free(plan);
}

/* -------------------------------------------------------------------------------- refused input */

/* Checks the message and the column of the caret. */
static void refused(const char *team, const char *what, int column) {
    char place[32];
    qn_plan *plan;
    qn_error err;
    if (make(team, 64, 1000, &plan, &err) != QN_USAGE)
        fail_msg("%s was taken", team);
    snprintf(place, sizeof place, "column %d:", column);
    if (!strstr(err.what, what) || (column > 0 && !strstr(err.where, place)) || !*err.remedy)
        fail_msg("%s: %s\n%s\n%s", team, err.what, err.where, err.remedy);
}

static void test_texts_that_make_no_sense(void **state) {
    (void)state;
    refused("", "expected a team", 1);
    refused("cpu 60k", "expected host, net, memory, sums, parts, slow or die", 1);
    refused("host(cpu 60k power 0W)", "a device's power is in watts", 20);
    refused("host(cpu 60k idle 5)", "a waiting device's power", 19);
    refused("host(cpu 60k) power", "a host's power is in watts", 20);
    refused("host(cpu 60k) price 2.5", "a host's price is of an hour", 21);
    refused("host(cpu 60k); sums 9B", "up to 8 bytes", 21);
    refused("host(cpu 60k); sums 0B", "up to 8 bytes", 21);
    refused("host(cpu 60k); parts 0B", "bytes of an item", 22);
    refused("host", "expected a bracket after host", 5);
    refused("host(", "expected a device", 6);
    refused("host()", "expected a device", 6);
    refused("host(cpu)", "rate", 9);
    refused("host(cpu 60q)", "rate", 10);
    refused("host(cpu 0)", "rate", 10);
    refused("host(cpu -5)", "rate", 10);
    refused("host(cpu 1e9999)", "rate", 10);
    refused("host(cpu 9999999999G)", "rate", 10);
    refused("host(cpu 60k", "after a device comes", 13);
    refused("host(cpu 60k start)", "the start of a call is a time", 19);
    refused("host(cpu 60k start 5)", "the start of a call is a time", 20);
    refused("host(cpu 60k noise 5)", "noise is a part", 20);
    refused("host(cpu 60k noise 95%)", "noise is at most", 14);
    refused("host(cpu 60k + )", "expected a device", 16);
    refused("4 host(cpu 60k)", "needs a star", 3);
    refused("0*host(cpu 60k)", "expected a number of copies", 1);
    refused("99999999999*host(cpu 60k)", "expected a number of copies", 1);
    refused("1024*host(a 1|a 1); net 1us 1GB/s", "too many ranks", 1);
    refused("host(65*a 1)", "so many devices", 6);
    refused("host(64*a 1 + b 1)", "so many devices", 15);
    refused("host(a 1k) x", "expected host, net", 12);
    refused("host(a 1k);; net 1us 1GB/s", "expected host, net", 12);
    refused("host(a 1k); net", "latency is a time", 16);
    refused("host(a 1k); net 1us", "bandwidth", 20);
    refused("host(a 1k); net 1us 1GB", "bandwidth", 21);
    refused("host(a 1k); net 1us 0GB/s", "bandwidth", 21);
    refused("host(a 1k); net 1us 1GB/s 5", "a semicolon", 27);
    refused("host(a 1k); memory fast", "memory's speed", 20);
    refused("host(a 1k); slow", "number of a host", 17);
    refused("host(a 1k); slow -1 at 1s x2", "number of a host", 18);
    refused("host(a 1k); slow 0 1s x2", "expected at and a time", 20);
    refused("host(a 1k); slow 0 at 1s", "change of speed", 25);
    refused("host(a 1k); slow 0 at 1s 2", "change of speed", 26);
    refused("host(a 1k); slow 0 at 1s x0", "change of speed", 26);
    refused("host(a 1k); die 0 at 0s", "moment", 22);
    refused("host(a 1k); die 1 at 5s", "no host 1", 0);
    refused("2*host(a 1k)", "is not described", 0);
    refused("net 1us 1GB/s", "has no host", 0);
    refused("host(a 1k); \x01\xff", "expected host, net", 13);
}

/* A long text is shown around the error; unprintable bytes never reach the message. */
static void test_a_long_text(void **state) {
    (void)state;
    char text[4000] = "host(a 1k";
    qn_plan *plan;
    qn_error err;
    for (int i = 0; i < 60; ++i)
        strcat(text, " + device 123k start 10us");
    strcat(text, " + \x1b[31m)");
    assert_int_equal(make(text, 64, 1000, &plan, &err), QN_USAGE);
    assert_null(strchr(err.what, '\x1b'));
    assert_null(strchr(err.where, '\x1b'));
    assert_non_null(strstr(err.where, "..."));
}

/* ------------------------------------------------------------------------------- measured hosts */

#define COST(more)                                                                                 \
    "{\"event\":\"cost\",\"rank\":0,\"ranks\":1,\"id\":\"cpu\",\"model\":"                         \
    "\"dense 500 tanh; dense 10 softmax\",\"features\":784,\"batch\":128,\"grain\":32,"            \
    "\"optimizer\":\"sgd\"" more "}\n"
#define TOOK ",\"grains\":[1,2,4],\"seconds\":[0.1,0.15,0.25]"

static const qn__plan_subject subject = {.model = network,
                                         .optimizer = "sgd",
                                         .arith = "f32",
                                         .features = 784,
                                         .batch = 128,
                                         .grain = 32,
                                         .freeze = "",
                                         .layers = 1};

static qn_status parse(const char *text, qn__plan_team *team, qn_error *err) {
    assert_int_equal(qn__plan_team_create(team, NULL), QN_OK);
    return qn__plan_team_parse(team, text, strlen(text), "a.json", 1, &subject, err);
}

static void test_a_measured_host(void **state) {
    (void)state;
    static const char text[] = "{\"event\":\"device\",\"id\":\"cpu\"}\n" COST(
        TOOK ",\"update_s\":0.01,\"step_s\":0.2,\"add_bytes_per_s\":5e9,\"word_bytes\":4,"
             "\"pack_s\":0.004,\"unpack_s\":0.008,\"watts\":70");
    const qn__plan_job job = {.steps = 100, .units = 4, .grain = 32, .parameters = 1000};
    qn__plan_team team;
    qn__plan_run run;
    qn_error err;
    assert_int_equal(parse(text, &team, &err), QN_OK);
    assert_int_equal(team.hosts, 1);
    assert_int_equal(team.devices, 1);
    assert_true(fabs(team.device[0].rate / (4 * 32 / 0.25) - 1) < 1e-6);
    /* Alone it makes its steps in one pass. */
    assert_int_equal(qn__plan_run_make(&team, &job, UINT32_MAX, 0, &run, &err), QN_OK);
    assert_true(fabs(run.seconds - 100 * 0.2) < 1e-4);
    qn__plan_run_release(&run);
    /* Two of them: two grains each, an update, and the network. */
    team.latency = 0.001;
    team.bandwidth = 1e12;
    assert_int_equal(qn__plan_run_make(&team, &job, 0, 0, &run, &err), QN_OK);
    /* Half of the sums are packed, sent and added; half of the total comes back. */
    const double messages = 0.004 / 2 + 0.008 / 2 + 0.004 / 2 + 0.008 / 2;
    assert_true(fabs(run.step - (0.15 + 0.01 + 0.002 + messages)) < 1e-4);
    assert_true(fabs(run.team->rank[1].spent.bytes_out - 100 * 1000 * 4.0) < 1);
    assert_true(qn__plan_joules(&team, &run) > 0.99 * 2 * 70 * run.seconds);
    qn__plan_run_release(&run);
    qn__plan_team_release(&team);
}

static void not_measured(const char *text, qn_status status, const char *what) {
    qn__plan_team team;
    qn_error err;
    if (parse(text, &team, &err) != status)
        fail_msg("%s: not %d", text, status);
    if (!strstr(err.what, what) || !strstr(err.remedy, "quern devices --json --costs"))
        fail_msg("%s: %s\n%s\n%s", text, err.what, err.where, err.remedy);
    qn__plan_team_release(&team);
}

static void test_files_that_are_none(void **state) {
    (void)state;
    not_measured("", QN_INPUT, "has the cost of no device");
    not_measured("{\"event\":\"device\"}\n", QN_INPUT, "has the cost of no device");
    not_measured("no json\n", QN_INPUT, "not JSON");
    not_measured("{\"event\":\"cost\"}\n", QN_INPUT, "name the job");
    not_measured(COST(""), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":[],\"seconds\":[]"), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":[2,1],\"seconds\":[1,1]"), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":[1,2],\"seconds\":[1]"), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":[1],\"seconds\":[-1]"), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":[0],\"seconds\":[1]"), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":7,\"seconds\":[1]"), QN_INPUT, "no times of calls");
    not_measured(COST(",\"grains\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17],\"seconds\":"
                      "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"),
                 QN_INPUT, "no times of calls");
    not_measured(COST(TOOK ",\"arith\":\"i14\""), QN_MISMATCH, "arith i14, the plan is for f32");
    not_measured("{\"event\":\"cost\",\"model\":\"dense 5\"}", QN_MISMATCH, "dense 5");
    not_measured("{\"event\":\"cost\",\"model\":\"dense 500 tanh; dense 10 softmax\","
                 "\"optimizer\":\"sgd\",\"features\":784,\"batch\":64,\"grain\":32}",
                 QN_MISMATCH, "batch 64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device_alone),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_bytes_that_travel),
        cmocka_unit_test(test_energy_and_price),
        cmocka_unit_test(test_where_it_stops_scaling),
        cmocka_unit_test(test_unequal_hosts),
        cmocka_unit_test(test_leaps_change_nothing),
        cmocka_unit_test(test_slower_and_faster),
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_events_after_the_end),
        cmocka_unit_test(test_one_rank_of_a_host),
        cmocka_unit_test(test_ranks_of_a_host_share_memory),
        cmocka_unit_test(test_a_repeat_is_equal),
        cmocka_unit_test(test_as_many_as_there_can_be),
        cmocka_unit_test(test_texts_that_make_no_sense),
        cmocka_unit_test(test_a_long_text),
        cmocka_unit_test(test_a_measured_host),
        cmocka_unit_test(test_files_that_are_none),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
