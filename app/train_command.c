/* quern train: trains a model on data and writes it to a file. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "launched.h"
#include "message.h"
#include "model_text.h"
#include "paths.h"
#include "ranks.h"
#include "report.h"
#include "runs.h"
#include "session.h"
#include "stage_predictions.h"
#include "train_flags.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The default part of the time that checkpoints may take. */
static const double CHECKPOINT_PART = 0.01;

static int is_automatic(const train_flags *f) {
    return !f->checkpoint_every || strcmp(f->checkpoint_every, "auto") == 0;
}

/* Checks options that depend on one another. Returns -1 or an exit code. */
static int check_flags(const train_flags *f, const arguments *given) {
    double seconds;
    uint64_t steps;
    if (!f->out)
        return message_usage("add -o model.safetensors", "-o FILE is required");
    if (f->resume && !f->checkpoint)
        return message_usage("add --checkpoint DIR, the folder to continue from",
                             "--resume needs --checkpoint");
    if (f->checkpoint_every && !f->checkpoint)
        return message_usage("add --checkpoint DIR, the folder to write to",
                             "--checkpoint-every needs --checkpoint");
    if (!is_automatic(f) && !read_interval(f->checkpoint_every, &seconds, &steps))
        return message_usage(
            "write auto, seconds (30s), minutes (5m), hours (1h), at most 365 days of "
            "them, or steps (500)",
            "--checkpoint-every cannot be \"%s\"", f->checkpoint_every);
    return train_options_check(f, given);
}

void train_fill_recipe(const train_flags *f, const sources *from, qn_train_options *o) {
    *o = f->recipe;
    o->valid_fraction = from->valid_fraction;
}

/* The name of the model file, without its folder and its ending. */
static void name_run(const train_flags *f, char name[128]) {
    const char *slash = strrchr(f->out, '/');
    snprintf(name, 128, "%.127s", slash ? slash + 1 : f->out);
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
}

static void fill_run(const train_flags *f, const char *command_line, const char *run_name,
                     qn_train_options *o) {
    o->compute = compute_of(&f->compute);
    o->compute.cluster = ranks_cluster();
    o->trace = f->trace;
    o->checkpoint_dir = f->checkpoint;
    if (f->checkpoint && is_automatic(f))
        o->checkpoint_part = CHECKPOINT_PART;
    else if (f->checkpoint)
        read_interval(f->checkpoint_every, &o->checkpoint_seconds, &o->checkpoint_steps);
    o->resume = f->resume;
    o->run_dir = f->run_dir;
    o->report = f->report;
    o->plots = f->plots;
    o->runs = runs_file(f->runs);
    o->run_name = f->run_name ? f->run_name : run_name;
    o->command_line = command_line;
}

/* Data for the end of a run; any rank may have to finish it. */
typedef struct ending {
    session *s;
    const train_flags *f;
    int argc;
    char **argv;
    qn_error stopped; /* why the training ended early, and where */
    qn_saved saved;
    qn_status reported;
    qn_error unreported; /* why there is no report */
    qn_train_report report;
} ending;

/* The command line that continues from a checkpoint; the caller frees it. Ranks that were started
 * by hand each continue with their own. */
static char *command_to_continue(const ending *e, const char *folder) {
    const char *more[3];
    size_t count = 0;
    if (!e->f->checkpoint) {
        more[count++] = "--checkpoint";
        more[count++] = folder;
    }
    if (!e->f->resume)
        more[count++] = "--resume";
    return launched_by() && e->argc > 2 + LAUNCHED_WORDS
               ? launched_line(e->argc, e->argv, 1, more, count)
               : format_shell(e->argc, e->argv, more, count);
}

/* "continue with: ..." */
static char *remedy_to_continue(const ending *e, const char *folder) {
    char *line = command_to_continue(e, folder), how[160] = "";
    if (ranks_cluster() && launched_by())
        snprintf(how, sizeof how, "; fewer or more ranks will do");
    else if (ranks_cluster() && e->f->ranks.rendezvous)
        snprintf(how, sizeof how, ", and the other ranks likewise; fewer or more ranks will do");
    else if (ranks_cluster())
        snprintf(how, sizeof how, ", by the launcher as before; fewer or more ranks will do");
    size_t size = 32 + (line ? strlen(line) : 0) + strlen(how);
    char *remedy = malloc(size);
    if (remedy)
        snprintf(remedy, size, "continue with: %s%s", line ? line : "--resume", how);
    free(line);
    return remedy;
}

/* The folder for the state of an interrupted run: the given one, or one next to the model. */
static void name_folder(const train_flags *f, char *folder, size_t size) {
    snprintf(folder, size, f->checkpoint ? "%s" : "%.4000s.checkpoint",
             f->checkpoint ? f->checkpoint : f->out);
}

/* After Ctrl-C the state is saved in a folder: prints the command that continues from it. */
static int print_how_to_continue(void *user) {
    const ending *e = user;
    char folder[4096], what[4400];
    qn_error err;
    name_folder(e->f, folder, sizeof folder);
    if (!e->f->checkpoint && qn_train_checkpoint(e->s->train, folder, &err) != QN_OK)
        return message_error(&err);
    char *remedy = remedy_to_continue(e, folder);
    snprintf(what, sizeof what, "interrupted: %s; state saved in %.3800s", e->stopped.what, folder);
    int code = message_fail(QN_INTERRUPTED, what, "", remedy ? remedy : "continue with --resume");
    free(remedy);
    return code;
}

/* Prints the files that were written. `report` is NULL if it is not available. */
static void report_model(const train_flags *f, const qn_saved *saved, const qn_train_report *report,
                         int code) {
    char number[32];
    if (f->json && report) {
        json_begin("end");
        json_text("file", saved->path);
        json_text("digest", saved->digest);
        json_count("exit", (uint64_t)code);
        report_fields(report);
        json_end();
    }
    if (f->json)
        return;
    if (!f->quiet)
        printf("\n%s parameters; the model file's SHA-256:\n",
               format_count(saved->parameters, number));
    printf("%s  %s\n", saved->digest, saved->path);
}

/* The first failure, with the name of its rank unless that is `speaker`. */
static void describe_refusal(const qn_saved *saved, uint32_t speaker, char *text, size_t size) {
    const int other = ranks_cluster() && saved->why_rank != speaker;
    snprintf(text, size, "%.100s%s%.400s",
             other ? qn_cluster_name(ranks_cluster(), saved->why_rank) : "", other ? ": " : "",
             saved->why.what);
}

/* The model was written, but to another path than requested. */
static int report_place(const train_flags *f, const qn_saved *saved) {
    char why[768], what[5120], remedy[10240], *move[] = {"mv", (char *)saved->path, NULL};
    const char *to[] = {f->out};
    const uint32_t speaker = qn_cluster_rank(ranks_cluster());
    const int other = saved->rank != speaker;
    char *line = format_shell(2, move, to, 1);
    describe_refusal(saved, speaker, why, sizeof why);
    snprintf(what, sizeof what, "%s; the model for %.2000s is in %.2000s%s%s", why, f->out,
             saved->path, other ? ", written by " : "",
             other ? qn_cluster_name(ranks_cluster(), saved->rank) : "");
    snprintf(remedy, sizeof remedy, "%s%smove it: %s", saved->why.remedy,
             *saved->why.remedy ? "; then " : "", line ? line : "mv");
    free(line);
    return message_fail(QN_IO, what, saved->path, remedy);
}

/* A rank could not write the model, and one on another host did. */
static void note_other_rank(const train_flags *f, const qn_saved *saved) {
    char why[768], text[1024];
    describe_refusal(saved, UINT32_MAX, why, sizeof why);
    snprintf(text, sizeof text, "%s; %s has written the model there", why,
             qn_cluster_name(ranks_cluster(), saved->rank));
    if (f->json) {
        json_begin("note");
        json_text("text", text);
        json_end();
    }
    message_note("note: %s", text);
}

/* The end of a run whose model is written. */
static int report_all(void *user) {
    const ending *e = user;
    int code = EXIT_DONE;
    if (e->reported == QN_OK)
        session_print(e->s, &e->report);
    else
        code = message_error(&e->unreported);
    if (e->s->unwritten.status != QN_OK)
        code = message_error(&e->s->unwritten);
    if (e->saved.place > 0)
        code = report_place(e->f, &e->saved);
    else if (e->saved.why.status != QN_OK)
        note_other_rank(e->f, &e->saved);
    report_model(e->f, &e->saved, e->reported == QN_OK ? &e->report : NULL, code);
    return code;
}

/* Alternative folders for a model that cannot be written to its path: the folder of checkpoints,
 * its parent, and the one for temporary files. Returns how many there are. */
enum { PLACES = 4, PLACE_CAPACITY = 4096 };
static uint32_t list_places(const train_flags *f, char text[PLACES][PLACE_CAPACITY],
                            const char *place[PLACES]) {
    const char *slash = strrchr(f->out, '/'), *name = slash ? slash + 1 : f->out;
    const char *base = getenv("TMPDIR");
    uint32_t count = 1;
    place[0] = f->out;
    if (f->checkpoint) {
        size_t length = strlen(f->checkpoint);
        while (length > 1 && f->checkpoint[length - 1] == '/')
            length--;
        snprintf(text[count++], PLACE_CAPACITY, "%.*s/rescued-%.200s", (int)length, f->checkpoint,
                 name);
        while (length > 0 && f->checkpoint[length - 1] != '/')
            length--;
        snprintf(text[count++], PLACE_CAPACITY, "%.*srescued-%.200s", (int)length, f->checkpoint,
                 name);
    }
    snprintf(text[count++], PLACE_CAPACITY, "%s/rescued-%.200s", base && *base ? base : "/tmp",
             name);
    for (uint32_t i = 1; i < count; i++)
        place[i] = text[i];
    return count;
}

/* Writes the model first, so that a later failure cannot lose it. */
static int conclude(ending *e) {
    char text[PLACES][PLACE_CAPACITY];
    const char *place[PLACES];
    qn_error err;
    const uint32_t places = list_places(e->f, text, place);
    if (qn_train_save(e->s->train, place, places, &e->saved, &err) != QN_OK) {
        if (err.status == QN_IO)
            describe_refusal(&e->saved, UINT32_MAX, err.what, sizeof err.what);
        return ranks_failed(&err);
    }
    e->reported = session_report(e->s, &e->report, &e->unreported);
    return ranks_conclude(&e->unreported, report_all, e);
}

/* All files are open: trains, then saves, or prints how to continue. */
static int train_and_save(session *s, const train_flags *f, qn_train_options *options, int argc,
                          char **argv) {
    ending e = {.s = s,
                .f = f,
                .argc = argc,
                .argv = argv,
                .saved = {.size = sizeof e.saved},
                .report = {.size = sizeof e.report}};
    int code = session_open(s, options);
    if (code >= 0)
        return code;
    qn_status status = session_run(s, &e.stopped);
    if (status == QN_OK)
        code = conclude(&e);
    else if (status == QN_INTERRUPTED)
        code = ranks_conclude(&e.stopped, print_how_to_continue, &e);
    else
        code = ranks_failed(&e.stopped);
    return code;
}

int train_check_paths(const train_flags *f, const char *hostfile, int writes) {
    char folder[4096];
    paths files = {.count = 0};
    name_folder(f, folder, sizeof folder);
    paths_add_sources(&files, &f->from, &f->ranks);
    paths_add(&files, QN_FILE_READ, "--hostfile", hostfile);
    paths_add(&files, QN_FILE_READ, "--init-from", f->init_from);
    paths_add(&files, QN_FILE_READ, "--model", model_file(f->recipe.model));
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    paths_add(&files, QN_FILE_WRITE, "--trace", f->trace);
    paths_add(&files, QN_FILE_WRITE, "--report", f->report);
    paths_add(&files, QN_FILE_READ, "--runs", f->runs);
    paths_add(&files, QN_FOLDER_WRITE, "--predictions", f->predictions);
    paths_add(&files, QN_FOLDER_RUN, "--run-dir", f->run_dir);
    paths_add(&files, QN_FOLDER_CHECKPOINTS, f->checkpoint ? "--checkpoint" : "an interrupted run",
              folder);
    return paths_check(&files, writes);
}

/* The model to start from; *out is NULL where none was named. All ranks call this together. */
static int open_start(const train_flags *f, qn_model **out) {
    qn_error err;
    *out = NULL;
    if (!f->init_from ||
        qn_model_share(ranks_cluster(), ranks_data_from_first(), f->init_from, out, &err) == QN_OK)
        return -1;
    return ranks_failed(&err);
}

static int open_and_train(const train_flags *f, int argc, char **argv) {
    qn_train_options options;
    char run_name[128];
    sources from;
    qn_model *start;
    int code = open_start(f, &start);
    if (code < 0)
        code = sources_open_to_start(&f->from, f->compute.threads, start, &from);
    if (code >= 0) {
        qn_model_free(start);
        return code;
    }
    char *command_line = format_shell_here(argc, argv);
    session s = {.quiet = f->quiet,
                 .verbose = f->verbose,
                 .json = f->json,
                 .from = &from,
                 .data_path = f->from.data,
                 .predictions = f->predictions};
    train_fill_recipe(f, &from, &options);
    name_run(f, run_name);
    fill_run(f, command_line, run_name, &options);
    options.init_from = start;
    code = stage_predictions_open(ranks_is_writer() ? f->predictions : NULL, &from);
    code = ranks_agree(code, NULL, 0, 0);
    if (code < 0)
        code = train_and_save(&s, f, &options, argc, argv);
    session_close(&s);
    sources_close(&from);
    qn_model_free(start);
    free(command_line);
    return code;
}

/* Each rank parses its own command line and checks its files; then all compare their options. */
static int read_command_line(const command *self, int argc, char **argv, train_flags *f,
                             arguments *given) {
    qn_agreement same[SOURCES_AGREED + 1];
    int code = options_read(self, argc - 2, argv + 2, f, given);
    if (code < 0) {
        message_setup(self->name, f->quiet, f->json);
        code = sources_take_parts(&f->from);
    }
    if (code < 0) {
        code = check_flags(f, given);
    }
    if (code < 0)
        code = sources_check(&f->from);
    if (code < 0)
        code = compute_check(&f->compute);
    if (code < 0)
        code = train_check_paths(f, NULL, ranks_is_writer());
    if (code < 0)
        code = model_outputs(f->recipe.model, &f->from.outputs);
    sources_agreed(&f->from, self->name, same);
    same[SOURCES_AGREED] =
        (qn_agreement){sizeof *same, "--init-from", f->init_from ? "a model" : "none",
                       "start all ranks with the same options"};
    return ranks_agree(code, same, SOURCES_AGREED + 1, 1);
}

static int run(const command *self, int argc, char **argv) {
    train_flags f = train_flags_default();
    arguments given;
    int code = ranks_join(argc - 2, argv + 2, 1);
    if (code >= 0)
        return code;
    code = read_command_line(self, argc, argv, &f, &given);
    if (code < 0)
        code = open_and_train(&f, argc, argv);
    return ranks_leave(code);
}

const command train_command = {
    .name = "train",
    .summary = "train a network and write its model file",
    .usage = "quern train [--data FILE] [options] -o FILE",
    .about = "The model file depends only on the recipe: data, network, optimiser, seed, "
             "arithmetic, grain. Devices, threads, interruptions and machines do not change it.\n\n"
             "Progress goes to stderr; the report and the digest go to stdout. The last line is "
             "what sha256sum prints for the model file. Ctrl-C stops after the current step, saves "
             "the state and prints the command that continues the run.",
    .options = train_options,
    .examples = "quern train -o digits.safetensors\n"
                "quern train --data train.csv --test test.csv --epochs 20 -o m.safetensors\n"
                "quern train --data train.csv --model \"dense 64 relu; dense 3 softmax\" \\\n"
                "      --optimizer adam --checkpoint state --resume -o m.safetensors",
    .run = run};
