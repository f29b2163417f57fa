/* quern model export: a model for other programs. */

#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <quern/model.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct export_flags {
    const char *out;
    int quiet, json;
} export_flags;

#define AT(member) .place = offsetof(export_flags, member)

static const option export_options[] = {
    {.heading = "Options", ROW_OUTPUT(out, "FILE", "ONNX file to write; required")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "the summary as one JSON object on stdout")},
    {.name = NULL}};

/* "i14" of a recipe. */
static int is_integer(const qn_model *model) {
    return strstr(qn_model_recipe(model), "\"arith\":\"i") != NULL;
}

static void report(const export_flags *f, const qn_model *model) {
    struct stat about;
    const uint64_t bytes = stat(f->out, &about) == 0 ? (uint64_t)about.st_size : 0;
    if (is_integer(model))
        message_note("note: the model was trained with integer arithmetic; the ONNX file has its "
                     "network in float32, whose outputs differ slightly");
    if (f->json) {
        json_begin("export");
        json_text("file", f->out);
        json_text("format", "onnx");
        json_count("opset", 13);
        json_count("bytes", bytes);
        json_end();
    } else if (!f->quiet) {
        printf("%s: ONNX, opset 13, %" PRIu64 " bytes\n", f->out, bytes);
    }
}

static int run(const command *self, int argc, char **argv) {
    export_flags f = {.out = NULL};
    arguments given;
    qn_model *model = NULL;
    paths files = {.count = 0};
    qn_error err;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    if (!f.out)
        return message_usage("add -o model.onnx", "-o FILE is required");
    paths_add(&files, QN_FILE_READ, "MODEL", given.operand[0]);
    paths_add(&files, QN_FILE_WRITE, "-o", f.out);
    code = paths_check(&files, 1);
    if (code >= 0)
        return code;
    qn_status status = qn_model_load(given.operand[0], &model, &err);
    if (status == QN_OK)
        status = qn_model_write_onnx(model, f.out, &err);
    if (status == QN_OK)
        report(&f, model);
    qn_model_free(model);
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

const command model_export_command = {
    .name = "model export",
    .summary = "write a model as an ONNX file for other programs",
    .usage = "quern model export MODEL -o FILE.onnx [options]",
    .about =
        "The graph takes the values of items as the training data has them, float32, any "
        "number of items: the scaling is part of it, and so are the numbers for missing "
        "values (NaN). A column of categories takes the number of the category, from 0, and "
        "-1 for others; the metadata list them. Its outputs are \"output\", the outputs of the "
        "network, and \"class\". ONNX programs add in an order of their own, so outputs "
        "differ in the last digits.\n"
        "A model of integer arithmetic becomes the float32 network of the same parameters.",
    .operand = "MODEL",
    .options = export_options,
    .examples = "quern model export digits.safetensors -o digits.onnx",
    .run = run};
