/* 32-bit floats as the texts of a written file. */
#include "base/text/text.h"
#include "data/write/formats.h"
#include <math.h>
#include <stdio.h>

int qn__written_whole(const qn_data *data, uint32_t k, float most, int signless) {
    if (data->type != QN_F32)
        return 0;
    for (uint64_t i = 0; i < data->items; i++) {
        const float value = ((const float *)qn__data_item(data, i))[k];
        if (value != value)
            continue;
        if (value != floorf(value) || fabsf(value) > most ||
            (signless && value == 0 && signbit(value)))
            return 0;
    }
    return 1;
}

void qn__written_float(float value, int whole, char text[40]) {
    if (whole && fabsf(value) >= 0x1p24f)
        snprintf(text, 40, "%.0f", (double)value);
    else
        qn__float_plain(value, text);
}
