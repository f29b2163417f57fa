#include "base/system/float_state.h"

#define OUT_OF_LINE __attribute__((noinline))

#if defined(__SSE__)

enum {
    MXCSR_WANTED = 0x1f80, /* all exceptions masked, to nearest, subnormals neither flushed (FTZ)
                              nor read as zero (DAZ) */
    MXCSR_FLAGS = 0x3f,
    X87_WANTED = 0x37f, /* all exceptions masked, to nearest, 64 bits: the state in which Linux
                           starts a process */
    X87_USED = 0xf3f,   /* the defined bits of the control word */
    X87_FLAGS = 0x80ff  /* exception flags, their summary, and "busy", of the status word */
};

static uint32_t mxcsr(void) {
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value) : : "memory");
    return value;
}

static void mxcsr_load(uint32_t value) { __asm__ volatile("ldmxcsr %0" : : "m"(value) : "memory"); }

static uint16_t x87_control(void) {
    uint16_t value;
    __asm__ volatile("fnstcw %0" : "=m"(value) : : "memory");
    return value;
}

static uint16_t x87_status(void) {
    uint16_t value;
    __asm__ volatile("fnstsw %0" : "=a"(value) : : "memory");
    return value;
}

/* A flag that was raised while its trap was off traps at the next x87 instruction once the trap is
 * on. So flags are cleared first. */
static void x87_set(void) {
    const uint16_t wanted = X87_WANTED;
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(wanted) : "memory");
}

/* Flags can be written only with the whole environment. Loading it does not trap. */
static void x87_load(uint16_t control, uint16_t status) {
    uint32_t environment[7]; /* control, status, tags, and the address of the last operation */
    __asm__ volatile("fnstenv %0" : "=m"(environment) : : "memory");
    environment[0] = (environment[0] & ~0xffffu) | control;
    environment[1] = (environment[1] & ~(uint32_t)X87_FLAGS) | (status & (uint32_t)X87_FLAGS);
    __asm__ volatile("fldenv %0" : : "m"(environment) : "memory");
}

OUT_OF_LINE void qn__float_state_set(void) {
    if ((mxcsr() & ~(uint32_t)MXCSR_FLAGS) != MXCSR_WANTED)
        mxcsr_load(MXCSR_WANTED);
    if ((x87_control() & X87_USED) != (X87_WANTED & X87_USED))
        x87_set();
}

OUT_OF_LINE qn__float_state qn__float_state_enter(void) {
    const qn__float_state before = {mxcsr(), x87_control(), x87_status()};
    qn__float_state_set();
    return before;
}

OUT_OF_LINE void qn__float_state_leave(const qn__float_state *before) {
    if (x87_control() != before->x87_control ||
        ((x87_status() ^ before->x87_status) & X87_FLAGS) != 0)
        x87_load(before->x87_control, before->x87_status);
    if (mxcsr() != before->mxcsr)
        mxcsr_load(before->mxcsr);
}

#elif defined(__aarch64__)

/* Every defined bit of FPCR means a deviation from IEEE-754's defaults: other rounding (RMode),
 * flushing (FZ, FZ16, FIZ), one NaN for all (DN), traps, AHP, AH, NEP. */
static uint64_t fpcr(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value) : : "memory");
    return value;
}

static uint64_t fpsr(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, fpsr" : "=r"(value) : : "memory");
    return value;
}

static void fpcr_load(uint64_t value) {
    __asm__ volatile("msr fpcr, %0\n\tisb" : : "r"(value) : "memory");
}

static void fpsr_load(uint64_t value) {
    __asm__ volatile("msr fpsr, %0" : : "r"(value) : "memory");
}

OUT_OF_LINE void qn__float_state_set(void) {
    if (fpcr() != 0)
        fpcr_load(0);
}

OUT_OF_LINE qn__float_state qn__float_state_enter(void) {
    const qn__float_state before = {fpcr(), fpsr()};
    qn__float_state_set();
    return before;
}

OUT_OF_LINE void qn__float_state_leave(const qn__float_state *before) {
    if (fpsr() != before->fpsr)
        fpsr_load(before->fpsr);
    if (fpcr() != before->fpcr)
        fpcr_load(before->fpcr);
}

#else

/* On other machines the environment of <fenv.h> is the control register itself: frm and fflags of
 * RISC-V, FPC of s390x, FPSCR of Arm and Power, FCSR of MIPS. FE_DFL_ENV clears every bit that
 * changes results. */
OUT_OF_LINE void qn__float_state_set(void) { (void)fesetenv(FE_DFL_ENV); }

OUT_OF_LINE qn__float_state qn__float_state_enter(void) {
    qn__float_state before;
    (void)fegetenv(&before.env);
    qn__float_state_set();
    return before;
}

OUT_OF_LINE void qn__float_state_leave(const qn__float_state *before) {
    (void)fesetenv(&before->env);
}

#endif
