#include "userkernel/run/user_state.h"

#include "base/digest/sha256.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ lines */

const char *qn__state_take(qn__state_reader *r, const char *word) {
    const size_t size = strlen(word), left = r->size - r->at;
    const uint8_t *line = r->bytes + r->at;
    const uint8_t *newline =
        left > 0 ? memchr(line, '\n', left < QN__STATE_LINE ? left : QN__STATE_LINE) : NULL;
    if (!newline)
        return NULL;
    const size_t length = (size_t)(newline - line);
    memcpy(r->line, line, length);
    r->line[length] = '\0';
    if (strlen(r->line) != length || strncmp(r->line, word, size) != 0 ||
        (length > size && r->line[size] != ' '))
        return NULL;
    r->at += length + 1;
    return r->line + size + (length > size);
}

int qn__state_is_whole(qn__state_reader *r) {
    char hex[65];
    uint8_t digest[32];
    const char *wanted = NULL;
    size_t at = 0;
    for (r->at = 0; r->at < r->size && !wanted;) {
        const uint8_t *newline = memchr(r->bytes + r->at, '\n', r->size - r->at);
        at = r->at;
        wanted = qn__state_take(r, "digest");
        if (!newline)
            return 0;
        if (!wanted)
            r->at = (size_t)(newline - r->bytes) + 1;
    }
    if (!wanted)
        return 0;
    qn__sha256_of(r->bytes, at, digest);
    qn__hex(digest, hex);
    r->at = 0;
    return strcmp(hex, wanted) == 0;
}

qn_status qn__state_damaged(const qn__state_reader *r, const char *what, qn_error *err) {
    qn__fail(err, QN_FORMAT, "the checkpoint is damaged: %s", what);
    qn__at(err, "%s", r->path);
    return qn__remedy(err, QN_FORMAT, "remove it, and begin again without `kernel.resume`");
}

void qn__state_end(qn__text *lines) {
    char hex[65];
    uint8_t digest[32];
    if (lines->failed)
        return;
    qn__sha256_of(lines->data, lines->size, digest);
    qn__hex(digest, hex);
    qn__text_add(lines, "digest %s\n\n", hex);
}

/* ------------------------------------------------------------------ what the state follows from */

/* Digests of what the state follows from. */
typedef struct identity {
    char kernel[65], shape[72], values[65], inputs[65], series[65];
} identity;

static void add_word(qn__sha256 *hash, const char *word) {
    qn__sha256_add(hash, word, strlen(word) + 1);
}

static void end(qn__sha256 *hash, char hex[65]) {
    uint8_t digest[32];
    qn__sha256_end(hash, digest);
    qn__hex(digest, hex);
}

static void identify(const qn_kernel *k, identity *id) {
    char seed[24];
    qn__sha256 text, values, inputs, series;
    qn__sha256_begin(&text);
    qn__sha256_begin(&values);
    qn__sha256_begin(&inputs);
    qn__sha256_begin(&series);
    add_word(&text, k->text);
    snprintf(seed, sizeof seed, "%" PRIu64, k->seed);
    add_word(&values, seed);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_use use = k->source.part[i].use;
        if (use == QN__USER_SCALAR)
            add_word(&values, k->part[i].text);
        else if (use < QN__USER_OUTPUT)
            add_word(&inputs, k->part[i].digest);
        else if (k->part[i].wants_series && k->iterations > 1)
            add_word(&series, k->source.part[i].name);
    }
    end(&text, id->kernel);
    end(&values, id->values);
    end(&inputs, id->inputs);
    end(&series, id->series);
    qn__user_shape_text(
        k->source.dimensions,
        (const uint64_t *)k->job.extent + QN_KERNEL_DIMENSIONS - k->source.dimensions, id->shape);
}

void qn__state_identify(const qn_kernel *k, qn__text *out) {
    identity id;
    identify(k, &id);
    qn__text_add(out, "kernel %s\nshape %s\nvalues %s\ninputs %s\nseries %s\n", id.kernel, id.shape,
                 id.values, id.inputs, id.series);
}

qn_status qn__state_identity_check(const qn_kernel *k, qn__state_reader *r, qn_error *err) {
    static const char *const words[] = {"kernel", "shape", "values", "inputs", "series"};
    static const char *const names[] = {"kernel", "shape", "scalars or seed", "inputs", "series"};
    identity id;
    identify(k, &id);
    const char *const own[] = {id.kernel, id.shape, id.values, id.inputs, id.series};
    for (int i = 0; i < 5; i++) {
        const char *theirs = qn__state_take(r, words[i]);
        if (!theirs)
            return qn__state_damaged(r, "its first lines are not those of a checkpoint", err);
        if (strcmp(theirs, own[i]) == 0)
            continue;
        qn__fail(err, QN_MISMATCH, "the checkpoint is of a run with %s %s",
                 i < 2 ? "another" : "other", names[i]);
        qn__at(err, "%s", r->path);
        return qn__remedy(err, QN_MISMATCH,
                          "give those of that run, or another file for `kernel.checkpoint`");
    }
    return QN_OK;
}
