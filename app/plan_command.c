/* quern plan: predicts the time of a training on described or measured machines. */

#include "command.h"
#include "compute.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "model_text.h"
#include "shared_rows.h"
#include "sources.h"
#include "train_flags.h"
#include <inttypes.h>
#include <math.h>
#include <quern/defaults.h>
#include <quern/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 24, DIGIT_FEATURES = 784, DIGIT_CLASSES = 10 };

typedef struct plan_flags {
    train_flags train; /* of a line of train, as it is written there */
    uint64_t items, features, classes;
    int real;   /* 1: the data has real labels */
    int corpus; /* 1: its items share tokens with their neighbours */
    text_list team;
} plan_flags;

#define AT(member) .place = offsetof(plan_flags, member)
#define AGAIN(member) .again = offsetof(plan_flags, member)

static const option plan_options[] = {
    {.heading = "Machines",
     ROW_TEXTS("team", team, "TEXT|FILE",
               "the machines, their network and events: a text as above, or a .json file that "
               "\"quern devices --costs --model ... --json\" wrote on a machine; can be given "
               "several times; required")},

    {.heading = "Job",
     ROW_DATA(train.from.data, "training data; only its items and features are counted"),
     .fallback = "20,000 built-in digits"},
    {.more = source_label_options, AT(train.from)},
    {.more = source_weight_options, AT(train.from)},
    {.more = source_token_options, AT(train.from)},
    {.more = source_image_options, AT(train.from)},
    {ROW_COUNT("items", items, 1, UINT32_MAX, "instead of --data: items of an epoch"),
     .fallback = "20000"},
    {ROW_TEXT("features", train.from.features, "N|LIST",
              "without --data: features of an item; with it: columns, as in train"),
     .fallback = "784, or all"},
    {ROW_CLASSES(classes, "instead of --data: classes, for a ready model and without --model")},
    {ROW_TEXT("model", train.recipe.model, "TEXT", "layers, written as in train"),
     .field = "train.model"},
    {ROW_COUNT32("epochs", train.recipe.epochs, 1, UINT32_MAX, "passes over the training data"),
     .field = "train.epochs"},
    {ROW_COUNT32("batch", train.recipe.batch, 1, 1 << 24, "items of one step (batch size)"),
     .field = "train.batch"},
    {ROW_AS_IN_TRAIN("optimizer", train.recipe.optimizer, QN_CHOICE_OPTIMIZER)},
    {ROW_AS_IN_TRAIN("arith", train.recipe.arith, QN_CHOICE_ARITH)},
    {ROW_COUNT32("grain", train.recipe.grain, 1, UINT32_MAX,
                 "items of one grain, the unit of work that devices share"),
     .field = "train.grain"},
    {ROW_TEXT("freeze", train.recipe.freeze, "LAYERS",
              "layers that do not train, as in train: 0..14")},

    {.heading = "Output", ROW_JSON(train.json, "one JSON object a line: rank, more, plan")},
    {.name = NULL}};

/* ----------------------------------------------------------------------------------------- JSON */

static void rank_event(uint32_t index, const qn_plan_rank *r) {
    json_begin("rank");
    json_count("rank", index);
    json_count("host", r->host);
    json_text("name", r->name);
    json_count("devices", r->devices);
    json_number("items_per_s", r->items_per_second);
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

static void scale_event(const qn_plan_scale *s) {
    json_begin("scale");
    json_count("hosts", s->hosts);
    json_count("ranks", s->ranks);
    json_number("seconds", s->seconds);
    json_number("bound_s", s->bound);
    json_number("joules", s->joules);
    json_number("price", s->price);
    json_end();
}

static void print_json(const qn_plan_report *r) {
    for (uint32_t i = 0; i < r->ranks; i++)
        rank_event(i, r->rank[i]);
    for (uint32_t i = 0; i < r->mores; i++) {
        json_begin("more");
        json_text("name", r->more[i]->name);
        json_number("seconds", r->more[i]->seconds);
        json_end();
    }
    for (uint32_t i = 0; i < r->scales; i++)
        scale_event(r->scale[i]);
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
    json_number("memory_bytes", r->memory);
    json_count("deaths", r->deaths);
    json_count("late_events", r->late);
    json_number("items_again", r->items_again);
    json_number("joules", r->joules);
    json_number("price", r->price);
    json_count("enough_hosts", r->enough);
    json_number("computing", r->computing);
    json_number("waiting", r->waiting);
    json_number("exchanging", r->exchanging);
    json_number("updating", r->updating);
    json_number("recovering", r->recovering);
    json_end();
}

/* ----------------------------------------------------------------------------------------- text */

/* Whether two ranks would be printed as the same line. */
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
           format_rate(r->items_per_second, rate), 100 * r->share, 100 * r->computing,
           100 * r->waiting, 100 * r->exchanging, 100 * r->updating,
           format_bytes((uint64_t)r->bytes_out, sent), r->name, r->died ? ", died" : "");
}

static void print_ranks(const qn_plan_report *r) {
    int rows = 0;
    printf("\n  %-9s  %8s  %8s  %10s  %8s  %10s  %9s  %9s  %s\n", "rank", "items/s", "share",
           "computing", "waiting", "all-reduce", "updating", "sent", "host");
    for (uint32_t first = 0, next; first < r->ranks; first = next) {
        for (next = first + 1; next < r->ranks && looks_alike(r->rank[first], r->rank[next]);)
            next++;
        if (rows++ == MOST_ROWS) {
            printf("  and %" PRIu32 " more ranks, which --json lists\n", r->ranks - first);
            return;
        }
        print_row(r->rank[first], first, next - 1);
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
        printf("\nwith one more host\n");
    for (uint32_t i = 0; i < r->mores; i++) {
        char duration[24];
        const qn_plan_more *m = r->more[i];
        if (m->seconds > 0)
            printf("  %-8s  %+6.1f %%  %s\n", duration_of(m->seconds, duration),
                   100 * (m->seconds / r->seconds - 1), m->name);
        else
            printf("  too many ranks     %s\n", m->name);
    }
}

static char *energy_of(double joules, char text[32]) {
    return isnan(joules) ? strcpy(text, "-") : format_joules(joules, text);
}

static char *price_of(double price, char text[32]) {
    snprintf(text, 32, isnan(price) ? "-" : price >= 100 ? "%.0f" : "%#.3g", price);
    return text;
}

static void print_scale(const qn_plan_report *r) {
    if (r->scales == 0)
        return;
    printf("\n  %5s  %10s  %7s  %10s", "hosts", "time", "speed", "efficiency");
    printf("%s%s\n", isnan(r->joules) ? "" : "     energy", isnan(r->price) ? "" : "      price");
    for (uint32_t i = 0; i < r->scales; i++) {
        const qn_plan_scale *s = r->scale[i];
        char duration[24], energy[32], price[32];
        printf("  %5" PRIu32 "  %10s  %6.1fx  %8.1f %%", s->hosts,
               duration_of(s->seconds, duration), r->scale[0]->seconds / s->seconds,
               100 * s->bound / s->seconds);
        if (!isnan(r->joules))
            printf("  %9s", energy_of(s->joules, energy));
        if (!isnan(r->price))
            printf("  %9s", price_of(s->price, price));
        putchar('\n');
    }
    if (r->enough < r->scale[r->scales - 1]->hosts)
        printf("stops scaling at %" PRIu32 " host%s: more shorten the time by less than 5 %%\n",
               r->enough, r->enough == 1 ? "" : "s");
}

static void print_many(uint32_t count, const char *what, const char *behind) {
    printf("%" PRIu32 " %s%s%s", count, what, count == 1 ? "" : "s", behind);
}

static void print_head(const plan_flags *f, const qn_plan_options *o, const qn_plan_report *r) {
    char parameters[32], items[32], steps[32], model[MODEL_TITLE];
    const uint64_t usual = train_options_number("train.batch");
    const uint64_t said = f->train.recipe.batch != QN_BY_DATA ? f->train.recipe.batch : usual;
    const uint64_t batch = said < o->items ? said : o->items;
    const uint64_t epochs = f->train.recipe.epochs != QN_BY_DATA
                                ? f->train.recipe.epochs
                                : train_options_number("train.epochs");
    const int integers = strcmp(f->train.recipe.arith, "f32") != 0;
    model_title(f->train.recipe.model, o->job->model, f->train.verbose, model);
    printf("%s%s%s: %s parameters\n%" PRIu64 " epochs of %s items in batches of %" PRIu64
           ": %s steps of %" PRIu64 " grain%s\n",
           model, integers ? " in " : "", integers ? f->train.recipe.arith : "",
           format_count((uint64_t)r->parameters, parameters), epochs, format_count(o->items, items),
           batch, format_count(r->steps, steps), (batch + r->grain - 1) / r->grain,
           batch > r->grain ? "s" : "");
    printf("%s of memory beside the data, where a rank has the CPU of this machine\n",
           format_bytes((uint64_t)r->memory, steps));
    print_many(r->hosts, "host", ", ");
    print_many(r->ranks, "rank", ", ");
    print_many(r->devices, "device", "\n\n");
}

/* "computing 88.4 %, waiting 0.2 %, ...": the parts of the time of all ranks together. */
static void print_parts(const qn_plan_report *r) {
    const double known = r->computing + r->waiting + r->exchanging + r->updating + r->recovering;
    printf("of the time   computing %.1f %%, waiting %.1f %%, all-reduce %.1f %%, updating %.1f %%",
           100 * r->computing, 100 * r->waiting, 100 * r->exchanging, 100 * r->updating);
    if (r->recovering > 0)
        printf(", recovering %.1f %%", 100 * r->recovering);
    if (r->deaths > 0)
        printf(", lost ranks %.1f %%", 100 * (1 - known));
    putchar('\n');
}

static void print_events(const qn_plan_report *r) {
    char items[32];
    if (r->deaths > 0)
        printf("failures      %" PRIu32 " rank%s; %s items are computed again\n", r->deaths,
               r->deaths == 1 ? "" : "s", format_count((uint64_t)r->items_again, items));
    if (r->late > 0)
        printf("too late      %" PRIu32 " of the %" PRIu32 " event%s described come%s after the "
               "end and change%s nothing\n",
               r->late, r->events, r->events == 1 ? "" : "s", r->late == 1 ? "s" : "",
               r->late == 1 ? "s" : "");
}

static void print_plan(const plan_flags *f, const qn_plan_options *o, const qn_plan_report *r) {
    char duration[24], bound[32], rate[16];
    print_head(f, o, r);
    printf("time          %s, %s items/s; a step takes %.3g ms, the all-reduce %.3g ms of it\n",
           duration_of(r->seconds, duration), format_rate(r->items_per_second, rate), 1e3 * r->step,
           1e3 * r->exchange);
    printf("efficiency    %.1f %%: all devices at full speed would take %s\n",
           100 * r->bound / r->seconds, duration_of(r->bound, bound));
    if (r->equal > 0 && r->ranks > 1)
        printf("equal shares  %s, efficiency %.1f %%\n", duration_of(r->equal, duration),
               100 * r->bound / r->equal);
    print_parts(r);
    if (!isnan(r->joules))
        printf("energy        %s\n", energy_of(r->joules, bound));
    if (!isnan(r->price))
        printf("price         %s\n", price_of(r->price, bound));
    print_events(r);
    print_ranks(r);
    print_more(r);
    print_scale(r);
}

/* -------------------------------------------------------------------------------------- the job */

/* --features without data is a number; with it, columns, which the reader looks at. */
static int read_features(plan_flags *f) {
    const char *text = f->train.from.features;
    if (!text || f->train.from.data)
        return -1;
    f->train.from.features = NULL;
    if (read_count(text, &f->features) && f->features >= 1 && f->features <= 1 << 24)
        return -1;
    return message_usage("it is a whole number from 1 to 16777216; columns need --data",
                         "--features cannot be \"%s\"", text);
}

/* Refuses what train would refuse, and what is of the plan alone. */
static int check_flags(plan_flags *f, const arguments *given) {
    static const char *const instead[] = {"items", "classes"};
    const arguments of_train = {.given = given->like};
    for (size_t i = 0; i < sizeof instead / sizeof *instead && f->train.from.data; i++)
        if (options_given(&plan_command, given, instead[i]))
            return message_usage("leave one of them out", "--%s and --data exclude each other",
                                 instead[i]);
    if (f->team.count == 0)
        return message_usage("describe one, as in --team \"4*host(cpu 60k); net 50us 1GB/s\"",
                             "--team is required");
    if (f->train.recipe.stages)
        return message_usage("write --epochs with the sum of their epochs",
                             "--stages do not belong to a plan: they change no time of a step");
    if (f->train.from.parts && !options_given(&plan_command, given, "items"))
        return message_usage("give --items and --features, and the bytes of an item that travels "
                             "in the team, as in \"; parts 784B\"",
                             "a plan does not open the files of --data-parts");
    if (f->train.init_from && !f->train.recipe.model)
        return message_usage("write its layers with --model; \"quern model show\" prints them",
                             "--init-from tells a plan no layers: it opens no model");
    int code = train_options_check(&f->train, &of_train);
    if (code < 0)
        code = read_features(f);
    return code < 0 ? sources_check(&f->train.from) : code;
}

/* The options of the job that the plan depends on: the plan's own data are none that all options
 * would suit. */
static void fill_job(const plan_flags *f, qn_train_options *job) {
    qn_train_options_init(job);
    job->model = f->train.recipe.model;
    job->shape = f->train.from.shape;
    job->loss = f->train.recipe.loss;
    job->scale = f->train.recipe.scale;
    job->augment = f->train.recipe.augment;
    job->arith = f->train.recipe.arith;
    job->optimizer = f->train.recipe.optimizer;
    job->momentum = f->train.recipe.momentum;
    job->batch = f->train.recipe.batch;
    job->grain = f->train.recipe.grain;
    job->epochs = f->train.recipe.epochs;
    job->freeze = f->train.recipe.freeze;
    job->compute.threads = (int)f->train.compute.threads;
    job->compute.parts = (int)f->train.compute.parts;
    job->compute.recompute = f->train.compute.recompute;
    job->compute.cache_features = f->train.compute.cache_features;
}

/* Gives the options that nothing was said about the values that a training on the data has. */
static int take_defaults(plan_flags *f, const qn_data *data) {
    static char network[MODEL_TITLE];
    qn_train_options job;
    qn_error err;
    char *text = NULL;
    fill_job(f, &job);
    job.freeze = NULL; /* no default depends on it, and a training would need a model */
    const int code =
        job.model ? model_read(&job, f->features, f->real ? 0 : f->classes, &text) : -1;
    if (code >= 0)
        return code;
    if (text)
        job.loss = compute_loss(text);
    qn_status status = qn_train_options_settle(&job, data, &err);
    if (status == QN_OK && !job.model)
        status = qn_train_model_text(&job, data, network, sizeof network, &err);
    free(text);
    if (status != QN_OK)
        return message_error(&err);
    f->train.recipe.optimizer = job.optimizer;
    f->train.recipe.momentum = job.momentum;
    f->train.recipe.batch = job.batch;
    f->train.recipe.epochs = job.epochs;
    f->train.recipe.model = job.model ? job.model : network;
    return -1;
}

/* Takes the properties of the job from the data, if any. Returns -1 or an exit code. */
static int look_at_data(plan_flags *f) {
    static char shape[40];
    uint32_t rows, columns;
    qn_data *data;
    if (!f->train.from.data)
        return -1;
    int code = source_open(source_data(&f->train.from), &f->train.from, 0, NULL, &data);
    if (code >= 0)
        return code;
    f->items = qn_data_items(data);
    f->corpus = qn_data_context(data) > 0;
    f->features = qn_data_inputs(data);
    f->real = qn_data_target(data) == QN_TARGET_REAL;
    qn_data_image_size(data, &rows, &columns);
    snprintf(shape, sizeof shape, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, qn_data_image_channels(data),
             rows, columns);
    f->train.from.shape = rows > 0 ? shape : NULL;
    f->classes = qn_data_classes(data) > 0 ? qn_data_classes(data) : DIGIT_CLASSES;
    code = take_defaults(f, data);
    qn_data_close(data);
    return code;
}

/* Plans for the options `o`, which are complete. */
static int plan_for(const plan_flags *f, const qn_plan_options *o) {
    qn_plan *p;
    qn_error err;
    if (qn_plan_make(o, &p, &err) != QN_OK)
        return message_error(&err);
    if (f->train.json)
        print_json(qn_plan_report_of(p));
    else
        print_plan(f, o, qn_plan_report_of(p));
    qn_plan_free(p);
    return EXIT_DONE;
}

static int plan(const plan_flags *f) {
    qn_train_options job;
    qn_plan_options o;
    char *text = NULL;
    fill_job(f, &job);
    int code = model_read(&job, f->features, f->real ? 0 : f->classes, &text);
    if (code >= 0)
        return code;
    job.model = text;
    job.loss = compute_loss(job.model);
    qn_plan_options_init(&o);
    o.job = &job;
    o.features = (uint32_t)f->features;
    o.items = f->items;
    o.team = f->team.at;
    o.teams = f->team.count;
    code = plan_for(f, &o);
    free(text);
    return code;
}

/* Items that do not train: those for validation and, of a corpus, the one before them. */
static uint64_t set_aside(const plan_flags *f) {
    const uint64_t valid = sources_set_aside(&f->train.from, f->items);
    return valid + (f->corpus && valid > 0 && valid + 1 < f->items);
}

static int run(const command *self, int argc, char **argv) {
    plan_flags f = {.train = train_flags_default(),
                    .items = EMBEDDED_TRAIN,
                    .features = DIGIT_FEATURES,
                    .classes = DIGIT_CLASSES};
    arguments given;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.train.json);
    code = check_flags(&f, &given);
    if (code < 0)
        code = source_shape(&f.train.from.shape, &f.features, f.train.from.data != NULL,
                            !f.train.from.data && options_given(self, &given, "features"));
    if (code < 0)
        code = look_at_data(&f);
    if (code >= 0)
        return code;
    if (!options_given(self, &given, "items"))
        f.items -= set_aside(&f);
    return plan(&f);
}

const command plan_command = {
    .name = "plan",
    .summary = "estimate how long a training takes on given machines",
    .usage = "quern plan --team TEXT|FILE [--team ...] [options]",
    .about =
        "Simulates the scheduler; no machine is needed. They are described by a text:\n"
        "  3*host(cpu 20k) host(cpu 20k + gpu 60k start 50us); net 50us 1GB/s\n"
        "where 20k is the speed of a device for this job in items/s. A + joins the devices of one "
        "process, a | separates the processes of a host. After further semicolons can follow\n"
        "  slow 2 at 10s x0.5  from then on host 2 (from 0) has half its speed\n"
        "  die 3 at 20s        the processes of host 3 fail; die 3.1: only its rank 1\n"
        "  memory 10GB/s       speed at which a rank adds sums and updates weights\n"
        "  sums 4.8B           bytes of a number of the sums in a message\n"
        "  parts 784B          each host has a part of the data; bytes of an item\n"
        "A host can also be a measured machine: host(a.json), or --team\ta.json. For the energy "
        "and the price of the job: host(cpu 20k power 90W idle 40W) power 30W price 1.5/h; that "
        "is what the device takes while it works and waits, and the rest of the host.\n\n"
        "Only training is simulated: no validation, no checkpoints, no reading of data. "
        "A line of \"quern\ttrain\" can be copied: its other options are accepted. Of these, "
        "--valid\tFRACTION, --loss, --momentum, --scale, --augment, --threads, --parts, "
        "--recompute, "
        "--cache-features, --task, --header, --drop and --category count as there. The others do "
        "not change the prediction.\n\n"
        "docs/cluster.md describes the model and how it was checked.",
    .options = plan_options,
    .like = &train_command,
    .like_place = offsetof(plan_flags, train),
    .examples = "quern plan --items 1000000 --batch 4096 \\\n"
                "      --team \"3*host(cpu 20k) host(cpu 20k + gpu 60k); net 50us 1GB/s\"\n"
                "quern devices --costs --model \"dense 500 tanh; dense 10 softmax\" \\\n"
                "      --batch 1024 --json > a.json\n"
                "quern plan --batch 1024 --team a.json --team b.json --team \"net 20us 10Gbit/s\"",
    .run = run};
