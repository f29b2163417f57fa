/* The parts that all targets are linked with. */
#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

void fuzz_broken(const char *what, const char *file, int line) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

/* Files without a name, so that nothing is left behind however the program ends. */
const char *fuzz_file(int number, const void *bytes, size_t size) {
    static int file[2] = {-1, -1};
    static char path[2][32];
    if (file[number] < 0) {
        file[number] = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_MUST(file[number] >= 0);
        snprintf(path[number], sizeof path[number], "/proc/self/fd/%d", file[number]);
    }
    FUZZ_MUST(ftruncate(file[number], 0) == 0);
    FUZZ_MUST(pwrite(file[number], bytes, size, 0) == (ssize_t)size);
    return path[number];
}

static char folder[40] = "/dev/shm/fuzz-XXXXXX";

static void remove_folder(void) { rmdir(folder); }

const char *fuzz_folder(void) {
    if (!mkdtemp(folder)) {
        snprintf(folder, sizeof folder, "/tmp/fuzz-XXXXXX");
        FUZZ_MUST(mkdtemp(folder) != NULL);
    }
    FUZZ_MUST(atexit(remove_folder) == 0);
    return folder;
}

char *fuzz_text(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 1);
    FUZZ_MUST(text != NULL);
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}
