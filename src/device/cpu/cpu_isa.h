/* Instruction sets of the CPU: what each has for floats and for integer products. */
#ifndef QN_DEVICE_CPU_CPU_ISA_H
#define QN_DEVICE_CPU_CPU_ISA_H

#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/float/map.h"
#include "device/cpu/integer/intgemm.h"

typedef struct qn__cpu_isa {
    const char *name;  /* as in --isa */
    int (*here)(void); /* 1 when this machine has it */
    /* All NULL where this build has no code for it. */
    const qn__cpu_kernels *kernels;
    const qn__maps *maps;
    const qn__intgemm *intgemm;
} qn__cpu_isa;

/* The instruction set of that name; "auto" or NULL: the best that this machine has. NULL when the
 * name is unknown or the machine lacks it. */
const qn__cpu_isa *qn__cpu_isa_find(const char *name);
/* 1 when the name is one of these, on whatever machine. */
int qn__cpu_isa_known(const char *name);
/* Those that this machine has, best first, with blanks between. */
void qn__cpu_isa_list(char *text, size_t size);

#endif
