/* A kernel's C text becomes machine code in four steps:
 *
 *   1. key       SHA-256 of the text, the options and the processor; and the compiler's file
 *   2. cache     machine code that an earlier run has stored for that key
 *   3. compile   otherwise: the system's compiler, in a new folder
 *   4. load      from memory, and test with known answers; then it is stored for later runs
 *
 * The test refuses a compiler that computes otherwise than C says, because of options in CC or of
 * a fault. */
#include "userkernel/compiler/user_compile.h"

#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "base/files/program_cache.h"
#include "base/files/unfinished.h"
#include "base/files/write_whole.h"
#include "base/memory.h"
#include "base/system/process.h"
#include "userkernel/compiler/user_common.h"
#include "userkernel/compiler/user_program_parts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Kernels that the cache keeps, some 20 KB each. */
enum { KEPT = 200, WORDS = 16, SAID = 8192 };
static const char ending[] = ".kernel";

/* What fixes the results: no contraction, integers that wrap around. A compiler may use all that
 * the processor has, because every IEEE operation has one result in every instruction set. The rest
 * lets it use vectors: nobody reads errno and exception flags. */
static const char *const flags[] = {"-std=c17",
                                    "-O3",
#if defined(__x86_64__) || defined(__i386__)
                                    "-march=native",
#endif
#if defined(__i386__)
                                    "-msse2",
                                    "-mfpmath=sse",
#endif
                                    "-fPIC",
                                    "-shared",
                                    "-w",
                                    "-fwrapv",
                                    "-ffp-contract=off",
                                    "-fno-fast-math",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-x",
                                    "c",
                                    "-"};
enum { FLAGS = sizeof flags / sizeof *flags };

/* GCC's propagation of constants, with which a thousand branches in a row take minutes: its time
 * grows with the third power. Kernels whose own functions are longer do without. */
enum { LONG = 1 << 14 };
static const char for_long[] = "-fno-gcse";

/* A loop of several functions of doubles is more than a processor looks ahead. GCC then mixes what
 * does not depend on each other, before it runs out of registers. */
static const char for_functions[] = "-fschedule-insns";
/* The rounds of loops over an array of the kernel are short. */
static const char for_own_arrays[] = "-funroll-loops";
enum { OPTIONS = 2 };

/* Seconds. The longest kernel that is accepted takes a tenth of it. */
static const double PATIENCE = 600;

typedef struct compiler {
    char path[PATH_MAX];
    char words[1024]; /* of CC, with a NUL after each */
    const char *word[WORDS + 1];
    size_t count;
    struct stat info;
    const char *option[OPTIONS + 1]; /* for this kernel, then NULL */
} compiler;

/* ------------------------------------------------------------------ the compiler */

static int is_program(const char *path, struct stat *info) {
    return stat(path, info) == 0 && S_ISREG(info->st_mode) && access(path, X_OK) == 0;
}

/* A program of PATH, or one with a slash in its name. */
static int find_program(const char *name, compiler *c) {
    const char *at = getenv("PATH");
    if (strchr(name, '/')) {
        const int size = snprintf(c->path, sizeof c->path, "%s", name);
        return size > 0 && size < (int)sizeof c->path && is_program(c->path, &c->info);
    }
    for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        const size_t folder = strcspn(at, ":");
        const int size = snprintf(c->path, sizeof c->path, "%.*s/%s", (int)folder, at, name);
        if (folder > 0 && size > 0 && size < (int)sizeof c->path && is_program(c->path, &c->info))
            return 1;
        at += folder + (at[folder] == ':');
    }
    return 0;
}

static qn_status find_compiler(compiler *c, qn_error *err) {
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *named = getenv("CC");
    char *rest = NULL;
    c->count = 0;
    if (named && named[strspn(named, " \t")]) {
        if (snprintf(c->words, sizeof c->words, "%s", named) < (int)sizeof c->words)
            for (char *w = strtok_r(c->words, " \t", &rest); w && c->count < WORDS;
                 w = strtok_r(NULL, " \t", &rest))
                c->word[c->count++] = w;
        if (c->count > 0 && find_program(c->word[0], c))
            return QN_OK;
        qn__fail(err, QN_UNSUPPORTED, "CC names the C compiler \"%s\", which was not found", named);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "set CC to a C compiler, or remove it from the environment");
    }
    c->count = 1;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (find_program(usual[i], c))
            return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             "there is no C compiler (cc, gcc or clang) to compile the kernel");
    return qn__remedy(err, QN_UNSUPPORTED, "install gcc or clang, or set CC to a C compiler");
}

/* What the processor can do, from the first of its blocks: a cache folder may be shared by
 * machines. */
static void add_processor(qn__sha256 *hash) {
    static const char *const keys[] = {"model name", "flags", "Features", "CPU part", "isa"};
    char text[8192];
    const int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        close(file);
    text[size > 0 ? size : 0] = '\0';
    for (const char *at = text; *at && *at != '\n';) {
        const size_t length = strcspn(at, "\n");
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (strncmp(at, keys[k], strlen(keys[k])) == 0)
                qn__sha256_add(hash, at, length);
        at += length + (at[length] == '\n');
    }
}

/* All that decides the machine code. A compiler is known by its file: to ask for its version would
 * take longer than many a job. */
static void make_key(const compiler *c, const qn__text *program, char key[PATH_MAX + 256]) {
    char real[PATH_MAX], hex[65];
    uint8_t digest[32];
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    for (size_t i = 1; i < c->count; i++)
        qn__sha256_add(&hash, c->word[i], strlen(c->word[i]) + 1);
    for (size_t i = 0; i < FLAGS; i++)
        qn__sha256_add(&hash, flags[i], strlen(flags[i]) + 1);
    for (size_t i = 0; c->option[i]; i++)
        qn__sha256_add(&hash, c->option[i], strlen(c->option[i]) + 1);
    add_processor(&hash);
    qn__sha256_add(&hash, program->data, program->size);
    qn__sha256_end(&hash, digest);
    qn__hex(digest, hex);
    snprintf(key, PATH_MAX + 256, "quern kernel 1 %s compiler %s %" PRIu64 " %" PRId64 ".%09ld",
             hex, realpath(c->path, real) ? real : c->path, (uint64_t)c->info.st_size,
             (int64_t)c->info.st_mtim.tv_sec, c->info.st_mtim.tv_nsec);
}

/* ------------------------------------------------------------------ compiling */

/* The first line about an error, or the first of all. */
static const char *error_line(const char *said, size_t *size) {
    const char *first = strstr(said, "error");
    while (first && first > said && first[-1] != '\n')
        first--;
    first = first ? first : said;
    *size = strcspn(first, "\n");
    return first;
}

static qn_status refuse(const compiler *c, const char *said, int code, qn_error *err) {
    size_t size;
    const char *line = error_line(said, &size);
    if (size == 0)
        qn__fail(err, QN_UNSUPPORTED, "%s ended with code %d and did not compile the kernel",
                 c->path, code);
    else
        qn__fail(err, QN_UNSUPPORTED, "%s did not compile the kernel: %.*s", c->path,
                 (int)(size < 300 ? size : 300), line);
    return qn__remedy(
        err, QN_UNSUPPORTED,
        "check that it is a C17 compiler and that its disk has free space, or set CC to "
        "gcc 8, clang 6 or a later one");
}

/* Compiles to a file of a new folder, which has the compiler's temporary files too, and takes its
 * bytes. */
static qn_status run_compiler(const compiler *c, const char *program, const char *folder,
                              const char *file, qn__bytes *code, qn_error *err) {
    const char *argv[WORDS + FLAGS + OPTIONS + 8];
    char said[SAID];
    size_t n = 0;
    int ended = 0;
    argv[n++] = c->path;
    for (size_t i = 1; i < c->count; i++)
        argv[n++] = c->word[i];
    for (size_t i = 0; i < FLAGS; i++)
        argv[n++] = flags[i];
    for (size_t i = 0; c->option[i]; i++)
        argv[n++] = c->option[i];
    argv[n++] = "-o";
    argv[n++] = file;
    argv[n++] = "-lm";
    argv[n] = NULL;
    const qn_status status = qn__process_run(argv, program, folder, QN__PROCESS_ERRORS_JOIN,
                                             PATIENCE, said, sizeof said, &ended, err);
    if (status == QN_BUSY) {
        qn__fail(err, QN_UNSUPPORTED, "%s did not compile the kernel within %g seconds", c->path,
                 PATIENCE);
        return qn__remedy(err, QN_UNSUPPORTED, "set CC to another C compiler");
    }
    if (status != QN_OK)
        return status;
    return ended == 0 && access(file, R_OK) == 0 ? qn__file_read(file, code, err)
                                                 : refuse(c, said, ended, err);
}

static qn_status compile(const compiler *c, const char *program, qn__bytes *code, qn_error *err) {
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX], file[PATH_MAX + 16];
    snprintf(folder, sizeof folder, "%s/quern-kernel-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return qn__fail_errno(err, "create the folder", folder);
    snprintf(file, sizeof file, "%s/kernel.so", folder);
    const int entry = qn__unfinished_add(AT_FDCWD, folder);
    const qn_status status = run_compiler(c, program, folder, file, code, err);
    qn__folder_remove(AT_FDCWD, folder);
    qn__unfinished_remove(entry);
    return status;
}

/* ------------------------------------------------------------------ loading */

/* From memory, so that what is loaded is what was checked. *why: the reason of a 0. */
static int open_code(const void *bytes, size_t size, qn__user_code *out, const char **why) {
    char path[40];
    const int file = memfd_create("kernel", MFD_CLOEXEC);
    *why = "there is no memory for its file";
    if (file < 0)
        return 0;
    const int is_whole = qn__write_whole(file, bytes, size) == 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    /* The loader knows libraries by their paths, so the number must stay taken as long as this one
     * is loaded. */
    out->file = file;
    if (is_whole && qn__library_open(&out->library, path))
        return 1;
    if (is_whole)
        *why = qn__library_reason();
    qn__user_code_release(out);
    return 0;
}

/* Arguments for which a wrong compiler gives another answer; see the prelude. */
static uint32_t test(qn__user_trial *trial) {
    return trial(1 + 0x1p-30, 1 - 0x1p-30, -1, 0x1p-126f, 0.5f, INT32_MAX);
}

static qn_status load(const compiler *c, const void *bytes, size_t size, qn__user_code *out,
                      qn_error *err) {
    const char *why;
    if (!open_code(bytes, size, out, &why)) {
        qn__fail(err, QN_UNSUPPORTED, "the compiled kernel cannot be loaded: %s", why);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "set CC to a compiler for this processor and its C library");
    }
    out->grain = (qn__user_grain *)qn__library_find(&out->library, "qn_user_grain");
    qn__user_trial *trial = (qn__user_trial *)qn__library_find(&out->library, "qn_user_trial");
    const uint32_t wrong = out->library.lacks ? UINT32_MAX : test(trial);
    if (wrong == 0)
        return QN_OK;
    qn__user_code_release(out);
    qn__fail(err, QN_UNSUPPORTED, "code that %s compiles gives wrong results (test %x)", c->path,
             (unsigned)wrong);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "set CC to gcc or clang, without options that change arithmetic");
}

static qn_status make(const compiler *c, const qn__text *program, qn__user_code *out,
                      qn_error *err) {
    char *key = qn__alloc(1, PATH_MAX + 256, err);
    void *kept = NULL;
    size_t size = 0;
    qn__bytes fresh = {0};
    if (!key)
        return QN_MEMORY;
    make_key(c, program, key);
    qn__program_cache_load(key, ending, &kept, &size, out->note);
    out->cached = kept && load(c, kept, size, out, NULL) == QN_OK;
    qn__free(kept);
    qn_status status = QN_OK;
    if (!out->cached)
        status = compile(c, program->data, &fresh, err);
    if (status == QN_OK && !out->cached)
        status = load(c, fresh.data, fresh.size, out, err);
    if (status == QN_OK && !out->cached) {
        qn__program_cache_store(key, ending, fresh.data, fresh.size, out->note);
        qn__program_cache_trim(ending, KEPT);
    }
    qn__bytes_release(&fresh);
    qn__free(key);
    return status;
}

static void choose_options(const qn__user_source *source, const char *option[OPTIONS]) {
    size_t n = 0;
    if (source->functions.size > LONG) {
        option[n++] = for_long;
        return;
    }
    if (qn__user_has_common(source))
        option[n++] = for_functions;
    if (qn__user_has_own_array(source))
        option[n++] = for_own_arrays;
}

qn_status qn__user_code_make(const qn__user_source *source, qn__user_code *out, qn_error *err) {
    qn__text program = {0};
    *out = (qn__user_code){.file = -1};
    compiler *c = qn__alloc(1, sizeof *c, err);
    if (!c)
        return QN_MEMORY;
    choose_options(source, c->option);
    qn__user_program_write(source, &program);
    qn_status status = program.failed ? qn__fail_memory(err, 1, program.size) : QN_OK;
    if (status == QN_OK)
        status = find_compiler(c, err);
    if (status == QN_OK)
        status = make(c, &program, out, err);
    snprintf(out->compiler, sizeof out->compiler, "%.250s", c->path);
    qn__text_release(&program);
    qn__free(c);
    return status;
}

void qn__user_code_release(qn__user_code *code) {
    qn__library_close(&code->library);
    if (code->file >= 0)
        close(code->file);
    code->file = -1;
    code->grain = NULL;
}
