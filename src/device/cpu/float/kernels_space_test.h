/* Random numbers, guarded arrays and comparisons for the tests of float kernels. Each array is
 * between two inaccessible pages, so that an access outside of it ends the test. Include after
 * cmocka.h. */
#ifndef QN_DEVICE_CPU_FLOAT_KERNELS_SPACE_TEST_H
#define QN_DEVICE_CPU_FLOAT_KERNELS_SPACE_TEST_H

#include "device/cpu/cpu_isa.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t random_state = 1;

static uint32_t word(void) {
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

/* Mostly ordinary numbers; also multiples of 1/4, which give ties in sums, and zeros of both signs.
 * With `strange` also NaNs, infinities and subnormals. */
static float number(int strange) {
    static const float odd[] = {NAN,       INFINITY,   -INFINITY,    0x1.fffffep127f, -0x1p-149f,
                                0x1p-126f, -0x1p-127f, 0x1.62e43p6f, -104.0f,         1e30f};
    const uint32_t luck = word() % 16;
    if (strange && luck < 4)
        return odd[word() % (sizeof odd / sizeof *odd)];
    if (luck < 6)
        return luck == 4 ? 0.0f : -0.0f;
    if (luck < 9)
        return (float)(int32_t)(word() % 33) * 0.25f - 4.0f;
    return (float)(int32_t)word() * 0x1p-30f;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- arrays between two inaccessible pages */

enum { ARRAYS = 32 };
static struct guarded {
    void *map;
    size_t size;
} arrays[ARRAYS];
static int used;

/* `bytes` bytes that end at a page's end. */
static void *guard(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    struct guarded *g = &arrays[used++];
    assert_in_range(used, 1, ARRAYS);
    g->size = inside + 2 * page;
    g->map = mmap(NULL, g->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g->map != MAP_FAILED);
    char *begin = (char *)g->map + page;
    assert_int_equal(mprotect(begin, inside ? inside : page, PROT_READ | PROT_WRITE), 0);
    return begin + inside - bytes;
}

static void release(void) {
    while (used > 0) {
        --used;
        munmap(arrays[used].map, arrays[used].size);
    }
}

static float *guarded_numbers(size_t count, int strange) {
    float *x = guard(count * sizeof *x);
    for (size_t i = 0; i < count; ++i)
        x[i] = number(strange);
    return x;
}

static float *copy_of(const float *from, size_t count) {
    return memcpy(guard(count * sizeof *from), from, count * sizeof *from);
}

/* ---- comparisons; `how` names the sizes */

static char how[160];

static void same(const qn__cpu_kernels *k, const char *kernel, const float *got, const float *want,
                 size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0 && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s %s, %s: element %zu is %a, plain loops give %a", k->name, kernel, how, i,
                     (double)got[i], (double)want[i]);
}

static void every_isa(void (*body)(const qn__cpu_kernels *k)) {
    const qn__cpu_isa *isa;
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL; ++i) {
        const int here = isa->kernels && isa->here();
        if (!here)
            print_message("  not on this machine: %s\n", isa->name);
        /* Only once when instruction sets share the float kernels. */
        if (!here || strcmp(isa->kernels->name, isa->name) != 0)
            continue;
        random_state = 1;
        body(isa->kernels);
    }
}

#endif
