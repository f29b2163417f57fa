/* What the fake OpenCL library does wrong: words of QN_FAKE_OPENCL, separated by commas, each with
 * a number after it. Calls are counted from 1 over all devices.
 *
 *   platforms=0    no platform
 *   devices=0      platforms without devices
 *   gpu=1          devices say that they are GPUs, so that the kernels for GPUs run
 *   accelerator=1  devices say that they are accelerators
 *   nvidia=1       the platform says that it is NVIDIA's
 *   version=11     OpenCL 1.1
 *   available=0    not available
 *   compiler=0     no compiler
 *   embedded=1     the embedded profile; 2: the same with 64-bit integers
 *   denormals=0    says that it flushes subnormal numbers
 *   divide=0       says that it does not divide correctly
 *   atomics=0      no 64-bit atomics
 *   dots=N         says that it multiplies packed bytes; 1: and has no such function, 2: a wrong
 *                  one, 3: a right one, 4: kernels of a program with them fail, and with them all
 *                  that follows in their context
 *   endian=0       bytes the other way round
 *   memory=N       N MiB in all
 *   groups=N       groups of at most N
 *   flush=1        flushes, though it says that it does not
 *   fma=0          rounds twice in fma
 *   totals=0       loses a digit in sums of user kernels
 *   pairs=0        loses a carry in sums of products of columns
 *   columns=0      loses a carry in sums of squares of columns
 *   counts=0       counts a value of a column that equals a key as one below it
 *   wrong=1        makes floats of integers by cutting them off
 *   context=N      contexts fail with -N
 *   build=1        nothing builds, and there is a log; source=1: texts do not build, binaries do
 *   kernel=1       built programs lack their kernels
 *   binaries=1     a platform other than PoCL, so that its binaries are kept
 *   binary=1       binaries are not taken; 2: they are taken, but do not build
 *   fill=1         new memory is full of 0xff: NaNs, and integers that are noticed
 *   alloc=N        the N-th memory is not given
 *   launch=N       the N-th launch fails
 *   read=N         the N-th copy down fails
 *   write=N        the N-th copy up fails
 *   event=N        from the N-th launch on commands fail while they run
 *   hang=N         from the N-th launch on no command ends
 *   remove=N       from the N-th launch on every call fails: the device is gone */
#ifndef QN_TESTS_FAKE_OPENCL_PLAN_H
#define QN_TESTS_FAKE_OPENCL_PLAN_H

/* The number after a word; `otherwise` when the plan does not have it. */
long fake_plan(const char *word, long otherwise);

/* Counts a call of this kind; 1 when it is the n-th of the plan. */
enum { FAKE_ALLOC, FAKE_LAUNCH, FAKE_READ, FAKE_WRITE, FAKE_KINDS };
int fake_turn(int kind);

/* Launches so far have reached the number of this word. */
int fake_since(const char *word);

#endif
