/* The self-test with simulated drivers, each with one defect of real devices: each defect is found
 * and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/gpu/gpu.h"
#include "num/elementary.h"
#include "num/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum defect {
    NONE,
    FLUSHES_OPERANDS,
    FLUSHES_RESULTS,
    FLUSHES_TO_PLUS_ZERO,
    CONTRACTS,
    FMA_ROUNDS_TWICE,
    FMA_IN_DOUBLE,
    DIVIDES_BY_RECIPROCAL,
    DIVIDES_ONE_OFF,
    ROOT_BY_RECIPROCAL,
    ADDS_TOWARDS_ZERO,
    LOSES_SIGN_OF_ZERO,
    TIES_AWAY,
    SUMS_BY_DOUBLE,
    SHIFTS_LOGICALLY,
    SHIFTS_HALVES,
    PRODUCT_OF_32_BITS,
    ADD_LOSES_CARRY,
    LESS_OR_EQUAL,
    BYTES_WITHOUT_SIGN,
    SUM_OF_BYTES_SATURATES,
    INT32_CUT_OFF,
    UNITS_TIES_UP,
    EXP_OF_LIBM,
    SILU_OF_EXP,
    TANH_ONE_OFF,
    FAILS_TO_LAUNCH,
    FAILS_TO_ALLOCATE
} defect;

/* The fake device: its memory is host memory. */
struct qn__gpu {
    defect defect;
    uint32_t allocations, releases, launches, asked, taken;
    const void *piece[QN__GPU_ASKED];
    size_t piece_bytes[QN__GPU_ASKED];
};

static const qn__gpu_facts *facts(const qn__gpu *gpu) {
    static const qn__gpu_facts one = {.name = "fake:0 (a device of tests)"};
    (void)gpu;
    return &one;
}

static qn_status allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err) {
    if (gpu->defect == FAILS_TO_ALLOCATE && gpu->allocations == 3)
        return qn__fail(err, QN_DEVICE, "fake:0 is out of memory");
    ++gpu->allocations;
    out->handle = malloc(bytes);
    out->bytes = bytes;
    assert_non_null(out->handle);
    return QN_OK;
}

static void release(qn__gpu *gpu, qn__gpu_memory *memory) {
    gpu->releases += memory->bytes > 0;
    free(memory->handle);
    memory->bytes = 0;
}

static qn_status put(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                     size_t bytes, qn_error *err) {
    (void)gpu, (void)err;
    assert_true(offset + bytes <= to->bytes);
    memcpy((char *)to->handle + offset, from, bytes);
    return QN_OK;
}

static qn_status ask(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                     qn_error *err) {
    (void)err;
    assert_true(offset + bytes <= from->bytes);
    assert_true(gpu->asked - gpu->taken < QN__GPU_ASKED);
    gpu->piece[gpu->asked % QN__GPU_ASKED] = (char *)from->handle + offset;
    gpu->piece_bytes[gpu->asked++ % QN__GPU_ASKED] = bytes;
    return QN_OK;
}

static qn_status get(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err) {
    (void)err;
    assert_true(gpu->asked > gpu->taken);
    *data = gpu->piece[gpu->taken % QN__GPU_ASKED];
    *bytes = gpu->piece_bytes[gpu->taken++ % QN__GPU_ASKED];
    return QN_OK;
}

static float number(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float flush(defect d, float x) {
    return x != 0.0f && fabsf(x) < 0x1p-126f
               ? (d == FLUSHES_TO_PLUS_ZERO ? 0.0f : copysignf(0.0f, x))
               : x;
}

static float divided(defect d, float x, float y) {
    const float q = x / y;
    if (d == DIVIDES_BY_RECIPROCAL)
        return x * (1.0f / y);
    /* Affects one in a thousand ordinary quotients. */
    if (d == DIVIDES_ONE_OFF && isnormal(q) && bits_of(q) % 1024 == 5)
        return number(bits_of(q) + 1);
    return q;
}

static float fused(defect d, float x, float y, float z) {
    if (d == FMA_ROUNDS_TWICE)
        return x * y + z;
    return d == FMA_IN_DOUBLE ? (float)((double)x * (double)y + (double)z) : fmaf(x, y, z);
}

static float added(defect d, float x, float y) {
    const float s = x + y;
    if (d == LOSES_SIGN_OF_ZERO && s == 0.0f)
        return 0.0f;
    if (d == ADDS_TOWARDS_ZERO && isfinite(s) && fabs((double)s) > fabs((double)x + (double)y))
        return nextafterf(s, 0.0f);
    return s;
}

/* An operation that returns a float. */
static float floating(defect d, uint32_t op, float x, float y, float z) {
    switch (op) {
    case QN_TRIAL_ADD:
        return added(d, x, y);
    case QN_TRIAL_MUL:
        return x * y;
    case QN_TRIAL_FMA:
        return fused(d, x, y, z);
    case QN_TRIAL_MUL_ADD:
        return d == CONTRACTS ? fmaf(x, y, z) : x * y + z;
    case QN_TRIAL_DIV:
        return divided(d, x, y);
    default:
        return d == ROOT_BY_RECIPROCAL && x > 0.0f && isfinite(x) ? x * (1.0f / sqrtf(x))
                                                                  : sqrtf(x);
    }
}

static uint64_t shifted(defect d, uint64_t pair, uint32_t by) {
    if (d == SHIFTS_LOGICALLY)
        return pair >> by;
    if (d == SHIFTS_HALVES) /* as if the count were taken modulo 32 */
        by &= 31u;
    return (uint64_t)((int64_t)pair >> by);
}

static uint64_t units(defect d, float x) {
    if (!(fabsf(x) < 0x1p62f))
        return 0x123456789u; /* undefined by the contract */
    return (uint64_t)(d == TIES_AWAY ? (int64_t)roundf(x) : (int64_t)rintf(x));
}

/* Sums converted through double are rounded twice. */
static float of_sum(defect d, uint64_t pair) {
    return d == SUMS_BY_DOUBLE ? (float)(double)(int64_t)pair : (float)(int64_t)pair;
}

static uint32_t dot(defect d, uint32_t a, uint32_t b, int32_t c) {
    int32_t sum = c;
    for (uint32_t i = 0; i < 32; i += 8) {
        const uint8_t x = (uint8_t)(a >> i), y = (uint8_t)(b >> i);
        /* As the instruction for mixed signs computes: the second operand's bytes are unsigned. */
        sum += (int8_t)x * (d == BYTES_WITHOUT_SIGN ? (int32_t)y : (int32_t)(int8_t)y);
    }
    return (uint32_t)(d == SUM_OF_BYTES_SATURATES && sum > 0x7fffff ? 0x7fffff : sum);
}

/* n / 4 * 2^(-1 - by) */
static uint64_t scaled(defect d, uint64_t pair, uint32_t by) {
    const int64_t n = (int64_t)pair >> 2;
    if (by >= 63)
        return 0;
    const int64_t whole = n >> by >> 1, rest = n - (int64_t)((uint64_t)whole << by << 1);
    const int64_t half = INT64_C(1) << by;
    return (uint64_t)(whole + (rest > half || (rest == half && (d == UNITS_TIES_UP || whole & 1))));
}

static uint32_t rounded(defect d, float x) {
    if (!(fabsf(x) < 0x1p30f))
        return 0x7654321u; /* undefined by the contract */
    return (uint32_t)(int32_t)(d == INT32_CUT_OFF ? x : rintf(x));
}

static uint64_t trial(defect d, uint32_t op, uint32_t a, uint32_t b, uint32_t c) {
    const int in = d == FLUSHES_OPERANDS || d == FLUSHES_TO_PLUS_ZERO,
              out = in + (d == FLUSHES_RESULTS);
    const float x = in ? flush(d, number(a)) : number(a), y = in ? flush(d, number(b)) : number(b),
                z = in ? flush(d, number(c)) : number(c);
    const uint64_t pair = (uint64_t)b << 32 | a, sum = pair + ((uint64_t)a << 32 | c);
    if (op <= QN_TRIAL_DIV || op == QN_TRIAL_SQRT) {
        const float r = floating(d, op, x, y, z);
        return bits_of(out && d != FLUSHES_OPERANDS ? flush(d, r) : r);
    }
    switch (op) {
    case QN_TRIAL_TO_UNITS:
        return units(d, x);
    case QN_TRIAL_FROM_SUM:
        return bits_of(of_sum(d, pair));
    case QN_TRIAL_LESS:
        return d == LESS_OR_EQUAL ? x <= y : x < y;
    case QN_TRIAL_PRODUCT:
        return d == PRODUCT_OF_32_BITS ? a * b : (uint64_t)a * b;
    case QN_TRIAL_ADD64:
        return d == ADD_LOSES_CARRY ? (uint64_t)(b + a) << 32 | (uint32_t)(a + c) : sum;
    case QN_TRIAL_DOT:
        return dot(d, a, b, (int32_t)c >> 8);
    case QN_TRIAL_INT32:
        return rounded(d, x);
    case QN_TRIAL_UNITS:
        return scaled(d, pair, c & 63u);
    default:
        return shifted(d, pair, c & 63u);
    }
}

static float mapped(defect d, uint32_t op, float x) {
    switch (op) {
    case QN_MAP_COPY:
        return x;
    case QN_MAP_EXP:
        return d == EXP_OF_LIBM ? (float)expm1((double)x) + 1.0f : qn__exp(x);
    case QN_MAP_LOG:
        return qn__log(x);
    case QN_MAP_TANH:
        return d == TANH_ONE_OFF && x > 2.0f && x < 3.0f ? number(bits_of(qn__tanh(x)) - 1)
                                                         : qn__tanh(x);
    case QN_MAP_SIGMOID:
        return qn__sigmoid(x);
    case QN_MAP_COSPI:
        return qn__cospi(x);
    case QN_MAP_GELU:
        return qn__gelu(x);
    case QN_MAP_GELU_SLOPE:
        return qn__gelu_slope(x);
    case QN_MAP_SILU:
        return d == SILU_OF_EXP ? x / (1.0f + qn__exp(-x)) : qn__silu(x);
    case QN_MAP_SILU_SLOPE:
        return qn__silu_slope(x);
    case QN_MAP_GELU_TANH:
        return qn__gelu_tanh(x);
    case QN_MAP_GELU_TANH_SLOPE:
        return qn__gelu_tanh_slope(x);
    default:
        return sqrtf(x);
    }
}

static void run_trial(defect d, const qn__gpu_argument *arguments) {
    const uint32_t *const a = arguments[0].value.memory->handle,
                          *const b = arguments[1].value.memory->handle,
                          *const c = arguments[2].value.memory->handle;
    uint64_t *const out = arguments[3].value.memory->handle;
    for (uint64_t i = 0; i < arguments[4].value.U; ++i)
        out[i] = trial(d, arguments[5].value.u, a[i], b[i], c[i]);
}

static qn_status launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                        const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    const qn__kernel_shape *shape = qn__kernel_shape_of(kernel);
    const uint64_t work = arguments[kernel == QN__K_TRIAL ? 4 : 2].value.U;
    assert_int_equal(count, strlen(shape->arguments));
    for (uint32_t i = 0; i < count; ++i)
        assert_int_equal(arguments[i].kind, shape->arguments[i]);
    assert_int_equal(groups[0], (work + shape->share - 1) / shape->share);
    if (gpu->defect == FAILS_TO_LAUNCH && ++gpu->launches == 5)
        return qn__fail(err, QN_DEVICE, "fake:0 failed: CL_OUT_OF_RESOURCES");
    if (kernel == QN__K_TRIAL) {
        run_trial(gpu->defect, arguments);
        return QN_OK;
    }
    assert_int_equal(kernel, QN__K_MAP);
    for (uint64_t i = 0; i < work; ++i)
        ((float *)arguments[1].value.memory->handle)[i] =
            mapped(gpu->defect, arguments[3].value.u,
                   ((const float *)arguments[0].value.memory->handle)[i]);
    return QN_OK;
}

static const qn__gpu_driver fake_driver = {.facts = facts,
                                           .allocate = allocate,
                                           .release = release,
                                           .write = put,
                                           .ask = ask,
                                           .get = get,
                                           .launch = launch};

static void test_a_right_device_passes(void **state) {
    (void)state;
    qn__gpu gpu = {.defect = NONE};
    qn_error err = {0};
    if (qn__gpu_selftest(&fake_driver, &gpu, &err) != QN_OK)
        fail_msg("%s (%s)", err.what, err.where);
    assert_true(gpu.allocations > 0);
    assert_int_equal(gpu.allocations, gpu.releases);
}

static void test_every_defect_is_named(void **state) {
    (void)state;
    static const struct {
        defect defect;
        const char *says;
    } cases[] = {
        {FLUSHES_OPERANDS, "flushes subnormal numbers to zero"},
        {FLUSHES_RESULTS, "flushes subnormal numbers to zero"},
        {FLUSHES_TO_PLUS_ZERO, "flushes subnormal numbers to zero"},
        {CONTRACTS, "contracts a * b + c to one fma"},
        {FMA_ROUNDS_TWICE, "has no fma of its own or a wrong one: it rounds twice"},
        {FMA_IN_DOUBLE, "has no fma of its own or a wrong one: it rounds to double"},
        {DIVIDES_BY_RECIPROCAL, "wrong rounding: it multiplies by the reciprocal"},
        {DIVIDES_ONE_OFF, "divides with a wrong rounding"},
        {ROOT_BY_RECIPROCAL, "takes square roots with a wrong rounding"},
        {ADDS_TOWARDS_ZERO, "adds wrongly"},
        {LOSES_SIGN_OF_ZERO, "adds wrongly"},
        {TIES_AWAY, "rounds numbers to 64-bit integers wrongly"},
        {SUMS_BY_DOUBLE, "rounds 64-bit integers to numbers wrongly"},
        {SHIFTS_LOGICALLY, "shifts 64-bit integers wrongly"},
        {SHIFTS_HALVES, "shifts 64-bit integers wrongly"},
        {PRODUCT_OF_32_BITS, "multiplies 32-bit integers to 64 bits wrongly"},
        {ADD_LOSES_CARRY, "adds 64-bit integers wrongly"},
        {LESS_OR_EQUAL, "compares wrongly"},
        {BYTES_WITHOUT_SIGN, "multiplies packed bytes wrongly"},
        {SUM_OF_BYTES_SATURATES, "multiplies packed bytes wrongly"},
        {INT32_CUT_OFF, "rounds numbers to 32-bit integers wrongly"},
        {UNITS_TIES_UP, "rounds scaled 64-bit integers wrongly"},
        {EXP_OF_LIBM, "its exp is not the contract's"},
        {SILU_OF_EXP, "its silu is not the contract's"},
        {TANH_ONE_OFF, "its tanh is not the contract's"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        qn__gpu gpu = {.defect = cases[i].defect};
        qn_error err = {0};
        assert_int_equal(qn__gpu_selftest(&fake_driver, &gpu, &err), QN_UNSUPPORTED);
        if (!strstr(err.what, cases[i].says))
            fail_msg("\"%s\" (%s) does not say \"%s\"", err.what, err.where, cases[i].says);
        assert_non_null(strstr(err.what, "fake:0 (a device of tests)"));
        assert_non_null(strstr(err.where, "self-test"));
        assert_true(err.remedy[0] != '\0');
        assert_int_equal(gpu.allocations, gpu.releases);
        print_message("%s\n  %s\n", err.what, err.where);
    }
}

static void test_failures_of_the_driver_are_its_own(void **state) {
    (void)state;
    static const defect failing[] = {FAILS_TO_LAUNCH, FAILS_TO_ALLOCATE};
    for (int i = 0; i < 2; ++i) {
        qn__gpu gpu = {.defect = failing[i]};
        qn_error err = {0};
        assert_int_equal(qn__gpu_selftest(&fake_driver, &gpu, &err), QN_DEVICE);
        assert_int_equal(gpu.allocations, gpu.releases);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_right_device_passes),
        cmocka_unit_test(test_every_defect_is_named),
        cmocka_unit_test(test_failures_of_the_driver_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
