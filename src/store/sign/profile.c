#include "store/sign/profile.h"
#include "store/sign/secret.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MOST = 1 << 20, SECTION = 256 };

static const struct {
    const char *variable, *below;
} files[QN__PROFILE_FILES] = {{"AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"},
                              {"AWS_CONFIG_FILE", ".aws/config"}};

const char *qn__profile_name(void) {
    const char *name = getenv("AWS_PROFILE");
    return name && *name ? name : "default";
}

int qn__profile_home(const char *below, char *path, size_t capacity) {
    const char *home = getenv("HOME");
    return home && *home && (size_t)snprintf(path, capacity, "%s/%s", home, below) < capacity;
}

static int file_path(qn__profile_file file, char path[PATH_MAX]) {
    const char *given = getenv(files[file].variable);
    if (!given || !*given)
        return qn__profile_home(files[file].below, path, PATH_MAX);
    if (given[0] == '~' && given[1] == '/')
        return qn__profile_home(given + 2, path, PATH_MAX);
    return snprintf(path, PATH_MAX, "%s", given) < PATH_MAX;
}

static ssize_t read_all(int file, char *text, size_t size) {
    size_t got = 0;
    while (got < size) {
        const ssize_t now = read(file, text + got, size - got);
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            return now < 0 ? -1 : (ssize_t)got;
        got += (size_t)now;
    }
    return (ssize_t)got;
}

char *qn__secret_file(const char *path) {
    struct stat info;
    char *text = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return NULL;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= FILE_MOST)
        text = qn__secret_make((size_t)info.st_size + 1, NULL);
    if (text && read_all(file, text, (size_t)info.st_size) < 0) {
        qn__secret_free(text);
        text = NULL;
    }
    close(file);
    return text;
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The part [*begin, *end) without white space around it. */
static void trim(const char **begin, const char **end) {
    while (*begin < *end && is_blank(**begin))
        ++*begin;
    while (*end > *begin && is_blank((*end)[-1]))
        --*end;
}

static int is_text(const char *begin, const char *end, const char *text) {
    return strlen(text) == (size_t)(end - begin) && memcmp(begin, text, (size_t)(end - begin)) == 0;
}

/* "[profile  a]" is the section "profile a". */
static int is_section(const char *begin, const char *end, const char *section) {
    const char *stop = memchr(begin, ']', (size_t)(end - begin));
    begin++;
    if (!stop)
        return 0;
    trim(&begin, &stop);
    while (begin < stop && *section) {
        if (is_blank(*begin) != is_blank(*section) || (!is_blank(*begin) && *begin != *section))
            return 0;
        for (const int blank = is_blank(*begin); blank && begin + 1 < stop && is_blank(begin[1]);)
            begin++;
        begin++;
        section++;
    }
    return begin == stop && !*section;
}

static int copy(const char *begin, const char *end, char *value, size_t capacity) {
    if ((size_t)(end - begin) >= capacity)
        return 0;
    memcpy(value, begin, (size_t)(end - begin));
    value[end - begin] = '\0';
    return 1;
}

/* An empty key asks whether there is such a section. */
int qn__profile_find(const char *text, const char *section, const char *key, char *value,
                     size_t capacity) {
    int inside = 0;
    for (const char *at = text, *next; *at; at = next) {
        const char *end = at + strcspn(at, "\n"), *begin = at;
        next = end + (*end == '\n');
        if (*at == '[') {
            inside = is_section(at, end, section);
            if (inside && !*key)
                return 1;
            continue;
        }
        const char *equals = memchr(at, '=', (size_t)(end - at));
        if (!inside || !equals || is_blank(*at) || *at == '#' || *at == ';')
            continue;
        const char *name_end = equals, *from = equals + 1;
        trim(&begin, &name_end);
        trim(&from, &end);
        if (is_text(begin, name_end, key))
            return from < end && copy(from, end, value, capacity);
    }
    return 0;
}

static int find_in(qn__profile_file file, const char *section, const char *key, char *value,
                   size_t capacity) {
    char path[PATH_MAX];
    char *text = file_path(file, path) ? qn__secret_file(path) : NULL;
    const int found = text && qn__profile_find(text, section, key, value, capacity);
    qn__secret_free(text);
    return found;
}

int qn__profile_get(const char *name, qn__profile_file file, const char *key, char *value,
                    size_t capacity) {
    char section[SECTION];
    const int plain = file == QN__PROFILE_CREDENTIALS || strcmp(name, "default") == 0;
    snprintf(section, sizeof section, "%s%s", plain ? "" : "profile ", name);
    return find_in(file, section, key, value, capacity);
}

int qn__profile_section_get(const char *kind, const char *name, const char *key, char *value,
                            size_t capacity) {
    char section[SECTION];
    snprintf(section, sizeof section, "%s %s", kind, name);
    return find_in(QN__PROFILE_CONFIG, section, key, value, capacity);
}

int qn__profile_setting(const char *name, const char *key, char *value, size_t capacity) {
    return qn__profile_get(name, QN__PROFILE_CREDENTIALS, key, value, capacity) ||
           qn__profile_get(name, QN__PROFILE_CONFIG, key, value, capacity);
}

int qn__profile_exists(const char *name) {
    char none[1];
    return qn__profile_setting(name, "", none, sizeof none);
}

int qn__profile_region(const char *name, char *region, size_t capacity) {
    static const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value && (size_t)snprintf(region, capacity, "%s", value) < capacity)
            return 1;
    }
    return qn__profile_get(name, QN__PROFILE_CONFIG, "region", region, capacity);
}

int qn__profile_endpoint(const char *name, const char *variable, char *endpoint, size_t capacity) {
    const char *own = getenv(variable), *all = getenv("AWS_ENDPOINT_URL"),
               *ignored = getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    if (ignored && strcasecmp(ignored, "true") == 0)
        return 0;
    if (own && *own)
        return (size_t)snprintf(endpoint, capacity, "%s", own) < capacity;
    if (all && *all)
        return (size_t)snprintf(endpoint, capacity, "%s", all) < capacity;
    return qn__profile_get(name, QN__PROFILE_CONFIG, "endpoint_url", endpoint, capacity);
}
