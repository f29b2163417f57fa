/* quern search: cross validation, of one setting or of a grid of them. */

#include "command.h"
#include "format.h"
#include "message.h"
#include "model_text.h"
#include "search_file.h"
#include "search_grid.h"
#include "search_table.h"
#include "train_flags.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct search_flags {
    train_flags train; /* of a line of train, as it is written there */
    const char *grid, *by, *run_dir;
    uint64_t folds;
    int quiet, json;
} search_flags;

#define AT(member) .place = offsetof(search_flags, member)

static const option search_options[] = {
    {.heading = "Search",
     .name = "grid",
     .kind = OPTION_TEXT,
     AT(grid),
     .value = "TEXT",
     .help = "options of train and their values, all combinations of which are tried: \"lr "
             "0.01,0.1 batch 64,128\"; a value with blanks stands between quotes",
     .fallback = "one setting"},
    {.name = "folds",
     .kind = OPTION_COUNT,
     AT(folds),
     .value = "N",
     .low = 2,
     .high = 256,
     .help = "parts of the data: each setting is trained without each of them, and judged on it; "
             "each has about the same share of every class",
     .fallback = "5"},
    {.name = "by",
     .kind = OPTION_TEXT,
     AT(by),
     .value = "NAME",
     .help = "what decides: accuracy, f1, auc, log_loss, loss, rmse, mae or r2",
     .fallback = "accuracy; real labels: rmse"},
    {.name = "run-dir",
     .kind = OPTION_TEXT,
     AT(run_dir),
     .value = "DIR",
     .help = "keep the results of all runs in DIR/search.csv; an interrupted search goes on from "
             "there"},
    {.name = "quiet", .kind = OPTION_FLAG, AT(quiet), .help = "print no progress"},
    {.name = "json", .kind = OPTION_FLAG, AT(json), .help = "all numbers as one JSON object"},
    {.heading = "Data",
     .name = "data",
     .kind = OPTION_TEXT,
     AT(train.from.data),
     .value = "FILE",
     .help = "training data, in any format that train reads",
     .fallback = "the built-in digits"},
    {.more = source_label_options, AT(train.from)},
    {.more = source_weight_options, AT(train.from)},
    {.more = source_column_options, AT(train.from)},
    {.more = source_image_options, AT(train.from)},
    {.heading = "Devices (they do not change the numbers)",
     .name = "threads",
     .kind = OPTION_COUNT,
     AT(train.compute.threads),
     .value = "N",
     .low = 1,
     .high = 4096,
     .help = "cores; each takes whole runs while there are more runs than cores",
     .fallback = "every core"},
    {.name = "devices",
     .kind = OPTION_TEXT,
     AT(train.compute.devices),
     .value = "LIST",
     .help = "devices, each of which takes whole runs: cpu,cuda:0,cuda:1",
     .fallback = "cpu"},
    {.name = NULL}};

/* A search in progress. */
typedef struct search {
    const search_flags *f;
    grid grid;
    sources from;
    search_runs runs;
    search_file file;
    train_flags *flags; /* of each setting */
    qn_train_options *options;
    char ***words;  /* the options of train of each setting */
    char **command; /* the line that trains it */
    uint64_t done;
} search;

/* ----------------------------------------------------------------------------- the settings */

/* The words of the command line that are options of train. Returns how many. */
static int train_words(int argc, char **argv, char **to) {
    static const char *const own[] = {"--grid",    "--folds",   "--by",
                                      "--run-dir", "--threads", "--devices"};
    int count = 0;
    for (int i = 2; i < argc; i++) {
        int skip = strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--quiet") == 0;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            const size_t length = strlen(own[k]);
            if (strncmp(argv[i], own[k], length) != 0)
                continue;
            skip |= argv[i][length] == '=';
            if (argv[i][length] == '\0') {
                skip = 1;
                i++;
            }
            break;
        }
        if (!skip)
            to[count++] = argv[i];
    }
    return count;
}

/* Without a fold a training that looks for its best epoch needs validation items. */
static int needs_valid(const train_flags *f) {
    return f->patience > 0 || (f->keep && strcmp(f->keep, "best") == 0);
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
        f->epochs = train_options_epochs(f, &given);
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
    if (!s->flags || !s->options || !s->words || !s->command)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    for (uint32_t i = 0; i < count; i++) {
        const int code = read_setting(s, i, argc, argv);
        if (code >= 0)
            return code;
    }
    return -1;
}

static void release(search *s) {
    for (uint32_t i = 0; s->words && s->command && i < s->grid.settings; i++) {
        free(s->words[i]);
        free(s->command[i]);
    }
    free(s->flags);
    free(s->options);
    free(s->words);
    free(s->command);
    free(s->runs.result);
    grid_free(&s->grid);
    search_file_close(&s->file);
}

/* -------------------------------------------------------------------------------- the search */

static qn_status on_result(void *user, uint32_t setting, uint32_t fold, qn_error *err) {
    search *s = user;
    char text[512];
    const search_result *r = &s->runs.result[setting * s->runs.folds + fold];
    s->done++;
    if (!s->f->quiet && !s->f->json)
        fprintf(stderr, "%" PRIu64 "/%" PRIu64 "  fold %" PRIu32 "  %s%s  %.2f s\n", s->done,
                (uint64_t)s->runs.settings * s->runs.folds, fold + 1,
                grid_describe(&s->grid, setting, text, sizeof text),
                r->items == 0 ? "  left the range of float32" : "", r->seconds);
    return search_file_add(&s->file, &s->runs, setting, fold, err);
}

/* What the results depend on, as a line. */
static char *key_of(const search *s) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const char *options = strstr(s->command[0], " train");
    fprintf(to, "data %s, folds %" PRIu32 ", grid %s, first setting%s",
            qn_data_digest(s->runs.data), s->runs.folds, s->f->grid ? s->f->grid : "-",
            options ? options + 6 : "");
    fclose(to);
    for (char *c = text; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return text;
}

static void count_done(search *s) {
    for (uint64_t i = 0; i < (uint64_t)s->runs.settings * s->runs.folds; i++)
        s->done += (uint64_t)s->runs.result[i].done;
    if (s->done > 0)
        message_note("note: %" PRIu64 " runs are in %s already", s->done, s->file.path);
}

static int report(search *s, search_metric by) {
    const search_table t = {.runs = &s->runs,
                            .grid = &s->grid,
                            .by = by,
                            .real = qn_data_targets(s->runs.data) != NULL,
                            .command = s->command};
    const uint32_t best = search_table_print(&t, s->f->json);
    const search_result *first = &s->runs.result[best * s->runs.folds];
    int lost = 0;
    for (uint32_t k = 0; k < s->runs.folds; k++)
        lost += first[k].items == 0;
    if (lost > 0)
        return message_fail(QN_NUMERIC,
                            "no setting could be trained on all folds: numbers left the "
                            "range of float32",
                            "", "try smaller learning rates");
    if (!s->f->json)
        printf("\ntrain the best with all items:\n%s\n", s->command[best]);
    return EXIT_DONE;
}

static int run_all(search *s) {
    uint32_t failed = 0;
    qn_error err;
    char text[512], what[1100];
    const qn_status status = search_run(&s->runs, &failed, &err);
    if (status == QN_OK)
        return -1;
    snprintf(what, sizeof what, "%.500s (setting %.500s)", err.what,
             grid_describe(&s->grid, failed, text, sizeof text));
    if (s->grid.names > 0)
        snprintf(err.what, sizeof err.what, "%.*s", (int)sizeof err.what - 1, what);
    return message_error(&err);
}

static int search_data(search *s, search_metric by) {
    const search_flags *f = s->f;
    const uint32_t settings = s->grid.settings, folds = (uint32_t)f->folds;
    for (uint32_t i = 0; i < settings; i++) {
        qn_train_options_init(&s->options[i]);
        train_fill_recipe(&s->flags[i], &s->from, &s->options[i]);
    }
    s->runs = (search_runs){.data = s->from.train,
                            .settings = settings,
                            .folds = folds,
                            .seed = s->flags[0].seed,
                            .stratify = qn_data_labels(s->from.train) != NULL,
                            .options = s->options,
                            .threads = (int)f->train.compute.threads,
                            .devices = f->train.compute.devices,
                            .on_result = on_result,
                            .user = s};
    s->runs.result = calloc((size_t)settings * folds + 1, sizeof *s->runs.result);
    char *key = s->runs.result ? key_of(s) : NULL;
    if (!key)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    int code = search_file_open(&s->file, f->run_dir, key, &s->runs);
    free(key);
    if (code >= 0)
        return code;
    count_done(s);
    code = run_all(s);
    /* Without a result, or of a grid that is refused, the file would only refuse the next search.
     */
    if ((code == EXIT_USAGE || (code >= 0 && s->done == 0)) && f->run_dir)
        (void)unlink(s->file.path);
    return code < 0 ? report(s, by) : code;
}

/* What decides, or a usage error: classes and real labels have different numbers. */
static int choose_metric(const search *s, search_metric *by) {
    const int real = qn_data_targets(s->from.train) != NULL;
    *by = real ? SEARCH_RMSE : SEARCH_ACCURACY;
    if (!s->f->by)
        return -1;
    *by = (search_metric)search_metric_named(s->f->by);
    if (*by == SEARCH_LOSS || real == (*by > SEARCH_LOSS))
        return -1;
    return message_usage(real ? "write loss, rmse, mae or r2"
                              : "write accuracy, f1, auc, log_loss or loss",
                         "--by %s is not for %s", s->f->by, real ? "real labels" : "classes");
}

/* ----------------------------------------------------------------------------- the command */

/* Options of train that a search has no use for. */
static int check_flags(const search_flags *f, const arguments *given) {
    static const char *const others[] = {
        "output",      "test",        "test-labels",    "test-query", "valid", "valid-labels",
        "valid-query", "checkpoint",  "trace",          "report",     "plots", "runs",
        "run-name",    "predictions", "resume",         "init-from",  "meet",  "ranks",
        "rank",        "shares",      "data-from-rank0"};
    const arguments of_train = {.given = given->like};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_given(&train_command, &of_train, others[i]))
            return message_usage(
                "leave it out; the line that is printed at the end trains the best setting",
                "--%s does nothing in a search, whose folds are validation sets", others[i]);
    if (f->by && search_metric_named(f->by) < 0)
        return message_usage("write accuracy, f1, auc, log_loss, loss, rmse, mae or r2",
                             "--by cannot be \"%s\"", f->by);
    return sources_check(&f->train.from);
}

static int run(const command *self, int argc, char **argv) {
    search_flags f = {.train = train_flags_default(), .folds = 5};
    arguments given;
    search s = {.f = &f, .file = {.file = -1}};
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    code = check_flags(&f, &given);
    if (code < 0)
        code = grid_read(f.grid, &s.grid);
    if (code < 0)
        code = read_settings(&s, argc, argv);
    if (code < 0) /* what the labels mean may depend on the network (docs/exactness.md 2.1.5) */
        code = model_outputs(s.flags[0].model, &f.train.from.outputs);
    if (code < 0)
        code = sources_open(&f.train.from, f.train.compute.threads, NULL, &s.from);
    if (code < 0) {
        search_metric by;
        code = choose_metric(&s, &by);
        if (code < 0)
            code = search_data(&s, by);
        sources_close(&s.from);
    }
    release(&s);
    return code;
}

const command search_command = {
    .name = "search",
    .summary = "cross validation, and a search over options of train",
    .usage = "quern search --data FILE [--grid TEXT] [--folds N] [options of train]",
    .about = "Trains each setting of the grid once without each fold of the data and judges it on "
             "that fold. Prints means over the folds, the best setting first, and the command that "
             "trains it with all items. All options of train that belong to its recipe can be "
             "given, too.\n\n"
             "Whole runs are shared among cores and devices. The numbers do not depend on how: "
             "every run gives the same bytes everywhere. The folds follow from --seed.",
    .options = search_options,
    .like = &train_command,
    .like_place = offsetof(search_flags, train),
    .examples = "quern search --data train.csv --folds 5\n"
                "quern search --data train.csv --grid \"lr 0.01,0.1 batch 64,128\" --epochs 5\n"
                "quern search --data train.csv --run-dir tries \\\n"
                "      --grid \"model 'dense 8 relu; dense 3 softmax','dense 3 softmax'\"",
    .run = run};
