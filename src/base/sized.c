#include "base/sized.h"

#include "base/memory.h"
#include <quern/version.h>
#include <string.h>

/* A larger size is taken as uninitialised memory, and nothing after it is read. */
enum { LARGEST = 1 << 16 };

size_t qn__sized_of(const void *caller) {
    size_t size;
    memcpy(&size, caller, sizeof size);
    return size;
}

qn_status qn__sized_check(const qn__sized *what, const void *caller, qn_error *err) {
    const size_t size = qn__sized_of(caller);
    /* Every version of a struct has a member after the size, and its size is a multiple of a
     * pointer's. */
    if (size >= 2 * sizeof size && size % sizeof(void *) == 0 && size <= LARGEST)
        return QN_OK;
    return qn__sized_refuse(what, size, err);
}

qn_status qn__sized_refuse(const qn__sized *what, size_t size, qn_error *err) {
    qn__fail(err, QN_USAGE, "%s: the member size of %s is %zu, which is not the size of a %s",
             what->function, what->argument, size, what->type);
    return qn__remedy(err, QN_USAGE, "write size = sizeof(%s) into it before the call%s",
                      what->type,
                      strstr(what->type, "_options") ? ", as its function _init does" : "");
}

qn_status qn__sized_take(const qn__sized *what, const void *caller, void *own, qn_error *err) {
    const qn_status status = qn__sized_check(what, caller, err);
    if (status != QN_OK)
        return status;
    const size_t size = qn__sized_of(caller), known = size < what->size ? size : what->size;
    const unsigned char *bytes = caller;
    for (size_t i = known; i < size; ++i)
        if (bytes[i] != 0) {
            qn__fail(err, QN_USAGE,
                     "%s: %s has %zu bytes, and those beyond the %zu of this library's %s are not "
                     "zero",
                     what->function, what->argument, size, what->size, what->type);
            return qn__remedy(err, QN_USAGE,
                              "leave members zero that came after version %d.%d.%d, or load the "
                              "library of your header",
                              QN_VERSION_MAJOR, QN_VERSION_MINOR, QN_VERSION_PATCH);
        }
    memcpy((unsigned char *)own + sizeof size, bytes + sizeof size, known - sizeof size);
    return QN_OK;
}

void *qn__sized_take_all(const qn__sized *what, const void *array, uint32_t count,
                         qn_status *status, qn_error *err) {
    const size_t stride = count > 0 ? qn__sized_of(array) : 0;
    const char *from = array;
    char *own = qn__alloc(count, what->size, err);
    *status = own ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; i < count && *status == QN_OK; ++i) {
        char *to = own + i * what->size;
        *status = qn__sized_take(what, from + i * stride, to, err);
        memcpy(to, &what->size, sizeof what->size);
    }
    if (*status == QN_OK)
        return own;
    qn__free(own);
    return NULL;
}

void qn__sized_give(const qn__sized *what, const void *own, void *caller, size_t size) {
    const size_t known = size < what->size ? size : what->size;
    memcpy(caller, own, known);
    memset((unsigned char *)caller + known, 0, size - known);
    memcpy(caller, &size, sizeof size);
}
