#include "model/recipe/model_source.h"

#include "base/files/file.h"
#include "base/memory.h"
#include "layer/layer.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The first character at or after `at` that is not a blank; a line break is one. */
static const char *skip(const char *at) {
    while (is_blank(*at))
        ++at;
    return at;
}

/* Comments become blanks, and so does the mark of UTF-8 that some editors write first. */
static void clear_comments(char *text) {
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0)
        memset(text, ' ', 3);
    while ((text = strchr(text, '#')) != NULL)
        while (*text != '\0' && *text != '\n')
            *text++ = ' ';
}

/* Line breaks become semicolons where they separate layers. */
static void join_lines(char *text) {
    char before = ';'; /* nothing to separate at the begin */
    for (; *text != '\0'; ++text) {
        if (*text == '\n')
            *text = strchr(";{|", before) || strchr(";{|}", *skip(text)) ? ' ' : ';';
        if (!is_blank(*text))
            before = *text;
    }
}

static qn_status refuse_file(const char *path, qn_error *err) {
    qn__at(err, "`train.model` @%.300s", path);
    return qn__remedy(
        err, QN_USAGE,
        "name a file after the @, as @model.txt, with layers in it, such as \"conv 32 3x3 relu\" "
        "and \"dense 10 softmax\" on two lines");
}

static qn_status read_file(const char *path, qn__bytes *out, qn_error *err) {
    struct stat about;
    if (*path == '\0') {
        qn__fail(err, QN_USAGE, "the model is \"@\", and no file is named after it");
        return refuse_file(path, err);
    }
    size_t size = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? (size_t)about.st_size : 0;
    if (size <= QN__MODEL_TEXT_LARGEST) {
        const qn_status status = qn__file_read(path, out, err);
        if (status != QN_OK) {
            qn__at(err, "`train.model` @%.300s", path);
            return status;
        }
        size = out->size;
    }
    if (size <= QN__MODEL_TEXT_LARGEST && memchr(out->data, '\0', size) == NULL)
        return QN_OK;
    if (size > QN__MODEL_TEXT_LARGEST)
        qn__fail(err, QN_USAGE, "a model text has at most %zu bytes, the file has %zu",
                 QN__MODEL_TEXT_LARGEST, size);
    else
        qn__fail(err, QN_USAGE, "the file is not a model text: byte %zu of it is 0",
                 (size_t)((const uint8_t *)memchr(out->data, '\0', size) - out->data));
    qn__bytes_release(out);
    return refuse_file(path, err);
}

/* The ready model that is the text's only word. */
static const qn__ready *named(const char *text) {
    const char *word = skip(text), *end = word;
    while (*end != '\0' && *end != ';' && !is_blank(*end))
        ++end;
    const char *after = skip(end);
    return *after == '\0' ? qn__ready_find(word, (size_t)(end - word)) : NULL;
}

/* Puts the text of a ready model in place of its name. */
static qn_status take_ready(qn__model_source *text, const qn__labels_like *labels, qn_error *err) {
    qn__text full = {0};
    text->ready = named(text->text);
    if (text->ready == NULL)
        return QN_OK;
    qn__ready_text(text->ready, labels, &full);
    qn__free(text->text);
    text->text = full.failed ? NULL : qn__copy_text(full.data, err);
    qn__free(text->lines);
    text->lines = NULL;
    qn__text_release(&full);
    return text->text ? QN_OK : qn__fail_memory(err, 1, QN__MODEL_TEXT_LARGEST);
}

static qn_status take(const char *model, const qn__labels_like *labels, qn__model_source *out,
                      qn_error *err) {
    const char *start = skip(model);
    qn__bytes file = {0};
    const qn_status status = *start == '@' ? read_file(start + 1, &file, err) : QN_OK;
    if (status != QN_OK)
        return status;
    const char *written = file.data ? (const char *)file.data : model;
    out->name = qn__copy_text(file.data ? start + 1 : "model", err);
    out->text = out->name ? qn__copy_text(written, err) : NULL;
    if (out->text && (file.data || strchr(model, '\n')))
        out->lines = qn__copy_text(written, err);
    const int whole = out->text && (out->lines || !(file.data || strchr(model, '\n')));
    qn__bytes_release(&file);
    if (!whole)
        return QN_MEMORY;
    clear_comments(out->text);
    join_lines(out->text);
    return take_ready(out, labels, err);
}

qn_status qn__model_source_open(const char *model, const qn__labels_like *labels,
                                qn__model_source *out, qn_error *err) {
    *out = (qn__model_source){0};
    const qn_status status = take(model, labels, out, err);
    if (status != QN_OK)
        qn__model_source_release(out);
    return status;
}

void qn__model_source_release(qn__model_source *text) {
    qn__free(text->text);
    qn__free(text->lines);
    qn__free(text->name);
    *text = (qn__model_source){0};
}

/* A single word that is not a layer may be meant as the name of a ready model, or of a file. */
static void advise(const qn__model_source *text, qn_error *err) {
    qn__tokens tokens = {.text = text->text};
    char word[256], known[340];
    struct stat about;
    qn__layer_kind kind;
    qn__tokens_next(&tokens);
    if (!err || qn__tokens_ended(&tokens) || tokens.size >= sizeof word ||
        *skip(text->text + tokens.at + tokens.size) != '\0' || qn__layer_find(&tokens, &kind))
        return;
    snprintf(word, sizeof word, "%.*s", (int)tokens.size, text->text + tokens.at);
    const char *near = qn__ready_near(word);
    if (near)
        snprintf(known, sizeof known, "did you mean the ready model \"%s\"? ", near);
    else
        snprintf(known, sizeof known, "%.320s; ", err->remedy);
    if (stat(word, &about) == 0 && S_ISREG(about.st_mode))
        qn__remedy(err, QN_USAGE, "if you mean the file, write @%s", word);
    else
        qn__remedy(err, QN_USAGE,
                   "%s\"quern model list\" names the ready models; @FILE stands for the text in a "
                   "file",
                   known);
}

qn_status qn__model_source_parse(const qn__model_source *text, qn__network *out, qn_error *err) {
    const qn_status status = qn__network_parse_lines(text->text, text->lines, text->name, out, err);
    if (status != QN_OK)
        advise(text, err);
    return status;
}

void qn__model_source_place(const qn__model_source *text, qn_error *err) {
    unsigned layer;
    int end = 0;
    if (!err || !text->lines || sscanf(err->where, "model, layer %u%n", &layer, &end) != 1 ||
        err->where[end] != '\0')
        return;
    const size_t at = qn__tokens_layer_begin(text->text, layer);
    qn__at(err, "%s", "");
    qn__tokens_point(err, text->name, text->text, text->lines, at);
}

qn_status qn__model_source_read(const char *model, const qn__labels_like *labels, qn__network *out,
                                qn_error *err) {
    qn__model_source text;
    qn_status status = qn__model_source_open(model, labels, &text, err);
    if (status == QN_OK)
        status = qn__model_source_parse(&text, out, err);
    qn__model_source_release(&text);
    return status;
}
