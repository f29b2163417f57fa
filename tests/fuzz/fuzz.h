/* What the fuzz targets share. A target is a file NAME_fuzz.c that hands the bytes to one reader
 * and checks more than that it survives: whatever was accepted must be whole, whatever was refused
 * must say what, where and what to do. */
#ifndef QN_TESTS_FUZZ_H
#define QN_TESTS_FUZZ_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libFuzzer and replay.c call, once for each input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Ends the program where a promise is broken, by what both sanitizers and libFuzzer notice. */
#define FUZZ_MUST(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *what, const char *file, int line);

/* The path of a regular file with these bytes; number 0 or 1, each valid until its next call. */
const char *fuzz_file(int number, const void *bytes, size_t size);

/* An empty folder, in memory where the system has such, that is removed at the end unless files are
 * left in it. */
const char *fuzz_folder(void);

/* A text of these bytes, ended by a NUL and owned by the caller; what stands after a NUL is cut.
 */
char *fuzz_text(const uint8_t *bytes, size_t size);

/* A failure says what and what to do, and leaves nothing to own. */
static inline void fuzz_check_refusal(qn_status status, const void *out, const qn_error *err) {
    FUZZ_MUST(status != QN_OK && err->status == status);
    FUZZ_MUST(out == NULL);
    FUZZ_MUST(err->what[0] != '\0');
}

#endif
