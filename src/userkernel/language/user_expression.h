/* The expressions of a user kernel. They change nothing, so the order in which a compiler computes
 * their parts does not matter. */
#ifndef QN_USERKERNEL_LANGUAGE_USER_EXPRESSION_H
#define QN_USERKERNEL_LANGUAGE_USER_EXPRESSION_H

#include "userkernel/language/user_parser.h"

typedef struct qn__user_value {
    qn__user_type type;
    size_t from; /* where its C begins */
    uint32_t depth;
    int wraps;     /* 1: a row of integers without a sign, to be converted to the type */
    uint32_t node; /* in the tree */
} qn__user_value;

/* Reads an expression and writes its C. Returns 0 after a refusal. */
int qn__user_expression(qn__user_parser *p, qn__user_value *value);

/* Reads an expression and writes it as a number of the type. *depth, where it is not NULL, becomes
 * at least one more than the depth of the expression. This and the next two leave the node in the
 * parser. */
int qn__user_expression_as(qn__user_parser *p, qn__user_type type, uint32_t *depth);

/* Reads a number, which is next. */
int qn__user_literal(qn__user_parser *p, qn__user_value *value);

/* Reads the index between brackets after the name of an array of the function, and writes
 * "[INDEX]". *depth becomes at least its depth and 1. */
int qn__user_element(qn__user_parser *p, const qn__user_symbol *array, uint32_t *depth);

/* Reads an index and writes it as int64_t. *depth becomes at least one more than its depth. */
int qn__user_index(qn__user_parser *p, uint32_t *depth);

/* Converts what was written from value->from on. */
void qn__user_convert(qn__user_parser *p, qn__user_value *value, qn__user_type type);

/* Writes an operation of two values, the first of which begins at left->from, the second at
 * right->from; left becomes the result. `sign` is the token of the operator. */
int qn__user_operation(qn__user_parser *p, const qn__user_token *sign, const char *word,
                       qn__user_value *left, const qn__user_value *right);

#endif
