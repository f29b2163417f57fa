/* The writer of safetensors.h. */
#include "base/binary/little_endian.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "model/formats/safetensors.h"

/* The destination of the bytes: always the digest, and a file if there is one. */
typedef struct sink {
    qn__writer *writer; /* NULL: digest only */
    qn__sha256 hash;
} sink;

static qn_status put(void *sink_to, const void *bytes, size_t size, qn_error *err) {
    sink *to = sink_to;
    qn__sha256_add(&to->hash, bytes, size);
    return to->writer != NULL ? qn__writer_add(to->writer, bytes, size, err) : QN_OK;
}

uint64_t qn__tensor_count(const qn__tensor *tensor) {
    const uint32_t *side = tensor->taps;
    const uint64_t taps = (uint64_t)(side[0] ? side[0] : 1) * (side[1] ? side[1] : 1);
    return tensor->columns == 0 ? tensor->rows : tensor->rows * tensor->columns * taps;
}

static void add_notes(qn__text *text, const qn__tensor_list *list) {
    qn__text_add(text, "\"__metadata__\":{");
    for (size_t i = 0; i < list->notes; ++i) {
        qn__text_add(text, "%s", i > 0 ? "," : "");
        qn__text_add_json(text, list->note[i].key);
        qn__text_add(text, ":");
        qn__text_add_json(text, list->note[i].value);
    }
    qn__text_add(text, "}");
}

/* Appends ,"NAME":{...} of a tensor whose bytes begin at `begin`; returns their end. */
static uint64_t add_tensor(qn__text *text, const qn__tensor *tensor, uint64_t begin) {
    const int wide = tensor->real || tensor->whole;
    const uint64_t end = begin + (wide ? 8 : 4) * qn__tensor_count(tensor);
    qn__text_add(text, ",");
    qn__text_add_json(text, tensor->name);
    qn__text_add(text, ":{\"dtype\":\"%s\",\"shape\":[",
                 tensor->whole  ? "I64"
                 : tensor->real ? "F64"
                                : "F32");
    if (!tensor->whole)
        qn__text_add(text, "%llu", (unsigned long long)tensor->rows);
    if (tensor->columns != 0)
        qn__text_add(text, ",%llu", (unsigned long long)tensor->columns);
    for (int d = 0; d < 2 && tensor->taps[d] != 0; ++d)
        qn__text_add(text, ",%u", tensor->taps[d]);
    qn__text_add(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                 (unsigned long long)end);
    return end;
}

/* The header with its padding, without its length. */
static void make_header(qn__text *text, const qn__tensor_list *list) {
    uint64_t at = 0;
    qn__text_add(text, "{");
    add_notes(text, list);
    for (size_t i = 0; i < list->tensors; ++i)
        at = add_tensor(text, &list->tensor[i], at);
    qn__text_add(text, "}");
    qn__text_add(text, "%*s", (int)(-text->size & 7), "");
}

static qn_status put_whole(sink *to, int64_t number, qn_error *err) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i)
        bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    return put(to, bytes, sizeof bytes, err);
}

static qn_status put_numbers(sink *to, const qn__tensor *tensor, qn_error *err) {
    const size_t count = (size_t)qn__tensor_count(tensor);
    qn_status status = QN_OK;
    if (tensor->whole)
        return put_whole(to, *tensor->whole, err);
    if (!tensor->real)
        return qn__each_little(tensor->data, count, put, to, err);
    for (size_t i = 0; i < count && status == QN_OK; ++i) {
        double little;
        qn__copy_little_reals(&little, &tensor->real[i], 1);
        status = put(to, &little, sizeof little, err);
    }
    return status;
}

static qn_status put_all(sink *to, const qn__tensor_list *list, qn_error *err) {
    qn__text header = {0};
    make_header(&header, list);
    if (header.failed) {
        qn__text_release(&header);
        return qn__fail_memory(err, header.size + 1, 1);
    }
    uint8_t length[8];
    for (int i = 0; i < 8; ++i)
        length[i] = (uint8_t)((uint64_t)header.size >> (8 * i));
    qn__sha256_begin(&to->hash);
    qn_status status = put(to, length, 8, err);
    if (status == QN_OK)
        status = put(to, header.data, header.size, err);
    for (size_t i = 0; i < list->tensors && status == QN_OK; ++i)
        status = put_numbers(to, &list->tensor[i], err);
    qn__text_release(&header);
    return status;
}

qn_status qn__tensors_write(const char *path, const qn__tensor_list *list, uint8_t digest[32],
                            qn_error *err) {
    sink to;
    qn_status status = qn__writer_create(path, &to.writer, err);
    if (status != QN_OK)
        return status;
    status = put_all(&to, list, err);
    qn__writer_ask(to.writer, list->may, list->user);
    status = qn__writer_finish(to.writer, NULL, status, err);
    if (status == QN_OK && digest != NULL)
        qn__sha256_end(&to.hash, digest);
    return status;
}

qn_status qn__tensors_digest(const qn__tensor_list *list, uint8_t digest[32], qn_error *err) {
    sink to = {.writer = NULL};
    const qn_status status = put_all(&to, list, err);
    if (status == QN_OK)
        qn__sha256_end(&to.hash, digest);
    return status;
}
