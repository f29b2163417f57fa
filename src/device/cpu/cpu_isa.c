/* The instruction sets of this machine and their tables. A new one is a row here. */
#include "device/cpu/cpu_isa.h"
#include <stdio.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

static int has_avx2(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

static int has_avx512(void) {
#if defined(__x86_64__)
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
#else
    return 0;
#endif
}

static int has_neon(void) {
#if defined(__aarch64__)
    return 1; /* part of the architecture */
#else
    return 0;
#endif
}

static int has_dotprod(void) {
#if defined(__aarch64__) && defined(HWCAP_ASIMDDP)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return 0;
#endif
}

static int has_vnni(void) {
#if defined(__x86_64__)
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
#else
    return 0;
#endif
}

static int has_amx(void) { return has_avx512() && qn__cpu_has_amx(); }

static int has_scalar(void) { return 1; }

/* What the files of the instruction sets define; a build for another processor has only some. */
#define FLOATS(SET)                                                                                \
    extern const qn__cpu_kernels qn__cpu_kernels_##SET;                                            \
    extern const qn__maps qn__maps_##SET
#define INTEGERS(SET) extern const qn__intgemm qn__intgemm_##SET
FLOATS(avx2);
FLOATS(avx512);
FLOATS(neon);
INTEGERS(avx2);
INTEGERS(avx512);
INTEGERS(vnni);
INTEGERS(amx);
INTEGERS(neon);
INTEGERS(dotprod);

/* The columns of a row: which kernels for floats, which integer products. Sets that differ only in
 * integer instructions share the kernels for floats. */
#define TABLES(FLOAT, INTEGER) &qn__cpu_kernels_##FLOAT, &qn__maps_##FLOAT, &qn__intgemm_##INTEGER
#define NO_TABLES NULL, NULL, NULL

#if defined(__x86_64__)
#define X86(FLOAT, INTEGER) TABLES(FLOAT, INTEGER)
#else
#define X86(FLOAT, INTEGER) NO_TABLES
#endif
#if defined(__aarch64__)
#define ARM(FLOAT, INTEGER) TABLES(FLOAT, INTEGER)
#else
#define ARM(FLOAT, INTEGER) NO_TABLES
#endif
/* Left out if the compiler does not support these instructions. */
#if defined(QN_HAVE_AMX)
#define AMX X86(avx512, amx)
#else
#define AMX NO_TABLES
#endif
/* In all reports, so that nobody takes the results of such a build for right (CONTRIBUTING.md). */
#if defined(QN_AMX_IDLE)
#define AMX_NAME "amx-idle"
#else
#define AMX_NAME "amx"
#endif
#if defined(QN_HAVE_VNNI)
#define VNNI X86(avx512, vnni)
#else
#define VNNI NO_TABLES
#endif
#if defined(QN_HAVE_DOTPROD)
#define DOTPROD ARM(neon, dotprod)
#else
#define DOTPROD NO_TABLES
#endif

/* From best to worst. Names without code in this build stay known, for the message. */
static const qn__cpu_isa isas[] = {
    {"dotprod", "NEON with dot products of bytes", has_dotprod, DOTPROD},
    {"neon", "Arm with NEON", has_neon, ARM(neon, neon)},
    {AMX_NAME, "AVX-512 with matrix units", has_amx, AMX},
    {"vnni", "AVX-512 with dot products of bytes", has_vnni, VNNI},
    {"avx512", "x86 with AVX-512", has_avx512, X86(avx512, avx512)},
    {"avx2", "x86 with AVX2", has_avx2, X86(avx2, avx2)},
    {"scalar", "plain C", has_scalar, TABLES(scalar, scalar)},
};

enum { ISAS = sizeof isas / sizeof *isas };

const qn__cpu_isa *qn__cpu_isa_at(uint32_t index) {
    return index < ISAS ? &isas[ISAS - 1 - index] : NULL;
}

const qn__cpu_isa *qn__cpu_isa_find(const char *name) {
    const int any = !name || strcmp(name, "auto") == 0;
    for (int i = 0; i < ISAS; ++i)
        if ((any || strcmp(name, isas[i].name) == 0) && isas[i].kernels && isas[i].here())
            return &isas[i];
    return NULL;
}

void qn__cpu_isa_list(char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < ISAS; ++i)
        if (isas[i].kernels && isas[i].here() && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", isas[i].name);
}
