#include "store/sign/secret_json.h"
#include <string.h>

/* The value after the name of a member and a colon; NULL: `at` is not after such a name. */
static const char *value_of(const char *at) {
    at += strspn(at, " \t\r\n");
    return *at == ':' ? at + 1 + strspn(at + 1, " \t\r\n") : NULL;
}

static int copy_value(const char *at, char *value, size_t capacity) {
    const int quoted = *at == '"';
    size_t size = 0;
    for (at += quoted; *at && (quoted ? *at != '"' : strchr("0123456789", *at) != NULL); at++) {
        at += *at == '\\' && at[1]; /* "\/" is all that keys and tokens need */
        if (size + 1 >= capacity)
            return 0;
        value[size++] = *at;
    }
    value[size] = '\0';
    return size > 0;
}

int qn__secret_json(const char *json, const char *name, char *value, size_t capacity) {
    const size_t length = strlen(name);
    for (const char *at = json; (at = strchr(at, '"')) != NULL; at++) {
        if (strncmp(at + 1, name, length) != 0 || at[length + 1] != '"')
            continue;
        const char *found = value_of(at + length + 2);
        if (found)
            return copy_value(found, value, capacity);
    }
    return 0;
}
