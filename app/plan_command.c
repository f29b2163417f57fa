/* quern plan: what a training would take on a team that need not exist. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "sources.h"
#include <inttypes.h>
#include <math.h>
#include <quern/plan.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 24, DIGIT_FEATURES = 784, DIGIT_CLASSES = 10 };

typedef struct plan_flags {
    source_flags from;
    uint64_t items, features, classes, batch, grain, epochs;
    const char *model, *optimizer, *arith;
    text_list team;
    int json;
} plan_flags;

#define AT(member) .place = offsetof(plan_flags, member)

static const option plan_options[] = {
    {.heading = "Team",
     .name = "team",
     .kind = OPTION_TEXTS,
     AT(team),
     .value = "TEXT|FILE",
     .help =
         "hosts, their network, what happens to them: a text as above, or what quern devices "
         "--costs --model ... --json wrote on a machine (a file that ends in .json); may be there "
         "several times, and must be once"},

    {.heading = "Job",
     .name = "data",
     .kind = OPTION_TEXT,
     AT(from.data),
     .value = "FILE",
     .help = "what to train on: its items and features are counted",
     .fallback = "20,000 built-in digits"},
    {.more = source_label_options, AT(from)},
    {.name = "items",
     .kind = OPTION_COUNT,
     AT(items),
     .value = "N",
     .low = 1,
     .high = UINT32_MAX,
     .help = "instead of --data: items of an epoch",
     .fallback = "20000"},
    {.name = "features",
     .kind = OPTION_COUNT,
     AT(features),
     .value = "N",
     .low = 1,
     .high = 1 << 24,
     .help = "instead of --data: values of an item",
     .fallback = "784"},
    {.name = "classes",
     .kind = OPTION_COUNT,
     AT(classes),
     .value = "N",
     .low = 1,
     .high = 1 << 24,
     .help = "instead of --data: outputs of the network that is taken without --model",
     .fallback = "10"},
    {.name = "model",
     .kind = OPTION_TEXT,
     AT(model),
     .value = "TEXT",
     .help = "the layers, as in train",
     .fallback = "dense 500 tanh; dense CLASSES softmax"},
    {.name = "optimizer",
     .kind = OPTION_CHOICE,
     AT(optimizer),
     .choices = "sgd|momentum|adam|adamw",
     .help = "as in train; it decides what an update takes",
     .fallback = "sgd"},
    {.name = "arith",
     .kind = OPTION_CHOICE,
     AT(arith),
     .choices = "f32|i7|i14|i21",
     .help = "as in train; machines that were measured must have been measured with it",
     .fallback = "f32"},
    {.name = "batch",
     .kind = OPTION_COUNT,
     AT(batch),
     .value = "N",
     .low = 1,
     .high = 1 << 24,
     .help = "items of one step",
     .fallback = "64"},
    {.name = "grain",
     .kind = OPTION_COUNT,
     AT(grain),
     .value = "N",
     .low = 1,
     .high = UINT32_MAX,
     .help = "items of one grain",
     .fallback = "32"},
    {.name = "epochs",
     .kind = OPTION_COUNT,
     AT(epochs),
     .value = "N",
     .low = 1,
     .high = UINT32_MAX,
     .help = "passes over the training data",
     .fallback = "10"},

    {.heading = "Output",
     .name = "json",
     .kind = OPTION_FLAG,
     AT(json),
     .help = "one JSON object a line: rank, more, plan"},
    {.name = NULL}};

/* ----------------------------------------------------------------------------------- as JSON */

static void rank_event(uint32_t index, const qn_plan_rank *r) {
    json_begin("rank");
    json_count("rank", index);
    json_count("host", r->host);
    json_text("name", r->name);
    json_count("devices", r->devices);
    json_number("items_per_s", r->rate);
    json_number("share", r->share);
    json_number("computing", r->computing);
    json_number("waiting", r->waiting);
    json_number("exchanging", r->exchanging);
    json_number("updating", r->updating);
    json_number("recovering", r->recovering);
    json_number("bytes_out", r->bytes_out);
    json_flag("died", r->died);
    json_end();
}

static void print_json(const qn_plan_report *r) {
    for (uint32_t i = 0; i < r->ranks; i++)
        rank_event(i, &r->rank[i]);
    for (uint32_t i = 0; i < r->mores; i++) {
        json_begin("more");
        json_text("name", r->more[i].name);
        json_number("seconds", r->more[i].seconds);
        json_end();
    }
    json_begin("plan");
    json_number("seconds", r->seconds);
    json_number("bound_s", r->bound);
    json_number("bound_part", r->bound / r->seconds);
    json_number("equal_s", r->equal);
    json_number("step_s", r->step);
    json_number("exchange_s", r->exchange);
    json_number("items_per_s", r->items_per_second);
    json_count("steps", r->steps);
    json_count("ranks", r->ranks);
    json_count("hosts", r->hosts);
    json_count("devices", r->devices);
    json_number("parameters", r->parameters);
    json_count("deaths", r->deaths);
    json_count("late_events", r->late);
    json_number("items_again", r->items_again);
    json_number("computing", r->computing);
    json_number("waiting", r->waiting);
    json_number("exchanging", r->exchanging);
    json_number("updating", r->updating);
    json_number("recovering", r->recovering);
    json_end();
}

/* --------------------------------------------------------------------------------- for a person */

/* Whether two ranks would be shown by the same line. */
static int looks_alike(const qn_plan_rank *a, const qn_plan_rank *b) {
    const double first[] = {a->share, a->computing, a->waiting, a->exchanging, a->updating};
    const double second[] = {b->share, b->computing, b->waiting, b->exchanging, b->updating};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (fabs(first[i] - second[i]) > 0.001)
            return 0;
    return strcmp(a->name, b->name) == 0 && a->devices == b->devices && a->died == b->died;
}

static void print_row(const qn_plan_rank *r, uint32_t first, uint32_t last) {
    char numbers[32], rate[16], sent[24];
    if (first == last)
        snprintf(numbers, sizeof numbers, "%" PRIu32, first);
    else
        snprintf(numbers, sizeof numbers, "%" PRIu32 "-%" PRIu32, first, last);
    printf("  %-9s  %8s  %6.2f %%  %8.1f %%  %6.1f %%  %8.1f %%  %7.1f %%  %9s  %s%s\n", numbers,
           format_rate(r->rate, rate), 100 * r->share, 100 * r->computing, 100 * r->waiting,
           100 * r->exchanging, 100 * r->updating, format_bytes((uint64_t)r->bytes_out, sent),
           r->name, r->died ? ", died" : "");
}

static void print_ranks(const qn_plan_report *r) {
    int rows = 0;
    printf("\n  %-9s  %8s  %8s  %10s  %8s  %10s  %9s  %9s  %s\n", "rank", "items/s", "share",
           "computing", "waiting", "adding up", "updating", "sent", "host");
    for (uint32_t first = 0, next; first < r->ranks; first = next) {
        for (next = first + 1; next < r->ranks && looks_alike(&r->rank[first], &r->rank[next]);)
            next++;
        if (rows++ == MOST_ROWS) {
            printf("  and %" PRIu32 " more ranks, which --json lists\n", r->ranks - first);
            return;
        }
        print_row(&r->rank[first], first, next - 1);
    }
}

/* Short plans are compared by milliseconds. */
static char *duration_of(double seconds, char text[24]) {
    if (seconds >= 99.5 && seconds < 1e9)
        return format_duration(seconds, text);
    snprintf(text, 24, seconds < 99.5 ? "%#.3g s" : "%.3g s", seconds);
    return text;
}

static void print_more(const qn_plan_report *r) {
    if (r->mores > 0)
        printf("\none more host\n");
    for (uint32_t i = 0; i < r->mores; i++) {
        char duration[24];
        const qn_plan_more *m = &r->more[i];
        if (m->seconds > 0)
            printf("  T %-8s  %+6.1f %%  %s\n", duration_of(m->seconds, duration),
                   100 * (m->seconds / r->seconds - 1), m->name);
        else
            printf("  cannot be      %s\n", m->name);
    }
}

static void print_many(uint32_t count, const char *what, const char *behind) {
    printf("%" PRIu32 " %s%s%s", count, what, count == 1 ? "" : "s", behind);
}

static void print_head(const plan_flags *f, const qn_plan_options *o, const qn_plan_report *r) {
    char parameters[32], items[32], steps[32];
    const uint64_t batch = f->batch < o->items ? f->batch : o->items;
    const int integers = strcmp(f->arith, "f32") != 0;
    printf("%s%s%s: %s parameters\n%" PRIu64 " epochs of %s items in batches of %" PRIu64
           ": %s steps of %" PRIu64 " grain%s\n",
           o->job->model, integers ? " in " : "", integers ? f->arith : "",
           format_count((uint64_t)r->parameters, parameters), f->epochs,
           format_count(o->items, items), batch, format_count(r->steps, steps),
           (batch + f->grain - 1) / f->grain, batch > f->grain ? "s" : "");
    print_many(r->hosts, "host", ", ");
    print_many(r->ranks, "rank", ", ");
    print_many(r->devices, "device", "\n\n");
}

static void print_plan(const plan_flags *f, const qn_plan_options *o, const qn_plan_report *r) {
    char duration[24], bound[24], rate[16], items[32];
    print_head(f, o, r);
    printf("T             %s, %s items/s, %.3g ms a step of which adding up %.3g\n",
           duration_of(r->seconds, duration), format_rate(r->items_per_second, rate), 1e3 * r->step,
           1e3 * r->exchange);
    printf("T_bound/T     %.3f, the bound being %s\n", r->bound / r->seconds,
           duration_of(r->bound, bound));
    if (r->equal > 0 && r->ranks > 1)
        printf("equal shares  T %s, T_bound/T %.3f\n", duration_of(r->equal, duration),
               r->bound / r->equal);
    printf("where it goes computing %.1f %%, waiting %.1f %%, adding up %.1f %%, updating %.1f %%, "
           "recovering %.1f %%",
           100 * r->computing, 100 * r->waiting, 100 * r->exchanging, 100 * r->updating,
           100 * r->recovering);
    if (r->deaths > 0)
        printf(", dead %.1f %%",
               100 * (1 - r->computing - r->waiting - r->exchanging - r->updating - r->recovering));
    printf("\n");
    if (r->deaths > 0)
        printf("deaths        %" PRIu32 " rank%s, after which %s items were computed again\n",
               r->deaths, r->deaths == 1 ? "" : "s", format_count((uint64_t)r->items_again, items));
    if (r->late > 0)
        printf("too late      %" PRIu32 " of the %" PRIu32 " event%s described come%s after the "
               "end and change%s nothing\n",
               r->late, r->events, r->events == 1 ? "" : "s", r->late == 1 ? "s" : "",
               r->late == 1 ? "s" : "");
    print_ranks(r);
    print_more(r);
}

/* -------------------------------------------------------------------------------------- the job */

static int check_flags(const plan_flags *f, const arguments *given) {
    static const char *const instead[] = {"items", "features", "classes"};
    for (size_t i = 0; i < sizeof instead / sizeof *instead && f->from.data; i++)
        if (options_given(&plan_command, given, instead[i]))
            return message_usage("leave one of them out", "--%s and --data exclude each other",
                                 instead[i]);
    if ((f->from.labels || f->from.label) && !f->from.data)
        return message_usage("name the file of the items too", "--%s stands without --data",
                             f->from.labels ? "labels" : "label");
    if (f->team.count == 0)
        return message_usage("describe one, as in --team \"4*host(cpu 60k); net 50us 1GB/s\"",
                             "there is no --team to plan for");
    return -1;
}

/* What the data says of the job, where there is some. Returns -1 or an exit code. */
static int look_at_data(plan_flags *f) {
    qn_data *data;
    if (!f->from.data)
        return -1;
    int code = source_open(f->from.data, f->from.labels, &f->from, 0, &data);
    if (code >= 0)
        return code;
    f->items = qn_data_items(data);
    f->features = qn_data_features(data);
    f->classes = qn_data_classes(data) > 0 ? qn_data_classes(data) : DIGIT_CLASSES;
    qn_data_close(data);
    return -1;
}

static int plan(plan_flags *f) {
    qn_train_options job;
    qn_plan_options o;
    qn_error err;
    qn_plan *p;
    char model[64];
    qn_train_options_init(&job);
    snprintf(model, sizeof model, "dense 500 tanh; dense %" PRIu64 " softmax", f->classes);
    job.model = f->model ? f->model : model;
    job.arith = f->arith;
    job.optimizer = f->optimizer;
    job.momentum = f->optimizer && strcmp(f->optimizer, "momentum") == 0 ? 0.9f : 0;
    job.batch = (uint32_t)f->batch;
    job.grain = (uint32_t)f->grain;
    job.epochs = (uint32_t)f->epochs;
    qn_plan_options_init(&o);
    o.job = &job;
    o.features = (uint32_t)f->features;
    o.items = f->items;
    o.team = f->team.at;
    o.teams = f->team.count;
    if (qn_plan_make(&o, &p, &err) != QN_OK)
        return message_error(&err);
    if (f->json)
        print_json(qn_plan_report_of(p));
    else
        print_plan(f, &o, qn_plan_report_of(p));
    qn_plan_free(p);
    return EXIT_DONE;
}

static int run(const command *self, int argc, char **argv) {
    plan_flags f = {.items = EMBEDDED_TRAIN,
                    .features = DIGIT_FEATURES,
                    .classes = DIGIT_CLASSES,
                    .arith = "f32",
                    .batch = 64,
                    .grain = 32,
                    .epochs = 10};
    arguments given;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    code = check_flags(&f, &given);
    if (code < 0)
        code = look_at_data(&f);
    return code < 0 ? plan(&f) : code;
}

const command plan_command = {
    .name = "plan",
    .summary = "what a training would take on a team that need not exist",
    .usage = "quern plan --team TEXT|FILE [--team ...] [options]",
    .about =
        "Runs the scheduler against a virtual clock. A team is written as\n"
        "  4*host(cpu 60k) 2*host(cpu 80k + gpu 400k start 50us); net 50us 1GB/s\n"
        "where 60k is what a device trains of this job, in items a second; + joins devices of a "
        "rank, | ranks of a host. Behind further semicolons may stand\n"
        "  slow 2 at 10s x0.5   host 2 (from 0) goes at half its speed from then on\n"
        "  die 3 at 20s         the processes of host 3 end; die 3.1: those of its rank 1\n"
        "  memory 10GB/s        at which a rank adds sums up and updates\n"
        "A host may also be a machine as it was measured: host(a.json), or --team a.json.\n\n"
        "Only training is planned: no validation, no checkpoints, no reading of data. "
        "docs/cluster.md has the model of a step and what it was compared with.",
    .options = plan_options,
    .examples = "quern plan --team \"4*host(cpu 60k) host(gpu 400k start 50us); net 50us 1GB/s\"\n"
                "quern devices --costs --model \"dense 500 tanh; dense 10 softmax\" --batch 1024 "
                "--json > a.json\n"
                "quern plan --batch 1024 --team a.json --team b.json --team \"net 20us 10Gbit/s\"",
    .run = run};
