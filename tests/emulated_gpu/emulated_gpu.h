/* The kernel text, compiled as C and run by one thread: the lanes of a group as coroutines that
 * change at barriers, groups one after another. The order of the lanes changes from group to group
 * and from barrier to barrier, so a kernel that lacks a barrier does not go unnoticed. */
#ifndef QN_TESTS_EMULATED_GPU_H
#define QN_TESTS_EMULATED_GPU_H

#include <stdint.h>

typedef struct qn_emulated_kernel {
    const char *name;
    const char *arguments; /* a letter each, as in kernels/kernels.h */
    void (*call)(void *const *arguments);
} qn_emulated_kernel;

/* NULL when there is none of that name. */
const qn_emulated_kernel *qn_emulated_find(const char *name);

/* Runs a kernel over a grid. arguments[i] points to the i-th one: to an address of the host for
 * 'M', to a number otherwise. A kernel whose lanes do not all come to the same barrier ends the
 * process with a message. */
void qn_emulated_launch(const qn_emulated_kernel *kernel, const uint32_t groups[3], uint32_t lanes,
                        void *const *arguments);

/* Whether matrix instructions of this thread's kernels are put together of smaller ones, as for
 * compute capability 7.5 (kernels/training/products/matrix_words.cl). */
void qn_emulated_quarters(int yes);

/* What the kernels ask of the lane that runs. */
typedef struct qn_emulated_lane {
    uint32_t lane, group[3], groups[3];
} qn_emulated_lane;
extern _Thread_local qn_emulated_lane qn_emulated_now;
/* From the running lane back to whoever runs the lanes, until all are there. */
void qn_emulated_barrier(void);

#endif
