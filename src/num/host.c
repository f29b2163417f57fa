#include "num/host.h"

#include "base/binary/float_bits.h"
#include "num/host_vectors.h"
#include "num/sums.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Operations are functions that are called through a pointer, so that no compiler evaluates them at
 * compile time. */
uint64_t qn__host_compute(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    const float x = qn__float_of_bits((uint32_t)a), y = qn__float_of_bits((uint32_t)b),
                z = qn__float_of_bits((uint32_t)c);
    switch (operation) {
    case QN__HOST_ADD:
        return qn__float_bits(x + y);
    case QN__HOST_MULTIPLY:
        return qn__float_bits(x * y);
    case QN__HOST_DIVIDE:
        return qn__float_bits(x / y);
    case QN__HOST_ROOT:
        return qn__float_bits(sqrtf(x));
    case QN__HOST_FMA:
        return qn__float_bits(fmaf(x, y, z));
    case QN__HOST_MULTIPLY_ADD:
        return qn__float_bits(x * y + z);
    case QN__HOST_TO_INTEGER:
        return (uint64_t)qn__to_units(x);
    case QN__HOST_FROM_INTEGER:
        return qn__float_bits(qn__from_units((int64_t)a));
    case QN__HOST_NARROW:
        return qn__float_bits((float)qn__double_of_bits(a));
    case QN__HOST_WIDEN:
        return qn__double_bits((double)x);
    case QN__HOST_DOUBLE_ADD:
        return qn__double_bits(qn__double_of_bits(a) + qn__double_of_bits(b));
    case QN__HOST_DOUBLE_MULTIPLY:
        return qn__double_bits(qn__double_of_bits(a) * qn__double_of_bits(b));
    case QN__HOST_DOUBLE_DIVIDE:
        return qn__double_bits(qn__double_of_bits(a) / qn__double_of_bits(b));
    case QN__HOST_LESS:
        return x < y;
    case QN__HOST_OPERATIONS:
        break;
    }
    return 0;
}

static const struct {
    const char *text;
    int operands;
} operations[QN__HOST_OPERATIONS] = {
    [QN__HOST_ADD] = {"a + b", 2},
    [QN__HOST_MULTIPLY] = {"a * b", 2},
    [QN__HOST_DIVIDE] = {"a / b", 2},
    [QN__HOST_ROOT] = {"sqrtf(a)", 1},
    [QN__HOST_FMA] = {"fmaf(a, b, c)", 3},
    [QN__HOST_MULTIPLY_ADD] = {"a * b + c, rounded twice,", 3},
    [QN__HOST_TO_INTEGER] = {"the 64-bit integer nearest to the float a", 1},
    [QN__HOST_FROM_INTEGER] = {"the float nearest to the 64-bit integer a", 1},
    [QN__HOST_NARROW] = {"the float nearest to the double a", 1},
    [QN__HOST_WIDEN] = {"the double of the float a", 1},
    [QN__HOST_DOUBLE_ADD] = {"a + b in doubles", 2},
    [QN__HOST_DOUBLE_MULTIPLY] = {"a * b in doubles", 2},
    [QN__HOST_DOUBLE_DIVIDE] = {"a / b in doubles", 2},
    [QN__HOST_LESS] = {"a < b", 2},
};

static qn_status fail(const host_vector *v, uint64_t got, qn_error *err) {
    const int operands = operations[v->operation].operands;
    char given[96];
    snprintf(given, sizeof given, "a = 0x%llx", (unsigned long long)v->a);
    if (operands > 1)
        snprintf(given + strlen(given), sizeof given - strlen(given), ", b = 0x%llx",
                 (unsigned long long)v->b);
    if (operands > 2)
        snprintf(given + strlen(given), sizeof given - strlen(given), ", c = 0x%llx",
                 (unsigned long long)v->c);
    qn__fail(err, QN_UNSUPPORTED, "this processor or its emulator computes %s wrongly",
             operations[v->operation].text);
    qn__at(err, "self-test, by their bits: %s gives 0x%llx, where 0x%llx is right", given,
           (unsigned long long)got, (unsigned long long)v->want);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "use another machine, a newer emulator or C library, or another compiler: "
                      "results would differ from those of all other machines");
}

qn_status qn__host_compare(qn__host_function *function, qn_error *err) {
    for (size_t i = 0; i < sizeof host_vectors / sizeof *host_vectors; ++i) {
        const host_vector *v = &host_vectors[i];
        const uint64_t got = function(v->operation, v->a, v->b, v->c);
        if (got != v->want)
            return fail(v, got, err);
    }
    return QN_OK;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static qn_status verdict;
static qn_error fault;

static void compare_once(void) {
    qn__host_function *volatile function = qn__host_compute;
    verdict = qn__host_compare(function, &fault);
}

qn_status qn__host_check(qn_error *err) {
    pthread_once(&once, compare_once);
    if (verdict != QN_OK && err)
        *err = fault;
    return verdict;
}
