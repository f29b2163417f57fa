/* quern runs compare: results of several runs, and what differs in their recipes. */

#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "plain.h"
#include "runs.h"
#include "shared_rows.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct compare_flags {
    const char *runs;
    int json;
} compare_flags;

#define AT(member) .place = offsetof(compare_flags, member)

static const option compare_options[] = {
    {.heading = "Options", ROW_JSON(json, "print one JSON object a line instead, for each run")},
    RUNS_OPTION(offsetof(compare_flags, runs)),
    {.name = NULL}};

typedef struct chosen {
    qn_runs *runs;
    uint64_t index[MOST_OPERANDS];
    qn_run_info info[MOST_OPERANDS];
    int count;
} chosen;

/* The value of a key; "" where the recipe of this run has none. */
static const char *value_of(const chosen *c, int run, const char *key) {
    const char *own;
    for (uint32_t n = 0; (own = qn_runs_key(c->runs, c->index[run], n)) != NULL; n++)
        if (strcmp(own, key) == 0)
            return qn_runs_value(c->runs, c->index[run], n);
    return "";
}

static int differs(const chosen *c, const char *key) {
    for (int r = 1; r < c->count; r++)
        if (strcmp(value_of(c, 0, key), value_of(c, r, key)) != 0)
            return 1;
    return 0;
}

/* Key `n` of run `run`, unless a run before it has the key: NULL after the last. */
static const char *next_key(const chosen *c, int run, uint32_t *n) {
    const char *key;
    while ((key = qn_runs_key(c->runs, c->index[run], (*n)++)) != NULL) {
        int known = 0;
        for (int r = 0; r < run && !known; r++)
            known = *value_of(c, r, key) != '\0';
        if (!known && differs(c, key))
            return key;
    }
    return NULL;
}

static void print_cell(const char *text) {
    putchar(' ');
    plain_cell(text, 22, 23);
}

static void print_row(const chosen *c, const char *name, const char *(*text)(const qn_run_info *)) {
    printf("%-14.14s", name);
    for (int r = 0; r < c->count; r++)
        print_cell(text(&c->info[r]));
    putchar('\n');
}

static const char *id_of(const qn_run_info *i) { return i->id; }
static const char *name_of(const qn_run_info *i) { return i->name; }
static const char *state_of(const qn_run_info *i) { return i->state; }
static const char *scored_of(const qn_run_info *i) { return i->scored; }
static const char *digest_of(const qn_run_info *i) { return i->model; }

static double accuracy_of(const qn_run_info *i) { return i->accuracy; }
static double loss_of(const qn_run_info *i) { return i->loss; }
static double rmse_of(const qn_run_info *i) { return i->rmse; }
static double r2_of(const qn_run_info *i) { return i->r2; }
static double seconds_of(const qn_run_info *i) { return i->seconds; }

/* Nothing where no run has the number. */
static void print_numbers(const chosen *c, const char *name,
                          double (*number)(const qn_run_info *)) {
    int known = 0;
    for (int r = 0; r < c->count; r++)
        known |= isfinite(number(&c->info[r]));
    if (!known)
        return;
    printf("%-14.14s", name);
    for (int r = 0; r < c->count; r++) {
        char text[32] = "";
        const double value = number(&c->info[r]);
        if (isfinite(value))
            snprintf(text, sizeof text, "%.6g", value);
        print_cell(text);
    }
    putchar('\n');
}

static void print_all(const chosen *c) {
    const char *key;
    print_row(c, "run", id_of);
    print_row(c, "name", name_of);
    print_row(c, "state", state_of);
    print_row(c, "scored", scored_of);
    print_numbers(c, "accuracy", accuracy_of);
    print_numbers(c, "loss", loss_of);
    print_numbers(c, "rmse", rmse_of);
    print_numbers(c, "r2", r2_of);
    print_numbers(c, "seconds", seconds_of);
    print_row(c, "digest", digest_of);
    for (int run = 0; run < c->count; run++)
        for (uint32_t n = 0; (key = next_key(c, run, &n)) != NULL;) {
            plain_cell(key, 14, 14);
            for (int r = 0; r < c->count; r++)
                print_cell(value_of(c, r, key));
            putchar('\n');
        }
}

static void print_json(const chosen *c) {
    const char *key;
    for (int r = 0; r < c->count; r++) {
        json_begin("run");
        runs_fields(&c->info[r]);
        json_open("differs", '{');
        for (int run = 0; run < c->count; run++)
            for (uint32_t n = 0; (key = next_key(c, run, &n)) != NULL;)
                json_text(key, value_of(c, r, key));
        json_close('}');
        json_end();
    }
}

static int run(const command *self, int argc, char **argv) {
    compare_flags f = {.runs = NULL};
    arguments given;
    chosen c = {.count = 0};
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    if (given.operands < 2)
        return message_usage("name two runs or more", "there is nothing to compare one run with");
    code = runs_open(f.runs, &c.runs);
    for (int r = 0; code < 0 && r < given.operands; r++) {
        code = runs_find(c.runs, given.operand[r], &c.index[r]);
        if (code < 0)
            code = runs_info(c.runs, c.index[r], &c.info[r]);
        if (code < 0)
            code = runs_check(c.runs, c.index[r], &c.info[r]);
        c.count++;
    }
    if (code < 0 && f.json)
        print_json(&c);
    else if (code < 0)
        print_all(&c);
    qn_runs_close(c.runs);
    return code < 0 ? EXIT_DONE : code;
}

const command runs_compare_command = {
    .name = "runs compare",
    .summary = "compare the results and recipes of runs in a file",
    .usage = "quern runs compare RUN RUN... [--runs FILE] [--json]",
    .about = "Prints the results, and the keys of the recipes that are not equal in all. quern "
             "report RUN RUN... --runs FILE draws the curves, too.",
    .operand = "RUN",
    .most_operands = MOST_OPERANDS,
    .options = compare_options,
    .examples = "quern runs compare small large --runs runs.sqlite",
    .run = run};
