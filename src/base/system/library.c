#include "base/system/library.h"
#include "base/system/float_state.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
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

/* Libraries are opened one at a time. It happens once for each, so one lock is enough. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void open_once(qn__optional_library *o) {
    char version[32] = "";
    if (!qn__library_open(&o->library, o->file))
        return;
    for (const qn__library_symbol *s = o->symbol; s->name; s++) {
        const qn__library_function found = qn__library_find(&o->library, s->name);
        memcpy(s->pointer, &found, sizeof found);
    }
    if (!qn__library_is_whole(&o->library))
        return;
    if (o->version)
        o->version(version);
    snprintf(o->about, sizeof o->about, "%s%s%s (%s)", o->name, *version ? " " : "", version,
             o->file);
}

void *qn__optional_open(qn__optional_library *library) {
    if (!atomic_load_explicit(&library->asked, memory_order_acquire)) {
        pthread_mutex_lock(&opening);
        if (!atomic_load_explicit(&library->asked, memory_order_relaxed))
            open_once(library);
        atomic_store_explicit(&library->asked, 1, memory_order_release);
        pthread_mutex_unlock(&opening);
    }
    return library->library.handle;
}

const char *qn__optional_about(qn__optional_library *library) {
    (void)qn__optional_open(library);
    return library->about;
}

qn_status qn__optional_need(qn__optional_library *library, const char *use, const char *otherwise,
                            qn_error *err) {
    if (qn__optional_open(library))
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s, and there is no %s here", use, library->file);
    return qn__remedy(err, QN_UNSUPPORTED, "install it (Debian: %s; Fedora: %s), or %s",
                      library->debian, library->fedora, otherwise);
}
