#include "device/opencl/opencl_busy.h"

/* `together`: seconds that are judged at once. `least`: processor time in a second of them, from
 * which the process counts as busy; polling takes less. `spare`: the part that does not count. */
static const double together = 0.25, least = 0.05, spare = 0.9;

double qn__busy_silence(qn__busy *b, double waited, double computed) {
    const double since = waited - b->waited;
    if (since >= together) {
        if (computed - b->computed > least * since)
            b->spared += spare * since;
        b->waited = waited;
        b->computed = computed;
    }
    return waited - b->spared;
}
