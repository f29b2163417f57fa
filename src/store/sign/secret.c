#include "store/sign/secret.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Before the bytes: how long the mapping is. */
enum { HEAD = 64 };

/* Leaves whole pages out of core files. A hint: an old kernel refuses it. */
static void keep_from_core(void *memory, size_t bytes) {
#ifdef MADV_DONTDUMP
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)memory / page * page,
                    end = ((uintptr_t)memory + bytes + page - 1) / page * page;
    (void)madvise((void *)begin, end - begin, MADV_DONTDUMP);
#else
    (void)memory, (void)bytes;
#endif
}

void *qn__secret_make(size_t bytes, qn_error *err) {
    if (bytes > SIZE_MAX / 2) {
        qn__fail_memory(err, bytes, 1);
        return NULL;
    }
    void *memory =
        mmap(NULL, bytes + HEAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        qn__fail_memory(err, bytes, 1);
        return NULL;
    }
    keep_from_core(memory, bytes + HEAD);
    memcpy(memory, &bytes, sizeof bytes);
    return (char *)memory + HEAD;
}

void qn__secret_free(void *secret) {
    size_t bytes;
    if (!secret)
        return;
    void *memory = (char *)secret - HEAD;
    memcpy(&bytes, memory, sizeof bytes);
    explicit_bzero(memory, bytes + HEAD);
    (void)munmap(memory, bytes + HEAD);
}

const char *qn__secret_variable(const char *name) {
    char *value = getenv(name);
    if (!value || !*value)
        return NULL;
    keep_from_core(value, strlen(value));
    return value;
}
