#include "store/sign/profile.h"
#include "store/sign/secret.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
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

const char *qn__profile_variable(void) {
    static const char *const variables[] = {"AWS_DEFAULT_PROFILE", "AWS_PROFILE"};
    for (size_t i = 0; i < 2; i++) {
        const char *name = getenv(variables[i]);
        if (name && *name)
            return variables[i];
    }
    return NULL;
}

const char *qn__profile_name(void) {
    const char *variable = qn__profile_variable(), *name = variable ? getenv(variable) : NULL;
    return name ? name : "default";
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

/* The case of letters does not matter. */
static int is_name(const char *begin, const char *end, const char *text) {
    return strlen(text) == (size_t)(end - begin) &&
           strncasecmp(begin, text, (size_t)(end - begin)) == 0;
}

/* The name after a blank may be in quotes, as the AWS command writes it if it has blanks. */
static void cut_quotes(const char **begin, const char **stop, char wanted) {
    const char quote = **begin;
    if ((quote != '"' && quote != '\'') || quote == wanted || *stop - *begin < 2)
        return;
    if ((*stop)[-1] == quote) {
        ++*begin;
        --*stop;
    }
}

/* "[profile  a]" and "[profile 'a']" are the section "profile a". */
static int is_section(const char *begin, const char *end, const char *section) {
    const char *stop = memchr(begin, ']', (size_t)(end - begin));
    begin++;
    if (!stop)
        return 0;
    trim(&begin, &stop);
    while (begin < stop && *section) {
        if (is_blank(*begin) != is_blank(*section) || (!is_blank(*begin) && *begin != *section))
            return 0;
        const int blank = is_blank(*begin);
        while (blank && begin + 1 < stop && is_blank(begin[1]))
            begin++;
        begin++;
        section++;
        if (blank && begin < stop)
            cut_quotes(&begin, &stop, *section);
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

/* Without a comment after the value, which white space precedes. A command is left whole. */
static void cut_comment(const char *begin, const char **end) {
    for (const char *at = begin; at < *end; at++)
        if ((*at == '#' || *at == ';') && (at == begin || is_blank(at[-1])))
            *end = at;
}

/* A line on its way through the text. */
typedef struct setting {
    const char *name, *name_end, *value, *end;
    size_t indent;
} setting;

static int read_setting(const char *at, const char *end, setting *s) {
    const char *equals = memchr(at, '=', (size_t)(end - at));
    *s = (setting){.name = at, .name_end = equals, .value = equals ? equals + 1 : end, .end = end};
    if (!equals)
        return 0;
    trim(&s->name, &s->name_end);
    s->indent = (size_t)(s->name - at);
    if (!is_name(s->name, s->name_end, "credential_process"))
        cut_comment(s->value, &s->end);
    trim(&s->value, &s->end);
    return 1;
}

/* An empty key asks whether there is such a section. A setting that is indented more than the one
 * before belongs to that. */
int qn__profile_find(const char *text, const char *section, const char *above, const char *key,
                     char *value, size_t capacity) {
    int inside = 0, below = 0;
    size_t level = SIZE_MAX; /* of the settings; SIZE_MAX: before the first one */
    setting s;
    text += strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    for (const char *at = text, *next; *at; at = next) {
        const char *end = at + strcspn(at, "\n"), *begin = at;
        next = end + (*end == '\n');
        trim(&begin, &end);
        if (begin == end || *begin == '#' || *begin == ';')
            continue;
        const int nested = level != SIZE_MAX && (size_t)(begin - at) > level;
        if (*begin == '[' && !nested) {
            inside = is_section(begin, end, section);
            below = 0;
            level = SIZE_MAX;
            if (inside && !*key)
                return 1;
            continue;
        }
        if (!inside || !read_setting(at, end, &s))
            continue;
        if (!nested) {
            level = s.indent;
            below = above && is_name(s.name, s.name_end, above);
        }
        if (nested == (above != NULL) && (!above || below) && is_name(s.name, s.name_end, key))
            return s.value < s.end && copy(s.value, s.end, value, capacity);
    }
    return 0;
}

static int find_in(qn__profile_file file, const char *section, const char *above, const char *key,
                   char *value, size_t capacity) {
    char path[PATH_MAX];
    char *text = file_path(file, path) ? qn__secret_file(path) : NULL;
    const int found = text && qn__profile_find(text, section, above, key, value, capacity);
    qn__secret_free(text);
    return found;
}

int qn__profile_get(const char *name, qn__profile_file file, const char *key, char *value,
                    size_t capacity) {
    char section[SECTION];
    const int is_config = file == QN__PROFILE_CONFIG;
    snprintf(section, sizeof section, "%s%s", is_config ? "profile " : "", name);
    if (find_in(file, section, NULL, key, value, capacity))
        return 1;
    return is_config && strcmp(name, "default") == 0 &&
           find_in(file, name, NULL, key, value, capacity);
}

int qn__profile_section_get(const char *kind, const char *name, const char *key, char *value,
                            size_t capacity) {
    char section[SECTION];
    snprintf(section, sizeof section, "%s %s", kind, name);
    return find_in(QN__PROFILE_CONFIG, section, NULL, key, value, capacity);
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

/* A service of the section [services NAME] that the profile names, such as "s3". */
static int services_endpoint(const char *profile, const char *service, char *endpoint,
                             size_t capacity) {
    char name[SECTION - 16], section[SECTION];
    if (!qn__profile_get(profile, QN__PROFILE_CONFIG, "services", name, sizeof name))
        return 0;
    snprintf(section, sizeof section, "services %s", name);
    return find_in(QN__PROFILE_CONFIG, section, service, "endpoint_url", endpoint, capacity);
}

static int is_ignored(const char *profile) {
    char text[8];
    const char *ignored = getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    if (ignored && *ignored)
        return strcasecmp(ignored, "true") == 0;
    return qn__profile_get(profile, QN__PROFILE_CONFIG, "ignore_configured_endpoint_urls", text,
                           sizeof text) &&
           strcasecmp(text, "true") == 0;
}

int qn__profile_endpoint(const char *name, const char *service, char *endpoint, size_t capacity) {
    char variable[64] = "AWS_ENDPOINT_URL_";
    const size_t size = strlen(variable);
    for (size_t i = 0; service[i] && size + i + 1 < sizeof variable; i++)
        variable[size + i] = (char)toupper((unsigned char)service[i]);
    const char *const given[] = {getenv(variable), getenv("AWS_ENDPOINT_URL")};
    if (is_ignored(name))
        return 0;
    for (size_t i = 0; i < 2; i++)
        if (given[i] && *given[i])
            return (size_t)snprintf(endpoint, capacity, "%s", given[i]) < capacity;
    return services_endpoint(name, service, endpoint, capacity) ||
           qn__profile_get(name, QN__PROFILE_CONFIG, "endpoint_url", endpoint, capacity);
}
