/* The inside of a qn_tokenizer. */
#ifndef QN_DATA_TOKENS_TOKENIZER_H
#define QN_DATA_TOKENS_TOKENIZER_H

#include "data/table/part_reading.h"
#include "data/tokens/models/token_kind.h"
#include <pthread.h>

/* Workers that a tokenizer keeps for its next text, at most. */
enum { QN__IDLE_WORKERS = 64 };

struct qn_tokenizer {
    qn_tokenizer *self; /* for what changes although the tokenizer is the same */
    const qn__token_kind *kind;
    void *state;
    qn__token_frame frame;
    char *json;
    size_t json_size;
    char digest[65];
    pthread_mutex_t lock; /* of the workers that no thread uses */
    void *idle[QN__IDLE_WORKERS];
    uint32_t idle_count;
};

struct qn_tokens {
    qn__token_ids ids;
};

/* Threads from an argument of a public function: 0 becomes the number of cores. QN_USAGE: there
 * are too many. */
qn_status qn__token_threads(uint32_t threads, uint32_t *out, qn_error *err);

/* Whether `which` names a tokenizer that is learned from a corpus. */
int qn__tokenizer_learns(const char *which);

/* As qn_tokenizer_open. `part`: the corpus has parts that other ranks read; NULL: this is all. */
qn_status qn__tokenizer_open(const char *which, const char *const *paths, uint32_t count,
                             uint32_t threads, const qn__part_reading *part, qn_tokenizer **out,
                             qn_error *err);
/* The same with a corpus of `count` texts in memory. */
qn_status qn__tokenizer_learn(const char *which, const qn__token_text *texts, size_t count,
                              uint32_t threads, const qn__part_reading *part, qn_tokenizer **out,
                              qn_error *err);

/* Appends the tokens of a text, on several threads. */
qn_status qn__token_encode(const qn_tokenizer *tokenizer, const uint8_t *text, size_t size,
                           uint32_t threads, qn__token_ids *ids, qn_error *err);

/* Documents that follow one another, and how far they are encoded. */
typedef struct qn__documents {
    const qn__token_text *text;
    size_t count;
    int follows;       /* 1: a document came before the first one */
    qn__token_ids end; /* what stands between two: one token or none */
    size_t at, byte;   /* the next byte, of text `at`; all are encoded where that is `count` */
} qn__documents;

/* Bytes of text to be encoded at once: what they take meanwhile, at most three numbers a byte, is
 * less than half of the available memory, and threads have enough to share. */
size_t qn__token_block(void);

/* Appends the tokens of the next bytes of the documents, about `most` of them. */
qn_status qn__token_encode_some(const qn_tokenizer *tokenizer, qn__documents *documents,
                                size_t most, uint32_t threads, qn__token_ids *ids, qn_error *err);

/* Appends the token that stands between two documents, such as files: 25.44. Without one nothing
 * changes. */
qn_status qn__token_end_of_text(const qn_tokenizer *tokenizer, qn__token_ids *ids, qn_error *err);

#endif
