/* Checkpoints of user kernels. The target mends the digests, which would keep every mutation out.
 */
#include "fuzz/fuzz.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "run/user_checkpoint.h"
#include "run/user_iterate.h"

enum { ITEMS = 12, ITERATIONS = 50 };

static const char text[] = "INDEX(i);\nINPUT(int16_t, u);\nOUTPUT(int16_t, v);\nNEXT(v, u);\n"
                           "COUNT(odd);\nSCALAR(int, a, 3);\nKERNEL { v = u; odd = u & 1; }\n";

static void read_one(const uint8_t *bytes, size_t size) {
    qn_kernel *k = NULL;
    qn_error err = {0};
    FUZZ_MUST(qn_kernel_read(text, "k.c", &k, &err) == QN_OK);
    FUZZ_MUST(qn_kernel_series(k, "odd", NULL, &err) == QN_OK);
    k->checkpoint = (qn__user_checkpoint){.path = fuzz_file(0, bytes, size), .resume = 1};
    k->iterations = ITERATIONS;
    for (int d = 0; d < QN_KERNEL_DIMENSIONS; d++)
        k->job.extent[d] = d == QN_KERNEL_DIMENSIONS - 1 ? ITEMS : 1;
    k->part[1].array = (qn__user_array){.type = QN__USER_I16, .dimensions = 1, .shape = {ITEMS}};
    FUZZ_MUST(qn__user_array_make(&k->part[1].array, &err) == QN_OK);
    FUZZ_MUST(qn__user_series_make(k, &err) == QN_OK);
    const qn_status status = qn__user_checkpoint_read(k, &err);
    if (status == QN_OK)
        FUZZ_MUST(k->checkpoint.from > 0 && k->checkpoint.from < ITERATIONS);
    else
        fuzz_check_refusal(status, NULL, &err);
    qn_kernel_free(k);
}

/* Writes the digest of what stands before it into its line. */
static void mend_header(uint8_t *bytes, size_t size) {
    static const char word[] = "\ndigest ";
    const size_t length = sizeof word - 1;
    for (size_t at = 0; at + length + 64 <= size; at++) {
        uint8_t digest[32];
        char hex[65];
        if (memcmp(bytes + at, word, length) != 0)
            continue;
        qn__sha256_of(bytes, at + 1, digest);
        qn__hex(digest, hex);
        memcpy(bytes + at + length, hex, 64);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    uint8_t *mended = malloc(size + 1);
    FUZZ_MUST(mended != NULL);
    memcpy(mended, bytes, size);
    read_one(bytes, size);
    mend_header(mended, size);
    read_one(mended, size);
    free(mended);
    return 0;
}
