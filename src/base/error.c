#include "base/error.h"

#include "base/encoding.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *qn_status_name(qn_status status) {
    static const char *const names[] = {
        [QN_OK] = "success",
        [QN_USAGE] = "bad usage",
        [QN_INPUT] = "bad input",
        [QN_IO] = "input/output error",
        [QN_MEMORY] = "out of memory",
        [QN_FORMAT] = "bad file format",
        [QN_MISMATCH] = "mismatch",
        [QN_NUMERIC] = "numeric failure",
        [QN_UNSUPPORTED] = "not supported here",
        [QN_BUSY] = "busy",
        [QN_DEVICE] = "device failure",
        [QN_INTERRUPTED] = "interrupted",
        [QN_DIFFERS] = "results differ",
        [QN_CLUSTER] = "cluster failed",
    };
    const size_t index = (size_t)status;
    return index < sizeof names / sizeof *names ? names[index] : "unknown status";
}

/* Copies `from` into the field `to` of 512 bytes. Messages quote untrusted cells and keys, and are
 * written to terminals: bytes that are not printable UTF-8 become '?', so that no file can send
 * escape sequences. With `lines` the ends of lines stay. A UTF-8 sequence that was cut at the end
 * of the field is removed. */
static void put(char to[512], const char *from, int lines) {
    size_t left = strlen(from), at = 0;
    while (left > 0) {
        size_t length = qn__utf8_length(from, left);
        const int control = length == 1 && ((unsigned char)*from < 0x20 || *from == 0x7f) &&
                            !(lines && *from == '\n');
        /* U+0080 to U+009F are control characters too. */
        const int control_8bit =
            length == 2 && (unsigned char)from[0] == 0xc2 && (unsigned char)from[1] < 0xa0;
        const int good = length > 0 && !control && !control_8bit;
        if (length == 0)
            length = 1;
        if (at + (good ? length : 1) > 511)
            break;
        if (good)
            memcpy(to + at, from, length);
        else
            to[at] = '?';
        at += good ? length : 1;
        from += length;
        left -= length;
    }
    to[at] = 0;
}

/* Formats into a separate buffer first, because the arguments may point into the error itself.
 * Longer texts are cut; the buffer has four more bytes than the field, so that `put` can see
 * whether its last character is complete. */
static void format_into(char to[512], const char *format, va_list arguments) {
    char text[516];
    const int kept = errno;
    const locale_t before = uselocale(qn__c_locale());
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = 0;
    uselocale(before);
    put(to, text, 0);
    errno = kept;
}

qn_status qn__fail(qn_error *err, qn_status status, const char *format, ...) {
    if (!err)
        return status;
    va_list arguments;
    va_start(arguments, format);
    format_into(err->what, format, arguments);
    va_end(arguments);
    err->status = status;
    err->where[0] = 0;
    err->remedy[0] = 0;
    return status;
}

void qn__at(qn_error *err, const char *format, ...) {
    if (!err)
        return;
    va_list arguments;
    va_start(arguments, format);
    format_into(err->where, format, arguments);
    va_end(arguments);
}

void qn__at_of(qn_error *err, const char *where) {
    char text[512];
    if (!err)
        return;
    snprintf(text, sizeof text, "%.511s", where);
    put(err->where, text, 1);
}

/* Writes the first character of a text to `to`, as `put` does; blanks become spaces. Returns how
 * many bytes of the text it has; *used: of what was written. */
static size_t show(const char *text, char to[4], size_t *used) {
    const size_t left = strnlen(text, 4), length = qn__utf8_length(text, left);
    const unsigned char c = (unsigned char)*text;
    const int is_space = c == ' ' || (c >= '\t' && c <= '\r');
    const int good = length > 2 || (length == 2 && !(c == 0xc2 && (unsigned char)text[1] < 0xa0)) ||
                     (length == 1 && c > ' ' && c <= '~');
    *used = good ? length : 1;
    if (good)
        memcpy(to, text, length);
    else
        *to = is_space ? ' ' : '?';
    return length > 0 ? length : 1;
}

/* Writes the field directly, because it has three lines. The caret counts characters. */
void qn__point_at(qn_error *err, const char *name, const char *text, size_t at) {
    enum { BEFORE = 48, AFTER = 40 };
    char shown[4 * (BEFORE + AFTER)];
    size_t used = 0, column = 1, caret = 0, first = at > BEFORE ? at - BEFORE : 0, n;
    if (!err)
        return;
    while (first > 0 && ((unsigned char)text[first] & 0xc0) == 0x80) /* within a character */
        --first;
    for (size_t i = 0; i < at && text[i]; i += show(text + i, shown, &n)) {
        ++column;
        caret += i >= first;
    }
    size_t end = first;
    for (; end < first + BEFORE + AFTER && text[end] != '\0'; used += n)
        end += show(text + end, shown + used, &n);
    const char *before = first > 0 ? "..." : "", *after = text[end] != '\0' ? "..." : "";
    snprintf(err->where, sizeof err->where, "%s, column %zu:\n  %s%.*s%s\n  %*s^", name, column,
             before, (int)used, shown, after, (int)(strlen(before) + caret), "");
}

qn_status qn__remedy(qn_error *err, qn_status status, const char *format, ...) {
    if (!err)
        return status;
    va_list arguments;
    va_start(arguments, format);
    format_into(err->remedy, format, arguments);
    va_end(arguments);
    return status;
}

/* Remedies for the common errors of open, read, write, sync and rename; NULL for the others, whose
 * name is clear. */
static const char *remedy_of(int error) {
    static const struct {
        int error;
        const char *remedy;
    } remedies[] = {
        {ENOENT, "check the path: the file, or a folder on the way to it, is not there"},
        {ENOTDIR, "check the path: a part of it before the last is a file, not a folder"},
        {EEXIST, "a file has this name: use another one"},
        {EISDIR, "name a file, not a folder"},
        {EACCES, "change the permissions of the file and its folder, or use another folder"},
        {EPERM, "change the permissions of the file and its folder, or use another folder"},
        {EROFS, "this file system is read-only: use another folder"},
        {ENOSPC, "the disk is full: free some space, or use a folder on another disk"},
        {EDQUOT, "your disk quota is used up: free some space, or use another disk"},
        {EFBIG, "the file would be larger than is allowed: raise the limit (ulimit -f), or "
                "use another file system"},
        {EMFILE, "too many files are open: raise the limit (ulimit -n)"},
        {ENAMETOOLONG, "use a shorter name"},
        {ELOOP, "symbolic links on this path point at each other: correct them"},
        {ETXTBSY, "the file is a program that is running: use another name"},
        {EPIPE, "the program that was reading has ended"},
        {EIO, "the disk or the network file system has failed: see the system's log"},
    };
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (remedies[i].error == error)
            return remedies[i].remedy;
    return NULL;
}

qn_status qn__fail_errno(qn_error *err, const char *doing, const char *path) {
    const int error = errno;
    qn__fail(err, QN_IO, "cannot %s %s: %s", doing, path, strerror_l(error, qn__c_locale()));
    const char *remedy = remedy_of(error);
    if (remedy)
        qn__remedy(err, QN_IO, "%s", remedy);
    errno = error;
    return QN_IO;
}

qn_status qn__fail_memory(qn_error *err, uint64_t count, uint64_t size) {
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        qn__fail(err, QN_MEMORY,
                 "out of memory: %" PRIu64 " x %" PRIu64 " bytes are more than can be addressed",
                 count, size);
    else
        qn__fail(err, QN_MEMORY, "out of memory: %" PRIu64 " bytes could not be allocated", bytes);
    return qn__remedy(err, QN_MEMORY,
                      "use smaller data, a smaller model or a smaller batch, or a "
                      "machine or a limit (ulimit -v) with more memory");
}
