/* The OpenCL backend as a device table: its list of devices, and its driver for the worker that all
 * GPU backends share. */
#include "device/opencl/opencl_likely.h"
#include "device/opencl/opencl_list.h"
#include "device/opencl/opencl_table.h"

static qn_status describe(uint32_t index, qn_device_info *info, qn_error *err) {
    const qn__cl_entry *const entry = qn__cl_entry_at(index, NULL);
    if (!entry)
        return qn__fail(err, QN_USAGE, "there is no device opencl:%u", index);
    *info = entry->info;
    return QN_OK;
}

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    return qn__gpu_open(&qn__opencl_driver, index, compute, program, out, err);
}

static qn_status measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                         qn_error *err) {
    return qn__gpu_measure(&qn__opencl_driver, index, compute, rates, err);
}

static int likely(void) { return qn__cl_likely_in("/dev"); }

const qn__device_table qn__opencl_device = {
    QN__GPU_ENTRIES,           .name = "opencl",    .about = "every OpenCL device; opencl:0 is one",
    .count = qn__cl_entries,   .likely = likely,    .describe = describe,
    .absence = qn__cl_absence, .open = open_worker, .measure = measure,
};
