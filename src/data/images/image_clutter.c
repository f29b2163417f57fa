#include "data/images/image_clutter.h"
#include <stddef.h>
#include <string.h>

static const char *const names[] = {"authors", "changelog", "citation", "copying",
                                    "icon\r",  "licence",   "license",  "md5sums",
                                    "notice",  "readme",    "sha1sums", "sha256sums"};
static const char *const ends[] = {"cfg",  "csv",   "db",   "htm",    "html", "ini", "ipynb",
                                   "json", "jsonl", "lnk",  "log",    "md",   "md5", "nfo",
                                   "py",   "rst",   "sha1", "sha256", "toml", "tsv", "txt",
                                   "url",  "xml",   "yaml", "yml"};

/* In any locale, so without its functions. */
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static int equal(const char *word, const char *small) {
    while (*word && lower(*word) == *small)
        word++, small++;
    return *word == *small;
}

static int is_one_of(const char *word, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (equal(word, list[i]))
            return 1;
    return 0;
}

/* Whether a folder on the way to the file has this name. */
static int lies_in(const char *name, const char *folder) {
    const size_t size = strlen(folder);
    for (; strchr(name, '/'); name = strchr(name, '/') + 1)
        if (strncmp(name, folder, size) == 0 && name[size] == '/')
            return 1;
    return 0;
}

int qn__image_is_clutter(const char *name) {
    const char *slash = strrchr(name, '/'), *own = slash ? slash + 1 : name;
    const char *dot = strrchr(own, '.');
    return is_one_of(own, names, sizeof names / sizeof names[0]) ||
           (dot && is_one_of(dot + 1, ends, sizeof ends / sizeof ends[0])) ||
           lies_in(name, "__MACOSX");
}
