#include "data/bytes/server_address.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

static const char *behind_scheme(const char *path) {
    static const char *const schemes[] = {"postgresql://", "postgres://"};
    for (int i = 0; i < 2; i++)
        if (strncmp(path, schemes[i], strlen(schemes[i])) == 0)
            return path + strlen(schemes[i]);
    return NULL;
}

int qn__is_server(const char *path) { return behind_scheme(path) != NULL; }

const char *qn__server_user_end(const char *address) {
    const char *last = strrchr(address, '@'), *options = strchr(address, '?'), *found = NULL;
    if (!last || !options || options > last ||
        !memchr(options, '=', (size_t)(last - options))) /* it stands in no option */
        return last;
    for (const char *at = address; at < options; at++)
        found = *at == '@' ? at : found;
    return found;
}

char *qn__server_shown(const char *address, qn_error *err) {
    const char *at = qn__server_user_end(address);
    const char *host = at ? at + 1 : behind_scheme(address);
    const size_t size = strcspn(host, "?");
    char *shown = qn__alloc(size + 16, 1, err);
    if (shown)
        snprintf(shown, size + 16, "postgresql://%.*s", (int)size, host);
    return shown;
}
