/* The number types of user kernels (docs/kernels.md). */
#ifndef QN_USERKERNEL_LANGUAGE_USER_TYPES_H
#define QN_USERKERNEL_LANGUAGE_USER_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum qn__user_type {
    QN__USER_I8,
    QN__USER_I16,
    QN__USER_I32,
    QN__USER_I64,
    QN__USER_U8,
    QN__USER_U16,
    QN__USER_U32,
    QN__USER_U64,
    QN__USER_F32,
    QN__USER_F64,
    QN__USER_TYPES
} qn__user_type;

/* The type that a word of a kernel's text names, such as "int32_t" or "float"; QN__USER_TYPES: it
 * names none. */
qn__user_type qn__user_type_of(const char *word, size_t size);

/* "int32_t", as in the text; "i32", as in names of the prelude; "int32", as NumPy calls it. */
const char *qn__user_type_word(qn__user_type type);
const char *qn__user_type_tag(qn__user_type type);
const char *qn__user_type_numpy(qn__user_type type);

uint32_t qn__user_type_size(qn__user_type type); /* in bytes */
int qn__user_type_is_real(qn__user_type type);
int qn__user_type_is_signed(qn__user_type type);

/* C's integer promotion, and the type in which C computes with two operands. */
qn__user_type qn__user_type_promoted(qn__user_type type);
qn__user_type qn__user_type_common(qn__user_type a, qn__user_type b);

/* Reads a whole text as a number of a type, rounded once; in C's notation for decimal numbers, with
 * a sign. 0: it is none, or out of the type's range. `out` has 8 bytes. */
int qn__user_type_read(qn__user_type type, const char *text, void *out);

/* The shortest text that reads back as the number; at least 40 bytes. */
void qn__user_type_print(qn__user_type type, const void *number, char text[40]);

#endif
