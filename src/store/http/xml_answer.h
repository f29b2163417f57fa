/* Reading the short XML texts with which stores answer. */
#ifndef QN_STORE_HTTP_XML_ANSWER_H
#define QN_STORE_HTTP_XML_ANSWER_H

#include <stddef.h>

/* The text between <name> and </name>, from *at up to `end`; *at is then after it. NULL: none. */
const char *qn__xml_element(const char **at, const char *end, const char *name, size_t *size);

/* Replaces entities, and with `percent` "%20" and "+"; 0: it does not fit, or has a zero byte. */
int qn__xml_decode(const char *from, size_t size, int percent, char *to, size_t capacity);

/* The text of the first such element, with its entities replaced. 0 and "": `xml` is NULL or has
 * none, it is empty, or it does not fit. */
int qn__xml_text(const char *xml, const char *name, char *text, size_t capacity);

#endif
