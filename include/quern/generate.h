/* Generation: a model that tells which token comes next continues prompts (docs/generate.md).
 *
 * The tokens of an answer depend on the model, the prompt, the options and the answer's number
 * alone: not on other prompts, their order, how many are computed at once, the threads, the devices
 * or the ranks (docs/exactness.md 25.70).
 *
 * Among ranks (compute->cluster) qn_generator_open, qn_generator_reopen and qn_generator_step are
 * collective, with the same model, prompts and options. Each answer is computed by one rank, and
 * all ranks get all answers. They then fail as all collective calls do, with QN_CLUSTER, too. */
#ifndef QUERN_GENERATE_H
#define QUERN_GENERATE_H

#include <quern/device.h>
#include <quern/model.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How answers are made; begin with qn_generate_options_init. Texts are read during the call of
 * qn_generator_open only. */
typedef struct qn_generate_options {
    size_t size;       /* sizeof(qn_generate_options) */
    uint32_t tokens;   /* the most tokens of an answer, from 1 to 2^24 */
    uint32_t answers;  /* to each prompt, from 1 to 65536 */
    float temperature; /* 0: always the most probable token; else from 0.01 to 100 */
    uint32_t top_k;    /* only the so many most probable tokens are drawn; 0: all */
    float top_p;       /* only the most probable tokens whose probabilities sum up to it; above 0,
                          to 1, which is all */
    float repetition;  /* tokens of the text so far become less probable by this factor of their
                          logit; from 0.01 to 100, 1: they do not */
    uint64_t seed;     /* of all draws */
    const char *const *stop; /* texts that end an answer, without them */
    uint32_t stops;          /* at most 16; each from 1 to 256 bytes */
    /* NULL: the prompt is a text that goes on. "chatml" or "llama3": it is what a user says, and is
     * written with the marks of such a conversation before it is encoded. */
    const char *chat;
    const char *system;    /* with `chat`: what the system says first; NULL: nothing */
    int log_probabilities; /* 1: the answers have them */
    uint32_t batch;        /* sequences that are computed at once, from 1 to 4096; 0: up to 32 */
    const qn_compute *compute; /* NULL: the defaults. Several devices share the prompts, and so do
                                  ranks */
    /* 1: each prompt is an object of JSON, with "prompt", or with `chat` with "messages", whose
     * elements have "role" and "content". It may have "tokens" and "seed" for itself, and further
     * keys. */
    int lines;
} qn_generate_options;

/* Sets all members to their defaults, and `size`. Does nothing for NULL. */
QN_API void qn_generate_options_init(qn_generate_options *options);

/* How an answer ended. */
typedef enum qn_answer_end {
    QN_ANSWER_GOES_ON, /* it did not */
    QN_ANSWER_LENGTH,  /* it has the most tokens */
    QN_ANSWER_END,     /* with a token that ends a text, which is its last */
    QN_ANSWER_STOP     /* with a text of `stop` */
} qn_answer_end;

/* An answer so far. What it points to is valid until the next call for the generator that steps or
 * closes it. */
typedef struct qn_answer {
    size_t size;             /* sizeof(qn_answer), set by the caller */
    uint32_t prompt, number; /* the prompt's, and the answer's among those to it, from 0 */
    /* The text, of so many bytes; a complete one has a NUL after them. While the answer goes on it
     * lacks a character that is not complete, and what may be the begin of a text of `stop`: so it
     * only grows. With a model of numbers of tokens these numbers, with spaces between. */
    const char *text;
    size_t bytes;
    const uint32_t *tokens; /* those of the answer */
    uint32_t count;
    const float *log_probabilities; /* of each token, before all options; NULL: not asked for */
    const uint32_t *prompt_tokens;  /* those that the network reads first */
    uint32_t prompt_count;
    qn_answer_end end;
    int slid; /* 1: the text is longer than the model's context: its beginning was forgotten */
} qn_answer;

typedef struct qn_generator qn_generator;

/* Begins answers to `count` prompts, NUL-terminated texts in UTF-8. With a model of numbers of
 * tokens (--tokens ids) a prompt has numbers with spaces between. An empty prompt is one where the
 * tokenizer has a token for the end of a text. On success *out is owned by the caller, for
 * qn_generator_close; after a failure it is NULL. `model` must outlive it.
 *
 * Fails with QN_USAGE (options, a model that does not tell the next token), QN_INPUT (a prompt that
 * is empty or has what the vocabulary lacks), QN_UNSUPPORTED (a layer that needs later tokens; a
 * device that is not here or lacks an operation), QN_DEVICE, QN_MEMORY. */
QN_API qn_status qn_generator_open(const qn_model *model, const char *const *prompts,
                                   uint32_t count, const qn_generate_options *options,
                                   qn_generator **out, qn_error *err);

/* Adds a token to each of up to `batch` answers that are not complete, in the order of their
 * prompts. Among ranks it completes the next answers, some of each rank. *more becomes 0 when all
 * are complete. After a failure (QN_NUMERIC: the network gives a number that is not finite;
 * QN_DEVICE: no device is left; QN_MEMORY) the generator can only be closed. A device that is lost
 * gives its prompts to the others; qn_device_note tells so. */
QN_API qn_status qn_generator_step(qn_generator *generator, int *more, qn_error *err);

/* The number of answers: of all prompts, those of a prompt one after the other. 0 for NULL. */
QN_API uint32_t qn_generator_answers(const qn_generator *generator);

/* Answer `index`, below qn_generator_answers. Fails with QN_USAGE. */
QN_API qn_status qn_generator_answer(const qn_generator *generator, uint32_t index, qn_answer *out,
                                     qn_error *err);

/* Writes all answers, of which each must be complete, with the prompts, the options and the digest
 * of the model as JSON (docs/generate.md), as qn_model_save writes. Fails with QN_USAGE, QN_IO or
 * QN_MEMORY. */
QN_API qn_status qn_generator_write(const qn_generator *generator, const char *path, qn_error *err);

/* Begins the answers of such a file again, with its prompts and options; `compute` may be NULL. On
 * success *out is owned by the caller, for qn_generator_close; after a failure it is NULL. Fails as
 * qn_generator_open does, or with QN_IO, QN_FORMAT (not such a file) or QN_MISMATCH (they are those
 * of another model). */
QN_API qn_status qn_generator_reopen(const qn_model *model, const char *path,
                                     const qn_compute *compute, qn_generator **out, qn_error *err);

/* Compares complete answers with those of a file, byte by byte. Fails with QN_DIFFERS, naming the
 * first answer that differs, QN_IO or QN_MEMORY. */
QN_API qn_status qn_generator_compare(const qn_generator *generator, const char *path,
                                      qn_error *err);

/* Accepts NULL. */
QN_API void qn_generator_close(qn_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
