#include "data/bytes/packing.h"

static const qn__unpacker *const unpackers[QN__PACKINGS] = {[QN__GZIP] = &qn__gzip_unpacker,
                                                            [QN__ZSTD] = &qn__zstd_unpacker,
                                                            [QN__BZIP2] = &qn__bzip2_unpacker,
                                                            [QN__XZ] = &qn__xz_unpacker};

const qn__unpacker *qn__unpacker_for(const uint8_t *first, size_t size, qn__packing *packing) {
    for (int i = 0; i < QN__PACKINGS; i++)
        if (unpackers[i] && unpackers[i]->is(first, size)) {
            *packing = (qn__packing)i;
            return unpackers[i];
        }
    *packing = QN__PLAIN;
    return NULL;
}

const char *qn__packing_name(qn__packing packing) {
    return unpackers[packing] ? unpackers[packing]->name : "ZIP";
}

const char *qn__packing_by_hand(qn__packing packing) {
    return unpackers[packing] ? unpackers[packing]->by_hand : "unzip";
}

qn__optional_library *qn__packing_library(qn__packing packing) {
    return unpackers[packing] ? unpackers[packing]->library : NULL;
}
