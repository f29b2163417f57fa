/* quern model merge: adapters become part of the weights of their model. */

#include "adapter.h"
#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include <stdio.h>

typedef struct merge_flags {
    const char *out;
    int quiet, json;
} merge_flags;

#define AT(member) .place = offsetof(merge_flags, member)

static const option merge_options[] = {
    {.heading = "Options", ROW_OUTPUT(out, "FILE", "model file to write; required")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "the summary as one JSON object on stdout")},
    {.name = NULL}};

static void report(const merge_flags *f, const qn_model *merged) {
    if (f->json) {
        json_begin("merge");
        json_text("file", f->out);
        json_text("digest", qn_model_digest(merged));
        json_count("parameters", qn_model_parameters(merged));
        json_end();
    } else if (!f->quiet) {
        char number[32];
        printf("%s: a model with %s parameters, without adapters; its outputs differ in "
               "roundings\n",
               f->out, format_count(qn_model_parameters(merged), number));
    }
}

static int run(const command *self, int argc, char **argv) {
    merge_flags f = {.out = NULL};
    arguments given;
    qn_model *model = NULL, *merged = NULL;
    paths files = {.count = 0};
    qn_error err;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    if (!f.out)
        return message_usage("add -o merged.safetensors", "-o FILE is required");
    if (given.operands != 2)
        return message_usage("name the model, then the file of adapters for it",
                             "two files are needed");
    paths_add(&files, QN_FILE_READ, "MODEL", given.operand[0]);
    paths_add(&files, QN_FILE_READ, "ADAPTER", given.operand[1]);
    paths_add(&files, QN_FILE_WRITE, "-o", f.out);
    code = paths_check(&files, 1);
    if (code >= 0)
        return code;
    qn_status status = adapter_open(given.operand[0], given.operand[1], &model, &err);
    const int whole = status == QN_OK && !qn_model_adapts(model); /* of peft: merged already */
    if (status == QN_OK && !whole)
        status = qn_model_merge(model, &merged, &err);
    const qn_model *made = whole ? model : merged;
    if (status == QN_OK)
        status = qn_model_save(made, f.out, &err);
    if (status == QN_OK)
        report(&f, made);
    qn_model_free(model);
    qn_model_free(merged);
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

const command model_merge_command = {
    .name = "model merge",
    .summary = "make one model of a model and its adapters",
    .usage = "quern model merge MODEL ADAPTER -o FILE [options]",
    .about = "The products of adapters (train --lora) are added to the weights that they stand "
             "beside. The new model has the layers of MODEL, and is as fast. It gives the same "
             "outputs but for roundings, so it has its own digest, and no training to repeat. "
             "ADAPTER may also be a folder that save_pretrained of the package peft wrote.",
    .operand = "MODEL ADAPTER",
    .most_operands = 2,
    .options = merge_options,
    .examples = "quern model merge gpt.safetensors adapter.safetensors -o tuned.safetensors",
    .run = run};
