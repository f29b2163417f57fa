#include "data/open/format_names.h"
#include "data/cells/readers.h"
#include "data/write/formats.h"

qn__format_word qn__format_read(uint32_t index) {
    for (uint32_t i = 0; qn__readers[i]; i++)
        if (i == index)
            return (qn__format_word){qn__readers[i]->name[0], qn__readers[i]->about};
    return (qn__format_word){NULL, NULL};
}

qn__format_word qn__format_written(uint32_t index) {
    for (uint32_t i = 0; qn__formats[i]; i++)
        if (i == index)
            return (qn__format_word){qn__formats[i]->name, qn__formats[i]->about};
    return (qn__format_word){NULL, NULL};
}
