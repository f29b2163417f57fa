/* Which of the buffers that arrays have in turn is free in some windows (gpu_windows.c).
 *
 * The buffers are the leaves of a binary tree. Each node has a bit for each window: 1 where all
 * buffers below it are taken. So a part of the tree that cannot hold an array is passed over at
 * once, and the last free buffer of n is found in about log n steps. */
#ifndef QN_DEVICE_GPU_GPU_TURNS_H
#define QN_DEVICE_GPU_GPU_TURNS_H

#include "base/error.h"
#include "device/places.h"
#include <stdint.h>

typedef struct qn__gpu_turns {
    uint64_t *taken; /* from qn__gpu_turns_create */
    uint32_t leaves; /* a power of two; the root is node 1, and leaf i node `leaves` + i */
    uint32_t words;  /* of 64 windows, of each node */
    uint64_t steps;  /* nodes that were visited, for a test */
} qn__gpu_turns;

/* Space for so many buffers and windows; all are at first taken in all windows. Fails with
 * QN_MEMORY. */
qn_status qn__gpu_turns_create(uint32_t buffers, uint32_t windows, qn__gpu_turns *out,
                               qn_error *err);
void qn__gpu_turns_free(qn__gpu_turns *turns);
/* The same as after qn__gpu_turns_create. */
void qn__gpu_turns_forget(qn__gpu_turns *turns);

/* The last buffer that is free in all windows of the array, from 0; UINT32_MAX: there is none. */
uint32_t qn__gpu_turns_find(qn__gpu_turns *turns, const qn__place *array);
/* Buffer `buffer` exists, and is free in all windows. */
void qn__gpu_turns_add(qn__gpu_turns *turns, uint32_t buffer);
/* It is taken in the windows of the array. */
void qn__gpu_turns_take(qn__gpu_turns *turns, uint32_t buffer, const qn__place *array);

#endif
