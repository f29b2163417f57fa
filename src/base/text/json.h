/* A strict JSON reader (RFC 8259) for small untrusted texts: headers and recipes.
 *
 * The text is parsed once into a flat array of nodes. Nesting is limited to 32 levels, and the
 * number of nodes is bounded by the size of the text. Duplicate keys, trailing bytes, invalid UTF-8
 * and numbers that are not JSON are errors: QN_FORMAT, with the byte's position, counted from 0, in
 * `what`. The caller, who has the file's name, sets `where`.
 *
 * The functions that take a node accept NULL and then return 0 or NULL, so that calls can be
 * chained. Their results are valid as long as the document. */
#ifndef QN_BASE_TEXT_JSON_H
#define QN_BASE_TEXT_JSON_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__json qn__json;           /* a document */
typedef struct qn__json_node qn__json_node; /* a value in it */

/* `text` need not end in a NUL and is not used afterwards. */
qn_status qn__json_parse(const char *text, size_t size, qn__json **out, qn_error *err);
void qn__json_free(qn__json *json);
const qn__json_node *qn__json_root(const qn__json *json);

int qn__json_is_object(const qn__json_node *node);
int qn__json_is_array(const qn__json_node *node);
int qn__json_is_null(const qn__json_node *node);
int qn__json_is_true(const qn__json_node *node);
/* Members and elements in the order of the text; key is NULL for an array's elements. */
size_t qn__json_count(const qn__json_node *node);
const qn__json_node *qn__json_at(const qn__json_node *node, size_t index);
const char *qn__json_key(const qn__json_node *node);
/* A member by name, or NULL. */
const qn__json_node *qn__json_get(const qn__json_node *object, const char *key);
/* Decoded text, NUL-terminated (the parser refuses texts that contain a NUL), or NULL when it is
 * not a string. */
const char *qn__json_string(const qn__json_node *node);
/* 1 and the value when the node is a number without sign, point or exponent that fits 64 bits. */
int qn__json_u64(const qn__json_node *node, uint64_t *out);
/* 1 and the nearest float32 when the node is a number and the result is finite. */
int qn__json_float(const qn__json_node *node, float *out);
/* The same for a double, of a number below 64 bytes. */
int qn__json_real(const qn__json_node *node, double *out);
/* The text of a number as it was written; NULL for anything else. */
const char *qn__json_digits(const qn__json_node *node);

/* A truth value as JSON. */
static inline const char *qn__truth_json(int value) { return value ? "true" : "false"; }

#endif
