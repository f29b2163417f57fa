/* Whether a machine may have an OpenCL device besides its processor, without opening the
 * library. */
#ifndef QN_DEVICE_OPENCL_OPENCL_LIKELY_H
#define QN_DEVICE_OPENCL_OPENCL_LIKELY_H

/* 1 when `folder` ("/dev") holds a device file of a GPU or an accelerator, or cannot be read. */
int qn__cl_likely_in(const char *folder);

#endif
