/* Checkpoints of user kernels. The target mends the digests, which would keep every mutation out.
 */
#include "fuzz/fuzz.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/digest/sha256.h"
#include "userkernel/run/user_checkpoint.h"
#include "userkernel/run/user_iterate.h"
#include "userkernel/run/user_state_file.h"

enum { ITEMS = 12, ITERATIONS = 50, LINES = 4096 /* bytes */ };

static const char text[] = "INDEX(i);\nINPUT(int16_t, u);\nOUTPUT(int16_t, v);\nNEXT(v, u);\n"
                           "COUNT(odd);\nSCALAR(int, a, 3);\nKERNEL { v = u; odd = u & 1; }\n";

static int is_of_items(const uint8_t *bytes, size_t size) {
    static const char begin[] = "quern kernel checkpoint 2\nrun items\n";
    return size >= sizeof begin - 1 && memcmp(bytes, begin, sizeof begin - 1) == 0;
}

static void read_one(const uint8_t *bytes, size_t size) {
    qn_kernel *k = NULL;
    qn_error err = {0};
    FUZZ_MUST(qn_kernel_read(text, "k.c", &k, &err) == QN_OK);
    FUZZ_MUST(qn_kernel_series(k, "odd", NULL, &err) == QN_OK);
    k->checkpoint = (qn__user_checkpoint){.path = fuzz_file(0, bytes, size), .resume = 1};
    k->iterations = is_of_items(bytes, size) ? 1 : ITERATIONS;
    for (int d = 0; d < QN_KERNEL_DIMENSIONS; d++)
        k->job.extent[d] = d == QN_KERNEL_DIMENSIONS - 1 ? ITEMS : 1;
    k->part[1].array = (qn__user_array){.type = QN__USER_I16, .dimensions = 1, .shape = {ITEMS}};
    FUZZ_MUST(qn__user_array_make(&k->part[1].array, &err) == QN_OK);
    FUZZ_MUST(qn__user_series_make(k, &err) == QN_OK);
    FUZZ_MUST(qn__state_file_open(k, &err) == QN_OK);
    const qn_status status = qn__user_checkpoint_read(k, &err);
    if (status != QN_OK)
        fuzz_check_refusal(status, NULL, &err);
    else if (k->iterations == 1)
        FUZZ_MUST(k->checkpoint.items < ITEMS);
    else
        FUZZ_MUST(k->checkpoint.from > 0 && k->checkpoint.from < ITERATIONS);
    qn__state_file_close(k);
    qn_kernel_free(k);
}

/* Writes the digest of some bytes after the first such word. */
static void mend(uint8_t *lines, size_t size, const char *word, const uint8_t *from, size_t count) {
    const size_t length = strlen(word);
    for (size_t at = 0; at + length + 64 <= size; at++) {
        uint8_t digest[32];
        char hex[65];
        if (memcmp(lines + at, word, length) != 0)
            continue;
        qn__sha256_of(from, count ? count : at + 1, digest);
        qn__hex(digest, hex);
        memcpy(lines + at + length, hex, 64);
        return;
    }
}

/* The digest of the lines at the begin, and of those of two states with their totals. */
static void mend_all(uint8_t *bytes, size_t size) {
    mend(bytes, size, "\ndigest ", bytes, 0);
    const int items = is_of_items(bytes, size);
    const size_t state = items ? 2 * LINES : LINES; /* bytes of it: only items have totals */
    for (size_t at = LINES; at + state <= size && at <= LINES + state; at += state) {
        if (items)
            mend(bytes + at, LINES, "\ntotals ", bytes + at + LINES, sizeof(int64_t));
        mend(bytes + at, LINES, "\ndigest ", bytes + at, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    uint8_t *mended = malloc(size + 1);
    FUZZ_MUST(mended != NULL);
    memcpy(mended, bytes, size);
    read_one(bytes, size);
    mend_all(mended, size);
    read_one(mended, size);
    free(mended);
    return 0;
}
