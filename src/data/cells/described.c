#include "data/cells/described.h"
#include "base/memory.h"

void qn__described_release(qn__described *described) {
    for (size_t i = 0; described->column && i < described->columns; i++)
        qn__free(described->column[i].name);
    qn__free(described->column);
    *described = (qn__described){0};
}
