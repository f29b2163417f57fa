/* Short measurements of a device: the exact products, an elementary function, a copy. Each takes
 * about a third of a second: launches are counted until they fill a part of that, then timed
 * several times. The result is the median. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "device/gpu/gpu_call.h"
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 5 };
#define ROUND_SECONDS 0.05

/* The launch to repeat. */
typedef struct task {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    qn__kernel kernel;
    uint32_t groups[3];
    qn__gpu_call call;
    const qn__gpu_memory *result; /* 4 bytes of it are read to wait for the end */
} task;

static qn_status run(const task *t, uint32_t times, double *seconds, qn_error *err) {
    float last;
    const double begun = qn__now();
    qn_status status = QN_OK;
    for (uint32_t i = 0; status == QN_OK && i < times; ++i)
        status =
            t->driver->launch(t->gpu, t->kernel, t->groups, t->call.argument, t->call.count, err);
    if (status == QN_OK)
        status = qn__gpu_read(t->driver, t->gpu, t->result, 0, &last, sizeof last, err);
    *seconds = qn__now() - begun;
    return status;
}

/* Launches a second: the median of several rounds. */
static qn_status rate_of(const task *t, double *rate, qn_error *err) {
    double seconds, sorted[ROUNDS];
    uint32_t times = 1;
    qn_status status =
        run(t, 1, &seconds, err); /* compiles lazily built kernels and raises the clocks */
    while (status == QN_OK && times < 1u << 16) {
        status = run(t, times, &seconds, err);
        if (seconds >= ROUND_SECONDS / 2)
            break;
        times *= 2;
    }
    for (int r = 0; status == QN_OK && r < ROUNDS; ++r) {
        int at = r;
        status = run(t, times, &seconds, err);
        for (; at > 0 && sorted[at - 1] > seconds; --at)
            sorted[at] = sorted[at - 1];
        sorted[at] = seconds;
    }
    if (status == QN_OK)
        *rate = sorted[ROUNDS / 2] > 0 ? times / sorted[ROUNDS / 2] : 0;
    return status;
}

/* A product of n x n numbers; the caller adds the arguments of a layer without activation and
 * dropout. Gives operations a second, and the seconds of one product. */
static qn_status rate_of_product(task *t, uint32_t n, const qn__gpu_memory *step, double *seconds,
                                 double *rate, qn_error *err) {
    const qn_step one = {.items = n, .grain = 1};
    QN__PUSH_NUMBERS(&t->call, QN_ACT_NONE, 0);
    QN__PUSH_FLOATS(&t->call, 1.0f);
    QN__PUSH_WIDE(&t->call, 0);
    qn_status status = t->driver->write(t->gpu, step, 0, &one, sizeof one, err);
    if (status == QN_OK)
        status = rate_of(t, rate, err);
    *seconds = status == QN_OK && *rate > 0 ? 1 / *rate : 0;
    *rate *= 2.0 * n * n * n;
    return status;
}

static qn_status measure_product(const qn__gpu_driver *driver, qn__gpu *gpu, uint32_t n,
                                 const qn__gpu_memory memory[3], const qn__gpu_memory *step,
                                 double *seconds, double *rate, qn_error *err) {
    const int vectors = driver->facts(gpu)->vectors;
    task t = {.driver = driver,
              .gpu = gpu,
              .kernel = vectors ? QN__K_FORWARD_VECTOR : QN__K_FORWARD_LARGE,
              .result = &memory[2]};
    qn__gpu_tiles(t.kernel, n, n, t.groups);
    QN__PUSH_MEMORY(&t.call, step, &memory[0], &memory[1]);
    QN__PUSH_WIDE(&t.call, 0, 0); /* biases: the first row of the weights will do */
    QN__PUSH_MEMORY(&t.call, &memory[2], step, step);
    QN__PUSH_NUMBERS(&t.call, n, n, (uint32_t)qn__gpu_ld(n), 0);
    return rate_of_product(&t, n, step, seconds, rate, err);
}

/* The integer product, on arbitrary words: the time does not depend on them. */
static qn_status measure_intgemm(const qn__gpu_driver *driver, qn__gpu *gpu, int digits, uint32_t n,
                                 const qn__gpu_memory memory[3], const qn__gpu_memory *step,
                                 double *seconds, double *rate, qn_error *err) {
    const int first = driver->facts(gpu)->matrix ? QN__K_INTGEMM_FORWARD_I7_MATRIX_LARGE
                                                 : QN__K_INTGEMM_FORWARD_I7_LARGE;
    task t = {.driver = driver,
              .gpu = gpu,
              .kernel = (qn__kernel)(first + 2 * (digits - 1)),
              .groups = {1, 1, 1},
              .result = &memory[2]};
    const qn__kernel_shape *shape = qn__kernel_shape_of(t.kernel);
    t.groups[0] =
        (uint32_t)(qn__gpu_pieces(n, shape->tile_rows) * qn__gpu_pieces(n, shape->tile_columns));
    /* absmax: any values will do */
    QN__PUSH_MEMORY(&t.call, step, &memory[0], &memory[1], &memory[1], &memory[1], &memory[1]);
    QN__PUSH_WIDE(&t.call, 0);
    QN__PUSH_MEMORY(&t.call, &memory[2], step, step);
    QN__PUSH_NUMBERS(&t.call, n, n, 0, 0, 0);
    return rate_of_product(&t, n, step, seconds, rate, err);
}

/* Of all widths; `seconds` is what the product of floats took, for slow devices need small ones. */
static qn_status measure_widths(const qn__gpu_driver *driver, qn__gpu *gpu, double seconds,
                                const qn__gpu_memory memory[3], const qn__gpu_memory *step,
                                double rates[3], qn_error *err) {
    const int large = memory[0].bytes >= (size_t)4096 * 4096 * sizeof(float);
    const uint32_t n = seconds > 50e-3 ? 128 : seconds > 2e-3 ? 256 : 1024;
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < 3; ++i) {
        status = measure_intgemm(driver, gpu, i + 1, n, memory, step, &seconds, &rates[i], err);
        if (status == QN_OK && seconds < 0.5e-3 && n == 1024 && large)
            status =
                measure_intgemm(driver, gpu, i + 1, 4096, memory, step, &seconds, &rates[i], err);
    }
    return status;
}

static qn_status measure_map(const qn__gpu_driver *driver, qn__gpu *gpu, uint64_t count,
                             uint32_t op, const qn__gpu_memory memory[3], double *rate,
                             qn_error *err) {
    const int vectors = driver->facts(gpu)->vectors;
    task t = {.driver = driver,
              .gpu = gpu,
              .kernel = vectors ? qn__kernel_vector(QN__K_MAP) : QN__K_MAP,
              .result = &memory[2]};
    qn__gpu_grid(t.kernel, count, t.groups);
    QN__PUSH_MEMORY(&t.call, &memory[0], &memory[2]);
    QN__PUSH_WIDE(&t.call, count);
    QN__PUSH_NUMBERS(&t.call, op);
    const qn_status status = rate_of(&t, rate, err);
    *rate *= (double)count;
    return status;
}

/* Numbers from -4 to 4 everywhere, so that no product is one of zeros and tanh is at work. */
static qn_status fill(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_memory *memory,
                      qn_error *err) {
    enum { NUMBERS = 1 << 16 };
    float *numbers = qn__alloc(NUMBERS, sizeof *numbers, err);
    qn_status status = numbers ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; numbers && i < NUMBERS; ++i)
        numbers[i] = (float)(int32_t)(i * 2654435761u) * 0x1p-29f;
    for (size_t at = 0, bytes; status == QN_OK && at < memory->bytes; at += bytes) {
        bytes = NUMBERS * sizeof *numbers;
        if (memory->bytes - at < bytes)
            bytes = memory->bytes - at;
        status = driver->write(gpu, memory, at, numbers, bytes, err);
    }
    qn__free(numbers);
    return status;
}

static qn_status measure_all(const qn__gpu_driver *driver, qn__gpu *gpu,
                             const qn__gpu_memory memory[3], const qn__gpu_memory *step,
                             qn_device_rates *rates, qn_error *err) {
    const uint64_t count = memory[0].bytes / sizeof(float);
    double seconds = 0, small = 0;
    qn_status status = fill(driver, gpu, &memory[0], err);
    if (status == QN_OK)
        status = fill(driver, gpu, &memory[1], err);
    if (status == QN_OK)
        status = measure_product(driver, gpu, 1024, memory, step, &seconds, &rates->matmul, err);
    small = seconds;
    /* Large devices are not filled by so small a product. */
    if (status == QN_OK && seconds < 0.5e-3 && count >= (uint64_t)4096 * 4096)
        status = measure_product(driver, gpu, 4096, memory, step, &seconds, &rates->matmul, err);
    if (status == QN_OK)
        status = measure_widths(driver, gpu, small, memory, step, rates->integers, err);
    if (status == QN_OK && driver->facts(gpu)->integers)
        snprintf(rates->integers_by, sizeof rates->integers_by, "%s", driver->facts(gpu)->integers);
    if (status == QN_OK)
        status = measure_map(driver, gpu, count < 1 << 22 ? count : 1 << 22, QN_MAP_TANH, memory,
                             &rates->tanh, err);
    if (status == QN_OK)
        status = measure_map(driver, gpu, count, QN_MAP_COPY, memory, &rates->memory, err);
    rates->memory *= 2 * sizeof(float);
    return status;
}

qn_status qn__gpu_measure(const qn__gpu_driver *driver, uint32_t index, const qn_compute *compute,
                          qn_device_rates *rates, qn_error *err) {
    qn__gpu *gpu = NULL;
    qn__gpu_memory memory[4] = {0};
    memset(rates, 0, sizeof *rates);
    qn_status status = driver->open(index, QN_WITH_ALL, compute, &gpu, err);
    if (status != QN_OK)
        return status;
    const qn__gpu_facts *facts = driver->facts(gpu);
    size_t bytes = (size_t)256 << 20;
    while (bytes > (size_t)4 << 20 && (bytes > facts->largest || bytes > facts->memory / 8))
        bytes /= 2;
    for (int i = 0; status == QN_OK && i < 3; ++i)
        status = driver->allocate(gpu, bytes, &memory[i], err);
    if (status == QN_OK)
        status = driver->allocate(gpu, sizeof(qn_step), &memory[3], err);
    if (status == QN_OK)
        status = measure_all(driver, gpu, memory, &memory[3], rates, err);
    for (int i = 0; i < 4; ++i)
        driver->release(gpu, &memory[i]);
    driver->close(gpu);
    return status;
}
