/* How the cores share the tasks of a phase: each takes those of its own range, then those of
 * others. */
#include "device/cpu/worker/cpu_worker.h"

void qn__cpu_begin_phases(qn__worker *w) {
    const size_t counters = qn__cpu_phases(w->program) * (size_t)w->threads;
    for (size_t i = 0; i < counters; ++i)
        atomic_store_explicit(&w->counter[i].tasks, 0, memory_order_relaxed);
}

void qn__cpu_again(qn__worker *w, uint32_t phase, uint32_t phases) {
    const size_t threads = (size_t)w->threads;
    for (size_t i = phase * threads; i < (phase + phases) * threads; ++i)
        atomic_store_explicit(&w->counter[i].tasks, 0, memory_order_relaxed);
}

int qn__cpu_take(qn__worker *w, int thread, uint32_t phase, qn__cpu_grid grid, uint32_t *column,
                 uint32_t *row) {
    for (int step = 0; step < w->threads; ++step) {
        const uint32_t threads = (uint32_t)w->threads;
        const uint32_t owner = ((uint32_t)thread + (uint32_t)step) % threads;
        const uint32_t from = (uint32_t)((uint64_t)grid.columns * owner / threads);
        const uint32_t to = (uint32_t)((uint64_t)grid.columns * (owner + 1) / threads);
        const uint32_t tasks = (to - from) * grid.rows;
        atomic_uint *taken = &w->counter[phase * threads + owner].tasks;
        /* A read first: an atomic addition would take the cache line even if no task is left. */
        if (atomic_load_explicit(taken, memory_order_relaxed) >= tasks)
            continue;
        const uint32_t task = atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
        if (task >= tasks)
            continue;
        *column = from + (grid.by_column ? task / grid.rows : task % (to - from));
        *row = grid.by_column ? task % grid.rows : task / (to - from);
        return 1;
    }
    return 0;
}
