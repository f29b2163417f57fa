/* Checks the settings for this CPU: threads and instruction sets. */
#include "device/cpu/cpu_isa.h"
#include "device/cpu/worker/cpu_table.h"
#include <stdio.h>
#include <string.h>

qn__device_word qn__cpu_isa_word(uint32_t index) {
    const qn__cpu_isa *isa = index ? qn__cpu_isa_at(index - 1) : NULL;
    if (index == 0)
        return (qn__device_word){"auto", "the fastest; all give the same bytes"};
    return isa ? (qn__device_word){isa->name, isa->about} : (qn__device_word){NULL, NULL};
}

qn_status qn__cpu_check(const qn_compute *compute, qn_error *err) {
    if (compute->threads < 0 || compute->threads > 4096) {
        qn__fail(err, QN_USAGE, "%d threads cannot be used", compute->threads);
        return qn__remedy(err, QN_USAGE, "`compute.threads` takes 1 to 4096, or 0 for every core");
    }
    if (!compute->isa || qn__cpu_isa_find(compute->isa))
        return QN_OK;
    char here[64], all[128] = "";
    size_t used = 0;
    int known = 0;
    qn__cpu_isa_list(here, sizeof here);
    for (uint32_t i = 0; qn__cpu_isa_word(i).name && used < sizeof all; ++i) {
        const char *name = qn__cpu_isa_word(i).name;
        known |= strcmp(compute->isa, name) == 0;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", name);
    }
    if (!known) {
        qn__fail(err, QN_USAGE, "unknown instruction set \"%s\"", compute->isa);
        return qn__remedy(err, QN_USAGE, "`compute.isa` takes one of %s; here: %s", all, here);
    }
    qn__fail(err, QN_UNSUPPORTED, "this machine lacks the instruction set %s", compute->isa);
    return qn__remedy(err, QN_UNSUPPORTED, "it has %s; `compute.isa` auto takes the best", here);
}
