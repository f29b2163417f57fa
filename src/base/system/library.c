#include "base/system/library.h"
#include "base/system/float_state.h"
#include <dlfcn.h>
#include <string.h>

int qn__library_open(qn__library *library, const char *file) {
    *library = (qn__library){.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
    qn__float_state_set();
    return library->handle != NULL;
}

const char *qn__library_reason(void) {
    const char *reason = dlerror();
    return reason ? reason : "the loader gives no reason";
}

/* dlsym returns a function's address as void *; memcpy is the portable conversion. */
qn__library_function qn__library_find(qn__library *library, const char *name) {
    void *const address = dlsym(library->handle, name);
    qn__library_function found;
    memcpy(&found, &address, sizeof found);
    library->lacks |= !address;
    return found;
}

int qn__library_is_whole(qn__library *library) {
    if (library->lacks)
        qn__library_close(library);
    return library->handle != NULL;
}

void qn__library_close(qn__library *library) {
    if (library->handle)
        dlclose(library->handle);
    library->handle = NULL;
}
