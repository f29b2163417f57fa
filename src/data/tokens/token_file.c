/* Files of tokens: NPY, or plain little-endian numbers. */
#include "data/tokens/tokenizer.h"

#include "base/argument.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/numpy/npy.h"
#include "data/tokens/corpus_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NPY_HEADER = 128 };

/* The largest number of 16 bits is not a token: 25.40. */
static uint32_t width_of(const qn_tokenizer *t) {
    return qn_tokenizer_size(t) <= UINT16_MAX ? 2 : 4;
}

static int ends_with(const char *path, const char *ending) {
    const size_t size = strlen(path), own = strlen(ending);
    return size > own && strcmp(path + size - own, ending) == 0;
}

/* ---- writing ---- */

typedef struct output {
    qn__writer *writer;
    uint32_t width;
    int is_npy;
    int is_kept;   /* of NPY, whose header says how many there are: numbers wait for it */
    uint8_t *kept; /* these, for free() */
    size_t kept_size, kept_capacity;
    uint64_t count;
} output;

/* Numbers as little-endian bytes, in their own place. */
static void narrow(uint32_t *number, size_t count, uint32_t width) {
    uint8_t *to = (uint8_t *)number;
    for (size_t k = 0; k < count; k++) {
        const uint32_t value = number[k];
        for (uint32_t b = 0; b < width; b++)
            *to++ = (uint8_t)(value >> 8 * b);
    }
}

static qn_status keep(output *o, const void *bytes, size_t size, qn_error *err) {
    if (size > o->kept_capacity - o->kept_size) {
        const size_t capacity = o->kept_capacity + o->kept_capacity / 2 + size;
        uint8_t *kept = realloc(o->kept, capacity);
        if (!kept)
            return qn__fail_memory(err, capacity, 1);
        o->kept = kept;
        o->kept_capacity = capacity;
    }
    memcpy(o->kept + o->kept_size, bytes, size);
    o->kept_size += size;
    return QN_OK;
}

static qn_status put(output *o, qn__token_ids *ids, qn_error *err) {
    const size_t size = ids->count * o->width;
    if (!size)
        return QN_OK;
    o->count += ids->count;
    narrow(ids->number, ids->count, o->width);
    ids->count = 0;
    return o->is_kept ? keep(o, ids->number, size, err)
                      : qn__writer_add(o->writer, ids->number, size, err);
}

/* The header of NPY: its length is a multiple of 64. */
static void make_header(const output *o, char header[NPY_HEADER]) {
    memset(header, ' ', NPY_HEADER);
    memcpy(header, "\x93NUMPY\1\0", 8);
    header[8] = (char)(NPY_HEADER - 10);
    header[9] = 0;
    const int size = snprintf(header + 10, NPY_HEADER - 10,
                              "{'descr': '<u%u', 'fortran_order': False, 'shape': (%llu,), }",
                              (unsigned)o->width, (unsigned long long)o->count);
    header[10 + size] = ' ';
    header[NPY_HEADER - 1] = '\n';
}

/* Space for a header that is known at the end; of a pipe it is the beginning. */
static qn_status begin_npy(output *o, qn_error *err) {
    char header[NPY_HEADER];
    o->is_kept = o->is_npy && !qn__writer_replaces(o->writer);
    make_header(o, header);
    return o->is_npy && !o->is_kept ? qn__writer_add(o->writer, header, sizeof header, err) : QN_OK;
}

static qn_status end_npy(output *o, qn_error *err) {
    char header[NPY_HEADER];
    if (!o->is_npy)
        return QN_OK;
    make_header(o, header);
    if (!o->is_kept)
        return qn__writer_replace(o->writer, header, sizeof header, err);
    qn_status status = qn__writer_add(o->writer, header, sizeof header, err);
    if (status == QN_OK && o->kept_size)
        status = qn__writer_add(o->writer, o->kept, o->kept_size, err);
    return status;
}

static qn_status put_texts(const qn_tokenizer *t, const qn__corpus *corpus, uint32_t threads,
                           output *o, qn_error *err) {
    qn__documents d = {.text = corpus->text, .count = corpus->count};
    qn__token_ids ids = {0};
    const size_t block = qn__token_block();
    qn_status status = qn__token_end_of_text(t, &d.end, err);
    while (status == QN_OK && d.at < d.count) {
        status = qn__token_encode_some(t, &d, block, threads, &ids, err);
        if (status == QN_OK)
            status = put(o, &ids, err);
    }
    qn__token_ids_release(&ids);
    qn__token_ids_release(&d.end);
    return status;
}

static qn_status write_corpus(const qn_tokenizer *t, const qn__corpus *corpus, uint32_t threads,
                              const char *path, uint64_t *tokens, qn_error *err) {
    output o = {.width = width_of(t), .is_npy = ends_with(path, ".npy")};
    qn_status status = qn__writer_create(path, &o.writer, err);
    if (status == QN_OK)
        status = begin_npy(&o, err);
    if (status == QN_OK)
        status = put_texts(t, corpus, threads, &o, err);
    if (status == QN_OK)
        status = end_npy(&o, err);
    status = qn__corpus_end(corpus, status, err);
    free(o.kept);
    if (status != QN_OK) {
        qn__writer_drop(o.writer);
        return status;
    }
    *tokens = o.count;
    return qn__writer_commit(o.writer, err);
}

static qn_status check_name(const qn_tokenizer *tokenizer, const char *path, qn_error *err) {
    if (!ends_with(path, ".npy") && !ends_with(path, ".bin")) {
        qn__fail(err, QN_USAGE, "the name of the file of tokens ends neither in .npy nor in .bin");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_USAGE, "end it in .npy, or in .bin for plain numbers");
    }
    if (width_of(tokenizer) == 2 || ends_with(path, ".npy"))
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "a file of plain numbers has 16 bits for each, and the vocabulary has %u tokens",
             (unsigned)qn_tokenizer_size(tokenizer));
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_USAGE, "write an array: end the name in .npy");
}

qn_status qn__corpus_write(const qn_tokenizer *tokenizer, const qn__corpus *corpus,
                           uint32_t threads, const char *path, uint64_t *tokens, qn_error *err) {
    *tokens = 0;
    qn_status status = check_name(tokenizer, path, err);
    if (status == QN_OK)
        status = qn__token_threads(threads, &threads, err);
    return status == QN_OK ? write_corpus(tokenizer, corpus, threads, path, tokens, err) : status;
}

qn_status qn_tokenizer_write(const qn_tokenizer *tokenizer, const char *const *paths,
                             uint32_t count, uint32_t threads, const char *path, uint64_t *tokens,
                             qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(tokenizer, err);
    QN__NEED(paths, err);
    QN__NEED(path, err);
    QN__NEED(tokens, err);
    qn__corpus corpus = {0};
    *tokens = 0;
    qn_status status = check_name(tokenizer, path, err);
    if (status == QN_OK)
        status = qn__corpus_open(paths, count, &corpus, err);
    if (status == QN_OK)
        status = qn__corpus_write(tokenizer, &corpus, threads, path, tokens, err);
    qn__corpus_close(&corpus);
    return status;
}

/* ---- reading ---- */

static qn_status take_numbers(void *user, uint64_t first, size_t count, const void *numbers,
                              qn_error *err) {
    qn__token_ids *ids = user;
    const int64_t *number = numbers;
    qn_status status = qn__token_ids_reserve(ids, count, err);
    for (size_t k = 0; status == QN_OK && k < count; k++) {
        if (number[k] < 0 || number[k] >= QN__TOKENS_MOST)
            return qn__fail(err, QN_INPUT, "token %llu has the number %lld",
                            (unsigned long long)(first + k), (long long)number[k]);
        qn__token_ids_add(ids, (uint32_t)number[k]);
    }
    return status;
}

static qn_status read_source(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    return qn__source_read(self, bytes, size, got, err);
}

static qn_status read_npy(qn__source *source, qn__token_ids *ids, qn_error *err) {
    const int packed = qn__source_packing(source) != QN__PLAIN;
    qn__npy_bytes in = {.read = read_source,
                        .self = source,
                        .size = qn__source_unpacked_most(source),
                        .exact = !packed,
                        .path = qn__source_path(source)};
    qn__npy array;
    snprintf(in.of, sizeof in.of, "%s", packed ? " of the unpacked file" : "");
    qn_status status = qn__npy_read_header(&in, &array, err);
    if (status == QN_OK && array.kind != QN__NPY_INT && array.kind != QN__NPY_UINT) {
        qn__fail(err, QN_INPUT, "the array does not hold whole numbers");
        return qn__remedy(err, QN_INPUT, "give the file of quern data tokenize");
    }
    return status == QN_OK ? qn__npy_each(&in, &array, take_numbers, ids, err) : status;
}

static qn_status read_plain(qn__source *source, uint32_t width, qn__token_ids *ids, qn_error *err) {
    qn__contents all = {0};
    qn_status status = qn__source_contents(source, &all, err);
    if (status == QN_OK && all.size % width) {
        qn__fail(err, QN_INPUT, "the file has %zu bytes; tokens of this tokenizer have %u each",
                 all.size, (unsigned)width);
        status = qn__remedy(err, QN_INPUT, "use the tokenizer that encoded the text");
    }
    if (status == QN_OK)
        status = qn__token_ids_reserve(ids, all.size / width, err);
    const uint8_t *byte = (const uint8_t *)all.data;
    for (size_t k = 0; status == QN_OK && k < all.size; k += width) {
        uint32_t value = 0;
        for (uint32_t b = 0; b < width; b++)
            value |= (uint32_t)byte[k + b] << 8 * b;
        qn__token_ids_add(ids, value);
    }
    qn__contents_release(&all);
    return status;
}

static qn_status read_tokens(const qn_tokenizer *t, const char *path, qn__token_ids *ids,
                             qn_error *err) {
    qn__source *source = NULL;
    uint8_t first[6] = {0};
    size_t got = 0;
    qn_status status = qn__source_open(path, &source, err);
    if (status == QN_OK)
        status = qn__source_peek(source, first, sizeof first, &got, err);
    if (status == QN_OK)
        status = got == 6 && memcmp(first, "\x93NUMPY", 6) == 0
                     ? read_npy(source, ids, err)
                     : read_plain(source, width_of(t), ids, err);
    if (source)
        status = qn__source_end(source, status, err);
    qn__source_close(source);
    if (status != QN_OK && err && !*err->where)
        qn__at(err, "%s", path);
    return status;
}

static qn_status write_text(const qn_tokenizer *t, const qn__token_ids *ids, const char *path,
                            uint64_t *bytes, qn_error *err) {
    size_t size;
    qn_status status = qn_tokenizer_decode(t, ids->number, ids->count, NULL, 0, &size, err);
    char *text = status == QN_OK ? malloc(size + 1) : NULL;
    qn__writer *writer = NULL;
    if (status == QN_OK && !text)
        status = qn__fail_memory(err, size, 1);
    if (status == QN_OK)
        status = qn_tokenizer_decode(t, ids->number, ids->count, text, size, &size, err);
    if (status == QN_OK)
        status = qn__writer_create(path, &writer, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, text, size, err);
    free(text);
    if (status != QN_OK) {
        qn__writer_drop(writer);
        return status;
    }
    *bytes = size;
    return qn__writer_commit(writer, err);
}

qn_status qn_tokenizer_write_text(const qn_tokenizer *tokenizer, const char *tokens_path,
                                  const char *path, uint64_t *bytes, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(tokenizer, err);
    QN__NEED(tokens_path, err);
    QN__NEED(path, err);
    QN__NEED(bytes, err);
    *bytes = 0;
    qn__token_ids ids = {0};
    qn_status status = read_tokens(tokenizer, tokens_path, &ids, err);
    if (status == QN_OK) {
        status = write_text(tokenizer, &ids, path, bytes, err);
        if (status == QN_INPUT)
            qn__at(err, "%s", tokens_path);
    }
    qn__token_ids_release(&ids);
    return status;
}

qn_status qn_tokenizer_save(const qn_tokenizer *tokenizer, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(tokenizer, err);
    QN__NEED(path, err);
    qn__writer *writer;
    qn_status status = qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    status = qn__writer_add(writer, tokenizer->json, tokenizer->json_size, err);
    if (status == QN_OK)
        return qn__writer_commit(writer, err);
    qn__writer_drop(writer);
    return status;
}
