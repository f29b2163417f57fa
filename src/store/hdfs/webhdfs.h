/* Requests to HDFS by WebHDFS, its interface over HTTP (Apache Hadoop, "WebHDFS REST API").
 *
 * A name node answers about files. It redirects the reading and the writing of bytes to a data
 * node. Who asks is in the query of each request: `user.name`, or a delegation token. */
#ifndef QN_STORE_HDFS_WEBHDFS_H
#define QN_STORE_HDFS_WEBHDFS_H

#include "base/files/remote.h"
#include "store/http/http.h"

/* What a name node says about a file. */
typedef struct qn__hdfs_status {
    int exists, is_folder;
    uint64_t size, number, time; /* `time`: of its last change, in milliseconds since 1970 */
    int64_t seconds;             /* since that change, by the clock of the name node */
} qn__hdfs_status;

/* Which state of a file this is. */
void qn__hdfs_tag(const qn__hdfs_status *status, char tag[QN__REMOTE_TAG]);

/* Sends one operation of `address` to the name node, such as "PUT" "MKDIRS"; `query` is "" or has
 * more parts, encoded, that begin with '&'. An answer of any status is QN_OK. The caller releases
 * it. Fails with QN_INPUT (the address), QN_IO, QN_UNSUPPORTED or QN_MEMORY. */
qn_status qn__hdfs_ask(const char *address, const char *method, const char *operation,
                       const char *query, qn__http_answer *answer, qn_error *err);

/* The same for an operation with bytes: the name node is asked, then the data node that it names
 * gets them. `attempt` as in http.h, for the second request, which then is never repeated without
 * it; may be NULL. */
qn_status qn__hdfs_write(const char *address, const char *method, const char *operation,
                         const char *query, const void *bytes, size_t size,
                         qn_status (*attempt)(void *user, qn__http_headers *headers, qn_error *err),
                         void *user, qn__http_answer *answer, qn_error *err);

/* The message about an answer that is not what was asked for: QN_INPUT (the file is missing, or
 * it may not be used) or QN_IO. */
qn_status qn__hdfs_refuse(const char *address, const qn__http_answer *answer, qn_error *err);

/* The exception that an answer names, such as "FileNotFoundException"; "" without. */
void qn__hdfs_exception(const qn__http_answer *answer, char name[64]);

/* Looks at a file. One that is not there is not a failure. */
qn_status qn__hdfs_look(const char *address, qn__hdfs_status *out, qn_error *err);

/* Reads the bytes from `from` on, up to `end` or the end of the file, in order; `take` and `stop`
 * as in http.h. Fails with QN_INPUT, QN_IO, ... and QN_INTERRUPTED where `take` or `stop` ended
 * it. */
qn_status qn__hdfs_read(const char *address, uint64_t from, uint64_t end,
                        int (*take)(void *user, const void *bytes, size_t size), void *user,
                        const atomic_int *stop, qn_error *err);

/* As qn__remote_list. */
qn_status qn__hdfs_list(const char *prefix, size_t most, qn__remote_found each, void *user,
                        qn_error *err);

#endif
