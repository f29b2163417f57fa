/* Dates of HTTP headers (RFC 9110, 5.6.7). */
#ifndef QN_STORE_HTTP_HTTP_DATE_H
#define QN_STORE_HTTP_HTTP_DATE_H

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" as seconds since 1970; 0: it is not such a date. */
int qn__http_date(const char *text, int64_t *seconds);

#endif
