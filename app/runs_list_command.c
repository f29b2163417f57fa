/* quern runs list: the runs in a file. */

#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "plain.h"
#include "runs.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct list_flags {
    const char *runs;
    int json;
} list_flags;

#define AT(member) .place = offsetof(list_flags, member)

static const option list_options[] = {
    {.heading = "Options", ROW_JSON(json, "print one JSON object a line instead")},
    RUNS_OPTION(offsetof(list_flags, runs)),
    {.name = NULL}};

static void print_line(const qn_run_info *info) {
    char score[RUNS_SCORE];
    plain_cell(info->id, 12, 14);
    plain_cell(info->name, 24, 26);
    plain_cell(info->started, 20, 22);
    plain_cell(info->state, 11, 13);
    printf("%6" PRIu64 "  %-14s  ", info->epochs, runs_score(info, score));
    plain_cell(info->model, 12, 0);
    putchar('\n');
}

static int run(const command *self, int argc, char **argv) {
    list_flags f = {.runs = NULL};
    arguments given;
    qn_runs *runs;
    qn_run_info info;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    code = runs_open(f.runs, &runs);
    if (code < 0 && !f.json)
        printf("%-12s  %-24s  %-20s  %-11s  %6s  %-14s  %s\n", "run", "name", "started", "state",
               "epochs", "score", "digest");
    for (uint64_t i = 0; code < 0 && i < qn_runs_count(runs); i++) {
        code = runs_info(runs, i, &info);
        if (code < 0 && f.json) {
            json_begin("run");
            runs_fields(&info);
            json_end();
        } else if (code < 0) {
            print_line(&info);
        }
    }
    qn_runs_close(runs);
    return code < 0 ? EXIT_DONE : code;
}

const command runs_list_command = {
    .name = "runs list",
    .summary = "list the runs in a file of runs",
    .usage = "quern runs list [--runs FILE] [--json]",
    .about = "A file of runs is a SQLite file that quern train --runs FILE writes to, and other "
             "programs may read; or a server, postgresql://USER@HOST/DATABASE. The score is that "
             "of the test set, else of the validation set, "
             "else of the training items.",
    .options = list_options,
    .examples = "quern runs list --runs runs.sqlite\n"
                "sqlite3 runs.sqlite 'SELECT name, accuracy FROM runs ORDER BY accuracy'",
    .run = run};
