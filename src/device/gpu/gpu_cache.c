/* Built programs of GPUs on disk. */
#include "base/program_cache.h"
#include "device/gpu/gpu.h"
#include "device/notes.h"

void qn__gpu_cache_load(const char *key, void **program, size_t *bytes, char *note) {
    qn__program_cache_load(key, "", program, bytes, note);
    qn__device_tell(note);
}

void qn__gpu_cache_store(const char *key, const void *program, size_t bytes, char *note) {
    qn__program_cache_store(key, "", program, bytes, note);
    qn__device_tell(note);
}
