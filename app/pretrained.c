#include "pretrained.h"

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include <quern/device.h>
#include <stdio.h>
#include <string.h>

int pretrained_is(const char *path, const qn_pretrained_options *how) {
    char type[32] = "";
    if (how->type)
        return 1;
    const qn_status status = qn_pretrained_type(path, how->config, type, NULL);
    return status == QN_FORMAT ||
           (status == QN_OK && *type != '\0'); /* the import says what is wrong */
}

static void told(void *user, const char *tensor, const char *from) {
    const pretrained_flags *f = user;
    if (!f->json)
        return;
    json_begin("tensor");
    json_text("tensor", tensor);
    json_text("from", from);
    json_end();
}

/* Tokens of an item. */
static uint32_t tokens_of(const qn_model *model) {
    const uint32_t context = qn_model_context(model);
    return context ? context : qn_model_inputs(model);
}

static void report(const pretrained_flags *f, const qn_model *model) {
    char text[512], number[32];
    while (qn_device_note(text, sizeof text))
        message_note("note: %s", text);
    if (f->json) {
        json_begin("import");
        json_text("file", f->out);
        json_text("tokens", qn_model_tokens(model));
        json_count("context", tokens_of(model));
        json_count("parameters", qn_model_parameters(model));
        json_text("digest", qn_model_digest(model));
        json_end();
        return;
    }
    if (!f->quiet)
        printf("%s parameters, items of %u tokens, %s; the model file's SHA-256:\n",
               format_count(qn_model_parameters(model), number), tokens_of(model),
               qn_model_tokenizer(model) ? "with its tokenizer" : "without a tokenizer");
    printf("%s  %s\n", qn_model_digest(model), f->out);
}

/* The library's names for the options. */
static void spell(char *text) {
    static const char *const names[][2] = {{"`context`", "--context"},
                                           {"`tokenizer`", "--tokenizer"},
                                           {"`config`", "--config"},
                                           {"`task`", "--task"},
                                           {"`train.model`", "--model"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t theirs = strlen(names[i][0]), ours = strlen(names[i][1]);
        for (char *at; (at = strstr(text, names[i][0]));) {
            memcpy(at, names[i][1], ours);
            memmove(at + ours, at + theirs, strlen(at + theirs) + 1);
        }
    }
}

int pretrained_import(const char *path, const pretrained_flags *f) {
    qn_model *model = NULL;
    qn_error err;
    qn_status status =
        qn_model_import_pretrained(path, &f->how, told, (void *)(uintptr_t)f, &model, &err);
    if (status == QN_OK)
        status = qn_model_save(model, f->out, &err);
    if (status == QN_OK)
        report(f, model);
    qn_model_free(model);
    if (status == QN_OK)
        return EXIT_DONE;
    spell(err.where);
    spell(err.remedy);
    return message_error(&err);
}
