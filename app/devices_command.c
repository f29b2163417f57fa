/* quern devices: the devices of this machine, their speed, and those that a run would use. */

#include "command.h"
#include "compute.h"
#include "fields.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "output.h"
#include "model_text.h"
#include "shared_rows.h"
#include "sources.h"
#include "train_flags.h"
#include <inttypes.h>
#include <math.h>
#include <quern/advise.h>
#include <quern/defaults.h>
#include <quern/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct devices_flags {
    compute_flags compute;
    const char *measure, *model;
    char *layers; /* the model's text without names of files, for free() */
    uint64_t features, batch, grain, ranks;
    source_flags from;
    const char *optimizer, *arith, *freeze;
    float seconds;
    int json, costs;
} devices_flags;

#define AT(member) .place = offsetof(devices_flags, member)
#define AGAIN(member) .again = offsetof(devices_flags, member)

static const option_word measures[] = {
    {"auto", "those of --devices, or those that a run tries by default"},
    {"all", "all devices"},
    {"none", "no device: list them only"},
    {NULL, NULL}};

static const option devices_options[] = {
    {.heading = "Options",
     ROW_CHOICE("measure", measure, "NAME",
                "which devices to measure, at most a second each; the first use of a device takes "
                "longer"),
     .words = measures,
     .fallback = "auto"},
    {ROW_JSON(json, "one JSON object a line: device, absence, advice, trial, note")},

    {.heading = "Which devices a run would use",
     ROW_TEXT("model", model, "TEXT",
              "try this network, written as in train, on random items, and say which devices take "
              "part")},
    {ROW_COUNT("features", features, 1, 1 << 24, "features of an item, one byte each"),
     .fallback = "784"},
    {.more = source_token_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {ROW_COUNT("batch", batch, 1, 1 << 24, "items of one step (batch size)"),
     .field = "train.batch"},
    {ROW_AS_IN_TRAIN("arith", arith, QN_CHOICE_ARITH)},
    {ROW_FLOAT("seconds", seconds, "how long to try"), .fallback = "2"},

    {.heading = "Devices", .more = compute_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},

    {.heading = "Advanced: costs for quern plan",
     ROW_FLAG("costs", costs, "instead, measure what grains, updates and steps of --model cost")},
    {ROW_COUNT("ranks", ranks, 1, 64,
               "measure with this many ranks at work on the machine at once"),
     .fallback = "1"},
    {ROW_COUNT("grain", grain, 1, UINT32_MAX, "items of one grain"), .field = "train.grain"},
    {ROW_AS_IN_TRAIN("optimizer", optimizer, QN_CHOICE_OPTIMIZER)},
    {ROW_TEXT("freeze", freeze, "LAYERS", "layers that do not train, as in train: 0..14")},
    {ROW_FLAG("cache-features", compute.cache_features,
              "with --freeze: without these layers, whose outputs are kept")},
    {ROW_FLAG("recompute", compute.recompute, "outputs inside blocks are computed again")},
    {ROW_DATA(from.data, "items to measure with; zeros among them make a difference"),
     .fallback = "random bytes; with 784 features synthetic digits"},
    {ROW_FILES("labels", from.labels, "FILE", "IDX, NPY: file of the labels")},
    {.name = NULL}};

/* A device with its results. */
typedef struct shown {
    qn_device_info info;
    qn_device_rates rates; /* 0: not measured */
    char failure[1100];    /* why measuring it failed, and the remedy; otherwise empty */
} shown;

/* Whether the list of --devices, which was checked, names a device; for "cpu:4" also *cores. */
static int is_named(const char *list, const qn_device_info *i, int *cores) {
    const size_t kind = strlen(i->kind);
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        const char *number = list + kind + 1;
        if (strncmp(list, "auto", n) == 0 && n == 4)
            return i->automatic;
        if (strlen(i->id) == n && strncmp(list, i->id, n) == 0)
            return 1;
        if (n < kind || strncmp(list, i->kind, kind) != 0)
            continue;
        if (n == kind || (n == kind + 4 && strncmp(list + kind, ":all", 4) == 0))
            return 1;
        if (strcmp(i->kind, "cpu") == 0 && list[kind] == ':')
            return (*cores = (int)strtol(number, NULL, 10)) > 0;
    }
    return 0;
}

static void measure(uint32_t index, const devices_flags *f, shown *d) {
    qn_compute compute = compute_of(&f->compute);
    int wanted = f->compute.devices ? is_named(f->compute.devices, &d->info, &compute.threads)
                                    : d->info.automatic;
    qn_error err;
    if (strcmp(f->measure, "all") == 0)
        wanted = 1;
    if (strcmp(f->measure, "none") == 0 || d->info.refused || !wanted)
        return;
    if (qn_device_measure(index, &compute, &d->rates, &err) == QN_OK)
        return;
    d->rates = (qn_device_rates){.size = sizeof d->rates};
    snprintf(d->failure, sizeof d->failure, "%s%s%s", err.what, *err.remedy ? "; " : "",
             err.remedy);
    /* measuring showed that it cannot be used */
    d->info.refused |= err.status == QN_UNSUPPORTED;
}

/* Prints the libraries' notes, on stderr or as events. */
static void report_notes(const devices_flags *f) {
    char text[512];
    while (qn_device_note(text, sizeof text)) {
        if (f->json) {
            json_begin("note");
            json_message("text", text);
            json_end();
        }
        message_note("note: %s", text);
    }
}

static double known(double rate) { return rate > 0 ? rate : (double)NAN; }

static void device_event(uint32_t index, const shown *d) {
    const qn_device_info *i = &d->info;
    json_begin("device");
    json_count("index", index);
    json_text("id", i->id);
    json_text("kind", i->kind);
    json_text("type", i->type);
    json_text("name", i->name);
    json_text("platform", i->platform);
    json_text("driver", i->driver);
    json_text("isa", i->isa);
    json_text("isas", i->isas);
    json_count("cores", (uint64_t)i->cores);
    json_count("memory", i->memory);
    json_open("cache", '[');
    for (int level = 0; level < 3; level++)
        json_count(NULL, i->cache[level]);
    json_close(']');
    json_flag("automatic", i->automatic);
    json_flag("refused", i->refused);
    json_message("reason", *d->failure ? d->failure : i->reason);
    json_number("matmul_flop_per_s", known(d->rates.matmul));
    json_number("matmul_i7_op_per_s", known(d->rates.integers[0]));
    json_number("matmul_i14_op_per_s", known(d->rates.integers[1]));
    json_number("matmul_i21_op_per_s", known(d->rates.integers[2]));
    json_text("integers_by", d->rates.integers_by);
    json_number("tanh_per_s", known(d->rates.tanh));
    json_number("copy_bytes_per_s", known(d->rates.memory));
    json_end();
}

/* "329 GFLOP/s"; a dash if it was not measured. */
static char *rate_text(double rate, const char *unit, char text[32]) {
    char number[16];
    if (!(rate > 0))
        return strcpy(text, "-");
    format_rate(rate, number);
    size_t n = strlen(number);
    char prefix = n > 0 && !strchr("0123456789", number[n - 1]) ? number[n - 1] : '\0';
    if (prefix)
        number[n - 1] = '\0';
    snprintf(text, 32, "%s %.1s%s", number, prefix ? &prefix : "", unit);
    return text;
}

#define COLUMNS "%-10s %-11s %5s  %-9s  %-12s  %-8s  %-9s  %s\n"

/* The line below a device, in pieces separated by semicolons. */
static void print_more(const char *format, const char *text, int *pieces) {
    if (!*text)
        return;
    printf("%s", *pieces == 0 ? "           " : "; ");
    printf(format, text);
    ++*pieces;
}

static void print_caches(const qn_device_info *i, int *pieces) {
    char text[160] = "", size[24];
    for (int level = 0; level < 3; level++)
        if (i->cache[level] > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), " L%d %s", level + 1,
                     format_bytes(i->cache[level], size));
    print_more("caches%s", text, pieces);
}

/* The integer products, if they were measured. */
static void print_integers(const qn_device_rates *r) {
    char text[32];
    if (!(r->integers[0] > 0))
        return;
    printf("           integer matmul with %s:", r->integers_by);
    for (int i = 0; i < 3; i++)
        printf("%s i%d %s", i > 0 ? "," : "", 7 * (i + 1), rate_text(r->integers[i], "op/s", text));
    putchar('\n');
}

static void print_device(const shown *d) {
    char text[1200];
    char memory[24], units[16], matmul[32], tanh[32], copy[32];
    const qn_device_info *i = &d->info;
    int pieces = 0;
    snprintf(units, sizeof units, "%d", i->cores);
    printf(COLUMNS, i->id, i->type, units, format_bytes(i->memory, memory),
           rate_text(d->rates.matmul, "FLOP/s", matmul), rate_text(d->rates.tanh, "/s", tanh),
           rate_text(d->rates.memory, "B/s", copy), i->name);
    print_more("instruction set %s", i->isa, &pieces);
    print_more("supported: %s", *i->isa ? i->isas : "", &pieces);
    print_caches(i, &pieces);
    print_more("%s", i->platform, &pieces);
    print_more("driver %s", i->driver, &pieces);
    if (pieces > 0)
        putchar('\n');
    print_integers(&d->rates);
    if (*d->failure)
        printf("           failed: %s\n", fields_spell(d->failure, text, sizeof text));
    else if (i->refused)
        printf("           cannot be used: %s\n", fields_spell(i->reason, text, sizeof text));
    else if (!i->automatic)
        printf("           used only if --devices names it: %s\n",
               fields_spell(i->reason, text, sizeof text));
}

static void report_absence(const devices_flags *f, int devices) {
    char text[1200];
    int told = 0;
    const char *kind;
    for (uint32_t k = 1; (kind = qn_choice_name(QN_CHOICE_DEVICE, k)) != NULL; k++) {
        const char *reason = qn_device_absence(kind);
        if (!*reason)
            continue;
        if (f->json) {
            json_begin("absence");
            json_text("kind", kind);
            json_message("reason", reason);
            json_end();
        } else {
            printf("%sno %-7s  %s\n", told++ == 0 && devices ? "\n" : "", kind,
                   fields_spell(reason, text, sizeof text));
        }
    }
}

static int list(const devices_flags *f) {
    shown d;
    qn_error err;
    if (!f->json)
        printf(COLUMNS, "device", "type", "units", "memory", "matmul", "tanh", "copy", "name");
    for (uint32_t i = 0; i < qn_device_count(); i++) {
        memset(&d, 0, sizeof d);
        d.info.size = sizeof d.info;
        d.rates.size = sizeof d.rates;
        if (qn_device_get(i, &d.info, &err) != QN_OK)
            return message_error(&err);
        const char *isa = compute_of(&f->compute).isa;
        if (*d.info.isa && strcmp(isa, "auto") != 0)
            snprintf(d.info.isa, sizeof d.info.isa, "%s", isa);
        measure(i, f, &d);
        if (f->json)
            device_event(i, &d);
        else
            print_device(&d);
        output_flush(); /* each as soon as it is known: measuring takes a moment */
    }
    report_absence(f, 1);
    report_notes(f);
    return -1;
}

static void advice_event(const qn_advice *a) {
    json_begin("advice");
    json_text("id", a->id);
    json_flag("used", a->used);
    json_number("share", a->share);
    json_number("items_per_s", known(a->items_per_second));
    json_message("why", a->why);
    json_end();
}

static void print_advice(const qn_advice *a) {
    char rate[16], why[320];
    format_rate(a->items_per_second, rate);
    if (a->used)
        printf("  %-10s used: %.0f %% of the items, %s items/s\n", a->id, 100 * a->share, rate);
    else
        printf("  %-10s not used: %s\n", a->id, fields_spell(a->why, why, sizeof why));
}

static void report_trial(const devices_flags *f, const qn_advice *advice, uint32_t count,
                         double rate) {
    char text[16];
    if (!f->json)
        printf("\n%s, %" PRIu64 " features, batches of %" PRIu64 ", %s, tried for %g s on random "
               "items\n",
               f->model, f->features, f->batch, f->arith, (double)f->seconds);
    for (uint32_t i = 0; i < count; i++) {
        if (f->json)
            advice_event(&advice[i]);
        else
            print_advice(&advice[i]);
    }
    if (!f->json) {
        printf("  together   %s items/s\n", format_rate(rate, text));
        return;
    }
    json_begin("trial");
    json_text("model", f->model);
    json_text("arith", f->arith);
    json_count("features", f->features);
    json_count("batch", f->batch);
    json_number("seconds", (double)f->seconds);
    json_number("items_per_s", rate);
    json_end();
}

/* Puts the layers in place of a file or of a ready model, for measurements on items of another
 * machine. Data that is not there has ten classes, as in qn_advise. Returns -1, or an exit code. */
enum { CLASSES = 10 };
static int take_model(devices_flags *f, const char *shape, uint64_t features, uint32_t classes) {
    qn_train_options job;
    qn_train_options_init(&job);
    job.model = f->model;
    job.shape = shape;
    int code = model_read(&job, features, classes, &f->layers);
    f->model = code < 0 ? f->layers : f->model;
    return code;
}

static int try_model(devices_flags *f) {
    uint32_t capacity = qn_device_count(), count;
    qn_train_options options;
    qn_error err;
    double rate;
    int code = -1;
    qn_advice *advice = calloc(capacity, sizeof *advice);
    if (!advice)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    advice->size = sizeof *advice;
    qn_train_options_init(&options);
    options.model = f->model;
    options.shape = f->from.shape;
    options.loss = compute_loss(f->model);
    options.arith = f->arith;
    options.batch = (uint32_t)f->batch;
    options.compute = compute_of(&f->compute);
    if (qn_advise(&options, (uint32_t)f->features, (double)f->seconds, advice, capacity, &count,
                  &rate, &err) == QN_OK)
        report_trial(f, advice, count, rate);
    else
        code = message_error(&err);
    report_notes(f);
    free(advice);
    return code;
}

enum { MOST_COSTS = 256 };

static void cost_event(const devices_flags *f, const qn_plan_cost *c, uint64_t features) {
    json_begin("cost");
    json_count("rank", c->rank);
    json_count("ranks", f->ranks);
    json_text("id", c->id);
    json_text("model", f->model);
    json_count("features", features);
    json_count("batch", f->batch);
    json_count("grain", c->grain);
    json_text("optimizer", f->optimizer);
    json_text("arith", f->arith);
    json_text("freeze", f->freeze ? f->freeze : "");
    json_count("recompute", (uint64_t)(f->compute.recompute != 0));
    json_count("cache_features", (uint64_t)(f->compute.cache_features != 0));
    json_open("grains", '[');
    for (uint32_t i = 0; i < c->calls; i++)
        json_count(NULL, c->grains[i]);
    json_close(']');
    json_open("seconds", '[');
    for (uint32_t i = 0; i < c->calls; i++)
        json_number(NULL, c->seconds[i]);
    json_close(']');
    json_number("update_s", c->update);
    json_number("step_s", known(c->step));
    json_number("add_bytes_per_s", known(c->adding));
    json_number("word_bytes", c->word_bytes);
    json_number("pack_s", c->pack);
    json_number("unpack_s", c->unpack);
    json_number("watts", known(c->watts));
    json_end();
}

static void print_cost(const qn_plan_cost *c) {
    char rate[32], adding[32];
    const uint32_t last = c->calls - 1;
    const double items = (double)c->grains[last] * c->grain;
    printf(
        "rank %" PRIu32 "  %-10s %s items/s in calls of %" PRIu32 " grains, one grain %.3g ms, an "
        "update %.3g ms, adds at %s; a sum is %.2f bytes in a message",
        c->rank, c->id, format_rate(items / c->seconds[last], rate), c->grains[last],
        1e3 * c->seconds[0], 1e3 * c->update, rate_text(c->adding, "B/s", adding), c->word_bytes);
    if (c->watts > 0)
        printf("; %.3g W", c->watts);
    putchar('\n');
}

/* The job whose calls are measured. What nothing was said about is as in a training on the data, or
 * on images where there is none. */
static int costs_job(devices_flags *f, const qn_data *data, qn_train_options *out) {
    static char usual[FALLBACK_CAPACITY];
    qn_train_options job;
    qn_error err;
    qn_train_options_init(&job);
    job.model = f->model;
    job.shape = f->from.shape;
    job.loss = compute_loss(f->model);
    job.arith = f->arith;
    job.optimizer = f->optimizer;
    job.batch = (uint32_t)f->batch;
    job.grain = (uint32_t)f->grain;
    job.compute = compute_of(&f->compute);
    if (data && qn_train_options_settle(&job, data, &err) != QN_OK)
        return message_error(&err);
    qn_default_text("train.optimizer", usual, sizeof usual);
    usual[strcspn(usual, ";")] = '\0';
    f->batch = job.batch != QN_BY_DATA ? job.batch : train_options_number("train.batch");
    f->optimizer = job.optimizer ? job.optimizer : usual;
    job.freeze = f->freeze; /* no default depends on it */
    *out = job;
    return -1;
}

/* Measures calls, and prints them in the format that quern plan reads. */
static int report_costs(devices_flags *f) {
    static qn_plan_cost cost[MOST_COSTS];
    cost->size = sizeof *cost;
    uint64_t features = f->features;
    uint32_t count;
    qn_train_options job;
    qn_data *data = NULL;
    qn_error err;
    int code = f->from.data
                   ? source_open(source_data(&f->from), &f->from, f->compute.threads, NULL, &data)
                   : -1;
    if (code >= 0)
        return code;
    if (data)
        features = qn_data_features(data);
    code = take_model(f, data ? NULL : f->from.shape, data ? 0 : features,
                      data ? qn_data_classes(data) : CLASSES);
    if (code < 0)
        code = costs_job(f, data, &job);
    if (code < 0 && qn_plan_measure(&job, data, (uint32_t)features, (uint32_t)f->ranks,
                                    (double)f->seconds, cost, MOST_COSTS, &count, &err) != QN_OK)
        code = message_error(&err);
    for (uint32_t i = 0; code < 0 && i < count; i++) {
        if (f->json)
            cost_event(f, &cost[i], features);
        else
            print_cost(&cost[i]);
    }
    report_notes(f);
    qn_data_close(data);
    return code;
}

static int check_flags(const devices_flags *f, const arguments *given) {
    static const char *const theirs[] = {"features", "shape", "batch", "arith",
                                         "seconds",  "costs", "shares"};
    static const char *const of_costs[] = {"ranks",  "grain",          "optimizer",   "data",
                                           "labels", "resize",         "skip-broken", "no-cache",
                                           "freeze", "cache-features", "recompute"};
    int code = compute_check(&f->compute);
    if (code >= 0)
        return code;
    for (size_t i = 0; i < sizeof of_costs / sizeof *of_costs && !f->costs; i++)
        if (options_given(&devices_command, given, of_costs[i]))
            return message_usage("add --costs, or leave it out", "--%s needs --costs", of_costs[i]);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs && !f->model; i++)
        if (options_given(&devices_command, given, theirs[i]))
            return message_usage("add --model TEXT, the network to try", "--%s needs --model",
                                 theirs[i]);
    if (f->costs && (f->from.resize || f->from.skip_broken || f->from.no_cache) && !f->from.data)
        return message_usage("name the images, or leave it out", "--%s needs --data",
                             f->from.resize        ? "resize"
                             : f->from.skip_broken ? "skip-broken"
                                                   : "no-cache");
    if (!(f->seconds >= 0.1f && f->seconds <= 3600))
        return message_usage("it is a number of seconds from 0.1 to 3600", "--seconds cannot be %g",
                             (double)f->seconds);
    return -1;
}

static int run(const command *self, int argc, char **argv) {
    qn_train_options job;
    qn_train_options_init(&job);
    devices_flags f = {.measure = "auto",
                       .arith = job.arith,
                       .features = 784,
                       .batch = job.batch,
                       .seconds = 2,
                       .grain = job.grain,
                       .ranks = 1};
    arguments given;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    code = check_flags(&f, &given);
    if (f.batch == QN_BY_DATA && !f.costs)
        f.batch = train_options_number("train.batch");
    if (code < 0)
        code = source_shape(&f.from.shape, &f.features, f.from.data != NULL,
                            options_given(self, &given, "features"));
    if (code < 0 && f.model && !f.costs) /* before seconds go into measuring */
        code = take_model(&f, f.from.shape, f.features, CLASSES);
    if (code < 0)
        code = f.costs ? report_costs(&f) : list(&f);
    if (code < 0 && f.model && !f.costs)
        code = try_model(&f);
    free(f.layers);
    return code < 0 ? EXIT_DONE : code;
}

const command devices_command = {
    .name = "devices",
    .summary = "list the CPU and the GPUs of this machine and their speed",
    .usage = "quern devices [options]",
    .about = "Lists each device by the name that --devices takes, with its cores or compute units, "
             "its memory and its speed. Three rates a second are measured: operations of the exact "
             "matrix product, in float32 and in the integers of --arith; values of tanh; bytes "
             "copied within the device's memory. A device that cannot give exact results is listed "
             "with the reason and never used.\n\nWith --model, trains that network for a moment "
             "and says which devices a run would use.",
    .options = devices_options,
    .examples = "quern devices\n"
                "quern devices --measure none --json\n"
                "quern devices --model \"dense 4096 relu; dense 10 softmax\" --batch 1024",
    .run = run};
