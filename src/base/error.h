/* Filling a qn_error. Each function accepts err == NULL and returns the status, so that a failing
 * check takes two or three lines:
 *
 *     qn__fail(err, QN_INPUT, "\"%s\" is not a number", cell);
 *     qn__at(err, "%s, line %zu, column %zu", path, line, column);
 *     return qn__remedy(err, QN_INPUT, "quote text cells, or name the label column with --label");
 *
 * A message names a member of a public struct, or an argument, in backquotes, with a word for its
 * struct: `train.learning_rate`, `compute.devices`. The command prints its option instead.
 *
 * Formats do not depend on the locale. Arguments may be untrusted (a cell, a key, a file's name):
 * control characters and bytes that are not UTF-8 are written as '?', and long texts are cut. */
#ifndef QN_BASE_ERROR_H
#define QN_BASE_ERROR_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

/* Sets status and `what`, clears `where` and `remedy`. Returns `status`. */
qn_status qn__fail(qn_error *err, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets `where`. */
void qn__at(qn_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets `where` to that of another error, which may be untrusted, with its lines. */
void qn__at_of(qn_error *err, const char *where);
/* Sets `where` to the text with a caret under byte `at`, below "NAME, column N:"; of a long text,
 * the part around it. */
void qn__point_at(qn_error *err, const char *name, const char *text, size_t at);
/* Sets `remedy` and returns `status`. The status in err, which may be NULL, does not matter. */
qn_status qn__remedy(qn_error *err, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `what` from errno and a verb: doing = "open" gives "cannot open FILE: No such file or directory".
 * The common errors get a remedy as well. Keeps errno. Returns QN_IO. */
qn_status qn__fail_errno(qn_error *err, const char *doing, const char *path);
/* Out of memory, with the requested size. Returns QN_MEMORY. */
qn_status qn__fail_memory(qn_error *err, uint64_t count, uint64_t size);

#endif
