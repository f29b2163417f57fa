#include "cluster/rendezvous/torchrun.h"

#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Another run's store, or a program, may hold the first port. */
enum { MORE_PORTS = 7 };

qn_status qn__torchrun_place(uint32_t ranks, qn__torchrun_meeting *meeting, qn_error *err) {
    const char *const name = getenv("MASTER_ADDR"), *const number = getenv("MASTER_PORT");
    const char *const local = getenv("LOCAL_WORLD_SIZE");
    uint64_t store = 0, here = 0;
    if (local)
        (void)qn__parse_u64(local, strlen(local), &here);
    if (number)
        (void)qn__parse_u64(number, strlen(number), &store);
    const int alone = here == ranks;
    if (store < 1 || store > 65534 || (!alone && (!name || !*name || strlen(name) > 255))) {
        qn__fail(err, QN_USAGE,
                 "MASTER_ADDR is \"%.100s\" and MASTER_PORT \"%.20s\": torchrun sets a host and a "
                 "port below 65535",
                 name ? name : "", number ? number : "");
        return qn__remedy(err, QN_USAGE,
                          "start with torchrun, or name a rendezvous address (HOST:PORT)");
    }
    const char *const id = getenv("TORCHELASTIC_RUN_ID");
    snprintf(meeting->host, sizeof meeting->host, "%s", alone ? "127.0.0.1" : name);
    snprintf(meeting->run, sizeof meeting->run, "torchrun %u %.40s", (unsigned)store, id ? id : "");
    meeting->port = (uint16_t)(store + 1);
    meeting->more = (uint16_t)(store + 1 + MORE_PORTS <= 65535 ? MORE_PORTS : 65534 - store);
    return QN_OK;
}
