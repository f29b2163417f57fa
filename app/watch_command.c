/* quern watch: answers files and rows as they come. */

#include "adapter.h"
#include "answer_flags.h"
#include "command.h"
#include "compute.h"
#include "format.h"
#include "interrupt.h"
#include "jsonline.h"
#include "message.h"
#include "output.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <quern/predict.h>
#include <quern/watch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct watch_flags {
    const char *model, *adapter, *out, *layer, *pool, *masks, *move_done, *latency, *poll_every;
    int outputs, flat, once, poll, quiet, json;
    answer_flags answer;
    qn_generate_options generate; /* of it */
    compute_flags compute;
} watch_flags;

#define AT(member) .place = offsetof(watch_flags, member)

static const option watch_options[] = {
    {.heading = "Model", ROW_TEXT("model", model, "FILE", "the model that answers; required")},
    {ROW_ADAPTER(adapter)},

    {.heading = "Output",
     ROW_OUTPUT(out, "FILE",
                "the table of the answers: a CSV file, sqlite:FILE?table=NAME, "
                "postgresql://..., or - for the standard output; required. Rows are added to it, "
                "and what it holds is not answered again")},
    {ROW_FLAG("outputs", outputs, "add the outputs as columns p0, p1 and so on")},
    {ROW_TEXT("layer", layer, "N",
              "outputs of layer N inside a network in the place of predictions, as columns f0, f1 "
              "and so on: its number, -1 for the last one, or body: the last one before the head")},
    {ROW_TEXT("pool", pool, "WORD",
              "with --layer, one number of each channel from all positions of a text, or pixels of "
              "an image: mean, max, first or last"),
     .fallback = "none"},
    {ROW_TEXT("masks", masks, "FOLDER",
              "of a model of masks: the folder of the PNG files with its answers")},
    {ROW_TEXT("move-done", move_done, "FOLDER", "move a file there once its answer is stored")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "the summary as one JSON object on stdout; needs -o\tFILE")},

    {.heading = "Texts of a model of next tokens", .more = answer_options, AT(answer)},
    {.more = answer_chat_options, AT(answer)},

    {.heading = "What and when",
     ROW_FLAG("flat", flat, "watch the files of FOLDER without those of the folders in it")},
    {ROW_TEXT("latency", latency, "TIME",
              "an answer should not wait longer for its batch and the one before: 20ms, 1s"),
     .fallback = "20ms"},
    {ROW_FLAG("once", once, "answer what is there, and end")},
    {ROW_FLAG("poll", poll,
              "look at the folder or file again and again, also where the system tells what "
              "changes; folders of other machines are always looked at")},
    {ROW_TEXT("poll-every", poll_every, "TIME", "time between two looks"),
     .fallback = "1s, and 10s for a store"},

    {.heading = "Devices (they do not change the answers)", .more = compute_options, AT(compute)},
    {.more = answer_batch_options, AT(answer)},
    {.name = NULL}};

static void note(void *user, const char *text) {
    (void)user;
    message_note("%s", text);
}

static void summary(const watch_flags *f, const qn_watch_report *report) {
    char rows[32], bad[32];
    if (f->json) {
        json_begin("watch");
        json_text("file", f->out);
        json_count("rows", report->rows);
        json_count("errors", report->bad);
        json_count("known", report->known);
        json_end();
    }
    if (f->json || f->quiet)
        return;
    const int to_stdout = strcmp(f->out, "-") == 0;
    fprintf(to_stdout ? stderr : stdout, "%s answer%s in %s", format_count(report->rows, rows),
            report->rows == 1 ? "" : "s", to_stdout ? "the standard output" : f->out);
    if (report->bad)
        fprintf(to_stdout ? stderr : stdout, ", %s of them errors", format_count(report->bad, bad));
    fputs("\n", to_stdout ? stderr : stdout);
}

static int watch(const watch_flags *f, const qn_model *model, const qn_watch_options *options) {
    qn_watch *made = NULL;
    qn_watch_report report = {.size = sizeof report};
    qn_error err;
    if (qn_watch_make(model, options, &made, &err) != QN_OK)
        return message_error(&err);
    interrupt_watch_folder(made, "the watch ends when what it reads is answered\n");
    if (!f->quiet && !f->json && !f->once)
        message_note("watching %s",
                     strcmp(options->path, "-") == 0 ? "the standard input" : options->path);
    const qn_status status = qn_watch_run(made, &report, &err);
    interrupt_watch_folder(NULL, NULL);
    qn_watch_free(made);
    if (status != QN_OK)
        return message_error(&err);
    summary(f, &report);
    return EXIT_DONE;
}

static int check(watch_flags *f, const arguments *given, qn_watch_options *options) {
    if (given->operands == 0)
        return message_usage("quern watch FOLDER --model FILE -o results.csv",
                             "FOLDER, or the file of rows, is required");
    if (!f->model)
        return message_usage("add --model model.safetensors", "--model FILE is required");
    if (!f->out)
        return message_usage("add -o results.csv", "-o FILE is required");
    if (f->json && strcmp(f->out, "-") == 0)
        return message_usage("add -o results.csv",
                             "--json and the answers both write to the standard output");
    if (f->pool && !qn_summary_find(f->pool, &options->summary))
        return message_usage("give mean, max, first, last or none", "--pool cannot be \"%.60s\"",
                             f->pool);
    options->path = given->operand[0];
    options->to = f->out;
    options->layer = f->layer;
    f->generate = answer_flags_take(&f->answer);
    options->generate = answer_flags_given(&f->answer) ? &f->generate : NULL;
    options->masks = f->masks;
    options->move_done = f->move_done;
    options->flat = f->flat;
    options->once = f->once;
    options->poll = f->poll;
    options->all_outputs = f->outputs;
    options->note = note;
    double latency, every;
    int code = answer_flags_check(&f->answer);
    if (code < 0 && f->latency)
        code = read_time("latency", f->latency, &latency);
    if (code < 0 && f->latency)
        options->latency = (uint64_t)(latency * 1e9);
    if (code < 0 && f->poll_every) {
        code = read_time("poll-every", f->poll_every, &every);
        options->poll_seconds = (float)every;
    }
    return code < 0 ? compute_check(&f->compute) : code;
}

static int run(const command *self, int argc, char **argv) {
    watch_flags f = {.answer = answer_flags_usual()};
    arguments given;
    qn_watch_options options;
    qn_model *model = NULL;
    qn_error err;
    qn_watch_options_init(&options);
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0)
        code = check(&f, &given, &options);
    if (code >= 0)
        return code;
    const qn_compute compute = compute_of(&f.compute);
    options.compute = &compute;
    code = adapter_open(f.model, f.adapter, &model, &err) == QN_OK ? watch(&f, model, &options)
                                                                   : message_error(&err);
    qn_model_free(model);
    return code;
}

const command watch_command = {
    .name = "watch",
    .summary = "predict files and rows as they come",
    .usage = "quern watch FOLDER|FILE|- --model FILE -o FILE [options]",
    .about =
        "Answers files and rows as they come. FOLDER is a folder, also one of a store, whose files "
        "are answered when they are complete, also those of the folders in it. FILE has rows, as "
        "CSV or a JSON object a line, which are answered when they are appended. With - the lines "
        "of the standard input are answered; for a model of images they are paths of files.\n"
        "Each file or row gets one row in the table. What the table holds is done: a watch that "
        "was killed goes on where it stopped, and no answer is lost or repeated. A name is "
        "answered once; in a store each version of it is. A file that cannot be read gets a row "
        "with an error.\n"
        "A model of next tokens continues each text, line or line of JSON, as \"quern generate\" "
        "does.\n"
        "Names that begin with a dot, or end with .tmp, .part, .partial, .crdownload, ._COPYING_ "
        "or ~, are not looked at: give a file its name when it is complete. Ctrl-C ends the watch "
        "after what it reads is answered.",
    .options = watch_options,
    .operand = "FOLDER",
    .most_operands = 1,
    .examples =
        "quern watch camera --model m.safetensors -o results.csv\n"
        "quern watch inbox --model m.safetensors -o sqlite:results.db --move-done done\n"
        "quern watch rows.jsonl --model m.safetensors -o results.csv --once\n"
        "quern watch s3://bucket/prefix/ --model m.safetensors -o postgresql://me@host/results\n"
        "find photos -name \"*.jpg\" | quern watch - --model m.safetensors -o results.csv",
    .run = run};
