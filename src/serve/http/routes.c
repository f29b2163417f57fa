/* Which row of the tables answers a request. */
#include "base/memory.h"
#include "serve/http/http_state.h"

#include <string.h>

/* The parts of a path that variables stand for. */
typedef struct found {
    const char *at[QN__ROUTE_VARIABLES];
    size_t size[QN__ROUTE_VARIABLES];
    unsigned count;
} found;

static int matches(const char *pattern, const char *path, found *f) {
    f->count = 0;
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return 0;
            continue;
        }
        pattern = strchr(pattern, '}') + 1;
        const size_t size = strcspn(path, *pattern == '.' ? "/." : "/");
        if (size == 0 || f->count == QN__ROUTE_VARIABLES)
            return 0;
        f->at[f->count] = path;
        f->size[f->count++] = size;
        path += size;
    }
    return *path == '\0';
}

static int is_method(const qn__route *route, const char *method) {
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

static int keep(qn__request *request, const found *f) {
    for (unsigned i = 0; i < f->count; i++) {
        request->variable[i] = qn__copy_unquoted(f->at[i], f->size[i], 0, NULL);
        if (!request->variable[i])
            return 0;
    }
    return 1;
}

static void allow(char allowed[64], const char *method) {
    const size_t used = strlen(allowed);
    if (!strstr(allowed, method) && used + strlen(method) + 3 < 64) {
        strcat(allowed, used ? ", " : "");
        strcat(allowed, method);
    }
}

int qn__route_find(const qn__http *http, qn__request *request, const char *method, const char *path,
                   char allowed[64]) {
    found f;
    allowed[0] = '\0';
    for (unsigned t = 0; t < http->tables; t++)
        for (const qn__route *row = http->table[t].routes; row->method; row++) {
            if (!matches(row->path, path, &f))
                continue;
            if (!is_method(row, method)) {
                allow(allowed, row->method);
                continue;
            }
            request->route = row;
            request->user = http->table[t].user;
            return keep(request, &f);
        }
    return 1;
}
