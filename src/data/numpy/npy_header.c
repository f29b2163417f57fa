/* The header of an NPY array: a Python dictionary of three keys, and nothing else of Python. */
#include "base/memory.h"
#include "data/numpy/npy.h"
#include <stdlib.h>
#include <string.h>

/* NumPy writes 128 bytes for a plain array; longer ones describe records. */
enum { HEADER_MAX = 1 << 16, FIXED = 8, NAME_CAPACITY = 64 };

typedef struct parser {
    const qn__npy_bytes *in;
    const char *text; /* ends with a NUL */
    size_t at;
    uint64_t begin; /* of the text in the file */
    qn__npy *array;
} parser;

qn_status qn__npy_refuse(const qn__npy_bytes *in, uint64_t byte, const char *remedy,
                         qn_error *err) {
    qn__at(err, "%s, byte %llu%s", in->path, (unsigned long long)byte, in->of);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status refuse_here(const parser *p, const char *remedy, qn_error *err) {
    return qn__npy_refuse(p->in, p->begin + p->at, remedy, err);
}

static qn_status refuse_syntax(const parser *p, const char *wanted, qn_error *err) {
    qn__fail(err, QN_INPUT, "the NPY header is malformed: %s is missing", wanted);
    return refuse_here(p, "write the array again with numpy.save", err);
}

static void skip_blanks(parser *p) {
    while (p->text[p->at] == ' ' || p->text[p->at] == '\n' || p->text[p->at] == '\t')
        p->at++;
}

/* Takes a character if it is next, after blanks. */
static int take(parser *p, char c) {
    skip_blanks(p);
    if (p->text[p->at] != c || c == '\0')
        return 0;
    p->at++;
    return 1;
}

static int take_word(parser *p, const char *word) {
    skip_blanks(p);
    const size_t size = strlen(word);
    if (strncmp(p->text + p->at, word, size) != 0)
        return 0;
    p->at += size;
    return 1;
}

/* A text in quotes, without escapes; longer ones are cut. */
static int take_text(parser *p, char text[NAME_CAPACITY]) {
    skip_blanks(p);
    const char quote = p->text[p->at];
    if (quote != '\'' && quote != '"')
        return 0;
    const char *from = p->text + p->at + 1, *end = strchr(from, quote);
    if (!end)
        return 0;
    const size_t size =
        (size_t)(end - from) < NAME_CAPACITY ? (size_t)(end - from) : NAME_CAPACITY - 1;
    memcpy(text, from, size);
    text[size] = '\0';
    p->at += (size_t)(end - from) + 2;
    return 1;
}

static int take_number(parser *p, uint64_t *number) {
    skip_blanks(p);
    const size_t begin = p->at;
    *number = 0;
    for (; p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
        const uint64_t digit = (uint64_t)(p->text[p->at] - '0');
        *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
    }
    if (p->at == begin)
        return 0;
    if (p->text[p->at] == 'L') /* of Python 2 */
        p->at++;
    return 1;
}

/* ------------------------------------------------------------------ the element's type */

/* What a type is called that has no meaning as a number or a text; NULL: another one. */
static const char *foreign_type(char letter) {
    switch (letter) {
    case 'O':
        return "Python objects, which only Python can read";
    case 'c':
        return "complex numbers";
    case 'M':
        return "dates";
    case 'm':
        return "spans of time";
    case 'V':
        return "records or raw bytes";
    default:
        return NULL;
    }
}

static int known_type(char letter, uint64_t size, qn__npy *array) {
    const int power = size == 1 || size == 2 || size == 4 || size == 8;
    switch (letter) {
    case 'b':
        array->kind = QN__NPY_BOOL;
        return size == 1;
    case 'i':
        array->kind = QN__NPY_INT;
        return power;
    case 'u':
        array->kind = QN__NPY_UINT;
        return power;
    case 'f':
        array->kind = QN__NPY_FLOAT;
        return power && size > 1;
    case 'U':
        array->kind = QN__NPY_UNICODE;
        return size >= 1 && size <= UINT16_MAX;
    case 'S':
        array->kind = QN__NPY_ASCII;
        return size >= 1 && size <= UINT16_MAX;
    default:
        return 0;
    }
}

static qn_status refuse_type(const parser *p, const char *text, qn_error *err) {
    const char order = *text;
    const int ordered = order == '<' || order == '>' || order == '|' || order == '=';
    const char *foreign = foreign_type(text[ordered]);
    if (foreign)
        qn__fail(err, QN_INPUT, "the array holds %s (type %s)", foreign, text);
    else
        qn__fail(err, QN_INPUT, "the elements' type %s is not read", text);
    return refuse_here(p,
                       "convert the array to numbers before numpy.save: array.astype('float32'), "
                       "or an integer type",
                       err);
}

static qn_status read_type(parser *p, qn_error *err) {
    char text[NAME_CAPACITY];
    const parser begin = *p;
    if (take(p, '[')) {
        qn__fail(err, QN_INPUT, "the array holds records of several fields");
        return refuse_here(&begin, "save the fields as columns of one plain array, or write CSV",
                           err);
    }
    if (!take_text(p, text))
        return refuse_syntax(p, "the text of 'descr'", err);
    const char *at = text;
    if (*at == '<' || *at == '>' || *at == '|')
        at++;
    char *end = NULL;
    const unsigned long size = *at ? strtoul(at + 1, &end, 10) : 0;
    if (!*at || at[1] < '1' || at[1] > '9' || *end || !known_type(*at, size, p->array) ||
        (at == text && size > 1))
        return refuse_type(&begin, text, err);
    p->array->big = *text == '>';
    p->array->size = (uint32_t)size * (p->array->kind == QN__NPY_UNICODE ? 4 : 1);
    return QN_OK;
}

/* ------------------------------------------------------------------ the other keys */

static qn_status read_order(parser *p, qn_error *err) {
    p->array->fortran = take_word(p, "True");
    if (!p->array->fortran && !take_word(p, "False"))
        return refuse_syntax(p, "True or False of 'fortran_order'", err);
    return QN_OK;
}

static qn_status add_dimension(parser *p, uint64_t length, qn_error *err) {
    qn__npy *a = p->array;
    if (a->dimensions == QN__NPY_DIMENSIONS) {
        qn__fail(err, QN_INPUT, "the array has more than %d dimensions", QN__NPY_DIMENSIONS);
        return refuse_here(p, "reshape it to (items, features)", err);
    }
    if (length == 0 && a->dimensions > 0) {
        qn__fail(err, QN_INPUT, "dimension %u of the items is 0", (unsigned)a->dimensions);
        return refuse_here(p, "give an array with at least one number", err);
    }
    if (a->dimensions == 0 ? length > QN__ITEMS_MAX : length > UINT32_MAX / a->features) {
        qn__fail(err, QN_INPUT,
                 a->dimensions == 0 ? "the header claims more than 2^48 items"
                                    : "the header claims items of 2^32 or more "
                                      "features");
        return refuse_here(p, "check that the file is NPY and whole", err);
    }
    if (a->dimensions == 0)
        a->items = length;
    else
        a->features *= length;
    a->shape[a->dimensions++] = length;
    return QN_OK;
}

static qn_status read_shape(parser *p, qn_error *err) {
    uint64_t length;
    p->array->features = 1;
    p->array->dimensions = 0;
    if (!take(p, '('))
        return refuse_syntax(p, "the tuple of 'shape'", err);
    while (take_number(p, &length)) {
        const qn_status status = add_dimension(p, length, err);
        if (status != QN_OK)
            return status;
        if (!take(p, ','))
            break;
    }
    if (!take(p, ')'))
        return refuse_syntax(p, "the end of the tuple 'shape'", err);
    if (p->array->dimensions == 0) {
        qn__fail(err, QN_INPUT, "the array is a single number without dimensions");
        return refuse_here(
            p, "reshape it: numpy.reshape(array, (1,)), or (items, features) for a data set", err);
    }
    return QN_OK;
}

static qn_status read_key(parser *p, unsigned *seen, qn_error *err) {
    static const struct {
        const char *name;
        qn_status (*read)(parser *p, qn_error *err);
    } keys[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
    char name[NAME_CAPACITY];
    if (!take_text(p, name))
        return refuse_syntax(p, "a key", err);
    if (!take(p, ':'))
        return refuse_syntax(p, "the colon after a key", err);
    for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++)
        if (strcmp(name, keys[k].name) == 0 && !(*seen >> k & 1)) {
            *seen |= 1u << k;
            return keys[k].read(p, err);
        }
    qn__fail(err, QN_INPUT, "the NPY header has an unknown or repeated key \"%s\"", name);
    return refuse_here(p, "write the array again with numpy.save", err);
}

static qn_status read_dictionary(parser *p, qn_error *err) {
    unsigned seen = 0;
    if (!take(p, '{'))
        return refuse_syntax(p, "its dictionary", err);
    do {
        skip_blanks(p);
        if (p->text[p->at] == '}')
            break;
        const qn_status status = read_key(p, &seen, err);
        if (status != QN_OK)
            return status;
    } while (take(p, ','));
    if (!take(p, '}'))
        return refuse_syntax(p, "the end of its dictionary", err);
    skip_blanks(p);
    if (p->text[p->at] != '\0')
        return refuse_syntax(p, "its end after the dictionary", err);
    return seen == 7 ? QN_OK : refuse_syntax(p, "'descr', 'fortran_order' or 'shape'", err);
}

/* ------------------------------------------------------------------ sizes */

static qn_status check_size(const qn__npy_bytes *in, const qn__npy *a, qn_error *err) {
    const uint64_t count = a->items * a->features; /* below 2^80: checked by division */
    const int fits = (count == 0 || a->features <= UINT64_MAX / a->items) &&
                     count <= UINT64_MAX / 4 / a->size && count * a->size <= SIZE_MAX / 4;
    const uint64_t have = in->size - a->begin, want = fits ? count * a->size : UINT64_MAX;
    if (fits && (in->exact ? have == want : have >= want))
        return QN_OK;
    const int more = fits && have > want;
    qn__fail(err, QN_INPUT,
             "the NPY header claims %llu items of %llu features and %u bytes each, and %s%llu "
             "bytes follow",
             (unsigned long long)a->items, (unsigned long long)a->features, (unsigned)a->size,
             in->exact ? "" : "at most ", (unsigned long long)have);
    return qn__npy_refuse(in, more ? a->begin + want : in->size,
                          more ? "check that the file holds one array and nothing else"
                               : "the file seems cut off: write or copy it again",
                          err);
}

static qn_status cut_header(const qn__npy_bytes *in, uint64_t byte, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file ends inside its NPY header");
    return qn__npy_refuse(in, byte, "write or copy the file again", err);
}

/* The fixed part: *length becomes the length of the text. */
static qn_status read_start(const qn__npy_bytes *in, qn__npy *array, uint32_t *length,
                            qn_error *err) {
    uint8_t first[FIXED + 4];
    size_t got = 0, more = 0;
    qn_status status = in->read(in->self, first, FIXED + 2, &got, err);
    if (status != QN_OK)
        return status;
    if (got >= 6 && memcmp(first, "\x93NUMPY", 6) != 0) {
        qn__fail(err, QN_INPUT, "this is not an NPY array");
        return qn__npy_refuse(in, 0, "write the array with numpy.save", err);
    }
    if (got == FIXED + 2 && (first[6] < 1 || first[6] > 3)) {
        qn__fail(err, QN_INPUT, "version %u.%u of the NPY format is not read, only 1, 2 and 3",
                 (unsigned)first[6], (unsigned)first[7]);
        return qn__npy_refuse(in, 6, "write the array again with numpy.save", err);
    }
    const size_t start = got == FIXED + 2 && first[6] > 1 ? FIXED + 4 : FIXED + 2;
    if (start > got && got == FIXED + 2)
        status = in->read(in->self, first + got, 2, &more, err);
    if (status != QN_OK)
        return status;
    if (got + more < start)
        return cut_header(in, got + more, err);
    *length = first[8] | (uint32_t)first[9] << 8;
    if (start == FIXED + 4)
        *length |= (uint32_t)first[10] << 16 | (uint32_t)first[11] << 24;
    array->begin = start;
    return QN_OK;
}

qn_status qn__npy_read_header(const qn__npy_bytes *in, qn__npy *array, qn_error *err) {
    uint32_t length = 0;
    *array = (qn__npy){0};
    qn_status status = read_start(in, array, &length, err);
    if (status != QN_OK)
        return status;
    if (length > HEADER_MAX) {
        qn__fail(err, QN_INPUT, "the NPY header has %u bytes, more than any plain array needs",
                 (unsigned)length);
        return qn__npy_refuse(in, FIXED, "save the values as one plain array", err);
    }
    char *text = qn__alloc((uint64_t)length + 1, 1, err);
    if (!text)
        return QN_MEMORY;
    size_t got = 0;
    parser p = {.in = in, .text = text, .begin = array->begin, .array = array};
    status = in->read(in->self, text, length, &got, err);
    if (status == QN_OK && got < length)
        status = cut_header(in, array->begin + got, err);
    if (status == QN_OK)
        status = read_dictionary(&p, err);
    qn__free(text);
    array->begin += length;
    return status == QN_OK ? check_size(in, array, err) : status;
}
