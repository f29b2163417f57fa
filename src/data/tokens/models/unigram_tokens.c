/* Unigram of a tokenizer.json, as SentencePiece has it (docs/exactness.md 25.59). */

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/models/marks.h"
#include "data/tokens/models/prefix_tree.h"
#include "data/tokens/models/token_score.h"
#include "data/tokens/models/word_encoder.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By how much an unknown character is worse than the worst token. */
#define UNKNOWN_PENALTY 10.0

typedef struct unigram {
    qn__vocabulary vocabulary; /* also of the added tokens */
    qn__text_path path;
    double *score; /* of the model's tokens, which come first */
    char **digits; /* their scores as they were written */
    uint32_t own;  /* how many */
    double worst;
    uint32_t unknown; /* QN__WORD_NONE: a text with an unknown character is refused */
    int fallback;     /* a character that is not in the vocabulary becomes its bytes */
    int drops_space;  /* decoding leaves out the one that was put before the text */
    qn__prefix_tree tree;
    char *bytes;   /* of all tokens, one after the other */
    size_t *begin; /* of each token in `bytes`, and the end of the last */
} unigram;

/* The best way to a place of a word. */
typedef struct step {
    double score;
    uint32_t token;
    uint32_t begin; /* where its last token begins; NOWHERE: there is no way */
} step;

#define NOWHERE UINT32_MAX

/* What one thread needs. */
typedef struct worker {
    qn__path_encoder path; /* first */
    const unigram *unigram;
    step *step; /* for free() */
    size_t steps;
    qn__token_ids back; /* tokens from the end of a word */
} worker;

static void release(void *state) {
    unigram *u = state;
    if (!u)
        return;
    qn__vocabulary_release(&u->vocabulary);
    qn__text_path_release(&u->path);
    qn__prefix_tree_release(&u->tree);
    for (uint32_t k = 0; u->digits && k < u->own; k++)
        qn__free(u->digits[k]);
    qn__free(u->digits);
    qn__free(u->score);
    qn__free(u->bytes);
    qn__free(u->begin);
    qn__free(u);
}

/* ---- reading ---- */

static qn_status read_entry(unigram *u, const qn__json_node *entry, uint32_t k, qn_error *err) {
    const char *text = qn__json_string(qn__json_at(entry, 0));
    const char *digits = qn__json_digits(qn__json_at(entry, 1));
    double *score = &u->score[k];
    *score = digits ? qn__token_score(digits) : (double)INFINITY;
    if (qn__json_count(entry) != 2 || !text || !(fabs(*score) <= DBL_MAX))
        return qn__fail(err, QN_FORMAT, "token %u of \"model.vocab\" is not a text and a number",
                        (unsigned)k);
    u->worst = *score < u->worst ? *score : u->worst;
    u->digits[k] = qn__copy_text(digits, err);
    if (!u->digits[k])
        return QN_MEMORY;
    qn_status status = qn__vocabulary_add_again(&u->vocabulary, text, strlen(text), k, err);
    if (status == QN_OK && *text)
        status = qn__prefix_tree_add(&u->tree, (const uint8_t *)text, strlen(text), k, err);
    return status;
}

static qn_status read_vocabulary(unigram *u, const qn__json_node *root, const qn__json_node *list,
                                 qn_error *err) {
    const size_t count = qn__json_count(list);
    if (!qn__json_is_array(list) || !count || count > QN__TOKENS_MOST)
        return qn__fail(err, QN_FORMAT, "\"model.vocab\" is not a list of tokens");
    u->own = (uint32_t)count;
    u->worst = INFINITY;
    u->score = qn__alloc(count, sizeof *u->score, err);
    u->digits = u->score ? qn__alloc(count, sizeof *u->digits, err) : NULL;
    qn_status status = u->digits ? QN_OK : QN_MEMORY;
    for (uint32_t k = 0; status == QN_OK && k < count; k++)
        status = read_entry(u, qn__json_at(list, k), k, err);
    if (status == QN_OK)
        status = qn__text_path_read(&u->path, root, &u->vocabulary, err);
    return status == QN_OK ? qn__vocabulary_end(&u->vocabulary, err) : status;
}

static qn_status read_unknown(unigram *u, const qn__json_node *node, qn_error *err) {
    uint64_t number;
    u->unknown = QN__WORD_NONE;
    if (!node || qn__json_is_null(node))
        return QN_OK;
    if (!qn__json_u64(node, &number) || number >= u->own)
        return qn__fail(err, QN_FORMAT, "\"model.unk_id\" is not in the vocabulary");
    u->unknown = (uint32_t)number;
    return QN_OK;
}

/* A token that only `added_tokens` has stands for its own text. */
static qn_status make_bytes(unigram *u, qn_error *err) {
    size_t all = 1, size;
    for (uint32_t k = 0; k < u->vocabulary.size; k++) {
        (void)qn__vocabulary_text(&u->vocabulary, k, &size);
        all += size;
    }
    u->bytes = qn__alloc(all, 1, err);
    u->begin = u->bytes ? qn__alloc((uint64_t)u->vocabulary.size + 1, sizeof *u->begin, err) : NULL;
    if (!u->begin)
        return QN_MEMORY;
    for (uint32_t k = 0; k < u->vocabulary.size; k++) {
        uint8_t *bytes = (uint8_t *)u->bytes + u->begin[k];
        const char *text = qn__vocabulary_text(&u->vocabulary, k, &size);
        if (k < u->own)
            size = qn__marked_bytes(&u->path, u->fallback, text, size, bytes);
        else
            memcpy(bytes, text, size);
        u->begin[k + 1] = u->begin[k] + size;
    }
    return QN_OK;
}

static qn_status read(const qn__json_node *root, void **state, qn_error *err) {
    unigram *u = *state = qn__alloc(1, sizeof *u, err);
    const qn__json_node *model = qn__json_get(root, "model");
    qn_status status = u ? read_vocabulary(u, root, qn__json_get(model, "vocab"), err) : QN_MEMORY;
    if (status == QN_OK)
        status = read_unknown(u, qn__json_get(model, "unk_id"), err);
    if (status == QN_OK && u->path.byte_level)
        return qn__fail(err, QN_UNSUPPORTED,
                        "the pre-tokeniser ByteLevel is not supported with Unigram");
    if (status == QN_OK) {
        u->fallback = qn__json_is_true(qn__json_get(model, "byte_fallback"));
        (void)qn__text_path_mark(&u->path, &u->drops_space);
        status = make_bytes(u, err);
    }
    return status;
}

/* ---- writing ---- */

static void write_token(const unigram *u, uint32_t k, qn__text *json) {
    size_t size;
    const char *text = qn__vocabulary_text(&u->vocabulary, k, &size);
    qn__text_add(json, "%s[", k ? ", " : "");
    qn__token_text_json(json, text, size);
    qn__text_add(json, ", %s]", u->digits[k]);
}

static void write(const void *state, const qn__token_frame *frame, qn__text *json) {
    const unigram *u = state;
    qn__text_path_write(&u->path, frame, json);
    qn__text_add(json, ", \"decoder\": ");
    qn__marked_decoder(&u->path, json);
    qn__text_add(json, ", \"model\": {\"type\": \"Unigram\", \"unk_id\": ");
    if (u->unknown == QN__WORD_NONE)
        qn__text_add(json, "null");
    else
        qn__text_add(json, "%u", (unsigned)u->unknown);
    qn__text_add(json, ", \"vocab\": [");
    for (uint32_t k = 0; k < u->own; k++)
        write_token(u, k, json);
    qn__text_add(json, "], \"byte_fallback\": %s}}", qn__truth_json(u->fallback));
}

/* ---- encoding ---- */

static void try(step *to, double score, uint32_t token, size_t begin) {
    if (to->begin == NOWHERE || score > to->score)
        *to = (step){score, token, (uint32_t)begin};
}

/* The tokens that begin at `at`, short ones first; the unknown one where the character there is
 * none of them. */
static qn_status try_all(worker *w, const uint8_t *word, size_t size, size_t at, size_t length,
                         qn_error *err) {
    const unigram *u = w->unigram;
    const double till_here = w->step[at].score;
    uint32_t node = 0;
    int alone = 0;
    for (size_t end = at; end < size;) {
        uint32_t token;
        if (!qn__prefix_tree_next(&u->tree, &node, word[end++], &token))
            break;
        if (token == QN__WORD_NONE)
            continue;
        try(&w->step[end], u->score[token] + till_here, token, at);
        alone |= end - at == length;
    }
    if (alone)
        return QN_OK;
    if (u->unknown == QN__WORD_NONE) {
        qn__fail(err, QN_INPUT, "the text has a character that the tokenizer does not have");
        return qn__remedy(err, QN_INPUT, "use a tokenizer with a token for unknown ones");
    }
    try(&w->step[at + length], u->worst - UNKNOWN_PENALTY + till_here, u->unknown, at);
    return QN_OK;
}

static qn_status reserve(worker *w, size_t size, qn_error *err) {
    if (size >= NOWHERE)
        return qn__fail(err, QN_INPUT, "a word of the text has 4 GiB or more");
    if (size < w->steps)
        return QN_OK;
    step *longer = realloc(w->step, (size + 1) * sizeof *longer);
    if (!longer)
        return qn__fail_memory(err, size + 1, sizeof *longer);
    w->step = longer;
    w->steps = size + 1;
    return QN_OK;
}

/* Characters that have no token: together they are one, or the bytes. */
static qn_status put_unknown(worker *w, const uint8_t *text, size_t size, qn_error *err) {
    const unigram *u = w->unigram;
    char name[8];
    uint32_t token = qn__vocabulary_find(&u->vocabulary, (const char *)text, size);
    int bytes = u->fallback && (token == QN__WORD_NONE || token >= u->own);
    qn__token_ids *back = &w->back;
    const size_t before = back->count;
    const qn_status status = qn__token_ids_reserve(back, size, err);
    for (size_t k = size; status == QN_OK && bytes && k-- > 0;) {
        const uint32_t byte =
            qn__vocabulary_find(&u->vocabulary, name, qn__byte_name(text[k], name));
        bytes = byte != QN__WORD_NONE && byte < u->own;
        if (bytes)
            qn__token_ids_add(back, byte);
    }
    if (status != QN_OK || bytes)
        return status;
    back->count = before;
    qn__token_ids_add(back, token == QN__WORD_NONE || token >= u->own ? u->unknown : token);
    return QN_OK;
}

/* The tokens of the best way, the last one first. */
static qn_status go_back(worker *w, const uint8_t *word, size_t size, qn_error *err) {
    qn_status status = QN_OK;
    w->back.count = 0;
    for (size_t end = size; status == QN_OK && end > 0;) {
        size_t begin = w->step[end].begin;
        if (w->step[end].token == w->unigram->unknown) {
            while (begin > 0 && w->step[begin].token == w->unigram->unknown)
                begin = w->step[begin].begin;
            status = put_unknown(w, word + begin, end - begin, err);
        } else {
            status = qn__token_ids_reserve(&w->back, 1, err);
            if (status == QN_OK)
                qn__token_ids_add(&w->back, w->step[end].token);
        }
        end = begin;
    }
    return status;
}

static qn_status encode_word(void *user, const uint8_t *word, size_t size, qn_error *err) {
    worker *w = user;
    qn__token_ids *ids = w->path.encoder.ids;
    qn_status status = reserve(w, size, err);
    for (size_t k = 0; status == QN_OK && k <= size; k++)
        w->step[k] = (step){0, 0, NOWHERE};
    for (size_t at = 0, length; status == QN_OK && at < size; at += length) {
        (void)qn__character(word + at, size - at, &length);
        status = try_all(w, word, size, at, length, err);
    }
    if (status == QN_OK)
        status = go_back(w, word, size, err);
    if (status == QN_OK)
        status = qn__token_ids_reserve(ids, w->back.count, err);
    for (size_t k = w->back.count; status == QN_OK && k-- > 0;)
        qn__token_ids_add(ids, w->back.number[k]);
    return status;
}

static void worker_free(const void *state, void *own) {
    (void)state;
    worker *w = own;
    if (!w)
        return;
    qn__path_encoder_release(&w->path);
    qn__token_ids_release(&w->back);
    free(w->step);
    qn__free(w);
}

static void *worker_make(const void *state, qn_error *err) {
    worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return NULL;
    w->unigram = state;
    if (qn__path_encoder_make(&w->path, &w->unigram->path, encode_word, w, err) != QN_OK) {
        worker_free(state, w);
        return NULL;
    }
    return w;
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    return qn__text_path_cut(&((const unigram *)state)->path, text, size, at);
}

static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    const unigram *u = state;
    for (uint64_t k = 0; k < count; k++) {
        const size_t *begin = &u->begin[tokens[k]];
        qn__marked_write(output, k, u->drops_space, u->bytes + begin[0], begin[1] - begin[0]);
    }
}

static uint32_t size_of(const void *state) { return ((const unigram *)state)->vocabulary.size; }

static uint32_t unknown(const void *state) {
    const unigram *u = state;
    return u->unknown == QN__WORD_NONE ? u->vocabulary.size : u->unknown;
}

const qn__token_kind qn__token_unigram_kind = {.name = "unigram",
                                               .ends = 1,
                                               .model = "Unigram",
                                               .takes = "a file",
                                               .is_file = 1,
                                               .read = read,
                                               .write = write,
                                               .release = release,
                                               .size = size_of,
                                               .unknown = unknown,
                                               .worker = worker_make,
                                               .worker_free = worker_free,
                                               .cut = cut,
                                               .encode = qn__path_encoder_encode,
                                               .decode = decode};
