/* Reading a request for inference. The body is hostile: every length is checked before it is used.
 */
#include "serve/inference/v2_message.h"

#include "base/binary/half.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 4096, LENGTH_BYTES = 4 };

/* ------------------------------------------------------------------------------------------ types
 */

/* Writes one JSON value as an element; returns 0 where it is not one. */
typedef int put_value(const qn__json_node *node, uint8_t *to);

#define PUT_WHOLE(name, type, least, most)                                                         \
    static int name(const qn__json_node *node, uint8_t *to) {                                      \
        const char *digits = qn__json_digits(node);                                                \
        if (!digits || strpbrk(digits, ".eE"))                                                     \
            return 0;                                                                              \
        const long long value = strtoll(digits, NULL, 10);                                         \
        if (value < (least) || value > (most))                                                     \
            return 0;                                                                              \
        const type own = (type)value;                                                              \
        memcpy(to, &own, sizeof own);                                                              \
        return 1;                                                                                  \
    }

PUT_WHOLE(put_u8, uint8_t, 0, UINT8_MAX)
PUT_WHOLE(put_u16, uint16_t, 0, UINT16_MAX)
PUT_WHOLE(put_u32, uint32_t, 0, UINT32_MAX)
PUT_WHOLE(put_i8, int8_t, INT8_MIN, INT8_MAX)
PUT_WHOLE(put_i16, int16_t, INT16_MIN, INT16_MAX)
PUT_WHOLE(put_i32, int32_t, INT32_MIN, INT32_MAX)

static int put_i64(const qn__json_node *node, uint8_t *to) {
    const char *digits = qn__json_digits(node);
    if (!digits || strpbrk(digits, ".eE"))
        return 0;
    errno = 0;
    const int64_t value = strtoll(digits, NULL, 10);
    memcpy(to, &value, sizeof value);
    return errno == 0;
}

static int put_u64(const qn__json_node *node, uint8_t *to) {
    uint64_t value;
    if (!qn__json_u64(node, &value))
        return 0;
    memcpy(to, &value, sizeof value);
    return 1;
}

static int put_bool(const qn__json_node *node, uint8_t *to) {
    uint64_t value = (uint64_t)qn__json_is_true(node);
    const int other = qn__json_is_null(node) || qn__json_is_object(node) || qn__json_string(node);
    if (other || (qn__json_digits(node) && (!qn__json_u64(node, &value) || value > 1)))
        return 0;
    *to = (uint8_t)value;
    return 1;
}

/* null is a missing value. */
static int put_f32(const qn__json_node *node, uint8_t *to) {
    float value = __builtin_nanf("");
    if (!qn__json_is_null(node) && !qn__json_float(node, &value))
        return 0;
    memcpy(to, &value, sizeof value);
    return 1;
}

static int put_f64(const qn__json_node *node, uint8_t *to) {
    double value = __builtin_nan("");
    if (!qn__json_is_null(node) && !qn__json_real(node, &value))
        return 0;
    memcpy(to, &value, sizeof value);
    return 1;
}

static const struct {
    const char *name;
    size_t size;
    put_value *put; /* NULL: JSON has no such values */
} types[] = {{"BOOL", 1, put_bool},  {"UINT8", 1, put_u8},   {"UINT16", 2, put_u16},
             {"UINT32", 4, put_u32}, {"UINT64", 8, put_u64}, {"INT8", 1, put_i8},
             {"INT16", 2, put_i16},  {"INT32", 4, put_i32},  {"INT64", 8, put_i64},
             {"FP16", 2, NULL},      {"FP32", 4, put_f32},   {"FP64", 8, put_f64},
             {"BYTES", 0, NULL}};
enum { TYPES = sizeof types / sizeof *types };

static int type_index(const char *name) {
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

size_t qn__v2_type_size(const char *type) {
    const int index = type_index(type);
    return index < 0 ? 0 : types[index].size;
}

/* ----------------------------------------------------------------------------------------- values
 */

static qn_status refuse_data(const qn__v2_input *in, qn_error *err) {
    qn__fail(err, QN_INPUT, "the data of the input \"%s\" is not %llu values of %s", in->name,
             (unsigned long long)in->count, in->type);
    return qn__remedy(err, QN_INPUT, "give as many values as the shape has, of its datatype");
}

/* Where the values of nested lists go. */
typedef struct sink {
    const qn__v2_input *in;
    put_value *put;
    size_t size; /* of an element */
    uint8_t *to; /* NULL: texts, which `texts` gets */
    qn__text *texts;
    uint64_t count;
} sink;

static int put_text(const qn__json_node *node, qn__text *texts) {
    const char *text = qn__json_string(node);
    if (!text)
        return 0;
    const uint32_t size = (uint32_t)strlen(text);
    const uint8_t length[LENGTH_BYTES] = {(uint8_t)size, (uint8_t)(size >> 8),
                                          (uint8_t)(size >> 16), (uint8_t)(size >> 24)};
    qn__text_add_bytes(texts, length, sizeof length);
    qn__text_add_bytes(texts, text, size);
    return 1;
}

/* The parser refuses more than 32 levels. */
static int flatten(const qn__json_node *node, sink *s) {
    if (!qn__json_is_array(node)) {
        if (s->count == s->in->count)
            return 0;
        const int good =
            s->to ? s->put(node, s->to + s->count * s->size) : put_text(node, s->texts);
        s->count++;
        return good;
    }
    for (size_t i = 0; i < qn__json_count(node); i++)
        if (!flatten(qn__json_at(node, i), s))
            return 0;
    return 1;
}

static qn_status read_texts(const qn__json_node *data, qn__v2_input *in, qn_error *err) {
    qn__text texts = {0};
    sink s = {.in = in, .texts = &texts};
    const int good = flatten(data, &s) && s.count == in->count;
    in->bytes = texts.size;
    in->own = texts.failed ? NULL : qn__alloc(in->bytes, 1, err);
    in->values = in->own;
    if (in->own && in->bytes > 0)
        memcpy(in->own, texts.data, in->bytes);
    qn__text_release(&texts);
    if (!in->own)
        return qn__fail_memory(err, in->bytes, 1);
    return good ? QN_OK : refuse_data(in, err);
}

static qn_status read_data(const qn__json_node *data, int type, qn__v2_input *in, qn_error *err) {
    if (!qn__json_is_array(data))
        return refuse_data(in, err);
    if (strcmp(in->type, "BYTES") == 0)
        return read_texts(data, in, err);
    if (!types[type].put) {
        qn__fail(err, QN_INPUT, "JSON has no values of %s", in->type);
        return qn__remedy(err, QN_INPUT, "send them as binary data, or as FP32");
    }
    in->own = qn__alloc(in->count, types[type].size, err);
    if (!in->own)
        return QN_MEMORY;
    in->values = in->own;
    in->bytes = (size_t)in->count * types[type].size;
    sink s = {.in = in, .put = types[type].put, .size = types[type].size, .to = in->own};
    return flatten(data, &s) && s.count == in->count ? QN_OK : refuse_data(in, err);
}

const char *qn__v2_bytes_at(const qn__v2_input *in, size_t *at, size_t *size) {
    const uint8_t *p = in->values + *at;
    *size = (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    *at += LENGTH_BYTES + *size;
    return (const char *)p + LENGTH_BYTES;
}

/* Whether binary BYTES are whole elements, as many as the shape has. */
static int are_elements(const qn__v2_input *in) {
    size_t at = 0, size;
    uint64_t count = 0;
    for (; at < in->bytes; count++) {
        if (in->bytes - at < LENGTH_BYTES)
            return 0;
        size_t next = at;
        qn__v2_bytes_at(in, &next, &size);
        if (size > in->bytes - at - LENGTH_BYTES)
            return 0;
        at = next;
    }
    return count == in->count;
}

static qn_status take_binary(uint64_t size, int type, const char **binary, size_t *left,
                             qn__v2_input *in, qn_error *err) {
    if (size > *left) {
        qn__fail(err, QN_INPUT, "the input \"%s\" has %llu bytes, and %zu are left in the body",
                 in->name, (unsigned long long)size, *left);
        return qn__remedy(err, QN_INPUT, "send the bytes of all inputs after the JSON");
    }
    in->values = (const uint8_t *)*binary;
    in->bytes = (size_t)size;
    *binary += size;
    *left -= (size_t)size;
    const int good = types[type].size ? in->bytes / types[type].size == in->count &&
                                            in->bytes % types[type].size == 0
                                      : are_elements(in);
    return good ? QN_OK : refuse_data(in, err);
}

/* ----------------------------------------------------------------------------------------- inputs
 */

static qn_status refuse(qn_error *err, const char *what) {
    qn__fail(err, QN_INPUT, "%s", what);
    return qn__remedy(err, QN_INPUT,
                      "send {\"inputs\": [{\"name\": \"input\", \"datatype\": \"FP32\", \"shape\": "
                      "[1, 2], \"data\": [0.5, 1]}]}");
}

/* Every element takes a byte of the body, at least. */
static qn_status read_shape(const qn__json_node *shape, size_t most, qn__v2_input *in,
                            qn_error *err) {
    const size_t lengths = qn__json_count(shape);
    if (!qn__json_is_array(shape) || lengths < 1 || lengths > QN__V2_LENGTHS)
        return refuse(err, "the shape of an input is not a list of 1 to 8 numbers");
    in->count = 1;
    in->lengths = (uint32_t)lengths;
    for (size_t i = 0; i < lengths; i++)
        if (!qn__json_u64(qn__json_at(shape, i), &in->shape[i]) ||
            __builtin_mul_overflow(in->count, in->shape[i], &in->count) || in->count > most)
            return refuse(err, "the shape of an input is not valid");
    return QN_OK;
}

/* A whole number of a "parameters" object. */
static int parameter(const qn__json_node *node, const char *name, uint64_t *out) {
    return qn__json_u64(qn__json_get(qn__json_get(node, "parameters"), name), out);
}

/* The client would read or fill memory that this server does not see. */
static qn_status refuse_shared_memory(const qn__json_node *node, qn_error *err) {
    if (!qn__json_get(qn__json_get(node, "parameters"), "shared_memory_region"))
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "the server has no shared memory with its clients");
    return qn__remedy(err, QN_UNSUPPORTED, "send the values, as JSON or as binary data");
}

static qn_status read_input(const qn__json_node *node, size_t most, const char **binary,
                            size_t *left, qn__v2_input *in, qn_error *err) {
    uint64_t size;
    in->name = qn__json_string(qn__json_get(node, "name"));
    in->type = qn__json_string(qn__json_get(node, "datatype"));
    if (!in->name || !in->type)
        return refuse(err, "an input needs a name and a datatype");
    const int type = type_index(in->type);
    if (type < 0)
        return refuse(err, "the datatype of an input is not BOOL, UINT8 to UINT64, INT8 to INT64, "
                           "FP16, FP32, FP64 or BYTES");
    qn_status status = read_shape(qn__json_get(node, "shape"), most, in, err);
    if (status == QN_OK)
        status = refuse_shared_memory(node, err);
    if (status != QN_OK)
        return status;
    if (parameter(node, "binary_data_size", &size))
        return take_binary(size, type, binary, left, in, err);
    return read_data(qn__json_get(node, "data"), type, in, err);
}

static qn_status read_inputs(const qn__json_node *list, const char *binary, size_t json,
                             size_t left, qn__v2_ask *ask, qn_error *err) {
    const size_t count = qn__json_count(list), most = json + left;
    if (!qn__json_is_array(list) || count < 1 || count > MOST_INPUTS)
        return refuse(err, "the request has not a list of inputs");
    ask->input = qn__alloc(count, sizeof *ask->input, err);
    if (!ask->input)
        return QN_MEMORY;
    for (; ask->inputs < count; ask->inputs++) {
        qn__v2_input *in = &ask->input[ask->inputs];
        const qn_status status =
            read_input(qn__json_at(list, ask->inputs), most, &binary, &left, in, err);
        if (status != QN_OK) {
            qn__free(in->own);
            return status;
        }
    }
    return left == 0 ? QN_OK : refuse(err, "bytes are left in the body after those of all inputs");
}

static int says(const qn__json_node *node, const char *name, int otherwise) {
    const qn__json_node *value = qn__json_get(qn__json_get(node, "parameters"), name);
    return value ? qn__json_is_true(value) : otherwise;
}

/* "classification": 3, as Triton has it; not of a region of shared memory, which is not here. */
static qn_status read_wanted(const qn__json_node *node, int binary, qn__v2_wanted *out,
                             qn_error *err) {
    const qn__json_node *parameters = qn__json_get(node, "parameters");
    const int classes = qn__json_get(parameters, "classification") != NULL;
    out->name = qn__json_string(qn__json_get(node, "name"));
    out->binary = says(node, "binary_data", binary);
    if (!out->name)
        return refuse(err, "an output of the request has no name");
    if (classes && (!parameter(node, "classification", &out->classes) || out->classes == 0))
        return refuse(err, "\"classification\" of an output is not a number above 0");
    return refuse_shared_memory(node, err);
}

static qn_status read_outputs(const qn__json_node *root, qn__v2_ask *ask, qn_error *err) {
    const qn__json_node *list = qn__json_get(root, "outputs");
    ask->binary = says(root, "binary_data_output", 0);
    if (!list)
        return QN_OK;
    if (!qn__json_is_array(list) || qn__json_count(list) > QN__V2_OUTPUTS)
        return refuse(err, "the outputs of the request are not a list of at most 4");
    qn_status status = QN_OK;
    for (size_t i = 0; i < qn__json_count(list) && status == QN_OK; i++)
        status = read_wanted(qn__json_at(list, i), ask->binary, &ask->wanted[ask->outputs++], err);
    return status;
}

static qn_status read_all(const char *body, size_t size, size_t json, qn__v2_ask *out,
                          qn_error *err) {
    qn_status status = qn__json_parse(body, json, &out->json, err);
    const qn__json_node *root = status == QN_OK ? qn__json_root(out->json) : NULL;
    if (status == QN_OK && !qn__json_is_object(root))
        status = refuse(err, "the request is not a JSON object");
    if (status == QN_OK)
        status =
            read_inputs(qn__json_get(root, "inputs"), body + json, json, size - json, out, err);
    if (status == QN_OK)
        status = read_outputs(root, out, err);
    out->id = qn__json_string(qn__json_get(root, "id"));
    return status == QN_FORMAT ? QN_INPUT : status;
}

qn_status qn__v2_read(const char *body, size_t size, const char *header, qn__v2_ask *out,
                      qn_error *err) {
    uint64_t json = size;
    memset(out, 0, sizeof *out);
    if (header && (!qn__parse_u64(header, strlen(header), &json) || json > size)) {
        qn__fail(err, QN_INPUT,
                 "Inference-Header-Content-Length is \"%s\", and the body has %zu "
                 "bytes",
                 header, size);
        return qn__remedy(err, QN_INPUT, "send the number of bytes of the JSON");
    }
    const qn_status status = read_all(body, size, (size_t)json, out, err);
    if (status != QN_OK)
        qn__v2_release(out);
    return status;
}

void qn__v2_release(qn__v2_ask *ask) {
    for (size_t i = 0; i < ask->inputs; i++)
        qn__free(ask->input[i].own);
    qn__free(ask->input);
    qn__json_free(ask->json);
    memset(ask, 0, sizeof *ask);
}
