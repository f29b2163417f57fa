#include "data/bytes/glob.h"
#include "base/encoding.h"
#include "base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Folders inside folders that `**` goes down: a link may lead to a folder above it. */
enum { DEEPEST = 32 };

int qn__glob_is(const char *text) { return strpbrk(text, "*?[") != NULL; }

size_t qn__glob_begin(const char *pattern) {
    size_t at = strcspn(pattern, "*?[");
    while (at > 0 && pattern[at - 1] != '/')
        at--;
    return at;
}

/* ------------------------------------------------------------------ a name */

/* The set at `set`, after its bracket. Returns where the pattern goes on, NULL: the set is not
 * closed, so the bracket is an ordinary byte. */
static const char *match_set(const char *set, unsigned char byte, int *found) {
    const int not = *set == '!' || *set == '^';
    const char *at = set + not ;
    *found = 0;
    for (int first = 1; first || *at != ']'; first = 0) {
        if (*at == '\0')
            return NULL;
        const unsigned char low = (unsigned char)*at++;
        unsigned char high = low;
        if (at[0] == '-' && at[1] != ']' && at[1] != '\0') {
            high = (unsigned char)at[1];
            at += 2;
        }
        *found |= low <= byte && byte <= high;
    }
    *found ^= not ;
    return at + 1;
}

/* One character of the name by what the pattern has next, other than `*`. 0: it does not match. */
static int match_one(const char **pattern, const char **name) {
    const char *p = *pattern, *n = *name;
    int found = 0;
    const char *after = *p == '[' ? match_set(p + 1, (unsigned char)*n, &found) : NULL;
    if (after) {
        *pattern = after;
        *name = n + 1;
        return found;
    }
    const size_t size = *p == '?' ? qn__utf8_length(n, strlen(n)) : 1;
    *pattern = p + 1;
    *name = n + (size ? size : 1);
    return *p == '?' || *p == *n;
}

int qn__glob_matches(const char *pattern, const char *name) {
    const char *star = NULL, *from = name; /* the last `*`, and where what follows it was tried */
    if (*name == '.' && *pattern != '.')
        return 0;
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (!*pattern || !match_one(&pattern, &name)) {
            if (!star)
                return 0;
            pattern = star;
            name = ++from;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

/* One part of a path. */
static int part_matches(const char *pattern, size_t pattern_size, const char *path, size_t size) {
    char part[NAME_MAX + 1], name[NAME_MAX + 1];
    if (pattern_size > NAME_MAX || size > NAME_MAX)
        return 0;
    snprintf(part, sizeof part, "%.*s", (int)pattern_size, pattern);
    snprintf(name, sizeof name, "%.*s", (int)size, path);
    return qn__glob_matches(part, name);
}

int qn__glob_matches_path(const char *pattern, const char *path) {
    const size_t part = strcspn(pattern, "/"), size = strcspn(path, "/");
    if (*pattern == '\0')
        return 1;
    if (*path == '\0')
        return 0;
    const char *below = path + size + (path[size] == '/');
    const char *rest = pattern + part + strspn(pattern + part, "/");
    if (part == 2 && pattern[0] == '*' && pattern[1] == '*') {
        for (; *path; path = below) {
            if (*rest ? qn__glob_matches_path(rest, path) : *path != '.')
                return 1;
            const size_t folder = strcspn(path, "/");
            below = path + folder + (path[folder] == '/');
            if (*path == '.')
                return 0;
        }
        return 0;
    }
    return part_matches(pattern, part, path, size) && qn__glob_matches_path(rest, below);
}

/* ------------------------------------------------------------------ paths */

typedef struct search {
    qn__glob_found each;
    void *user;
    char path[PATH_MAX]; /* what was found so far */
} search;

static qn_status go_on(search *s, size_t length, const char *pattern, int depth, qn_error *err);

static qn_status refuse_length(const search *s, qn_error *err) {
    qn__fail(err, QN_INPUT, "the path of a file is too long");
    qn__at(err, "%.200s", s->path);
    return qn__remedy(err, QN_INPUT, "move the files to a shorter path");
}

/* Appends a name to the path; its new length, or 0: it is too long. */
static size_t append(search *s, size_t length, const char *name, size_t size) {
    if (length + size + 2 > sizeof s->path)
        return 0;
    memcpy(s->path + length, name, size);
    s->path[length + size] = '\0';
    return length + size;
}

/* All entries of the folder s->path that match the first part of `pattern`, which is `part`, or any
 * folder for `**`, whose pattern stays the same. */
static qn_status read_folder(search *s, size_t length, const char *part, const char *rest,
                             const char *any, int depth, qn_error *err) {
    DIR *folder = opendir(length ? s->path : ".");
    if (!folder) /* nothing matches below what is not a folder */
        return errno == ENOENT || errno == ENOTDIR ? QN_OK : qn__fail_errno(err, "list", s->path);
    qn_status status = QN_OK;
    for (const struct dirent *e; status == QN_OK && (e = readdir(folder)) != NULL;) {
        struct stat info;
        if (e->d_name[0] == '.' && (any || part[0] != '.'))
            continue;
        if (!any && (!qn__glob_matches(part, e->d_name) || strcmp(e->d_name, ".") == 0 ||
                     strcmp(e->d_name, "..") == 0))
            continue;
        const size_t longer = append(s, length, e->d_name, strlen(e->d_name));
        if (longer == 0)
            status = refuse_length(s, err);
        else if (!any)
            status = go_on(s, longer, rest, depth, err);
        else if (lstat(s->path, &info) == 0 && S_ISDIR(info.st_mode) && depth < DEEPEST &&
                 append(s, longer, "/", 1))
            status = go_on(s, longer + 1, any, depth + 1, err);
    }
    s->path[length] = '\0';
    closedir(folder);
    return status;
}

/* The path found so far is followed by `pattern`, which begins with a slash or a part. */
static qn_status go_on(search *s, size_t length, const char *pattern, int depth, qn_error *err) {
    struct stat info;
    char part[NAME_MAX + 1];
    const size_t slashes = strspn(pattern, "/"), size = strcspn(pattern + slashes, "/");
    if (*pattern == '\0')
        return stat(s->path, &info) == 0 ? s->each(s->user, s->path, err) : QN_OK;
    length = append(s, length, pattern, slashes);
    if (slashes > 0 && length == 0)
        return refuse_length(s, err);
    pattern += slashes;
    if (size > NAME_MAX)
        return QN_OK; /* no file has such a name */
    memcpy(part, pattern, size);
    part[size] = '\0';
    const char *rest = pattern + size;
    if (strcmp(part, "**") == 0) {
        const char *below = *rest ? rest + strspn(rest, "/") : "*"; /* at the end: all files */
        while (strncmp(below, "**/", 3) == 0)                       /* more of them mean the same */
            below += 3;
        const qn_status status = go_on(s, length, below, depth, err);
        s->path[length] = '\0';
        return status == QN_OK ? read_folder(s, length, part, below, pattern, depth, err) : status;
    }
    if (qn__glob_is(part))
        return read_folder(s, length, part, rest, NULL, depth, err);
    const size_t longer = append(s, length, part, size);
    if (longer == 0 && size > 0)
        return refuse_length(s, err);
    return go_on(s, longer, rest, depth, err);
}

qn_status qn__glob_walk(const char *pattern, qn__glob_found each, void *user, qn_error *err) {
    search *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    s->each = each;
    s->user = user;
    const qn_status status = go_on(s, 0, pattern, 0, err);
    qn__free(s);
    return status;
}
