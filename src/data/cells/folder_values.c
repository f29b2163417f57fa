#include "data/cells/folder_values.h"
#include "base/text/text.h"
#include "data/cells/cell.h"
#include <string.h>

static int is_whole(const char *value, int64_t *whole) {
    const qn__cell cell = {.text = value, .size = strlen(value)};
    qn__decimal number;
    if (!qn__cell_number(&cell, &number) || number.exponent != 0 || number.cut ||
        number.mantissa >= (uint64_t)1 << 53)
        return 0;
    *whole = number.negative ? -(int64_t)number.mantissa : (int64_t)number.mantissa;
    return 1;
}

static int is_number(const char *value, float *number) {
    const qn__cell cell = {.text = value, .size = strlen(value)};
    qn__decimal decimal;
    return qn__cell_number(&cell, &decimal) && qn__parse_float(value, cell.size, number);
}

qn__key_kind qn__file_list_key_kind(const qn__file_list *list, size_t key) {
    qn__key_kind kind = QN__HIVE_WHOLE;
    for (size_t i = 0; i < list->count; i++) {
        const char *value = list->file[i].key[key].value;
        int64_t whole;
        float number;
        if (*value == '\0' || is_whole(value, &whole))
            continue;
        if (!is_number(value, &number))
            return QN__HIVE_TEXT;
        kind = QN__HIVE_NUMBER;
    }
    return kind;
}

int64_t qn__key_whole(const char *value) {
    int64_t whole = 0;
    return is_whole(value, &whole) ? whole : 0;
}

float qn__key_number(const char *value) {
    float number = 0;
    return is_number(value, &number) ? number : 0;
}
