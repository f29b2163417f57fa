#include "train/checkpoint_file.h"

#include "base/binary/float_bits.h"
#include "base/binary/little_endian.h"
#include "base/error.h"
#include "base/text/text.h"
#include "model/formats/safetensors.h"
#include "model/recipe/recipe.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "quern-checkpoint-1"
#define REMEDY                                                                                     \
    "the file is damaged: remove it, or start again in another folder (`train.checkpoint_dir`)"

static const char *const tensor_name[] = {"parameters", "slot0", "slot1", "slot2"},
                         best_name[] = "best";

/* Of lbfgs, pair by pair: the step, and the difference of the gradients. */
static const char *const history_name[2 * QN__LBFGS_PAIRS] = {
    "step0",   "change0", "step1",   "change1", "step2",   "change2", "step3",
    "change3", "step4",   "change4", "step5",   "change5", "step6",   "change6",
    "step7",   "change7", "step8",   "change8", "step9",   "change9"};

enum { MOST = 2 + QN__SLOTS + 2 * QN__LBFGS_PAIRS };

/* The metadata as text, in the order of the file. */
typedef struct state_text {
    char step[24], loss[24], correct[24], items[24], powers[24], payload[65];
    char best[48]; /* epoch and loss; "" where no epoch is the best one */
} state_text;

/* The loss as an unsigned number modulo 2^64; powers as the bits of their floats. */
static void write_numbers(const qn__snapshot *s, state_text *text) {
    snprintf(text->step, sizeof text->step, "%" PRIu64, s->step);
    snprintf(text->loss, sizeof text->loss, "%" PRIu64, (uint64_t)s->running.loss);
    snprintf(text->correct, sizeof text->correct, "%" PRIu64, s->running.correct);
    snprintf(text->items, sizeof text->items, "%" PRIu64, s->running.items);
    snprintf(text->powers, sizeof text->powers, "%08" PRIx32 "%08" PRIx32,
             qn__float_bits(s->powers.p1), qn__float_bits(s->powers.p2));
    if (s->judges)
        snprintf(text->best, sizeof text->best, "%" PRIu32 " %" PRIu64, s->best_epoch,
                 (uint64_t)s->best_loss);
}

/* The arrays of a checkpoint: their addresses, number and sizes. */
typedef struct arrays {
    const void *at[MOST];
    const char *name[MOST];
    uint32_t count;
    uint64_t parameters;
    int in_file; /* 1: bytes of a file; 0: numbers in memory */
} arrays;

/* The digest of the state: the texts, each with its NUL, then the arrays. It detects damage
 * anywhere but in the form of the file's header. */
static void digest_state(const char *recipe, const state_text *text, const arrays *a,
                         char hex[65]) {
    const char *const parts[] = {recipe,      text->step,   text->loss, text->correct,
                                 text->items, text->powers, text->best};
    const size_t count = sizeof parts / sizeof parts[0] - (text->best[0] == '\0');
    qn__sha256 hash;
    uint8_t digest[32];
    qn__sha256_begin(&hash);
    for (size_t i = 0; i < count; ++i)
        qn__sha256_add(&hash, parts[i], strlen(parts[i]) + 1);
    for (uint32_t i = 0; i < a->count; ++i)
        if (a->in_file)
            qn__sha256_add(&hash, a->at[i], (size_t)a->parameters * sizeof(float));
        else
            qn__sha256_add_little(&hash, a->at[i], (size_t)a->parameters);
    qn__sha256_end(&hash, digest);
    qn__hex(digest, hex);
}

static void add_array(arrays *a, const char *name, const void *at) {
    a->name[a->count] = name;
    a->at[a->count++] = at;
}

static arrays list_own(const qn__snapshot *s) {
    arrays own = {.parameters = s->parameters};
    add_array(&own, tensor_name[0], s->parameter);
    for (uint32_t i = 0; i < s->slots && i < sizeof s->slot / sizeof *s->slot; ++i)
        add_array(&own, tensor_name[1 + i], s->slot[i]);
    for (uint32_t i = 0; s->history && i < 2 * s->pairs; ++i)
        add_array(&own, history_name[i], s->history + i * s->parameters);
    if (s->best)
        add_array(&own, best_name, s->best);
    return own;
}

qn_status qn__checkpoint_write(const char *path, const qn__snapshot *s, qn__lock *lock,
                               qn_error *err) {
    if (qn__check_place(path, err) != QN_OK)
        return QN_IO;
    const arrays own = list_own(s);
    state_text text = {0};
    write_numbers(s, &text);
    digest_state(s->recipe_json, &text, &own, text.payload);
    const qn__tensor_note note[] = {
        {"format", FORMAT},      {"recipe", s->recipe_json}, {"step", text.step},
        {"loss", text.loss},     {"correct", text.correct},  {"items", text.items},
        {"powers", text.powers}, {"payload", text.payload},  {"best", text.best}};
    qn__tensor tensor[MOST];
    for (uint32_t i = 0; i < own.count; ++i)
        tensor[i] = (qn__tensor){.name = own.name[i], .rows = s->parameters, .data = own.at[i]};
    const qn__tensor_list list = {sizeof note / sizeof note[0] - (text.best[0] == '\0'),
                                  note,
                                  own.count,
                                  tensor,
                                  qn__lock_may,
                                  lock};
    return qn__tensors_write(path, &list, NULL, err);
}

/* ------------------------------------------------------------------------------------ reading */

static qn_status damaged(const char *path, const char *what, qn_error *err) {
    qn__fail(err, QN_FORMAT, "%s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_FORMAT, REMEDY);
}

/* A whole number in canonical form. */
static int read_count(const char *text, uint64_t *out) {
    return qn__parse_u64(text, strlen(text), out) && (text[0] != '0' || text[1] == '\0');
}

static int read_powers(const char *text, qn__adam_powers *out) {
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return 0;
    const uint64_t bits = strtoull(text, NULL, 16);
    out->p1 = qn__float_of_bits((uint32_t)(bits >> 32));
    out->p2 = qn__float_of_bits((uint32_t)bits);
    return out->p1 >= 0.0f && out->p1 <= 1.0f && out->p2 >= 0.0f && out->p2 <= 1.0f;
}

/* Copies a metadata text into a field of `size` bytes; a missing or longer one becomes empty, which
 * is not a valid number. */
static void take(const qn__tensors *file, const char *key, char *field, size_t size) {
    const char *value = qn__tensors_note(file, key);
    snprintf(field, size, "%s", value != NULL && strlen(value) < size ? value : "");
}

/* "3 17179869184": the epoch and the loss. */
static int read_best(const char *text, qn__snapshot *into) {
    const char *blank = strchr(text, ' ');
    uint64_t epoch, loss;
    if (!blank || !qn__parse_u64(text, (size_t)(blank - text), &epoch) ||
        !read_count(blank + 1, &loss) || epoch > UINT32_MAX)
        return 0;
    into->best_epoch = (uint32_t)epoch;
    into->best_loss = (int64_t)loss;
    return 1;
}

/* Reads the numbers into `into`, and the texts, which the digest covers, into `text`. */
static int read_numbers(const qn__tensors *file, qn__snapshot *into, state_text *text) {
    uint64_t loss;
    take(file, "step", text->step, sizeof text->step);
    take(file, "loss", text->loss, sizeof text->loss);
    take(file, "correct", text->correct, sizeof text->correct);
    take(file, "items", text->items, sizeof text->items);
    take(file, "powers", text->powers, sizeof text->powers);
    take(file, "payload", text->payload, sizeof text->payload);
    take(file, "best", text->best, sizeof text->best);
    if (!read_count(text->step, &into->step) || !read_count(text->loss, &loss) ||
        !read_count(text->correct, &into->running.correct) ||
        !read_count(text->items, &into->running.items) || !read_powers(text->powers, &into->powers))
        return 0;
    into->running.loss = (int64_t)loss;
    return text->best[0] == '\0' || read_best(text->best, into);
}

static qn_status check_recipe(const char *path, const char *theirs, const char *ours,
                              qn_error *err) {
    char text[400];
    const qn__continuing how = qn__recipe_continues(theirs, ours);
    if (qn__recipe_differences(theirs, ours, text, sizeof text) == 0 || how == QN__CONTINUES)
        return QN_OK;
    if (how == QN__CONTINUES_NOT_BY_RULE) {
        qn__fail(err, QN_MISMATCH,
                 "the checkpoint is of an older version of Quern (there and here): %s", text);
        qn__at(err, "%s", path);
        return qn__remedy(
            err, QN_MISMATCH,
            "finish that training with the older version, or start again with another "
            "folder (`train.checkpoint_dir`): a new last layer has other random "
            "numbers now");
    }
    const int cosine = how == QN__CONTINUES_NOT_BY_COSINE;
    qn__fail(err, QN_MISMATCH, "the checkpoint is of another run (there and here): %s%s", text,
             cosine ? "; with the schedule cosine, all learning rates depend on that number" : "");
    qn__at(err, "%s", path);
    if (cosine)
        return qn__remedy(
            err, QN_MISMATCH,
            "start again without `train.resume`, with another folder (`train.checkpoint_dir`): "
            "with "
            "`train.schedule` constant it can be given more epochs later; or train the finished "
            "model further, by `train.init_from` and another folder");
    return qn__remedy(
        err, QN_MISMATCH,
        "give the same options and data, or use another folder (`train.checkpoint_dir`); only "
        "`train.epochs` may differ, except with the schedule cosine and with stages");
}

static int find_array(const qn__tensors *file, const char *name, arrays *out) {
    const qn__tensor_view *view = qn__tensors_find(file, name);
    if (view == NULL || view->columns != 0 || (out->count > 0 && view->rows != out->parameters))
        return 0;
    out->parameters = view->rows;
    add_array(out, name, view->bytes);
    return 1;
}

static int find_arrays(const qn__tensors *file, arrays *out) {
    const size_t count = qn__tensors_count(file);
    const int best = qn__tensors_find(file, best_name) != NULL;
    size_t plain = 1;
    out->in_file = 1;
    while (plain < 1 + QN__SLOTS && qn__tensors_find(file, tensor_name[plain]))
        ++plain;
    if (count < plain + (size_t)best || count > plain + 2 * QN__LBFGS_PAIRS + (size_t)best)
        return 0;
    for (size_t i = 0; i < plain; ++i)
        if (!find_array(file, tensor_name[i], out))
            return 0;
    for (size_t i = 0; plain + i + (size_t)best < count; ++i)
        if (!find_array(file, history_name[i], out))
            return 0;
    return !best || find_array(file, best_name, out);
}

/* Checks first that the file is undamaged, then that it belongs to this run: damage in the recipe
 * must lead to the previous checkpoint, not to advice about options. */
static qn_status check_whole(const qn__tensors *file, const char *path, uint64_t step,
                             qn__snapshot *read, arrays *found, qn_error *err) {
    const char *format = qn__tensors_note(file, "format");
    const char *recipe = qn__tensors_note(file, "recipe");
    state_text text;
    char payload[65];
    if (format == NULL || strcmp(format, FORMAT) != 0 || recipe == NULL)
        return damaged(path, "the file is not a checkpoint of this version of Quern", err);
    if (!read_numbers(file, read, &text) || read->step != step)
        return damaged(path, "the state of the run is not readable", err);
    if (!find_arrays(file, found))
        return damaged(path, "the tensors are not those of a checkpoint", err);
    digest_state(recipe, &text, found, payload);
    if (strcmp(payload, text.payload) != 0)
        return damaged(path, "the contents do not fit their digest", err);
    return QN_OK;
}

static qn_status read_state(const qn__tensors *file, const char *path, uint64_t step,
                            qn__snapshot *into, qn_error *err) {
    qn__snapshot read = *into; /* keeps the pointers and sizes */
    arrays found = {0};
    qn_status status = check_whole(file, path, step, &read, &found, err);
    if (status == QN_OK)
        status = check_recipe(path, qn__tensors_note(file, "recipe"), into->recipe_json, err);
    if (status != QN_OK)
        return status;
    const uint32_t plain = 1 + into->slots + (into->best != NULL);
    read.pairs = into->history && found.count > plain ? (found.count - plain) / 2 : 0;
    const arrays own = list_own(&read);
    int fits = found.count == own.count && found.parameters == own.parameters;
    for (uint32_t i = 0; fits && i < own.count; ++i)
        fits = strcmp(found.name[i], own.name[i]) == 0;
    if (!fits)
        return damaged(path, "the tensors do not fit the recipe", err);
    for (uint32_t i = 0; i < found.count; ++i) /* the list is of constants: writing needs no more */
        qn__copy_little((float *)(uintptr_t)own.at[i], found.at[i], (size_t)found.parameters);
    *into = read;
    return QN_OK;
}

qn_status qn__checkpoint_read(const char *path, uint64_t step, qn__snapshot *into, qn_error *err) {
    qn__tensors *file;
    qn_status status = qn__check_place(path, err);
    if (status == QN_OK)
        status = qn__tensors_read(path, &file, err);
    if (status != QN_OK)
        return status;
    status = read_state(file, path, step, into, err);
    qn__tensors_free(file);
    return status;
}
