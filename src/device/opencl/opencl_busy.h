/* How long a processor that is an OpenCL device has been silent.
 *
 * Such a device computes and compiles in this process. A kernel may be compiled when it is first
 * launched, which takes minutes on a busy machine. So a device is not silent while the process gets
 * processor time: that time counts a tenth, since a kernel may also loop for ever. */
#ifndef QN_DEVICE_OPENCL_OPENCL_BUSY_H
#define QN_DEVICE_OPENCL_OPENCL_BUSY_H

typedef struct qn__busy {
    double waited, computed, spared;
} qn__busy;

/* `waited`: seconds since the beginning of the wait; `computed`: processor time of this process, in
 * seconds, from any moment on. The first call begins with `computed` alone: {.computed = ...}.
 * Returns the seconds that count. */
double qn__busy_silence(qn__busy *busy, double waited, double computed);

#endif
