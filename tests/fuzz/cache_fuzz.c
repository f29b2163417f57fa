/* Files of the cache of built programs. The target mends the digest, so that what stands after the
 * check is reached as well. */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "base/digest/sha256.h"
#include "device/gpu/gpu.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGEST = 32, HEADER = 64, NOTE = 256 };

static char folder[32], path[128];

static void leave(void) {
    unlink(path);
    rmdir(folder);
}

static void enter(const char *key) {
    uint8_t digest[32];
    char hex[65];
    strcpy(folder, "/tmp/quern-fuzz-XXXXXX");
    FUZZ_MUST(mkdtemp(folder) != NULL);
    FUZZ_MUST(setenv("QUERN_CACHE", folder, 1) == 0);
    qn__sha256_of(key, strlen(key), digest);
    qn__hex(digest, hex);
    snprintf(path, sizeof path, "%s/%s", folder, hex);
    atexit(leave);
}

static void load(const uint8_t *bytes, size_t size, const char *key, int whole) {
    char note[NOTE] = "";
    void *program = NULL;
    size_t length = 0;
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    FUZZ_MUST(file >= 0 && write(file, bytes, size) == (ssize_t)size && close(file) == 0);
    qn__gpu_cache_load(key, &program, &length, note);
    FUZZ_MUST((program != NULL) == (length > 0) && memchr(note, 0, NOTE));
    FUZZ_MUST(program || note[0]);
    if (program) {
        FUZZ_MUST(whole && length < size && memcmp(program, bytes + size - length, length) == 0);
        qn__free(program);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char key[] = "the key of a program";
    if (!folder[0])
        enter(key);
    uint8_t *mended = malloc(size + 1);
    FUZZ_MUST(mended != NULL);
    memcpy(mended, bytes, size);
    load(mended, size, key, size > HEADER + sizeof key - 1);
    if (size >= HEADER) {
        qn__sha256_of(mended + HEADER, size - HEADER, mended + DIGEST);
        load(mended, size, key, size > HEADER + sizeof key - 1);
    }
    free(mended);
    return 0;
}
