#include "data/columnar/thrift.h"

enum { STOP = 0, FALSE = 2, BYTE = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, BINARY = 8, SET = 10 };
enum { MAP = 11, UUID = 13 };
enum { DEEPEST = 64 };

static unsigned take_byte(qn__thrift *t) {
    if (t->at >= t->size) {
        t->broken = 1;
        return 0;
    }
    return t->bytes[t->at++];
}

uint64_t qn__thrift_length(qn__thrift *t) {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const unsigned byte = take_byte(t);
        if (shift < 64)
            number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return number;
    }
    t->broken = 1;
    return 0;
}

/* Zigzag: 0, -1, 1, -2 and so on. */
int64_t qn__thrift_int(qn__thrift *t) {
    const uint64_t number = qn__thrift_length(t);
    return (int64_t)(number >> 1 ^ (0 - (number & 1)));
}

int qn__thrift_next(qn__thrift *t, qn__thrift_field *field) {
    const unsigned byte = take_byte(t);
    if (t->broken || (byte & 15) == STOP)
        return 0;
    field->type = (int)(byte & 15);
    if (byte >> 4)
        field->id += (int)(byte >> 4);
    else
        field->id = (int)(int16_t)qn__thrift_int(t);
    return !t->broken;
}

const uint8_t *qn__thrift_text(qn__thrift *t, size_t *size) {
    const uint64_t length = qn__thrift_length(t);
    *size = 0;
    if (t->broken || length > t->size - t->at) {
        t->broken = 1;
        return t->bytes;
    }
    *size = (size_t)length;
    t->at += *size;
    return t->bytes + t->at - *size;
}

size_t qn__thrift_list(qn__thrift *t, int *type) {
    const unsigned byte = take_byte(t);
    const uint64_t count = byte >> 4 == 15 ? qn__thrift_length(t) : byte >> 4;
    *type = (int)(byte & 15);
    if (count > t->size - t->at)
        t->broken = 1;
    return t->broken ? 0 : (size_t)count;
}

static void skip(qn__thrift *t, int type, int depth);

static void skip_elements(qn__thrift *t, int depth) {
    int type;
    const size_t count = qn__thrift_list(t, &type);
    for (size_t i = 0; i < count && !t->broken; i++)
        if (type == QN__THRIFT_TRUE || type == FALSE)
            take_byte(t); /* in a list a truth value is a byte, not a part of its type */
        else
            skip(t, type, depth);
}

static void skip_map(qn__thrift *t, int depth) {
    const uint64_t count = qn__thrift_length(t);
    const unsigned types = count ? take_byte(t) : 0;
    if (count > t->size - t->at) /* a truth value would take no byte here, and the loop no end */
        t->broken = 1;
    for (uint64_t i = 0; i < count && !t->broken; i++) {
        skip(t, (int)(types >> 4), depth);
        skip(t, (int)(types & 15), depth);
    }
}

static void skip(qn__thrift *t, int type, int depth) {
    size_t size = type == DOUBLE ? 8 : type == UUID ? 16 : type == BYTE;
    qn__thrift_field field = {0};
    if (type < QN__THRIFT_TRUE || type > UUID || depth > DEEPEST) {
        t->broken = 1;
    } else if (type >= I16 && type <= I64) {
        (void)qn__thrift_length(t);
    } else if (type == BINARY) {
        (void)qn__thrift_text(t, &size);
    } else if (type == QN__THRIFT_LIST || type == SET) {
        skip_elements(t, depth + 1);
    } else if (type == MAP) {
        skip_map(t, depth + 1);
    } else if (type == QN__THRIFT_STRUCT) {
        while (qn__thrift_next(t, &field))
            skip(t, field.type, depth + 1);
    } else {
        for (; size > 0; size--)
            take_byte(t);
    }
}

void qn__thrift_skip(qn__thrift *t, int type) { skip(t, type, 0); }
