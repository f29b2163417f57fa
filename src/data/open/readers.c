/* The table of readers, and which of them takes a file. */
#include "data/cells/readers.h"
#include <string.h>

const qn__reader *const qn__readers[] = {&qn__csv_reader,    &qn__parquet_reader,  &qn__ipc_reader,
                                         &qn__idx_reader,    &qn__npy_reader,      &qn__npz_reader,
                                         &qn__image_reader,  &qn__libsvm_reader,   &qn__json_reader,
                                         &qn__sqlite_reader, &qn__postgres_reader, NULL};

const qn__reader *qn__reader_for(const uint8_t *first, size_t size, const char *path) {
    const qn__reader *best = qn__readers[0];
    int surest = QN__PROBE_NO;
    for (const qn__reader *const *at = qn__readers; *at; ++at) {
        const int sure = (*at)->probe(first, size, path);
        if (sure > surest) {
            surest = sure;
            best = *at;
        }
    }
    return best;
}

const char *qn__format_name(const char *name) {
    static const char *const others[] = {"array", "synth"};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (strcmp(name, others[i]) == 0)
            return others[i];
    for (const qn__reader *const *at = qn__readers; *at; ++at)
        for (int i = 0; i < QN__PACKINGS; ++i)
            if ((*at)->name[i] && strcmp(name, (*at)->name[i]) == 0)
                return (*at)->name[i];
    return NULL;
}
