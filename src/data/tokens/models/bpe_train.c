#include "data/tokens/models/bpe_train.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "data/tokens/models/bpe.h"
#include "data/tokens/models/byte_alphabet.h"
#include "data/tokens/models/pair_counts.h"
#include "data/tokens/models/text_path.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The tokens before the merges: the end of a text, and the bytes. */
enum { SPECIAL = 1, FIRST = SPECIAL + 256 };
static const char special[] = "<|endoftext|>";

/* ---- the words of the corpus, counted by several threads ---- */

#define PIECE ((size_t)4 << 20)

typedef struct counter {
    qn__path_words words;
    qn__word_table table;
} counter;

typedef struct counting {
    const qn__bpe *bpe;
    const qn__token_text *corpus;
    size_t files;
    atomic_size_t next; /* a number of a piece, in the order of the files */
    counter *counter;   /* one a thread */
    atomic_int failed;
    qn_status status;
    qn_error error;
} counting;

static qn_status count_word(void *user, const uint8_t *word, size_t size, qn_error *err) {
    counter *c = user;
    if (size > UINT32_MAX / 2)
        return qn__fail(err, QN_INPUT, "a word of the corpus has more than 2 GiB");
    return qn__word_add(&c->table, (const char *)word, size, 1, NULL, err);
}

static qn_status skip_added(void *user, uint32_t token, qn_error *err) {
    (void)user, (void)token, (void)err;
    return QN_OK;
}

/* Piece `number` of all files; 0: there is none. */
static int find_piece(const counting *all, size_t number, const uint8_t **text, size_t *size) {
    for (size_t k = 0; k < all->files; k++) {
        const qn__token_text *file = &all->corpus[k];
        const size_t pieces = (file->size + PIECE - 1) / PIECE;
        if (number >= pieces) {
            number -= pieces;
            continue;
        }
        const size_t from =
            number ? qn__text_path_cut(&all->bpe->path, file->bytes, file->size, number * PIECE)
                   : 0;
        const size_t to = number + 1 < pieces ? qn__text_path_cut(&all->bpe->path, file->bytes,
                                                                  file->size, (number + 1) * PIECE)
                                              : file->size;
        *text = file->bytes + from;
        *size = to - from;
        return 1;
    }
    return 0;
}

static void count_pieces(void *context, int thread) {
    counting *all = context;
    counter *c = &all->counter[thread];
    qn_error error = {0};
    const uint8_t *text;
    size_t size;
    qn__float_state_set();
    c->words.word = count_word;
    c->words.added = skip_added;
    c->words.user = c;
    qn_status status = qn__path_words_make(&c->words, &all->bpe->path, &error);
    while (status == QN_OK && !atomic_load(&all->failed) &&
           find_piece(all, atomic_fetch_add(&all->next, 1), &text, &size))
        status = qn__path_words_each(&c->words, text, size, 0, &error);
    if (status != QN_OK && !atomic_exchange(&all->failed, 1)) {
        all->status = status;
        all->error = error;
    }
}

/* Adds the counts of all threads to those of the first. */
static qn_status join_counts(counting *all, uint32_t threads, qn_error *err) {
    qn__word_table *sum = &all->counter[0].table;
    qn_status status = QN_OK;
    for (uint32_t k = 1; k < threads; k++) {
        const qn__word_table *own = &all->counter[k].table;
        for (uint32_t w = 0; status == QN_OK && w < own->count; w++)
            status = qn__word_add(sum, qn__word_bytes(own, &own->word[w]), own->word[w].size,
                                  own->word[w].count, NULL, err);
    }
    return status;
}

/* The different words of the corpus; their order does not matter to what is learned. */
static qn_status count_words(const qn__bpe *bpe, const qn__token_text *corpus, size_t files,
                             uint32_t threads, qn__word_table *words, qn_error *err) {
    counting all = {.bpe = bpe, .corpus = corpus, .files = files};
    qn__pool *pool = NULL;
    all.counter = qn__alloc(threads, sizeof *all.counter, err);
    qn_status status = all.counter ? qn__pool_create((int)threads, 0, &pool, err) : QN_MEMORY;
    if (status == QN_OK) {
        qn__pool_run(pool, count_pieces, &all);
        status = all.status;
        if (status != QN_OK && err)
            *err = all.error;
    }
    if (status == QN_OK)
        status = join_counts(&all, threads, err);
    qn__pool_destroy(pool);
    for (uint32_t k = 0; all.counter && k < threads; k++) {
        qn__path_words_release(&all.counter[k].words);
        if (k == 0 && status == QN_OK)
            *words = all.counter[k].table;
        else
            qn__word_table_release(&all.counter[k].table);
    }
    qn__free(all.counter);
    return status;
}

/* ---- the merges ---- */

/* A word as tokens. */
typedef struct spelled {
    size_t begin;
    uint32_t count;
    int64_t times;
} spelled;

typedef struct training {
    uint32_t wanted;       /* tokens */
    qn__word_table tokens; /* their bytes; the first one is that of `special` */
    qn__merge *merge;
    uint32_t merges;
    size_t merge_capacity;
    uint32_t *token; /* of all words */
    spelled *word;
    uint32_t words;
    qn__pair_counts pairs;
} training;

/* Bytes get their numbers in the order of the characters that stand for them. */
static qn_status first_tokens(training *t, uint32_t of_byte[256], qn_error *err) {
    qn_status status = qn__word_add(&t->tokens, special, strlen(special), 1, NULL, err);
    for (uint32_t letter = 0; status == QN_OK && letter < 0x200; letter++) {
        char text[4];
        uint8_t byte;
        const size_t size = qn__utf8_write(letter, text);
        if (qn__bytes_of_letters(text, size, &byte) != 1)
            continue;
        of_byte[byte] = t->tokens.count;
        status = qn__word_add(&t->tokens, (char *)&byte, 1, 1, NULL, err);
    }
    return status;
}

static qn_status spell(training *t, const qn__word_table *words, qn_error *err) {
    uint32_t of_byte[256];
    qn_status status = first_tokens(t, of_byte, err);
    t->token = qn__alloc(words->bytes_used, sizeof *t->token, err);
    t->word = t->token ? qn__alloc(words->count, sizeof *t->word, err) : NULL;
    if (status != QN_OK || !t->word)
        return QN_MEMORY;
    t->words = words->count;
    for (uint32_t w = 0; status == QN_OK && w < words->count; w++) {
        const qn__word *from = &words->word[w];
        const uint8_t *bytes = (const uint8_t *)qn__word_bytes(words, from);
        t->word[w] = (spelled){from->at, from->size, (int64_t)from->count};
        for (uint32_t k = 0; status == QN_OK && k < from->size; k++) {
            t->token[from->at + k] = of_byte[bytes[k]];
            if (k)
                status = qn__pair_counts_add(&t->pairs, of_byte[bytes[k - 1]], of_byte[bytes[k]],
                                             (int64_t)from->count, w, err);
        }
    }
    return status == QN_OK ? qn__pair_counts_step(&t->pairs, UINT64_MAX, err) : status;
}

/* The neighbours of a place where a pair has become `made`: token[0] and token[1] are the pair. */
static qn_status change_neighbours(training *t, uint32_t w, const uint32_t *before,
                                   const uint32_t *token, const uint32_t *after, uint32_t made,
                                   qn_error *err) {
    const int64_t times = t->word[w].times;
    qn_status status = QN_OK;
    if (before) {
        status = qn__pair_counts_add(&t->pairs, *before, token[0], -times, w, err);
        if (status == QN_OK)
            status = qn__pair_counts_add(&t->pairs, *before, made, times, w, err);
    }
    if (after && status == QN_OK) {
        status = qn__pair_counts_add(&t->pairs, token[1], *after, -times, w, err);
        if (status == QN_OK)
            status = qn__pair_counts_add(&t->pairs, made, *after, times, w, err);
    }
    return status;
}

static qn_status merge_in_word(training *t, uint32_t w, const qn__merge *m, qn_error *err) {
    uint32_t *token = t->token + t->word[w].begin;
    const uint32_t count = t->word[w].count;
    uint32_t left = 0;
    qn_status status = QN_OK;
    for (uint32_t k = 0; status == QN_OK && k < count; left++) {
        if (k + 1 == count || token[k] != m->left || token[k + 1] != m->right) {
            token[left] = token[k++];
            continue;
        }
        status = change_neighbours(t, w, left ? &token[left - 1] : NULL, token + k,
                                   k + 2 < count ? &token[k + 2] : NULL, m->made, err);
        token[left] = m->made;
        k += 2;
    }
    t->word[w].count = left;
    return status;
}

/* The token of a pair: a new one, unless others have the same bytes. */
static qn_status token_of_pair(training *t, uint64_t pair, qn__merge *m, qn_error *err) {
    *m = (qn__merge){(uint32_t)(pair >> 32), (uint32_t)pair, 0};
    const qn__word left = t->tokens.word[m->left], right = t->tokens.word[m->right];
    char *both = qn__alloc((uint64_t)left.size + right.size, 1, err);
    if (!both)
        return QN_MEMORY;
    memcpy(both, qn__word_bytes(&t->tokens, &left), left.size);
    memcpy(both + left.size, qn__word_bytes(&t->tokens, &right), right.size);
    const qn_status status =
        qn__word_add(&t->tokens, both, (size_t)left.size + right.size, 1, &m->made, err);
    qn__free(both);
    return status;
}

static qn_status keep_merge(training *t, const qn__merge *m, qn_error *err) {
    if (t->merges == t->merge_capacity) {
        const size_t capacity = t->merge_capacity ? 2 * t->merge_capacity : 1024;
        qn__merge *merge = realloc(t->merge, capacity * sizeof *merge);
        if (!merge)
            return qn__fail_memory(err, capacity, sizeof *merge);
        t->merge = merge;
        t->merge_capacity = capacity;
    }
    t->merge[t->merges++] = *m;
    return QN_OK;
}

static qn_status learn_merges(training *t, qn_error *err) {
    qn_status status = QN_OK;
    uint64_t pair;
    uint32_t *word, words;
    while (status == QN_OK && t->tokens.count < t->wanted &&
           qn__pair_counts_next(&t->pairs, &pair, &word, &words)) {
        qn__merge m;
        status = token_of_pair(t, pair, &m, err);
        for (uint32_t k = 0; status == QN_OK && k < words; k++)
            status = merge_in_word(t, word[k], &m, err);
        free(word);
        if (status == QN_OK)
            status = keep_merge(t, &m, err);
        if (status == QN_OK)
            status = qn__pair_counts_step(&t->pairs, pair, err);
    }
    return status;
}

/* ---- the tokenizer ---- */

static void add_letters(const training *t, uint32_t token, qn__text *json) {
    const qn__word *w = &t->tokens.word[token];
    char *letters = qn__alloc(2 * (uint64_t)w->size + 1, 1, NULL);
    if (!letters) {
        json->failed = 1;
        return;
    }
    const size_t size =
        qn__byte_letters((const uint8_t *)qn__word_bytes(&t->tokens, w), w->size, letters);
    qn__token_text_json(json, letters, size);
    qn__free(letters);
}

/* A tokenizer.json, whose reader makes the rest. `t` NULL: without merges. */
static void write_json(const training *t, qn__text *json) {
    qn__text_add(json,
                 "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 0, \"content\": \"%s\", "
                 "\"special\": true}], \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                 "\"add_prefix_space\": false, \"use_regex\": true}, \"model\": {\"type\": "
                 "\"BPE\", \"vocab\": {\"%s\": 0",
                 special, special);
    for (uint32_t k = SPECIAL; t && k < t->tokens.count; k++) {
        qn__text_add(json, ", ");
        add_letters(t, k, json);
        qn__text_add(json, ": %u", (unsigned)k);
    }
    qn__text_add(json, "}, \"merges\": [");
    for (uint32_t k = 0; t && k < t->merges; k++) {
        qn__text_add(json, "%s[", k ? ", " : "");
        add_letters(t, t->merge[k].left, json);
        qn__text_add(json, ", ");
        add_letters(t, t->merge[k].right, json);
        qn__text_add(json, "]");
    }
    qn__text_add(json, "]}}");
}

static qn_status make_bpe(const training *t, void **bpe, qn_error *err) {
    qn__text text = {0};
    qn__json *document = NULL;
    write_json(t, &text);
    qn_status status = text.failed ? qn__fail_memory(err, text.capacity, 2)
                                   : qn__json_parse(text.data, text.size, &document, err);
    qn__text_release(&text);
    if (status == QN_OK)
        status = qn__bpe_read(qn__json_root(document), bpe, err);
    qn__json_free(document);
    return status;
}

static void release(training *t) {
    qn__word_table_release(&t->tokens);
    qn__pair_counts_release(&t->pairs);
    free(t->merge);
    qn__free(t->token);
    qn__free(t->word);
}

static qn_status read_wanted(const char *after, uint32_t *wanted, qn_error *err) {
    uint64_t number = 0;
    if (qn__parse_u64(after, strlen(after), &number) && number >= FIRST &&
        number <= QN__TOKENS_MOST) {
        *wanted = (uint32_t)number;
        return QN_OK;
    }
    qn__fail(err, QN_USAGE, "\"bpe:%s\": there may be %d to %d tokens", after, FIRST,
             QN__TOKENS_MOST);
    return qn__remedy(err, QN_USAGE, "write bpe:8000 to learn 8000 tokens");
}

qn_status qn__bpe_count(const char *after, const qn__token_text *corpus, size_t count,
                        uint32_t threads, qn__word_table *words, qn_error *err) {
    uint32_t wanted;
    void *cutter = NULL;
    qn_status status = read_wanted(after, &wanted, err);
    if (status == QN_OK)
        status = make_bpe(NULL, &cutter, err);
    if (status == QN_OK)
        status = count_words(cutter, corpus, count, threads, words, err);
    qn__bpe_release(cutter);
    return status;
}

qn_status qn__bpe_train(const char *after, qn__word_table *words, void **state, qn_error *err) {
    training t = {0};
    qn_status status = read_wanted(after, &t.wanted, err);
    if (status == QN_OK)
        status = spell(&t, words, err);
    qn__word_table_release(words);
    if (status == QN_OK)
        status = learn_merges(&t, err);
    if (status == QN_OK)
        status = make_bpe(&t, state, err);
    release(&t);
    return status;
}
