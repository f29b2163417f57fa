/* Members of the JSON texts in which services give credentials. */
#ifndef QN_STORE_SIGN_SECRET_JSON_H
#define QN_STORE_SIGN_SECRET_JSON_H

#include <stddef.h>

/* Writes the text or the whole number of the first member with this name, at any depth; 0: there is
 * none, or it is empty or longer. A parser would leave copies of secrets in memory. */
int qn__secret_json(const char *json, const char *name, char *value, size_t capacity);

#endif
