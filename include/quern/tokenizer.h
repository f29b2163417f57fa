/* Tokenizers: from the bytes of a text to the numbers of its tokens, and back (docs/tokens.md).
 *
 * A tokenizer never changes after it was made, and any number of threads may use it. What it gives
 * does not depend on the number of threads. docs/exactness.md 25.50 defines each kind. */
#ifndef QUERN_TOKENIZER_H
#define QUERN_TOKENIZER_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_tokenizer qn_tokenizer;
typedef struct qn_tokens qn_tokens; /* the numbers of a text's tokens */

/* Makes a tokenizer from a text:
 *
 *   "bytes"     a token is a byte; 256 tokens
 *   "chars"     a token is a character; those of the corpus, and one for all others
 *   "words"     a token is a word or another character; those of the corpus, and one for all others
 *   "words:N"   the same with the N - 1 most frequent of them; N from 2 to 16777216
 *   "bpe:FILE"  the tokenizer.json of the package tokenizers with BPE
 *   "bpe:N"     such a tokenizer that is learned from the corpus, with N tokens at most, from 257
 *   "wordpiece:FILE"  a tokenizer.json with WordPiece, as BERT has it
 *   "unigram:FILE"  a tokenizer.json with Unigram, as T5 has it
 *   "file:FILE" any tokenizer that qn_tokenizer_save wrote, or a tokenizer.json
 *
 * `paths` are the `count` files of the corpus, plain or compressed, in this order; "-" is the
 * standard input. What does not learn does not read them, and `paths` may then be NULL.
 * `threads`: 0: one for each core; at most 4096.
 *
 * On success *out is owned by the caller, for qn_tokenizer_free; after a failure it is NULL. Fails
 * with QN_USAGE (the text, `threads`), QN_INPUT (a kind that learns, without a corpus; a file that
 * is missing or empty; more than 16777216 tokens), QN_IO, QN_MEMORY, or for a FILE also with
 * QN_FORMAT (it is another kind of file) or QN_UNSUPPORTED (docs/tokens.md says what is supported).
 */
QN_API qn_status qn_tokenizer_open(const char *which, const char *const *paths, uint32_t count,
                                   uint32_t threads, qn_tokenizer **out, qn_error *err);

/* The same with a corpus of `size` bytes in memory; `corpus` may be NULL if `size` is 0. */
QN_API qn_status qn_tokenizer_learn(const char *which, const void *corpus, size_t size,
                                    uint32_t threads, qn_tokenizer **out, qn_error *err);

/* Makes a tokenizer from the text that qn_tokenizer_json gave; its `size` bytes may come from
 * anywhere. On success *out is owned by the caller, for qn_tokenizer_free; after a failure it is
 * NULL. It may also be the text of a tokenizer.json. Fails with QN_FORMAT, QN_UNSUPPORTED or
 * QN_MEMORY. */
QN_API qn_status qn_tokenizer_from_json(const char *json, size_t size, qn_tokenizer **out,
                                        qn_error *err);

/* Accepts NULL. */
QN_API void qn_tokenizer_free(qn_tokenizer *tokenizer);

/* The kind: "bytes", "chars" and so on; "" for NULL. Static. */
QN_API const char *qn_tokenizer_kind(const qn_tokenizer *tokenizer);

/* How many tokens its vocabulary has: numbers are below it. 0 for NULL. */
QN_API uint32_t qn_tokenizer_size(const qn_tokenizer *tokenizer);

/* The number of the token that stands for all that the vocabulary lacks; qn_tokenizer_size where
 * the tokenizer has none. Then it has a token for every byte, or drops the others ("bpe:FILE"). */
QN_API uint32_t qn_tokenizer_unknown(const qn_tokenizer *tokenizer);

/* The tokens that a whole text has around it by the post-processor of a tokenizer.json, such as
 * [CLS] and [SEP]: *before of them stand before the text, the next *after after it. Both may be
 * NULL, and are 0 for other tokenizers. The items of a table have them; qn_tokenizer_encode adds
 * none. NULL for NULL. Valid until qn_tokenizer_free. */
QN_API const uint32_t *qn_tokenizer_frame(const qn_tokenizer *tokenizer, uint32_t *before,
                                          uint32_t *after);

/* The tokenizer as JSON, from which it can be made again: equal tokenizers have equal texts. *size,
 * which may be NULL, is its length. "" for NULL. Valid until qn_tokenizer_free. */
QN_API const char *qn_tokenizer_json(const qn_tokenizer *tokenizer, size_t *size);

/* The SHA-256 of that text as 64 hexadecimal digits; "" for NULL. Valid until qn_tokenizer_free. */
QN_API const char *qn_tokenizer_digest(const qn_tokenizer *tokenizer);

/* Encodes `size` bytes at `text`, of which any may be there. `text` may be NULL if `size` is 0.
 * `threads`: as above. On success *out is owned by the caller, for qn_tokens_free; after a failure
 * it is NULL. Fails with QN_USAGE (`threads`), QN_INPUT (an expression of a tokenizer.json that
 * cannot cut the text) or QN_MEMORY. */
QN_API qn_status qn_tokenizer_encode(const qn_tokenizer *tokenizer, const void *text, size_t size,
                                     uint32_t threads, qn_tokens **out, qn_error *err);

/* How many there are, and the numbers; 0 and NULL for NULL. Valid until qn_tokens_free. */
QN_API uint64_t qn_tokens_count(const qn_tokens *tokens);
QN_API const uint32_t *qn_tokens_numbers(const qn_tokens *tokens);
/* Accepts NULL. */
QN_API void qn_tokens_free(qn_tokens *tokens);

/* The bytes of `count` tokens. At most `capacity` of them are written to `text`, which may be NULL
 * if `capacity` is 0; *size is the length of the whole. So a first call with 0 tells how much
 * memory is needed. Fails with QN_INPUT where a number is not below qn_tokenizer_size; *size is
 * then 0. */
QN_API qn_status qn_tokenizer_decode(const qn_tokenizer *tokenizer, const uint32_t *tokens,
                                     uint64_t count, void *text, size_t capacity, size_t *size,
                                     qn_error *err);

/* Writes the text of the tokenizer to a file, as qn_model_save writes. Fails with QN_IO or
 * QN_MEMORY; an old file is then as before. */
QN_API qn_status qn_tokenizer_save(const qn_tokenizer *tokenizer, const char *path, qn_error *err);

/* Encodes the `count` files of a corpus (as qn_tokenizer_open has them), each by itself, and writes
 * the numbers one after the other to a file: an array of one dimension where `path` ends in .npy,
 * plain little-endian numbers where it ends in .bin. Between two files stands the token of "bpe"
 * for the end of a text, if it has one. Numbers have 16 bits where the vocabulary has at most 65535
 * tokens, else 32, which .bin cannot have. *tokens is how many there are. Fails as
 * qn_tokenizer_open and qn_tokenizer_save do, with QN_INPUT where the tokenizer cannot encode a
 * text, and with QN_USAGE for another ending, or for .bin and 32 bits. */
QN_API qn_status qn_tokenizer_write(const qn_tokenizer *tokenizer, const char *const *paths,
                                    uint32_t count, uint32_t threads, const char *path,
                                    uint64_t *tokens, qn_error *err);

/* The documents of a corpus: whole files, or the texts of a column of a table. */
typedef struct qn_corpus qn_corpus;

/* Opens the `count` files, folders or patterns at `paths`, in the order in which qn_data_open_files
 * reads them. `text`: the column of a table whose texts are the documents, named as in
 * qn_data_options, of any format with columns; rows without a text are left out. NULL: each
 * file is a document. `threads`: as above. On success *out is owned by the caller, for
 * qn_corpus_close; after a failure it is NULL. Fails as qn_data_open_files does. */
QN_API qn_status qn_corpus_open(const char *const *paths, size_t count, const char *text,
                                uint32_t threads, qn_corpus **out, qn_error *err);
/* Accepts NULL. */
QN_API void qn_corpus_close(qn_corpus *corpus);
/* How many there are; 0 for NULL. */
QN_API uint64_t qn_corpus_documents(const qn_corpus *corpus);

/* qn_tokenizer_open and qn_tokenizer_write with such a corpus. Between two documents stands the
 * token of "bpe" for the end of a text, if it has one. */
QN_API qn_status qn_tokenizer_from_corpus(const char *which, const qn_corpus *corpus,
                                          uint32_t threads, qn_tokenizer **out, qn_error *err);
QN_API qn_status qn_tokenizer_write_corpus(const qn_tokenizer *tokenizer, const qn_corpus *corpus,
                                           uint32_t threads, const char *path, uint64_t *tokens,
                                           qn_error *err);

/* Decodes a file of tokens, NPY of whole numbers or plain as above, and writes the text to a file.
 * *bytes is its length. Fails with QN_INPUT (the file has other numbers), QN_IO or QN_MEMORY. */
QN_API qn_status qn_tokenizer_write_text(const qn_tokenizer *tokenizer, const char *tokens_path,
                                         const char *path, uint64_t *bytes, qn_error *err);

#ifdef __cplusplus
}
#endif

#endif
