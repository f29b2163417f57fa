/* Lanes as coroutines. A group whose first lane ends without meeting a barrier needs none: its
 * lanes are called one after another on the same stack. */
#include "emulated_gpu.h"
#include "emulated_matrix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define QN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QN_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define QN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QN_TSAN 1
#endif
#endif

#ifdef QN_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef QN_TSAN
#include <sanitizer/tsan_interface.h>
#endif

enum { MOST_LANES = 1024, STACK = 128 << 10, GUARD = 4096 };

typedef enum state { IDLE, WAITING, ENDED } state;

/* ---- changing stacks */

#if defined(__x86_64__)

typedef struct stack_place {
    void *top;
} stack_place;

void qn_emulated_change(void **from, void *to);
/* Keeps what a call must keep, changes the stack, takes it back. */
__asm__(".text\n"
        ".globl qn_emulated_change\n"
        ".hidden qn_emulated_change\n"
        ".type qn_emulated_change,@function\n"
        "qn_emulated_change:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size qn_emulated_change,.-qn_emulated_change\n");

static void change(stack_place *from, stack_place *to) { qn_emulated_change(&from->top, to->top); }

static void prepare(stack_place *place, char *stack, void (*entry)(void)) {
    void **top = (void **)(void *)(stack + STACK);
    *--top = NULL; /* the entry finds its stack as after a call */
    *--top = (void *)(uintptr_t)entry;
    for (int i = 0; i < 6; ++i)
        *--top = NULL;
    place->top = top;
}

#else
#include <ucontext.h>

typedef struct stack_place {
    ucontext_t context;
} stack_place;

static void change(stack_place *from, stack_place *to) {
    swapcontext(&from->context, &to->context);
}

static void prepare(stack_place *place, char *stack, void (*entry)(void)) {
    getcontext(&place->context);
    place->context.uc_stack.ss_sp = stack;
    place->context.uc_stack.ss_size = STACK;
    place->context.uc_link = NULL;
    makecontext(&place->context, entry, 0);
}
#endif

/* ---- lanes */

typedef struct fiber {
    stack_place place;
    char *stack;
    state state;
    void *fake; /* the address sanitizer's */
    void *tsan;
} fiber;

typedef struct crew {
    fiber lane[MOST_LANES];
    fiber *running;
    stack_place home;
    void *home_fake, *home_tsan;
    const void *home_stack;
    size_t home_size;
    const qn_emulated_kernel *kernel;
    void *const *arguments;
    uint32_t lanes, done;
} crew;

_Thread_local qn_emulated_lane qn_emulated_now;
static _Thread_local crew *the_crew;

static void die(const char *what) {
    fprintf(stderr, "emulated GPU: kernel %s: %s\n", the_crew->kernel->name, what);
    abort();
}

static void go(crew *c, fiber *f) {
    c->running = f;
#ifdef QN_TSAN
    c->home_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, 0);
#endif
#ifdef QN_ASAN
    __sanitizer_start_switch_fiber(&c->home_fake, f->stack, STACK);
#endif
    change(&c->home, &f->place);
#ifdef QN_ASAN
    __sanitizer_finish_switch_fiber(c->home_fake, NULL, NULL);
#endif
}

static void come_home(crew *c, fiber *f) {
#ifdef QN_TSAN
    __tsan_switch_to_fiber(c->home_tsan, 0);
#endif
#ifdef QN_ASAN
    __sanitizer_start_switch_fiber(&f->fake, c->home_stack, c->home_size);
#endif
    change(&f->place, &c->home);
#ifdef QN_ASAN
    __sanitizer_finish_switch_fiber(f->fake, &c->home_stack, &c->home_size);
#endif
}

void qn_emulated_barrier(void) {
    crew *c = the_crew;
    fiber *f = c->running;
    if (c->done > 0 && f == &c->lane[0] && f->state == IDLE)
        die("some lanes end where others come to a barrier");
    f->state = WAITING;
    come_home(c, f);
}

/* A fiber's life: a lane of one group after another. The first fiber goes on with the other lanes
 * of its group as long as no barrier comes. */
static void live(void) {
    crew *c = the_crew;
    fiber *f = c->running;
#ifdef QN_ASAN
    __sanitizer_finish_switch_fiber(NULL, &c->home_stack, &c->home_size);
#endif
    for (;;) {
        c->kernel->call(c->arguments);
        if (f == &c->lane[0] && f->state == IDLE) {
            const uint32_t first = qn_emulated_now.lane;
            for (c->done = 1; c->done < c->lanes; ++c->done) {
                qn_emulated_now.lane = first == 0 ? c->done : first - c->done;
                c->kernel->call(c->arguments);
            }
        }
        f->state = ENDED;
        come_home(c, f);
    }
}

static void drop_crew(void *memory) {
    crew *c = memory;
    for (int i = 0; i < MOST_LANES && c->lane[i].stack; ++i) {
#ifdef QN_TSAN
        __tsan_destroy_fiber(c->lane[i].tsan);
#endif
        munmap(c->lane[i].stack - GUARD, STACK + GUARD);
    }
    free(c);
}

static pthread_key_t crew_key;

static void make_key(void) { pthread_key_create(&crew_key, drop_crew); }

static crew *get_crew(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (!the_crew &&
        (!(the_crew = calloc(1, sizeof *the_crew)) || pthread_setspecific(crew_key, the_crew) != 0))
        abort();
    return the_crew;
}

/* A fiber that will run a lane when it is next gone to. */
static void begin_lane(crew *c, uint32_t i) {
    fiber *f = &c->lane[i];
    f->state = i == 0 ? IDLE : WAITING;
    if (f->stack)
        return;
    char *block = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED || mprotect(block, GUARD, PROT_NONE) != 0)
        abort();
    f->stack = block + GUARD;
    prepare(&f->place, f->stack, live);
#ifdef QN_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
}

/* One group. `transposed`: lanes run from the last to the first, and the other way after the next
 * barrier. */
static void run_group(crew *c, int transposed) {
    /* The first lane lives in the fiber 0 until a barrier shows that each needs its own. */
    begin_lane(c, 0);
    c->done = 0;
    qn_emulated_now.lane = transposed ? c->lanes - 1 : 0;
    go(c, &c->lane[0]);
    if (c->lane[0].state == ENDED)
        return;
    /* Fiber f runs the lane (first + f) or (first - f). */
    const uint32_t first = transposed ? c->lanes - 1 : 0;
    for (uint32_t f = 1; f < c->lanes; ++f)
        begin_lane(c, f);
    for (int round = 0;; ++round) {
        uint32_t ended = 0;
        for (uint32_t i = 0; i < c->lanes; ++i) {
            const uint32_t f = round % 2 ? c->lanes - 1 - i : i;
            if (round > 0 || f > 0) {
                qn_emulated_now.lane = transposed ? first - f : f;
                go(c, &c->lane[f]);
            }
            ended += c->lane[f].state == ENDED;
        }
        if (ended == c->lanes)
            break;
        if (ended > 0)
            die("some lanes end where others come to a barrier");
    }
}

void qn_emulated_launch(const qn_emulated_kernel *kernel, const uint32_t groups[3], uint32_t lanes,
                        void *const *arguments) {
    crew *c = get_crew();
    int transposed = 0;
    c->kernel = kernel;
    c->arguments = arguments;
    c->lanes = lanes;
    if (lanes < 1 || lanes > MOST_LANES)
        die("more lanes than a group can have");
    memcpy(qn_emulated_now.groups, groups, sizeof qn_emulated_now.groups);
    for (uint32_t z = 0; z < groups[2]; ++z)
        for (uint32_t y = 0; y < groups[1]; ++y)
            for (uint32_t x = 0; x < groups[0]; ++x) {
                const uint32_t group[3] = {x, y, z};
                memcpy(qn_emulated_now.group, group, sizeof group);
                qn_emulated_forget_copies(lanes);
                run_group(c, transposed);
                transposed = !transposed;
            }
}
