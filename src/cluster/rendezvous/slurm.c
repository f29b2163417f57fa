#include "cluster/rendezvous/slurm.h"

#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below the ephemeral ports of common systems. */
enum { FIRST_PORT = 15000, PORTS = 15000 };

int qn__slurm_first_node(const char *list, char *name, size_t capacity) {
    size_t used = 0;
    for (const char *at = list; *at && *at != ','; ++at) {
        if (*at == ']')
            return 0;
        if (*at != '[') {
            if (used + 1 >= capacity)
                return 0;
            name[used++] = *at;
            continue;
        }
        /* Of "[03-05,9]" take the first number, with its leading zeros. */
        const size_t digits = strspn(at + 1, "0123456789");
        const char *const close = strchr(at, ']');
        if (digits == 0 || !close || !strchr("-,]", at[1 + digits]) || used + digits >= capacity)
            return 0;
        memcpy(name + used, at + 1, digits);
        used += digits;
        at = close;
    }
    if (used == 0 || used >= capacity)
        return 0;
    name[used] = 0;
    return 1;
}

static uint64_t number_of(const char *variable) {
    const char *const text = getenv(variable);
    uint64_t number = 0;
    if (text)
        (void)qn__parse_u64(text, strlen(text), &number);
    return number;
}

qn_status qn__slurm_place(char *host, uint16_t *port, qn_error *err) {
    const char *const list = getenv("SLURM_STEP_NODELIST");
    *port = (uint16_t)(FIRST_PORT +
                       (number_of("SLURM_JOB_ID") + 977 * number_of("SLURM_STEP_ID")) % PORTS);
    if (number_of("SLURM_STEP_NUM_NODES") == 1) {
        snprintf(host, 256, "127.0.0.1");
        return QN_OK;
    }
    if (list && qn__slurm_first_node(list, host, 256))
        return QN_OK;
    qn__fail(err, QN_CLUSTER, "SLURM_STEP_NODELIST is \"%s\", which is not a list of nodes",
             list ? list : "");
    return qn__remedy(err, QN_CLUSTER,
                      "start with mpirun, or name a rendezvous address (HOST:PORT)");
}

void qn__slurm_run(char *run) {
    snprintf(run, 64, "%llu.%llu", (unsigned long long)number_of("SLURM_JOB_ID"),
             (unsigned long long)number_of("SLURM_STEP_ID"));
}
