#include "base/files/cache_file.h"

#include "base/files/cache_folder.h"
#include "base/files/cache_space.h"

qn_status qn__cache_file_make(const char *entry, uint64_t bytes, qn__mapped_file **out,
                              qn_error *err) {
    char folder[PATH_MAX];
    const qn_status status = qn__cache_folder(1, folder, err);
    if (status != QN_OK)
        return status;
    if (bytes > SIZE_MAX / 4 || !qn__cache_space_make(folder, entry, bytes))
        return qn__fail(err, QN_IO, "half of the free space of %.200s is less", folder);
    return qn__mapped_file_create(folder, (size_t)bytes, out, err);
}
