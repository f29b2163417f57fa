#include "userkernel/language/user_types.h"

#include "base/encoding.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word, *tag, *numpy;
    uint32_t size;
} types[QN__USER_TYPES] = {
    {"int8_t", "i8", "int8", 1},      {"int16_t", "i16", "int16", 2},
    {"int32_t", "i32", "int32", 4},   {"int64_t", "i64", "int64", 8},
    {"uint8_t", "u8", "uint8", 1},    {"uint16_t", "u16", "uint16", 2},
    {"uint32_t", "u32", "uint32", 4}, {"uint64_t", "u64", "uint64", 8},
    {"float", "f32", "float32", 4},   {"double", "f64", "float64", 8},
};

static int is_word(const char *name, const char *word, size_t size) {
    return strlen(name) == size && memcmp(name, word, size) == 0;
}

qn__user_type qn__user_type_of(const char *word, size_t size) {
    for (int t = 0; t < QN__USER_TYPES; t++)
        if (is_word(types[t].word, word, size))
            return (qn__user_type)t;
    return is_word("int", word, size)        ? QN__USER_I32
           : is_word("unsigned", word, size) ? QN__USER_U32
                                             : QN__USER_TYPES;
}

const char *qn__user_type_word(qn__user_type type) { return types[type].word; }

const char *qn__user_type_tag(qn__user_type type) { return types[type].tag; }

const char *qn__user_type_numpy(qn__user_type type) { return types[type].numpy; }

uint32_t qn__user_type_size(qn__user_type type) { return types[type].size; }

int qn__user_type_is_real(qn__user_type type) { return type >= QN__USER_F32; }

int qn__user_type_is_signed(qn__user_type type) {
    return type <= QN__USER_I64 || type >= QN__USER_F32;
}

qn__user_type qn__user_type_promoted(qn__user_type type) {
    return types[type].size < 4 ? QN__USER_I32 : type;
}

qn__user_type qn__user_type_common(qn__user_type a, qn__user_type b) {
    a = qn__user_type_promoted(a);
    b = qn__user_type_promoted(b);
    if (qn__user_type_is_real(a) || qn__user_type_is_real(b))
        return a > b ? a : b; /* the reals come last, double after float */
    if (types[a].size != types[b].size)
        return types[a].size > types[b].size ? a : b;
    return a > b ? a : b; /* of equal sizes the one without a sign */
}

/* Digits with a sign, within the limits of a type. */
static int read_integer(qn__user_type type, const char *text, void *out) {
    const int negative = *text == '-';
    const char *at = text + (*text == '-' || *text == '+');
    const uint32_t bits = 8 * types[type].size;
    uint64_t value = 0;
    if (*at == '\0')
        return 0;
    for (; *at; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return 0;
    const uint64_t top = qn__user_type_is_signed(type) ? (uint64_t)1 << (bits - 1)
                         : bits == 64                  ? 0
                                                       : (uint64_t)1 << bits;
    if (qn__user_type_is_signed(type) ? value > top - !negative
                                      : (negative && value > 0) || (top > 0 && value >= top))
        return 0;
    value = negative ? 0 - value : value;
    memcpy(out, &value, sizeof value);
    if (types[type].size == 1)
        memcpy(out, &(uint8_t){(uint8_t)value}, 1);
    else if (types[type].size == 2)
        memcpy(out, &(uint16_t){(uint16_t)value}, 2);
    else if (types[type].size == 4)
        memcpy(out, &(uint32_t){(uint32_t)value}, 4);
    return 1;
}

int qn__user_type_read(qn__user_type type, const char *text, void *out) {
    char *end;
    if (!qn__user_type_is_real(type))
        return read_integer(type, text, out);
    /* strtod would also take blanks, "nan", "inf" and hexadecimal digits. */
    if (!*text || text[strspn(text, "0123456789+-.eE")])
        return 0;
    const locale_t before = uselocale(qn__c_locale());
    int finite;
    if (type == QN__USER_F32) {
        const float value = strtof(text, &end);
        memcpy(out, &value, sizeof value);
        finite = isfinite(value);
    } else {
        const double value = strtod(text, &end);
        memcpy(out, &value, sizeof value);
        finite = isfinite(value);
    }
    uselocale(before);
    return finite && end > text && *end == '\0';
}

static void print_real(qn__user_type type, const void *number, char text[40]) {
    const locale_t before = uselocale(qn__c_locale());
    float f = 0;
    double d = 0;
    memcpy(type == QN__USER_F32 ? (void *)&f : (void *)&d, number, types[type].size);
    const double value = type == QN__USER_F32 ? (double)f : d;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, value);
        if (type == QN__USER_F32 ? strtof(text, NULL) == f : strtod(text, NULL) == d)
            break;
    }
    uselocale(before);
}

/* An integer of any of the types, with its sign carried to 64 bits. */
static uint64_t load_integer(qn__user_type type, const void *number) {
    uint8_t a = 0;
    uint16_t b = 0;
    uint32_t c = 0;
    uint64_t d = 0;
    switch (types[type].size) {
    case 1:
        memcpy(&a, number, sizeof a);
        return type == QN__USER_I8 ? (uint64_t)(int8_t)a : a;
    case 2:
        memcpy(&b, number, sizeof b);
        return type == QN__USER_I16 ? (uint64_t)(int16_t)b : b;
    case 4:
        memcpy(&c, number, sizeof c);
        return type == QN__USER_I32 ? (uint64_t)(int32_t)c : c;
    default:
        memcpy(&d, number, sizeof d);
        return d;
    }
}

void qn__user_type_print(qn__user_type type, const void *number, char text[40]) {
    if (qn__user_type_is_real(type))
        print_real(type, number, text);
    else if (qn__user_type_is_signed(type))
        snprintf(text, 40, "%" PRId64, (int64_t)load_integer(type, number));
    else
        snprintf(text, 40, "%" PRIu64, load_integer(type, number));
}
