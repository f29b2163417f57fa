/* Files as a whole, for programs that use the library. */
#include "base/argument.h"
#include "base/files/file.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include <quern/files.h>

qn_status qn_file_read(const char *path, uint64_t most, char **bytes, size_t *size, qn_error *err) {
    QN__OWN_FLOATS;
    qn__bytes all;
    QN__NEED_OUT(bytes, err);
    QN__NEED(size, err);
    QN__NEED(path, err);
    *size = 0;
    const qn_status status = qn__file_read_most(path, most, &all, err);
    if (status == QN_OK) {
        *bytes = (char *)(uintptr_t)all.data;
        *size = all.size;
    }
    return status;
}

void qn_file_bytes_free(char *bytes) { qn__free(bytes); }

int qn_path_is_folder(const char *path) {
    QN__OWN_FLOATS;
    return path && qn__path_is_folder(path);
}
