/* Patterns of paths, the same in every locale: `*`, `?`, `[...]`, and `**` for any folders. */
#ifndef QN_DATA_BYTES_GLOB_H
#define QN_DATA_BYTES_GLOB_H

#include "base/error.h"
#include <stddef.h>

/* 1 when the text has a wildcard. */
int qn__glob_is(const char *text);

/* Whether a name without slashes matches a pattern without slashes. `*` stands for any bytes, `?`
 * for one character of UTF-8, or one byte where there is none, `[...]` for one byte of a set with
 * ranges, or none of it after `!` or `^`. A dot at the beginning matches only a dot. */
int qn__glob_matches(const char *pattern, const char *name);

/* Whether a path without wildcards, or a folder that it is in, matches a pattern of paths. */
int qn__glob_matches_path(const char *pattern, const char *path);

/* Where the first part of the path with a wildcard begins. */
size_t qn__glob_begin(const char *pattern);

/* Calls `each` for every file and folder whose path matches, in any order. A status other than
 * QN_OK ends the search. Fails with QN_INPUT (a path is too long) or QN_IO. */
typedef qn_status (*qn__glob_found)(void *user, const char *path, qn_error *err);
qn_status qn__glob_walk(const char *pattern, qn__glob_found each, void *user, qn_error *err);

#endif
