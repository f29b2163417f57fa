#include "base/files/scheme.h"

#include "base/files/remote.h"
#include "base/text/text.h"
#include <string.h>

/* All that Quern writes to or reads from; for the remedy. */
static const char *const known[] = {"sqlite", "postgresql", "postgres", "s3",    "s3a",  "gs",
                                    "hdfs",   "webhdfs",    "swebhdfs", "https", "http", NULL};

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

size_t qn__scheme_length(const char *path) {
    size_t size = 0;
    while (is_letter(path[size]) || (size > 0 && path[size] >= '0' && path[size] <= '9'))
        size++;
    return size >= 2 && path[size] == ':' ? size : 0;
}

qn_status qn__scheme_refuse(const char *path, qn_error *err) {
    char word[16] = "";
    const size_t size = qn__scheme_length(path);
    if (size == 0 || qn__remote_is(path))
        return QN_OK;
    if (size < sizeof word)
        memcpy(word, path, size);
    const char *near = qn__nearest(word, known);
    qn__fail(err, QN_USAGE, "\"%.*s:\" is not an address that can be written to here",
             (int)(size < 40 ? size : 40), path);
    qn__at(err, "%.400s", path);
    if (near && strcmp(near, word) != 0)
        return qn__remedy(err, QN_USAGE, "write %s:, or ./%.200s for a file of that name", near,
                          path);
    return qn__remedy(err, QN_USAGE,
                      "name a file, or an address that begins with s3://, gs://, hdfs://, "
                      "webhdfs:// or swebhdfs://; write ./%.200s for a file of that name",
                      path);
}
