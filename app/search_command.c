/* quern search: cross validation, of one setting or of a grid of them. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "lr_range.h"
#include "message.h"
#include "model_text.h"
#include "ranks.h"
#include "search.h"
#include "search_grid.h"
#include "search_table.h"
#include "shared_rows.h"
#include "train_flags.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct search_flags {
    train_flags train; /* of a line of train, as it is written there */
    const char *grid, *by, *run_dir, *lr_range, *part;
    uint64_t folds;
    uint32_t number, parts; /* of --part; 0: all runs */
    int merge, quiet, json;
} search_flags;

#define AT(member) .place = offsetof(search_flags, member)
#define AGAIN(member) .again = offsetof(search_flags, member)

/* Of the text that names a setting. */
enum { NAME_CAPACITY = 512 };

static const option search_options[] = {
    {.heading = "Search",
     ROW_TEXT("grid", grid, "TEXT",
              "options of train and their values, all combinations of which are tried: \"lr "
              "0.01,0.1 batch 64,128\"; a value with blanks stands between quotes"),
     .fallback = "one setting"},
    {ROW_COUNT("folds", folds, 2, 256,
               "parts of the data: each setting is trained without each of them, and tested on it; "
               "each has about the same share of every class"),
     .fallback = "5"},
    {ROW_TEXT(
         "by", by, "NAME",
         "metric that orders the settings: accuracy, f1, auc, log_loss, loss, rmse, mae or r2"),
     .fallback = "accuracy; real labels: rmse"},
    {ROW_TEXT("lr-range", lr_range, "LOW,HIGH[,STEPS]",
              "instead of a grid and folds: look for a learning rate in one short training, in "
              "which the rate grows from LOW to HIGH in STEPS steps; auto: 1e-6,10,100")},
    {ROW_TEXT(
        "run-dir", run_dir, "DIR",
        "keep the results of all runs in DIR/search.csv; an interrupted search continues from "
        "there; with --lr-range DIR/lr-range.csv and a picture")},
    {ROW_TEXT("part", part, "I/N",
              "compute the runs of part I of N only, into DIR/part-I-of-N; for the tasks of a job "
              "array, which need not run at the same time"),
     .fallback = "all runs"},
    {ROW_FLAG("merge", merge,
              "compute nothing: take the results of all parts in DIR, and print the table")},
    {ROW_FLAG("quiet", quiet, "print no progress")},
    {ROW_JSON(json, "all numbers as one JSON object")},
    {.heading = "Data",
     ROW_DATA(train.from.data, "training data, in any format that train reads"),
     .fallback = "the built-in digits"},
    {.more = source_parts_options, AT(train.from)},
    {.more = source_part_cache_options, AT(train.from)},
    {.more = source_label_options, AT(train.from)},
    {.more = source_weight_options, AT(train.from)},
    {.more = source_task_options, AT(train.from)},
    {.more = source_column_options, AT(train.from)},
    {.more = source_token_options, AT(train.from)},
    {.more = source_image_options, AT(train.from)},
    {.heading = "Devices (they do not change the numbers)",
     ROW_COUNT("threads", train.compute.threads, 1, 4096,
               "cores; each takes whole runs while there are more runs than cores"),
     .fallback = "every core"},
    {ROW_TEXT("devices", train.compute.devices, "LIST",
              "devices, each of which takes whole runs: cpu,cuda:0,cuda:1"),
     .fallback = "cpu"},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(train.ranks)},
    {.name = NULL}};

/* A search in progress. */
typedef struct search {
    const search_flags *f;
    grid grid;
    sources from;
    qn_search *search;
    qn_search_metric by;
    train_flags *flags; /* of each setting */
    qn_train_options *options;
    const qn_train_options **option; /* their addresses */
    char ***words;                   /* the options of train of each setting */
    char **command;                  /* the line that trains it */
    char **name;                     /* "lr 0.1 batch 64" */
} search;

/* ----------------------------------------------------------------------------- the settings */

/* Whether the word is this option: 2 with its value in the next word, else 1. */
static int is_option(const char *word, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0)
        return 0;
    return word[2 + length] == '=' ? 1 : word[2 + length] == '\0' ? 2 : 0;
}

/* The words of the command line that are options of train and decide what it makes. Returns how
 * many. */
static int train_words(int argc, char **argv, char **to) {
    static const char *const own[] = {"grid",    "folds",   "by",       "run-dir",
                                      "threads", "devices", "lr-range", "part"};
    static const char *const flags[] = {"json", "quiet", "merge", "alone", "data-from-rank0"};
    int count = 0;
    for (int i = 2; i < argc; i++) {
        int skip = 0;
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
            skip |= is_option(argv[i], flags[k]) != 0;
        for (size_t k = 0; !skip && k < sizeof own / sizeof *own; k++)
            skip = is_option(argv[i], own[k]);
        for (const option *o = ranks_options; !skip && o->name; o++)
            skip = o->kind == OPTION_FLAG ? 0 : is_option(argv[i], o->name);
        if (!skip)
            to[count++] = argv[i];
        i += skip == 2;
    }
    return count;
}

/* Without a fold a training that looks for its best epoch needs validation items. */
static int needs_valid(const train_flags *f) {
    return f->recipe.patience > 0 || (f->recipe.keep && strcmp(f->recipe.keep, "best") == 0);
}

/* Reads the options of a setting as train would. */
static int read_setting(search *s, uint32_t setting, int argc, char **argv) {
    train_flags *f = &s->flags[setting];
    arguments given;
    char name[GRID_NAMES][64], **words;
    const char *more[] = {"-o", "best.safetensors", "--valid", "0.1"};
    words = s->words[setting] = calloc((size_t)argc + 2 * GRID_NAMES + 4, sizeof *words);
    if (!words)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    *words++ = argv[0];
    *words++ = (char *)(uintptr_t) "train";
    int count = train_words(argc, argv, words);
    for (uint32_t i = 0; i < s->grid.names; i++) {
        snprintf(name[i], sizeof name[i], "--%.60s", s->grid.name[i]);
        words[count++] = name[i];
        words[count++] = (char *)(uintptr_t)grid_value(&s->grid, setting, i);
    }
    *f = train_flags_default();
    int code = options_read(&train_command, count, words, f, &given);
    if (code < 0)
        code = train_options_check(f, &given);
    if (code < 0)
        s->command[setting] = format_shell(count + 2, words - 2, more, needs_valid(f) ? 4 : 2);
    return code;
}

static int read_settings(search *s, int argc, char **argv) {
    const uint32_t count = s->grid.settings;
    s->flags = calloc(count, sizeof *s->flags);
    s->options = calloc(count, sizeof *s->options);
    s->words = calloc(count, sizeof *s->words);
    s->command = calloc(count, sizeof *s->command);
    s->option = calloc(count, sizeof *s->option);
    s->name = calloc(count, sizeof *s->name);
    if (!s->flags || !s->options || !s->words || !s->command || !s->option || !s->name)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    for (uint32_t i = 0; i < count; i++) {
        char text[NAME_CAPACITY];
        const int code = read_setting(s, i, argc, argv);
        if (code >= 0)
            return code;
        s->name[i] = strdup(grid_describe(&s->grid, i, text, sizeof text));
        if (!s->name[i])
            return message_fail(QN_MEMORY, "out of memory", "", "");
    }
    return -1;
}

static void release(search *s) {
    for (uint32_t i = 0; s->name && i < s->grid.settings; i++) {
        free(s->words[i]);
        free(s->command[i]);
        free(s->name[i]);
    }
    free(s->flags);
    free(s->options);
    free((void *)s->option);
    free(s->words);
    free(s->command);
    free(s->name);
    grid_free(&s->grid);
}

/* -------------------------------------------------------------------------------- the search */

static void on_run(void *user, const qn_search_event *e) {
    const search *s = user;
    const qn_cluster *ranks = ranks_cluster();
    message_note("%" PRIu64 "/%" PRIu64 "  fold %" PRIu32 "  %s%s  %.2f s%s%s", e->done, e->runs,
                 e->fold + 1, s->name[e->setting],
                 e->result->items == 0 ? "  left the range of float32" : "", e->result->seconds,
                 ranks ? "  " : "", ranks ? qn_cluster_name(ranks, e->rank) : "");
}

/* How many folds of a setting failed. */
static uint32_t lost_folds(const search *s, uint32_t setting) {
    uint32_t lost = 0;
    for (uint32_t k = 0; k < s->f->folds; k++) {
        qn_search_result r = {.size = sizeof r};
        lost += qn_search_get(s->search, setting, k, &r, NULL) == QN_OK && r.items == 0;
    }
    return lost;
}

/* On the writer, when all runs of a part are done. */
static int report_part(const search *s) {
    const uint64_t runs = qn_search_done(s->search);
    if (s->f->json) {
        json_begin("search_part");
        json_count("part", s->f->number);
        json_count("parts", s->f->parts);
        json_count("runs", runs);
        json_text("folder", s->f->run_dir);
        json_end();
    } else {
        printf("part %s is done, %" PRIu64 " runs; --merge prints the table when all parts are\n",
               s->f->part, runs);
    }
    return EXIT_DONE;
}

/* On the writer, when all runs are done. */
static int report(void *user) {
    const search *s = user;
    qn_error err;
    const search_table t = {.search = s->search,
                            .grid = &s->grid,
                            .folds = (uint32_t)s->f->folds,
                            .by = s->by,
                            .real = qn_data_targets(s->from.train) != NULL,
                            .command = s->command};
    if (s->f->parts > 0)
        return report_part(s);
    uint32_t *order = calloc(s->grid.settings, sizeof *order);
    if (!order)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    if (qn_search_order(s->search, s->by, order, &err) != QN_OK) {
        free(order);
        return message_error(&err);
    }
    search_table_print(&t, order, s->f->json);
    const uint32_t best = order[0];
    free(order);
    if (lost_folds(s, best) > 0)
        return message_fail(QN_NUMERIC,
                            "no setting could be trained on all folds: numbers left the "
                            "range of float32",
                            "", "try smaller learning rates");
    if (!s->f->json)
        printf("\ntrain the best with all items:\n%s\n", s->command[best]);
    return EXIT_DONE;
}

static void on_note(void *user, const char *text) {
    (void)user;
    message_note("note: %s", text);
}

static int search_data(search *s) {
    const search_flags *f = s->f;
    qn_search_options o;
    qn_error err = {0};
    for (uint32_t i = 0; i < s->grid.settings; i++) {
        train_fill_recipe(&s->flags[i], &s->from, &s->options[i]);
        s->option[i] = &s->options[i];
    }
    qn_search_options_init(&o);
    o.setting = s->option;
    o.settings = s->grid.settings;
    o.folds = (uint32_t)f->folds;
    o.name = (const char *const *)s->name;
    o.compute = compute_of(&f->train.compute);
    o.compute.cluster = ranks_cluster();
    o.folder = f->run_dir;
    o.part = f->number;
    o.parts = f->parts;
    o.merge = f->merge;
    o.user = s;
    o.on_run = on_run;
    o.on_note = on_note;
    if (qn_search_open(&o, s->from.train, &s->search, &err) != QN_OK)
        return ranks_failed(&err);
    const uint64_t done = qn_search_done(s->search);
    if (done > 0 && !f->merge && ranks_is_writer())
        message_note("note: %" PRIu64 " runs are in %s%s already", done, f->run_dir,
                     f->parts > 0 ? ", in the folder of the part" : "/search.csv");
    const qn_status status = qn_search_run(s->search, &err);
    const int code = status == QN_OK ? ranks_conclude(&err, report, s) : ranks_failed(&err);
    qn_search_close(s->search);
    return code;
}

/* What decides, or a usage error: classes and real labels have different numbers. */
static int choose_metric(search *s) {
    const int real = qn_data_targets(s->from.train) != NULL;
    s->by = real ? QN_SEARCH_RMSE : QN_SEARCH_ACCURACY;
    if (!s->f->by)
        return -1;
    s->by = (qn_search_metric)search_metric_named(s->f->by);
    if (s->by == QN_SEARCH_LOSS || real == (s->by > QN_SEARCH_LOSS))
        return -1;
    return message_usage(real ? "write loss, rmse, mae or r2"
                              : "write accuracy, f1, auc, log_loss or loss",
                         "--by %s is not for %s", s->f->by, real ? "real labels" : "classes");
}

/* ----------------------------------------------------------------------------- the command */

/* What a range of learning rates decides itself. */
static int check_range(const search_flags *f, const command *self, const arguments *given) {
    static const char *const own[] = {"grid", "folds", "by", "part", "merge"};
    static const char *const others[] = {"lr",       "schedule",       "lr-step",
                                         "lr-gamma", "warmup",         "stages",
                                         "epochs",   "early-stopping", "keep"};
    const arguments of_train = {.given = given->like};
    static const char text[] = "--%s does nothing with --lr-range, which is one short training";
    if (!f->lr_range)
        return -1;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (options_given(self, given, own[i]))
            return message_usage("leave one of them out", text, own[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_given(&train_command, &of_train, others[i]))
            return message_usage("leave it out", text, others[i]);
    return lr_range_check(f->lr_range);
}

/* "2/4" */
static int read_part(search_flags *f) {
    int used = 0;
    if (f->part &&
        (f->part[strspn(f->part, "0123456789/")] ||
         sscanf(f->part, "%6" SCNu32 "/%6" SCNu32 "%n", &f->number, &f->parts, &used) != 2 ||
         f->part[used] || f->number < 1 || f->number > f->parts))
        return message_usage("write two numbers such as 2/4: part 2 of 4",
                             "--part cannot be \"%s\"", f->part);
    if (f->part && f->merge)
        return message_usage("leave one of them out", "--part computes, and --merge does not");
    if ((f->part || f->merge) && !f->run_dir)
        return message_usage("add --run-dir DIR, the same for all parts", "%s needs a folder",
                             f->part ? "--part" : "--merge");
    return -1;
}

/* Options of train that a search has no use for. */
static int check_flags(search_flags *f, const command *self, const arguments *given) {
    static const char *const others[] = {
        "output", "test",        "test-labels", "test-query", "valid",    "valid-labels",
        "shares", "valid-query", "checkpoint",  "trace",      "report",   "plots",
        "runs",   "run-name",    "predictions", "resume",     "init-from"};
    const arguments of_train = {.given = given->like};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_given(&train_command, &of_train, others[i]) &&
            !(f->lr_range && strcmp(others[i], "init-from") == 0))
            return message_usage(
                "leave it out; the line that is printed at the end trains the best setting",
                "--%s does nothing in a search, whose folds are validation sets", others[i]);
    if (f->by && search_metric_named(f->by) < 0)
        return message_usage("write accuracy, f1, auc, log_loss, loss, rmse, mae or r2",
                             "--by cannot be \"%s\"", f->by);
    int code = check_range(f, self, given);
    if (code < 0)
        code = read_part(f);
    if (code < 0)
        code = sources_take_parts(&f->train.from);
    return code < 0 ? sources_check(&f->train.from) : code;
}

/* Each rank reads its own command line; then all compare. */
static int read_command_line(const command *self, int argc, char **argv, search_flags *f,
                             search *s) {
    arguments given;
    qn_agreement same[SOURCES_AGREED];
    int code = options_read(self, argc - 2, argv + 2, f, &given);
    if (code < 0) {
        message_setup(self->name, f->quiet, f->json);
        code = check_flags(f, self, &given);
    }
    if (code < 0)
        code = compute_check(&f->train.compute);
    if (code < 0)
        code = grid_read(f->grid, &s->grid);
    if (code < 0)
        code = read_settings(s, argc, argv);
    if (code < 0) /* what the labels mean may depend on the network (docs/exactness.md 2.1.5) */
        code = model_outputs(s->flags[0].recipe.model, &f->train.from.outputs);
    sources_agreed(&f->train.from, self->name, same);
    return ranks_agree(code, same, SOURCES_AGREED, 1);
}

int search_read(int count, char **words, arguments *given, const char **folder) {
    search_flags f = {.train = train_flags_default(), .folds = 5};
    search s = {.f = &f};
    int code = options_read(&search_command, count - 1, words + 1, &f, given);
    if (code < 0)
        code = check_flags(&f, &search_command, given);
    if (code < 0)
        code = compute_check(&f.train.compute);
    if (code < 0)
        code = grid_read(f.grid, &s.grid);
    if (code < 0)
        code = read_settings(&s, count + 1, words - 1);
    release(&s);
    if (code < 0 && (f.lr_range || f.part || f.merge))
        code =
            message_usage("leave it out", "the job itself divides the search: --%s is not for it",
                          f.lr_range ? "lr-range"
                          : f.part   ? "part"
                                     : "merge");
    if (code < 0 && !f.run_dir)
        code = message_usage("add --run-dir DIR, which all tasks can reach",
                             "the results of the tasks need a folder");
    if (code < 0 && source_is_stream(f.train.from.data))
        code = message_usage("name a file that the job can open",
                             "- is the standard input, and a job has none");
    *folder = f.run_dir;
    return code;
}

static int find_range(const search *s) {
    const search_flags *f = s->f;
    const lr_range_job job = {.train = &s->flags[0],
                              .compute = &f->train.compute,
                              .range = f->lr_range,
                              .folder = f->run_dir,
                              .command = s->command[0],
                              .json = f->json};
    return lr_range_find(&job);
}

static int run(const command *self, int argc, char **argv) {
    search_flags f = {.train = train_flags_default(), .folds = 5};
    search s = {.f = &f};
    int code = ranks_join(argc - 2, argv + 2, 0);
    if (code >= 0)
        return code;
    code = read_command_line(self, argc, argv, &f, &s);
    if (code < 0 && f.lr_range && s.command)
        code = find_range(&s);
    if (code < 0)
        code = sources_open(&f.train.from, f.train.compute.threads, NULL, &s.from);
    if (code < 0) {
        ranks_hold();
        code = ranks_agree(choose_metric(&s), NULL, 0, 0);
        if (code < 0)
            code = search_data(&s);
        sources_close(&s.from);
    }
    release(&s);
    return ranks_leave(code);
}

const command search_command = {
    .name = "search",
    .summary = "cross validation, and a search over options of train",
    .usage = "quern search --data FILE [--grid TEXT] [--folds N] [options of train]",
    .about =
        "Trains each setting of the grid once without each fold of the data and tests it on "
        "that fold. Prints means over the folds, the best setting first, and the command that "
        "trains it with all items. All options of train that belong to its recipe can be "
        "given, too.\n\n"
        "Each core, device and, under mpirun or srun, each rank (process) takes whole runs. The "
        "numbers do not depend on this: every run gives the same bytes everywhere. If a rank "
        "fails, another one repeats its runs. The folds follow from --seed.\n\n"
        "--part divides a search among processes that do not know each other, such as the tasks of "
        "a job array; --merge then prints the table. \"quern\tsubmit\" writes such an array for "
        "Slurm.\n\n"
        "--lr-range is another search: one training in which the learning rate grows after every "
        "step, until the loss diverges. It suggests a rate, for all options of train but those of "
        "rates and epochs, and with --init-from and --freeze, too.",
    .options = search_options,
    .like = &train_command,
    .like_place = offsetof(search_flags, train),
    .examples = "quern search --data train.csv --folds 5\n"
                "quern search --data train.csv --grid \"lr 0.01,0.1 batch 64,128\" --epochs 5\n"
                "quern search --data train.csv --lr-range auto --run-dir rates\n"
                "quern search --data train.csv --grid \"batch 32,64\" --run-dir tries --part 2/4\n"
                "mpirun -n 4 quern search --data train.csv --grid \"batch 32,64,128,256\"\n"
                "quern search --data train.csv --run-dir tries \\\n"
                "      --grid \"model 'dense 8 relu; dense 3 softmax','dense 3 softmax'\"",
    .run = run};
