/* Instruction sets of the CPU and the tables that each provides. */
#ifndef QN_DEVICE_CPU_CPU_ISA_H
#define QN_DEVICE_CPU_CPU_ISA_H

#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/float/map.h"
#include "device/cpu/integer/intgemm.h"

typedef struct qn__cpu_isa {
    const char *name;  /* as in --isa */
    const char *about; /* one line for help */
    int (*here)(void); /* 1 when this machine has it */
    /* NULL when this build has no code for it. */
    const qn__cpu_kernels *kernels;
    const qn__maps *maps;
    const qn__intgemm *intgemm;
} qn__cpu_isa;

/* The instruction set of that name; "auto" or NULL selects the best of this machine. NULL when the
 * name is unknown or the machine lacks it. */
const qn__cpu_isa *qn__cpu_isa_find(const char *name);
/* Instruction set number `index` of this build, best last, whether or not this machine has it; NULL
 * after the last. */
const qn__cpu_isa *qn__cpu_isa_at(uint32_t index);
/* The instruction sets of this machine, best first, separated by blanks. */
void qn__cpu_isa_list(char *text, size_t size);

#endif
