/* The statements of a user kernel's functions. */
#ifndef QN_USERKERNEL_LANGUAGE_USER_STATEMENT_H
#define QN_USERKERNEL_LANGUAGE_USER_STATEMENT_H

#include "userkernel/language/user_parser.h"

/* Reads the body of a function, from its { to its }, and writes it. *assigned gets the bit of each
 * result that is assigned somewhere. Returns 0 after a refusal. */
int qn__user_body(qn__user_parser *p, uint32_t *assigned);

/* Reads "NAME = NUMBER" or "NAME[N] = {NUMBER, ...}" and the semicolon, for a constant of the file,
 * and writes it. */
int qn__user_constant(qn__user_parser *p, qn__user_type type);

#endif
