/* Generating the answers of a file again. */
#include "predict/generate/generator.h"

#include "base/argument.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/json.h"
#include <string.h>

static qn_status refuse(const char *path, const char *what, qn_error *err) {
    qn__fail(err, QN_FORMAT, "the file of answers %s", what);
    qn__at(err, "%.400s", path);
    return qn__remedy(err, QN_FORMAT, "name a file that quern generate has written, unchanged");
}

/* Reads a whole number below 2^32; 0: it is not one. */
static int read_count(const qn__json_node *options, const char *key, uint32_t *to) {
    uint64_t value;
    if (!qn__json_u64(qn__json_get(options, key), &value) || value > UINT32_MAX)
        return 0;
    *to = (uint32_t)value;
    return 1;
}

static int read_options(const qn__json_node *from, qn_generate_options *o) {
    o->chat = qn__json_string(qn__json_get(from, "chat"));
    o->system = qn__json_string(qn__json_get(from, "system"));
    o->lines = qn__json_is_true(qn__json_get(from, "lines"));
    o->log_probabilities = qn__json_is_true(qn__json_get(from, "log_probabilities"));
    return read_count(from, "tokens", &o->tokens) && read_count(from, "answers", &o->answers) &&
           read_count(from, "top_k", &o->top_k) &&
           qn__json_float(qn__json_get(from, "temperature"), &o->temperature) &&
           qn__json_float(qn__json_get(from, "top_p"), &o->top_p) &&
           qn__json_float(qn__json_get(from, "repetition"), &o->repetition) &&
           qn__json_u64(qn__json_get(from, "seed"), &o->seed);
}

/* The prompts are those of the answers with the number 0. */
static qn_status open_from(const qn_model *model, const qn__json_node *root,
                           const qn_compute *compute, const char *path, qn_generator **out,
                           qn_error *err) {
    const qn__json_node *from = qn__json_get(root, "options"), *stops = qn__json_get(from, "stop");
    const qn__json_node *answers = qn__json_get(root, "answers");
    const char *stop[QN__GENERATE_STOPS];
    qn_generate_options o;
    qn_generate_options_init(&o);
    o.compute = compute;
    o.stop = stop;
    o.stops = (uint32_t)qn__json_count(stops);
    const size_t count = qn__json_count(answers);
    if (!read_options(from, &o) || o.stops > QN__GENERATE_STOPS || o.answers == 0 || count == 0 ||
        count > UINT32_MAX || count % o.answers != 0)
        return refuse(path, "lacks an option or an answer", err);
    for (uint32_t i = 0; i < o.stops; ++i)
        stop[i] = qn__json_string(qn__json_at(stops, i));
    const uint32_t prompts = (uint32_t)(count / o.answers);
    const char **prompt = qn__alloc(prompts, sizeof *prompt, err);
    if (!prompt)
        return QN_MEMORY;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < prompts && status == QN_OK; ++i) {
        prompt[i] =
            qn__json_string(qn__json_get(qn__json_at(answers, (size_t)i * o.answers), "prompt"));
        status = prompt[i] ? QN_OK : refuse(path, "has an answer without its prompt", err);
    }
    if (status == QN_OK)
        status = qn_generator_open(model, prompt, prompts, &o, out, err);
    qn__free(prompt);
    return status;
}

static qn_status check_file(const qn_model *model, const qn__json_node *root, const char *path,
                            qn_error *err) {
    const char *format = qn__json_string(qn__json_get(root, "format"));
    const char *digest = qn__json_string(qn__json_get(root, "model"));
    if (!format || strcmp(format, "quern-answers-1") != 0 || !digest)
        return refuse(path, "has another format", err);
    if (strcmp(digest, qn_model_digest(model)) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the answers are those of another model");
    qn__at(err, "%.400s", path);
    return qn__remedy(err, QN_MISMATCH, "name the model whose digest is %.64s", digest);
}

qn_status qn_generator_reopen(const qn_model *model, const char *path, const qn_compute *compute,
                              qn_generator **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    QN__NEED(path, err);
    qn__bytes bytes = {0};
    qn__json *json = NULL;
    qn_status status = qn__file_read(path, &bytes, err);
    if (status == QN_OK)
        status = qn__json_parse((const char *)bytes.data, bytes.size, &json, err);
    if (status == QN_FORMAT)
        qn__at(err, "%.400s", path);
    if (status == QN_OK)
        status = check_file(model, qn__json_root(json), path, err);
    if (status == QN_OK)
        status = open_from(model, qn__json_root(json), compute, path, out, err);
    qn__json_free(json);
    qn__bytes_release(&bytes);
    return status;
}

/* The line of the first byte that differs: an answer has a line, after the first one. */
static size_t line_of_difference(const char *a, size_t size, const qn__bytes *b) {
    const char *other = (const char *)b->data;
    size_t line = 0;
    for (size_t i = 0; i < size && i < b->size && a[i] == other[i]; ++i)
        line += a[i] == '\n';
    return line;
}

qn_status qn_generator_compare(const qn_generator *generator, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(generator, err);
    QN__NEED(path, err);
    qn__bytes bytes = {0};
    char *json = NULL;
    size_t size = 0;
    qn_status status = qn__file_read(path, &bytes, err);
    if (status == QN_OK)
        status = qn__answers_json(generator, &json, &size, err);
    if (status == QN_OK && (size != bytes.size || memcmp(json, bytes.data, size) != 0)) {
        const size_t line = line_of_difference(json, size, &bytes);
        if (line > 0 && line <= generator->answers)
            qn__fail(err, QN_DIFFERS, "answer %zu is another one now", line - 1);
        else
            qn__fail(err, QN_DIFFERS, "the file was written in another way");
        qn__at(err, "%.400s", path);
        status =
            qn__remedy(err, QN_DIFFERS, "the file was changed, or this machine computes wrongly");
    }
    qn__free(json);
    qn__bytes_release(&bytes);
    return status;
}
