/* Checks the settings for this CPU: threads and instruction sets. */
#include "device/cpu/cpu_isa.h"
#include "device/cpu/worker/cpu_table.h"

qn_status qn__cpu_check(const qn_compute *compute, qn_error *err) {
    if (compute->threads < 0 || compute->threads > 4096) {
        qn__fail(err, QN_USAGE, "%d threads cannot be used", compute->threads);
        return qn__remedy(err, QN_USAGE, "`compute.threads` takes 1 to 4096, or 0 for every core");
    }
    if (!compute->isa || qn__cpu_isa_find(compute->isa))
        return QN_OK;
    char here[64];
    qn__cpu_isa_list(here, sizeof here);
    if (!qn__cpu_isa_known(compute->isa)) {
        qn__fail(err, QN_USAGE, "unknown instruction set \"%s\"", compute->isa);
        return qn__remedy(
            err, QN_USAGE,
            "`compute.isa` takes auto, scalar, avx2, avx512, vnni, amx, neon or dotprod; here: %s",
            here);
    }
    qn__fail(err, QN_UNSUPPORTED, "this machine lacks the instruction set %s", compute->isa);
    return qn__remedy(err, QN_UNSUPPORTED, "it has %s; `compute.isa` auto takes the best", here);
}
