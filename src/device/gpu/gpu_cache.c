/* Built programs of GPUs on disk. */
#include "base/digest/sha256.h"
#include "base/files/program_cache.h"
#include "device/gpu/gpu.h"
#include "device/notes.h"

#include <string.h>

enum { KEPT = 200 };
static const char ending[] = ".device"; /* of other texts than Quern's own */

void qn__gpu_cache_load(const char *key, void **program, size_t *bytes, char *note) {
    qn__program_cache_load(key, "", program, bytes, note);
    qn__device_tell(note);
}

void qn__gpu_cache_store(const char *key, const void *program, size_t bytes, char *note) {
    qn__program_cache_store(key, "", program, bytes, note);
    qn__device_tell(note);
}

void qn__gpu_text_digest(const qn__gpu_text *text, char digest[65]) {
    uint8_t raw[32];
    qn__sha256_of(text->text, strlen(text->text), raw);
    qn__hex(raw, digest);
}

void qn__gpu_text_load(const char *key, void **program, size_t *bytes, char *note) {
    qn__program_cache_load(key, ending, program, bytes, note);
    qn__device_tell(note);
}

void qn__gpu_text_store(const char *key, const void *program, size_t bytes, char *note) {
    qn__program_cache_store(key, ending, program, bytes, note);
    qn__program_cache_trim(ending, KEPT);
    qn__device_tell(note);
}
