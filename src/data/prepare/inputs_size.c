/* How much memory a matrix of inputs takes, before it is made. */
#include "base/system/available.h"
#include "base/system/float_state.h"
#include "data/prepare/inputs.h"
#include <stdio.h>

uint64_t qn__inputs_large = UINT64_C(1) << 30;

/* "1.5 GiB" */
static const char *show_bytes(double bytes, char text[24]) {
    const int large = bytes >= 0x1p30;
    snprintf(text, 24, "%.1f %s", bytes * (large ? 0x1p-30 : 0x1p-20), large ? "GiB" : "MiB");
    return text;
}

/* The matrix is dense, so categories make it much larger than the file. */
qn_status qn__inputs_check_size(double bytes, const char *why, const qn__encoding_notes *notes,
                                qn_error *err) {
    const double available = (double)qn__available_memory();
    char needed[24], left[24], text[512];
    show_bytes(bytes, needed);
    if (bytes > available) {
        qn__fail(err, QN_MEMORY, "the inputs take %s, and %s of memory are available; %s", needed,
                 show_bytes(available, left), why);
        qn__at(err, "%s", notes->what);
        return qn__remedy(err, QN_MEMORY,
                          "train without the columns of most categories (`data.drop`), or give "
                          "fewer items");
    }
    if (bytes < (double)qn__inputs_large || !notes->tell)
        return QN_OK;
    snprintf(text, sizeof text, "%s: the inputs take %s; %s", notes->what, needed, why);
    notes->tell(notes->user, text);
    qn__float_state_set();
    return QN_OK;
}
