/* Tables in a file that others can write to while it is used. */
#include "base/files/mapped_file.h"
#include "data/table/data.h"
#include "data/table/remote_rows.h"
#include <string.h>

qn_status qn__data_check_file(const qn_data *table, qn_error *err) {
    const qn__remote_rows *remote = qn__data_remote(table);
    if (remote)
        return remote->check(remote->user, err);
    const qn__mapped_file *file =
        table->release == qn__mapped_file_close ? table->memory : table->in_file;
    qn_data again = *table;
    char path[PATH_MAX], digest[65];
    if (!file || table->index || !qn__mapped_file_changed(file, path))
        return QN_OK;
    again.values_digest = NULL; /* it is computed from the values */
    qn__data_digest(&again, NULL, digest);
    if (strcmp(digest, qn_data_digest(table)) == 0)
        return QN_OK;
    qn__fail(err, QN_IO, "the values of the table changed while they were used");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_IO,
                      qn__mapped_file_is_borrowed(file)
                          ? "run it again, and let no other program write to the file meanwhile"
                          : "run it again, and let no other program write to the cache folder");
}
