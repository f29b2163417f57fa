/* quern model import: a model of the parameters that another program has trained. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "model_text.h"
#include "paths.h"
#include "pretrained.h"
#include "shared_rows.h"
#include "sources.h"
#include <quern/import.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct import_flags {
    const char *model, *input, *classes, *loss, *scale, *resize, *config, *out;
    const char *as, *tokenizer, *task; /* of checkpoints of transformers */
    uint64_t context;
    int quiet, json;
    /* Of a network that the library knows by its names. */
    qn_import_found found;
    char shape[32];
    qn_import_about about; /* what `config` says */
} import_flags;

#define AT(member) .place = offsetof(import_flags, member)

static const option_word task_words[] = {{"next", "tells the next token"},
                                         {"classify", "tells the class of a text"},
                                         {"tags", "tells the class of each token"},
                                         {NULL, NULL}};

static const option import_options[] = {
    {.heading = "Options",
     ROW_TEXT("model", model, "TEXT",
              "the network of the file: its layers, a ready model or @FILE"),
     .fallback = "found by the names that torchvision and timm give to tensors"},
    {ROW_TEXT("input", input, "SHAPE",
              "what an item is: 3x32x32 (channels x height x width), 28x28, or a number of "
              "features; required with --model"),
     .fallback = "that of --config or of the network that was found"},
    {ROW_TEXT(
        "config", config, "FILE",
        "timm's config.json of the network: shape, scale, resize and names of classes; or that "
        "of a checkpoint of transformers")},
    {ROW_TEXT("as", as, "TYPE", "a checkpoint of transformers: the type of its network, as gpt2"),
     .fallback = "model_type of the config.json beside STATE"},
    {ROW_TEXT("tokenizer", tokenizer, "FILE",
              "the tokenizer.json of such a network, or none: its data are numbers of tokens"),
     .fallback = "the tokenizer.json beside STATE"},
    {ROW_COUNT("context", context, 1, 1 << 24,
               "tokens of an item, at most those that such a network has positions for"),
     .fallback = "all of them"},
    {ROW_CHOICE("task", task, "TASK",
                "what such a network is for; where the checkpoint has no such head, the last "
                "layers begin with random weights, to be trained further"),
     .words = task_words, .fallback = "what the checkpoint was saved for"},
    {ROW_TEXT("classes", classes, "LIST",
              "the names of the classes in the order of the outputs: cat,dog; @FILE: a file with "
              "one name a line; labels.json: a list, or an object of numbers and names; or their "
              "number, 0 for a network that predicts a real number"),
     .fallback = "as many as the network has outputs"},
    {ROW_AS_IN_TRAIN("loss", loss, QN_CHOICE_LOSS),
     .fallback = "by the last layer: softmax one class, sigmoid several labels or two classes"},
    {ROW_TEXT(
         "scale", scale, "NAME",
         "what is done to values before the network: none, unit (bytes divided by 255, as "
         "torchvision's ToTensor), fraction (by 256), imagenet, or means and deviations of "
         "channels, as 0.5,0.5,0.5/0.25,0.25,0.25; required with --model for items with pixels"),
     .fallback = "none; imagenet where the network was found"},
    {ROW_TEXT("resize", resize, "HOW",
              "what is done to photographs before: \"short 256 crop 224 bilinear\", 224x224 or "
              "others, as in quern train"),
     .fallback = "none; that of torchvision where the network was found"},
    {ROW_OUTPUT(out, "FILE", "model file to write; required")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "one JSON object a line: tensor, import")},
    {.name = NULL}};

enum { MOST_CLASSES = 4096 };

/* The item that says what data is for the model: zeros of its shape. */
typedef struct likeness {
    char *names; /* of the classes, cut into texts */
    const char *name[MOST_CLASSES];
    const char *const *class_name; /* NULL: there are none */
    uint32_t named, classes;
    int real;
    uint64_t features;
    int pixels;
    qn_import_config *config, *labels; /* the files that were read */
} likeness;

/* "3x32x32": the product; 0: no such text. */
static uint64_t volume(const char *shape, int *pixels) {
    uint64_t all = 1;
    *pixels = 0;
    for (const char *at = shape; all && *at;) {
        char digits[24] = "";
        uint64_t side = 0;
        const size_t size = strcspn(at, "xX");
        if (size < sizeof digits)
            memcpy(digits, at, size);
        if (!read_count(digits, &side) || side == 0 || side > 1 << 24)
            return 0;
        all = all * side > 1 << 24 ? 0 : all * side;
        *pixels |= at[size] != '\0';
        at += size + (at[size] != '\0');
    }
    return *shape ? all : 0;
}

/* Cuts like->names into names. */
static int cut_names(likeness *like) {
    for (char *at = like->names; at;) {
        char *next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        if (!*at)
            return message_usage("write names such as cat,dog, or one a line in @FILE",
                                 "--classes has an empty name");
        if (like->named == MOST_CLASSES)
            return message_usage("give fewer names, or their number",
                                 "--classes has more than %d names", MOST_CLASSES);
        like->name[like->named++] = at;
        at = next;
    }
    like->classes = like->named;
    return -1;
}

/* The file that --classes names: after an @, or by ".json" at its end. */
static const char *classes_file(const char *classes) {
    const size_t size = classes ? strlen(classes) : 0;
    if (size > 5 && strcmp(classes + size - 5, ".json") == 0 && *classes != '@')
        return classes;
    return model_file(classes);
}

static void take_names(likeness *like, const qn_import_about *about) {
    like->class_name = about->class_name;
    like->named = like->classes = about->classes;
}

static int read_names(const char *path, likeness *like) {
    qn_import_about about = {.size = sizeof about};
    qn_error err;
    if (qn_import_labels_open(path, &like->labels, &err) != QN_OK ||
        qn_import_config_get(like->labels, &about, &err) != QN_OK) {
        char where[sizeof err.where];
        snprintf(where, sizeof where, "--classes %.480s", err.where[0] ? err.where : path);
        snprintf(err.where, sizeof err.where, "%s", where);
        return message_error(&err);
    }
    take_names(like, &about);
    return -1;
}

/* The names of --config, where the network has so many outputs. */
static int names_of_config(const import_flags *f, uint32_t outputs, likeness *like) {
    if (f->about.class_name && f->about.classes == outputs)
        take_names(like, &f->about);
    else if (f->about.class_name)
        return message_usage("name the classes with --classes, or give their number there",
                             "--config has names of %u classes, and the network has %u outputs",
                             f->about.classes, outputs);
    else if (f->about.classes && f->about.classes != outputs)
        message_note("note: --config is of a network with %u classes, and this one has %u",
                     f->about.classes, outputs);
    return -1;
}

static int read_classes(const import_flags *f, uint32_t outputs, likeness *like) {
    uint64_t count = outputs;
    if (classes_file(f->classes))
        return read_names(classes_file(f->classes), like);
    if (!f->classes || read_count(f->classes, &count)) {
        like->real = f->classes && count == 0;
        like->classes = (uint32_t)(count < 1 << 24 ? count : 1 << 24);
        return f->classes ? -1 : names_of_config(f, outputs, like);
    }
    like->class_name = like->name;
    like->names = strdup(f->classes);
    return like->names ? cut_names(like) : message_fail(QN_MEMORY, "out of memory", "", "");
}

static qn_status open_like(const import_flags *f, const likeness *like, qn_data **out,
                           qn_error *err) {
    const int32_t label[1] = {like->classes ? (int32_t)like->classes - 1 : 0};
    static const float target[1] = {0};
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    void *zeros = like->features ? calloc((size_t)like->features, 1) : NULL;
    arrays.type = QN_U8;
    arrays.items = 1;
    arrays.features = (uint32_t)like->features;
    arrays.values = zeros;
    arrays.labels = like->real ? NULL : label;
    arrays.targets = like->real ? target : NULL;
    arrays.class_name = like->named ? like->class_name : NULL;
    arrays.classes = like->named;
    arrays.resize = f->resize;
    arrays.rules = f->resize ? "orientation files" : NULL; /* photographs as people see them */
    arrays.owner = zeros;
    arrays.release = free;
    const qn_status status = zeros ? qn_data_lend(&arrays, out, err)
                                   : message_fill(err, QN_MEMORY, "", "", "out of memory");
    if (status != QN_OK)
        free(zeros);
    return status;
}

static void told(void *user, const char *tensor, const char *from) {
    const import_flags *f = user;
    if (f->json) {
        json_begin("tensor");
        json_text("tensor", tensor);
        json_text("from", *from ? from : NULL);
        json_end();
    } else if (!f->quiet && !f->found.classes) {
        printf("%-22s  %s\n", tensor,
               *from                       ? from
               : strstr(tensor, ".weight") ? "not in the file: 1"
                                           : "not in the file: 0");
    }
}

static void report(const import_flags *f, const qn_model *model) {
    char text[512], number[32];
    while (qn_device_note(text, sizeof text))
        message_note("note: %s", text);
    if (f->json) {
        json_begin("import");
        json_text("file", f->out);
        json_text("model", f->found.classes ? f->found.model : NULL);
        json_text("scale", f->scale);
        json_text("resize", qn_model_resize(model));
        json_count("parameters", qn_model_parameters(model));
        json_text("digest", qn_model_digest(model));
        json_end();
    } else {
        if (!f->quiet)
            printf("%s parameters; the model file's SHA-256:\n",
                   format_count(qn_model_parameters(model), number));
        printf("%s  %s\n", qn_model_digest(model), f->out);
    }
}

/* Options and recipes call the shape by another name. */
static void spell(char *text) {
    static const char field[] = "`train.shape`", ours[] = "--input";
    char *at = strstr(text, field);
    if (!at)
        return;
    memmove(at + sizeof ours - 1, at + sizeof field - 1, strlen(at + sizeof field - 1) + 1);
    memcpy(at, ours, sizeof ours - 1);
}

static int import_model(const import_flags *f, const char *path, const likeness *like,
                        const char *text) {
    qn_train_options job;
    qn_data *data = NULL;
    qn_model *model = NULL;
    qn_error err;
    qn_train_options_init(&job);
    job.model = text;
    job.loss = f->loss;
    job.scale = f->scale ? f->scale : "none";
    job.shape = like->pixels ? f->input : NULL;
    qn_status status = open_like(f, like, &data, &err);
    if (status == QN_OK)
        status = qn_model_import(path, &job, data, told, (void *)(uintptr_t)f, &model, &err);
    if (status == QN_OK)
        status = qn_model_save(model, f->out, &err);
    if (status == QN_OK)
        report(f, model);
    qn_model_free(model);
    qn_data_close(data);
    if (status == QN_OK)
        return EXIT_DONE;
    spell(err.where);
    spell(err.remedy);
    return message_error(&err);
}

/* What --resize makes is what an item is. */
static int require_input(const import_flags *f) {
    const char *crop = f->resize ? strstr(f->resize, "crop ") : NULL;
    const char *size = crop ? crop + strlen("crop ") : f->resize ? f->resize : "";
    char remedy[160];
    unsigned height = 0, width = 0;
    const int sides = sscanf(size, "%9ux%9u", &height, &width);
    width = sides == 1 ? height : width;
    if (sides < 1)
        return message_usage("add --input 3x32x32, or the number of features: --input 784",
                             "--input SHAPE is required");
    snprintf(remedy, sizeof remedy,
             "add --input 3x%ux%u, as --resize makes photographs, or 1x%ux%u where they are grey",
             height, width, height, width);
    return message_usage(remedy, "--input SHAPE is required");
}

/* What config.json and the tensors decide. */
static int check_pretrained(const import_flags *f) {
    const char *const given[] = {f->model, f->input, f->classes, f->loss, f->scale, f->resize};
    static const char *const names[] = {"model", "input", "classes", "loss", "scale", "resize"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i])
            return message_usage("leave it out: config.json and the tensors say it",
                                 "--%s is not for a checkpoint of transformers", names[i]);
    return f->out ? -1 : message_usage("add -o model.safetensors", "-o FILE is required");
}

static int check_flags(const import_flags *f, likeness *like) {
    if (f->tokenizer || f->context || f->task)
        return message_usage("add --as gpt2 where it is one without a config.json",
                             "--%s is for checkpoints of transformers, and this is not one",
                             f->tokenizer ? "tokenizer"
                             : f->context ? "context"
                                          : "task");
    if (f->model && !f->input && !f->config)
        return require_input(f);
    if (!f->out)
        return message_usage("add -o model.safetensors", "-o FILE is required");
    like->features = f->input ? volume(f->input, &like->pixels) : 1;
    if (!like->features)
        return message_usage("it is a number from 1 to 16777216, or a shape such as 3x32x32",
                             "--input cannot be %s", f->input);
    return -1;
}

static int check_scale(const import_flags *f, const likeness *like) {
    if (f->scale || !like->pixels)
        return -1;
    return message_usage("add --scale unit where the training divided bytes by 255, as "
                         "torchvision's ToTensor does, else --scale none",
                         "--scale is required for items with pixels");
}

/* What the file says holds where the command does not. */
static int read_config(import_flags *f, likeness *like) {
    qn_error err;
    f->about.size = sizeof f->about;
    if (!f->config)
        return -1;
    if (qn_import_config_open(f->config, f->input, &like->config, &err) != QN_OK ||
        qn_import_config_get(like->config, &f->about, &err) != QN_OK) {
        spell(err.remedy);
        return message_error(&err);
    }
    f->input = f->input ? f->input : f->about.shape;
    f->scale = f->scale ? f->scale : f->about.scale;
    f->resize = f->resize ? f->resize : f->about.resize;
    like->features = volume(f->input, &like->pixels);
    return -1;
}

/* A model text with a last layer of its own says how many outputs there are. */
static int check_classes(const likeness *like, uint32_t outputs) {
    const uint32_t most = outputs == 1 ? 2 : outputs; /* one sigmoid tells two classes apart */
    if (outputs == 0 || like->real || like->classes == outputs || like->classes == most)
        return -1;
    return message_usage("give one class for each output, in their order",
                         "--classes has %u classes, and the last layer has %u outputs",
                         like->classes, outputs);
}

/* What most networks of these libraries need; a state dict does not say it. */
static void take_usual(import_flags *f) {
    static const char resize[] = "short 256 crop 224 bilinear";
    const int sized = !f->resize && strcmp(f->input, "3x224x224") == 0;
    if (!f->scale || sized)
        message_note("note: %s%s%s%s%s %s taken, as most networks of %s need; the file does not "
                     "say it",
                     f->scale ? "" : "--scale imagenet", !f->scale && sized ? " and " : "",
                     sized ? "--resize \"" : "", sized ? resize : "", sized ? "\"" : "",
                     !f->scale && sized ? "are" : "is", f->found.library);
    f->scale = f->scale ? f->scale : "imagenet";
    f->resize = sized ? resize : f->resize;
}

/* Fills the options that a known network decides. */
static int recognise(import_flags *f, const char *path, likeness *like) {
    qn_error err;
    f->found.size = sizeof f->found;
    if (qn_model_recognise(path, &f->found, &err) != QN_OK) {
        spell(err.remedy);
        return message_error(&err);
    }
    f->model = f->found.model;
    for (uint32_t i = 0; i < qn_ready_count(); i++) {
        qn_ready_model m = {.size = sizeof m};
        if (qn_ready_get(i, &m, NULL) == QN_OK && strcmp(m.name, f->model) == 0)
            snprintf(f->shape, sizeof f->shape, "%s", m.shape);
    }
    f->input = f->input ? f->input : f->shape;
    like->features = volume(f->input, &like->pixels);
    take_usual(f);
    return -1;
}

/* A ready model of one output tells two classes apart; with the loss "binary" others give a label
 * for each class. */
static int read_text(const import_flags *f, const likeness *like, char **text) {
    const int labels = f->loss && strcmp(f->loss, "binary") == 0 && like->classes > 1;
    qn_train_options job;
    qn_train_options_init(&job);
    job.model = f->model;
    job.loss = f->loss;
    if (!labels || f->found.classes == 1)
        return model_read(&job, 0, like->classes, text);
    *text = strdup(f->model);
    return *text ? -1 : message_fail(QN_MEMORY, "out of memory", "", "");
}

static int read_and_import(import_flags *f, const char *path, likeness *like) {
    char *text = NULL;
    uint32_t outputs = 0;
    int code = read_config(f, like);
    if (code < 0)
        code = f->model ? check_scale(f, like) : recognise(f, path, like);
    if (code < 0)
        code = model_outputs(f->model, &outputs);
    if (code < 0 && f->found.classes)
        outputs = f->found.classes;
    if (code < 0)
        code = read_classes(f, outputs ? outputs : MODEL_USUAL_CLASSES, like);
    if (code < 0)
        code = check_classes(like, outputs);
    if (code < 0)
        code = read_text(f, like, &text);
    if (code < 0)
        code = import_model(f, path, like, text);
    free(text);
    free(like->names);
    qn_import_config_free(like->labels);
    qn_import_config_free(like->config);
    return code;
}

/* The files of a state in several parts, which lie beside its index: "model-00001-of-00003" and so
 * on. `pattern` holds the text that is added. */
static void add_parts(paths *files, const char *state, char pattern[4096]) {
    const char *slash = strrchr(state, '/');
    int size = (int)strlen(state);
    if (ends_with(state, ".json"))
        size = slash ? (int)(slash + 1 - state) : 0;
    snprintf(pattern, 4096, "%.*s%s*-of-*.safetensors", size, state,
             ends_with(state, ".json") ? "" : "/");
    paths_add(files, QN_FILES_READ, "STATE", pattern);
}

static const char *token_file(const char *tokenizer) {
    return tokenizer && strcmp(tokenizer, "none") != 0 ? tokenizer : NULL;
}

static int run(const command *self, int argc, char **argv) {
    char parts[4096];
    import_flags f = {.model = NULL};
    likeness *like = calloc(1, sizeof *like);
    arguments given;
    paths files = {.count = 0};
    qn_pretrained_options how = {.size = 0};
    int pretrained = 0;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code < 0) {
        message_setup(self->name, f.quiet, f.json);
        how = (qn_pretrained_options){.size = sizeof how,
                                      .type = f.as,
                                      .config = f.config,
                                      .tokenizer = f.tokenizer,
                                      .context = (uint32_t)f.context,
                                      .task = f.task};
        pretrained = !f.model && pretrained_is(given.operand[0], &how);
        code = pretrained ? check_pretrained(&f)
               : like     ? check_flags(&f, like)
                          : message_fail(QN_MEMORY, "out of memory", "", "");
    }
    if (code < 0) {
        paths_add(&files, QN_FILE_READ, "STATE", given.operand[0]);
        add_parts(&files, given.operand[0], parts);
        paths_add(&files, QN_FILE_READ, "--model", model_file(f.model));
        paths_add(&files, QN_FILE_READ, "--classes", classes_file(f.classes));
        paths_add(&files, QN_FILE_READ, "--config", f.config);
        paths_add(&files, QN_FILE_READ, "--tokenizer", token_file(f.tokenizer));
        paths_add(&files, QN_FILE_WRITE, "-o", f.out);
        code = paths_check(&files, 1);
    }
    if (code < 0 && pretrained)
        code =
            pretrained_import(given.operand[0], &(pretrained_flags){f.out, how, f.quiet, f.json});
    if (code < 0 && like)
        code = read_and_import(&f, given.operand[0], like);
    free(like);
    return code;
}

const command model_import_command = {
    .name = "model import",
    .summary = "make a model of parameters that PyTorch has trained",
    .usage = "quern model import STATE [--model TEXT --input SHAPE] [options] -o FILE",
    .about = "STATE is a safetensors file, as safetensors.torch.save_file(net.state_dict(), STATE) "
             "writes it, or the index of several (model.safetensors.index.json), or their folder. "
             "A state dict does not say how its layers are connected. Networks of torchvision and "
             "timm that are ready models here are known by the names of their tensors; of others "
             "--model says it. Each layer takes the first tensors of its shapes that are left, in "
             "the order of "
             "their names, and the command prints which. Predictions with the model are made like "
             "others; it cannot be replayed.",
    .operand = "STATE",
    .options = import_options,
    .examples = "quern model import vgg16.safetensors -o m.st\n"
                "quern model import model.safetensors --config config.json -o m.st\n"
                "quern model import net.st --model \"dense 3 softmax\" --input 4 -o m.st\n"
                "quern model import net.st --model resnet8 --input 3x32x32 --scale unit -o m.st",
    .run = run};
