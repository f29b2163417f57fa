/* quern model export: a model for other programs. */

#include "adapter.h"
#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <quern/device.h>
#include <quern/model.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct export_flags {
    const char *out, *names, *adapter;
    int quiet, json;
} export_flags;

#define AT(member) .place = offsetof(export_flags, member)

static const option_word name_words[] = {
    {"torchvision", "its names of modules"},
    {"timm", "its names of modules"},
    {"transformers", "a folder, with config.json and the tokenizer"},
    {"peft", "a folder, with the adapters of --adapter alone"},
    {NULL, NULL}};

static const option export_options[] = {
    {.heading = "Options",
     ROW_OUTPUT(out, "FILE",
                "ONNX file to write, or safetensors with --names; the folder of --names "
                "transformers or peft; required")},
    {ROW_CHOICE("names", names, "LIBRARY",
                "write the parameters alone, as a safetensors file with the names of this "
                "library, for load_state_dict; of transformers all that from_pretrained needs"),
     .words = name_words, .fallback = "ONNX is written"},
    {ROW_ADAPTER(adapter)},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "the summary as one JSON object on stdout")},
    {.name = NULL}};

/* "i14" of a recipe. */
static int is_integer(const qn_model *model) {
    return strstr(qn_model_recipe(model), "\"arith\":\"i") != NULL;
}

static int is_peft(const export_flags *f) { return f->names && strcmp(f->names, "peft") == 0; }

static int is_folder(const export_flags *f) {
    return f->names && (strcmp(f->names, "transformers") == 0 || is_peft(f));
}

static void report(const export_flags *f, const qn_model *model) {
    struct stat about;
    const int is_sized = stat(f->out, &about) == 0; /* not an object of a store */
    char text[512], size[40] = "";
    if (is_sized)
        snprintf(size, sizeof size, ", %" PRIu64 " bytes", (uint64_t)about.st_size);
    while (qn_device_note(text, sizeof text))
        message_note("note: %s", text);
    if (is_integer(model))
        message_note("note: the model was trained with integer arithmetic; the %s file has its "
                     "network in float32, whose outputs differ slightly",
                     f->names ? "safetensors" : "ONNX");
    if (f->json) {
        json_begin("export");
        json_text("file", f->out);
        json_text("format", f->names ? "safetensors" : "onnx");
        if (f->names)
            json_text("names", f->names);
        else
            json_count("opset", 13);
        if (!is_folder(f) && is_sized)
            json_count("bytes", (uint64_t)about.st_size);
        json_end();
    } else if (!f->quiet && is_folder(f)) {
        printf("%s: %s\n", f->out,
               is_peft(f) ? "adapters for peft" : "a checkpoint for transformers");
    } else if (!f->quiet && f->names) {
        printf("%s: safetensors with the names of %s%s\n", f->out, f->names, size);
    } else if (!f->quiet) {
        printf("%s: ONNX, opset 13%s\n", f->out, size);
    }
}

static int ends_in(const char *path, const char *end) {
    const size_t size = strlen(path), most = strlen(end);
    return size > most && strcmp(path + size - most, end) == 0;
}

static int check_flags(const export_flags *f) {
    if (!f->out)
        return message_usage("add -o model.onnx", "-o FILE is required");
    if (!f->names && ends_in(f->out, ".safetensors"))
        return message_usage("add --names torchvision, or write to a file that ends in .onnx",
                             "%s is not the name of an ONNX file", f->out);
    if (is_peft(f) && !f->adapter)
        return message_usage("add --adapter FILE, the adapters to write",
                             "--names peft needs --adapter");
    if (f->names && ends_in(f->out, ".onnx"))
        return message_usage("write to a file that ends in .safetensors, or leave --names out",
                             "%s is the name of an ONNX file", f->out);
    return -1;
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
    code = check_flags(&f);
    if (code >= 0)
        return code;
    paths_add(&files, QN_FILE_READ, "MODEL", given.operand[0]);
    paths_add(&files, is_folder(&f) ? QN_FOLDER_WRITE : QN_FILE_WRITE, "-o", f.out);
    code = paths_check(&files, 1);
    if (code >= 0)
        return code;
    qn_status status = adapter_open(given.operand[0], f.adapter, &model, &err);
    if (status == QN_OK)
        status = is_peft(&f)     ? qn_model_write_peft(model, f.out, &err)
                 : is_folder(&f) ? qn_model_write_pretrained(model, f.out, &err)
                 : f.names       ? qn_model_write_state(model, f.names, f.out, &err)
                                 : qn_model_write_onnx(model, f.out, &err);
    if (status == QN_OK)
        report(&f, model);
    qn_model_free(model);
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

const command model_export_command = {
    .name = "model export",
    .summary = "write a model as an ONNX file, or for PyTorch",
    .usage = "quern model export MODEL -o FILE [options]",
    .about =
        "The graph takes the values of items as the training data has them, float32, any "
        "number of items: the scaling is part of it, and so are the numbers for missing "
        "values (NaN). A column of categories takes the number of the category, from 0, and "
        "-1 for others; the metadata list them. Its outputs are \"output\", the outputs of the "
        "network, and \"class\". ONNX programs add in an order of their own, so outputs "
        "differ in the last digits.\n"
        "With --names the file has the parameters alone, as load_state_dict of torchvision's or "
        "timm's network of this kind takes them; scaling and resizing of images are not in it. "
        "--names transformers writes a folder for from_pretrained of a network that "
        "quern model import knows, --names peft one for PeftModel of the adapters alone.\n"
        "A model of integer arithmetic becomes the float32 network of the same parameters.",
    .operand = "MODEL",
    .options = export_options,
    .examples = "quern model export digits.safetensors -o digits.onnx\n"
                "quern model export flowers.st --names torchvision -o resnet18.safetensors\n"
                "quern model export story.st --names transformers -o story\n"
                "quern model export gpt2.st --adapter a.st --names peft -o adapter",
    .run = run};
