/* The reader of safetensors.h. */
#include "model/formats/safetensors.h"

#include "base/binary/float_bits.h"
#include "base/binary/half.h"
#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/text/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than the longest header that Quern writes: the names of columns and classes take most of it
 * (QN__RECIPE_LONGEST), twice where all is escaped. The header is part of the file, so no length
 * asks for more memory than some times the size of the file. */
#define HEADER_MAX ((uint64_t)1 << 25)

struct qn__tensors {
    qn__bytes file;       /* owned bytes; empty if they are the caller's */
    const uint8_t *bytes; /* the whole file */
    size_t size;
    qn__json *header;
    const qn__json_node *notes;
    size_t count;
    qn__tensor_view *view;
};

/* A file being checked. */
typedef struct checker {
    const char *path;
    uint64_t data_size; /* bytes after the header */
    const uint8_t *data;
    int any;   /* 1: qn__tensors_read_any */
    int reals; /* 1: qn__tensors_read_model */
    qn_error *err;
} checker;

/* A tensor and the end of its bytes; only the views are kept. */
typedef struct span {
    uint64_t begin, end;
    uint32_t element; /* bytes */
    qn__tensor_view view;
} span;

static const struct {
    const char *name;
    uint32_t bytes;
    qn__tensor_type type;
} types[] = {{"F32", 4, QN__TENSOR_F32},          {"F16", 2, QN__TENSOR_F16},
             {"BF16", 2, QN__TENSOR_BF16},        {"F64", 8, QN__TENSOR_F64},
             {"BOOL", 1, QN__TENSOR_OTHER},       {"U8", 1, QN__TENSOR_OTHER},
             {"I8", 1, QN__TENSOR_OTHER},         {"F8_E5M2", 1, QN__TENSOR_OTHER},
             {"F8_E4M3", 1, QN__TENSOR_OTHER},    {"I16", 2, QN__TENSOR_OTHER},
             {"U16", 2, QN__TENSOR_OTHER},        {"I32", 4, QN__TENSOR_OTHER},
             {"U32", 4, QN__TENSOR_OTHER},        {"I64", 8, QN__TENSOR_OTHER},
             {"U64", 8, QN__TENSOR_OTHER},        {"C64", 8, QN__TENSOR_OTHER},
             {"F8_E8M0", 1, QN__TENSOR_OTHER},    {"F8_E5M2FNUZ", 1, QN__TENSOR_OTHER},
             {"F8_E4M3FNUZ", 1, QN__TENSOR_OTHER}};

#define REMEDY "the file is damaged or not a tensor file: copy or make it again"

static qn_status bad_file(const checker *c, const char *what) {
    qn__fail(c->err, QN_FORMAT, "%s", what);
    qn__at(c->err, "%s", c->path);
    return qn__remedy(c->err, QN_FORMAT, REMEDY);
}

static qn_status bad_tensor(const checker *c, const char *name, const char *what) {
    qn__fail(c->err, QN_FORMAT, "%s", what);
    qn__at(c->err, "%.300s, tensor \"%.80s\"", c->path, name);
    return qn__remedy(c->err, QN_FORMAT, REMEDY);
}

/* The shape, and its number of elements, which must fit the file. */
static qn_status read_shape(const checker *c, const qn__json_node *node, const char *name,
                            uint32_t element, qn__tensor_view *view) {
    const size_t dimensions = qn__json_count(node);
    uint64_t side[4] = {0, 0, 0, 0};
    if (!c->any &&
        (!qn__json_is_array(node) || dimensions < 1 || dimensions > 4 || dimensions == 3))
        return bad_tensor(c, name, "a shape must have one, two or four dimensions");
    if (!qn__json_is_array(node) || dimensions > 4)
        return bad_tensor(c, name, "a shape must be a list of at most four numbers");
    for (size_t i = 0; i < dimensions; ++i)
        if (!qn__json_u64(qn__json_at(node, i), &side[i]) || side[i] == 0)
            return bad_tensor(c, name, "a dimension is not a whole number from 1");
    view->rows = side[0];
    view->columns = side[1];
    view->taps[0] = side[2];
    view->taps[1] = side[3];
    view->dimensions = (uint32_t)dimensions;
    view->count = 1;
    for (size_t i = 0; i < dimensions; ++i)
        if (__builtin_mul_overflow(view->count, side[i], &view->count))
            return bad_tensor(c, name, "the shape is larger than any file");
    if (view->count > c->data_size / element)
        return bad_tensor(c, name, "the shape is larger than the file");
    return QN_OK;
}

static qn_status read_offsets(const checker *c, const qn__json_node *node, span *out) {
    const char *name = out->view.name;
    if (!qn__json_is_array(node) || qn__json_count(node) != 2 ||
        !qn__json_u64(qn__json_at(node, 0), &out->begin) ||
        !qn__json_u64(qn__json_at(node, 1), &out->end))
        return bad_tensor(c, name, "the offsets are not two whole numbers");
    if (out->begin > out->end || out->end > c->data_size)
        return bad_tensor(c, name, "the offsets lie outside the file");
    if (out->end - out->begin != out->view.count * out->element)
        return bad_tensor(c, name, "the offsets do not fit the shape");
    out->view.bytes = c->data + out->begin;
    return QN_OK;
}

static qn_status read_tensor(const checker *c, const qn__json_node *node, span *out) {
    const char *name = out->view.name = qn__json_key(node);
    const char *dtype = qn__json_string(qn__json_get(node, "dtype"));
    const qn__json_node *shape = qn__json_get(node, "shape");
    const qn__json_node *offsets = qn__json_get(node, "data_offsets");
    if (dtype == NULL || shape == NULL || offsets == NULL || qn__json_count(node) != 3)
        return bad_tensor(c, name,
                          "a tensor has the keys dtype, shape and data_offsets, no others");
    size_t type = 0;
    while (type < sizeof types / sizeof *types && strcmp(dtype, types[type].name) != 0)
        ++type;
    if (c->any && type == sizeof types / sizeof *types) {
        char what[80];
        snprintf(what, sizeof what, "the elements are of an unknown type, \"%.20s\"", dtype);
        return bad_tensor(c, name, what);
    }
    if (!c->any && type != 0 &&
        !(c->reals && type < sizeof types / sizeof *types && types[type].type == QN__TENSOR_F64))
        return bad_tensor(c, name, "the elements are not of the type F32");
    out->element = types[type].bytes;
    out->view.type = types[type].type;
    out->view.type_name = types[type].name;
    qn_status status = read_shape(c, shape, name, out->element, &out->view);
    if (status == QN_OK)
        status = read_offsets(c, offsets, out);
    return status;
}

static int by_begin(const void *one, const void *other) {
    const span *a = one, *b = other;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* The tensors must cover the file: overlaps and holes could mean different things to different
 * programs. */
static qn_status check_cover(const checker *c, span *spans, size_t count) {
    uint64_t at = 0;
    qsort(spans, count, sizeof *spans, by_begin);
    for (size_t i = 0; i < count; ++i) {
        if (spans[i].begin != at)
            return bad_tensor(c, spans[i].view.name,
                              spans[i].begin < at ? "the tensor overlaps the one before"
                                                  : "there is a gap before the tensor");
        at = spans[i].end;
    }
    return at == c->data_size ? QN_OK : bad_file(c, "there are bytes after the last tensor");
}

static qn_status read_notes(const checker *c, const qn__json_node *notes) {
    if (!qn__json_is_object(notes))
        return bad_file(c, "the header's __metadata__ is not an object");
    for (size_t i = 0; i < qn__json_count(notes); ++i)
        if (qn__json_string(qn__json_at(notes, i)) == NULL)
            return bad_file(c, "a value in the header's __metadata__ is not a string");
    return QN_OK;
}

/* Models say what they are, before their tensors are looked at: PyTorch's have other types. */
static qn_status check_format(const checker *c, const qn__json_node *root) {
    const qn__json_node *notes = qn__json_get(root, "__metadata__");
    const char *format = notes ? qn__json_string(qn__json_get(notes, "format")) : NULL;
    if (!c->reals || (notes && !qn__json_is_object(notes)) ||
        (format && strncmp(format, "quern-", 6) == 0))
        return QN_OK;
    qn__fail(c->err, QN_FORMAT, "the file is not a Quern model");
    qn__at(c->err, "%s", c->path);
    return qn__remedy(c->err, QN_FORMAT,
                      "name a model that quern train has written; quern model import makes one of "
                      "parameters from PyTorch");
}

/* Fills `spans`, at most one for each member of the header, and counts them. */
static qn_status read_members(const checker *c, qn__tensors *t, span *spans) {
    const qn__json_node *root = qn__json_root(t->header);
    qn_status status = check_format(c, root);
    for (size_t i = 0; i < qn__json_count(root) && status == QN_OK; ++i) {
        const qn__json_node *node = qn__json_at(root, i);
        if (strcmp(qn__json_key(node), "__metadata__") == 0) {
            t->notes = node;
            status = read_notes(c, node);
        } else {
            status = read_tensor(c, node, &spans[t->count++]);
        }
    }
    return status == QN_OK ? check_cover(c, spans, t->count) : status;
}

static qn_status read_tensors(const checker *c, qn__tensors *t) {
    const size_t members = qn__json_count(qn__json_root(t->header));
    span *spans = qn__alloc(members, sizeof *spans, c->err);
    t->view = qn__alloc(members, sizeof *t->view, c->err);
    qn_status status = spans != NULL && t->view != NULL ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = read_members(c, t, spans);
    for (size_t i = 0; i < t->count && status == QN_OK; ++i)
        t->view[i] = spans[i].view;
    qn__free(spans);
    return status;
}

/* What a file is whose first 8 bytes are the length of no header, or NULL: data instead of a model
 * is a common mistake. */
static const char *other_format(const uint8_t *bytes, size_t size) {
    size_t text = 0;
    if (size > 8 && bytes[8] == '{')
        return NULL;
    if (size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        return "a ZIP archive, such as torch.save and numpy.savez write";
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return "a gzip file";
    if (size >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 8 && bytes[3] > 0)
        return "an IDX file";
    if (size >= 262 && memcmp(bytes + 257, "ustar", 5) == 0)
        return "a tar archive";
    while (text < 8 && text < size && (bytes[text] >= ' ' || strchr("\t\r\n", bytes[text])) &&
           bytes[text] != 0)
        text++;
    return text > 0 && (text == 8 || text == size) ? "text, such as a CSV table" : NULL;
}

static qn_status refuse_other(const checker *c, const char *format) {
    qn__fail(c->err, QN_FORMAT, "this is not a model: the file is %s", format);
    qn__at(c->err, "%s", c->path);
    if (c->any)
        return qn__remedy(c->err, QN_FORMAT,
                          "write the tensors with safetensors.torch.save_file(net.state_dict(), "
                          "FILE)");
    return qn__remedy(c->err, QN_FORMAT,
                      "name a model that quern train has written; data is given as `data.path`");
}

static qn_status read_header(checker *c, qn__tensors *t) {
    const char *other = other_format(t->bytes, t->size);
    uint64_t length = 0;
    if (other)
        return refuse_other(c, other);
    if (t->size < 8)
        return bad_file(c, "the file is too short for a header");
    for (int i = 7; i >= 0; --i)
        length = length << 8 | t->bytes[i];
    if (length > t->size - 8)
        return bad_file(c, "the header would be longer than the file");
    if (length > HEADER_MAX)
        return bad_file(c, "the header is longer than 32 MiB");
    const char *text = (const char *)t->bytes + 8;
    if (length == 0 || text[0] != '{')
        return bad_file(c, "the header does not begin with {");
    qn_status status = qn__json_parse(text, (size_t)length, &t->header, c->err);
    if (status != QN_OK && status != QN_MEMORY) {
        qn_error inner = {0};
        if (c->err != NULL)
            inner = *c->err;
        qn__fail(c->err, QN_FORMAT, "the header is not valid JSON: %s", inner.what);
        qn__at(c->err, "%s", c->path);
        return qn__remedy(c->err, QN_FORMAT, REMEDY);
    }
    if (status == QN_OK && !qn__json_is_object(qn__json_root(t->header)))
        return bad_file(c, "the header is not a JSON object");
    c->data = t->bytes + 8 + length;
    c->data_size = t->size - 8 - length;
    return status;
}

typedef enum accepted { FLOATS, ANY, MODEL } accepted;

/* Takes over `file`, which is empty if the bytes are the caller's. */
static qn_status open_bytes(qn__bytes *file, const uint8_t *bytes, size_t size, const char *name,
                            accepted what, qn__tensors **out, qn_error *err) {
    checker c = {.path = name, .any = what == ANY, .reals = what == MODEL, .err = err};
    qn__tensors *t = qn__alloc(1, sizeof *t, err);
    *out = NULL;
    if (t == NULL) {
        qn__bytes_release(file);
        return QN_MEMORY;
    }
    t->file = *file;
    t->bytes = bytes;
    t->size = size;
    qn_status status = read_header(&c, t);
    if (status == QN_OK)
        status = read_tensors(&c, t);
    if (status == QN_OK)
        *out = t;
    else
        qn__tensors_free(t);
    return status;
}

qn_status qn__tensors_from_bytes(const uint8_t *bytes, size_t size, const char *name,
                                 qn__tensors **out, qn_error *err) {
    qn__bytes none = {0};
    return open_bytes(&none, bytes, size, name, FLOATS, out, err);
}

qn_status qn__tensors_any_from_bytes(const uint8_t *bytes, size_t size, const char *name,
                                     qn__tensors **out, qn_error *err) {
    qn__bytes none = {0};
    return open_bytes(&none, bytes, size, name, ANY, out, err);
}

static qn_status read_file(const char *path, accepted what, qn__tensors **out, qn_error *err) {
    qn__bytes file;
    *out = NULL;
    qn_status status = qn__file_read(path, &file, err);
    if (status == QN_OK)
        status = open_bytes(&file, file.data, file.size, path, what, out, err);
    return status;
}

qn_status qn__tensors_read(const char *path, qn__tensors **out, qn_error *err) {
    return read_file(path, FLOATS, out, err);
}

qn_status qn__tensors_read_any(const char *path, qn__tensors **out, qn_error *err) {
    return read_file(path, ANY, out, err);
}

qn_status qn__tensors_read_model(const char *path, qn__tensors **out, qn_error *err) {
    return read_file(path, MODEL, out, err);
}

qn_status qn__tensors_model_from_bytes(const uint8_t *bytes, size_t size, const char *name,
                                       qn__tensors **out, qn_error *err) {
    qn__bytes none = {0};
    return open_bytes(&none, bytes, size, name, MODEL, out, err);
}

float qn__tensor_float(const qn__tensor_view *view, uint64_t index) {
    const size_t size = view->type == QN__TENSOR_F64 ? 8 : view->type == QN__TENSOR_F32 ? 4 : 2;
    uint64_t bits = 0;
    for (size_t i = 0; i < size; ++i)
        bits |= (uint64_t)view->bytes[index * size + i] << (8 * i);
    if (view->type == QN__TENSOR_F16)
        return (float)qn__half_value((uint16_t)bits);
    if (view->type == QN__TENSOR_F64)
        return (float)qn__double_of_bits(bits);
    /* A bfloat16 is the upper half of a float. */
    const uint32_t word = view->type == QN__TENSOR_BF16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    return qn__float_of_bits(word);
}

void qn__tensors_free(qn__tensors *tensors) {
    if (tensors == NULL)
        return;
    qn__json_free(tensors->header);
    qn__free(tensors->view);
    qn__bytes_release(&tensors->file);
    qn__free(tensors);
}

const char *qn__tensors_note(const qn__tensors *tensors, const char *key) {
    return qn__json_string(qn__json_get(tensors->notes, key));
}

size_t qn__tensors_count(const qn__tensors *tensors) { return tensors->count; }

const qn__tensor_view *qn__tensors_at(const qn__tensors *tensors, size_t index) {
    return index < tensors->count ? &tensors->view[index] : NULL;
}

const qn__tensor_view *qn__tensors_find(const qn__tensors *tensors, const char *name) {
    for (size_t i = 0; i < tensors->count; ++i)
        if (strcmp(tensors->view[i].name, name) == 0)
            return &tensors->view[i];
    return NULL;
}

void qn__tensors_file_digest(const qn__tensors *tensors, uint8_t digest[32]) {
    qn__sha256_of(tensors->bytes, tensors->size, digest);
}
