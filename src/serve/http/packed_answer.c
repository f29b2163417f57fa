/* Answers with a Content-Encoding. */
#include "base/text/text.h"
#include "data/bytes/packing.h"
#include "serve/http/http_state.h"

#include <string.h>
#include <strings.h>

enum { LEAST = 1024 }; /* bytes of an answer that is packed */

static size_t leave_blanks(const char *at) { return strspn(at, " \t"); }

/* "gzip;q=0" says that it is not taken. */
static int is_refused(const char *at, const char *end) {
    double weight = 1;
    const char *q = memchr(at, '=', (size_t)(end - at));
    return q && qn__parse_real(q + 1, (size_t)(end - q - 1), &weight) && weight == 0;
}

/* Whether the list of codings, such as "gzip;q=0.5, deflate", takes this one. */
static int takes(const char *list, const char *coding) {
    const size_t size = strlen(coding);
    for (const char *at = list; *at; at += *at == ',') {
        at += leave_blanks(at);
        const size_t length = strcspn(at, ","), word = strcspn(at, ",; \t");
        if (word == size && strncasecmp(at, coding, size) == 0)
            return !is_refused(at, at + length);
        at += length;
    }
    return 0;
}

void *qn__answer_pack(qn__request *r, size_t *size, const char **coding) {
    const char *list = qn__request_header(r, "Accept-Encoding");
    if (!r->route || !r->route->packs || !list || r->sent < LEAST)
        return NULL;
    const int as_gzip = takes(list, "gzip");
    if (!as_gzip && !takes(list, "deflate"))
        return NULL;
    *coding = as_gzip ? "gzip" : "deflate";
    return qn__pack(as_gzip ? QN__PACK_GZIP : QN__PACK_ZLIB, r->whole, r->sent, size);
}
