#include "data/columnar/flat.h"

int64_t qn__flat_number(qn__flat *flat, size_t place, size_t width) {
    if (width == 0 || width > flat->size || place > flat->size - width) {
        flat->broken = 1;
        return 0;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < width; i++)
        number |= (uint64_t)flat->bytes[place + i] << 8 * i;
    const unsigned unused = 64 - 8 * (unsigned)width;
    return (int64_t)(number << unused) >> unused;
}

size_t qn__flat_follow(qn__flat *flat, size_t place) {
    if (place == 0)
        return 0;
    const uint32_t distance = (uint32_t)qn__flat_number(flat, place, 4);
    if (distance == 0 || distance >= flat->size - place) {
        flat->broken = 1;
        return 0;
    }
    return place + distance;
}

size_t qn__flat_field(qn__flat *flat, size_t table, unsigned field) {
    const int64_t list = (int64_t)table - qn__flat_number(flat, table, 4);
    if (table == 0 || flat->broken || list < 0) {
        flat->broken |= list < 0;
        return 0;
    }
    const uint16_t size = (uint16_t)qn__flat_number(flat, (size_t)list, 2);
    if (4 + 2 * (size_t)field + 2 > size)
        return 0;
    const uint16_t distance =
        (uint16_t)qn__flat_number(flat, (size_t)list + 4 + 2 * (size_t)field, 2);
    return distance ? table + distance : 0;
}

int64_t qn__flat_get(qn__flat *flat, size_t table, unsigned field, size_t width, int64_t absent) {
    const size_t place = qn__flat_field(flat, table, field);
    return place ? qn__flat_number(flat, place, width) : absent;
}

size_t qn__flat_table(qn__flat *flat, size_t table, unsigned field) {
    return qn__flat_follow(flat, qn__flat_field(flat, table, field));
}

size_t qn__flat_vector(qn__flat *flat, size_t table, unsigned field, size_t width, size_t *count) {
    const size_t place = qn__flat_table(flat, table, field);
    *count = place ? (uint32_t)qn__flat_number(flat, place, 4) : 0;
    if (*count > 0 && *count > (flat->size - place - 4) / width) {
        flat->broken = 1;
        *count = 0;
    }
    return place ? place + 4 : 0;
}
