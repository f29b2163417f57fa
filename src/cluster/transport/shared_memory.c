#include "cluster/transport/shared_memory.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/futex.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Slots of the file: rank states, then parts, then totals, then the heap. */
static const uint64_t SLOT = UINT64_C(1) << 40;
static const uint64_t FIRST_PART = 1, FIRST_TOTAL = UINT64_C(1) << 12,
                      FIRST_HEAP = UINT64_C(1) << 21, SLOTS = UINT64_C(1) << 22;
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
enum { LOOKS = 64 }; /* checks of the counter before the clock is read */

/* Longer than most waits between balanced ranks, and than two system calls. */
static const double SPIN_SECONDS = 60e-6;

int qn__common_file(void) {
    struct rlimit limit;
    if (SIZE_MAX < SLOT) /* 32 bits: the kernel does not support such a size */
        return -1;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
        return -1; /* the resource limit: extending the file would end the process */
    const int file = memfd_create("quern", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return -1;
    if (ftruncate(file, (off_t)(SLOTS * SLOT)) != 0 || fcntl(file, F_ADD_SEALS, SEALS) != 0) {
        close(file);
        return -1;
    }
    return file;
}

/* Access to a file that was truncated would end this process, so the file must be sealed. */
static int is_sealed(int file) {
    struct stat s;
    const int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(file, &s) == 0 &&
           s.st_size == (off_t)(SLOTS * SLOT);
}

static void *map(const qn__common *c, uint64_t slot, uint64_t bytes) {
    void *memory;
    if (c->file >= 0)
        memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->file, (off_t)(slot * SLOT));
    else
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED && bytes >= (UINT64_C(1) << 21))
        madvise(memory, bytes, MADV_HUGEPAGE);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The slot with space for `bytes`. Smaller mappings of it stay, because pointers into them may
 * exist; each is at most half as large as the next. */
static void *slot_of(qn__common *c, uint64_t slot, uint64_t bytes, qn_error *err) {
    uint64_t capacity = UINT64_C(1) << 16;
    for (uint32_t i = 0; i < c->mappings; ++i)
        if (c->mapping[i].slot == slot && c->mapping[i].bytes >= bytes)
            return c->mapping[i].memory;
    while (capacity < bytes && capacity < SLOT)
        capacity *= 2;
    if (capacity < bytes || capacity > SIZE_MAX) {
        qn__fail_memory(err, bytes, 1);
        return NULL;
    }
    if (c->mappings == c->capacity) {
        const uint32_t more = c->capacity ? 2 * c->capacity : 16;
        qn__mapping *grown = qn__alloc(more, sizeof *grown, err);
        if (!grown)
            return NULL;
        if (c->mappings)
            memcpy(grown, c->mapping, c->mappings * sizeof *grown);
        qn__free(c->mapping);
        c->mapping = grown;
        c->capacity = more;
    }
    void *memory = map(c, slot, capacity);
    if (!memory) {
        qn__fail_memory(err, capacity, 1);
        return NULL;
    }
    c->mapping[c->mappings++] = (qn__mapping){slot, capacity, memory};
    return memory;
}

qn_status qn__common_open(qn__common *c, int file, uint32_t index, uint32_t locals, qn_error *err) {
    *c = (qn__common){.file = file, .locals = locals, .index = index};
    if (file >= 0 && !is_sealed(file)) {
        qn__common_close(c);
        return qn__fail(err, QN_CLUSTER,
                        "what another rank of this machine handed out is not the "
                        "memory that ranks share");
    }
    c->rank_state = slot_of(c, 0, locals * sizeof *c->rank_state, err);
    if (c->rank_state)
        return QN_OK;
    qn__common_close(c);
    return QN_MEMORY;
}

void qn__common_close(qn__common *c) {
    for (uint32_t i = 0; i < c->mappings; ++i)
        munmap(c->mapping[i].memory, c->mapping[i].bytes);
    qn__free(c->mapping);
    if (c->file >= 0)
        close(c->file);
    *c = (qn__common){.file = -1};
}

void qn__common_forget(qn__common *c) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->mappings; ++i)
        if (c->mapping[i].slot >= FIRST_HEAP)
            c->mapping[kept++] = c->mapping[i];
        else
            munmap(c->mapping[i].memory, c->mapping[i].bytes);
    c->mappings = kept;
    c->rank_state = NULL;
    if (c->file >= 0) /* memory that is only unmapped stays in the file */
        (void)fallocate(c->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)(FIRST_PART * SLOT), (off_t)((FIRST_HEAP - FIRST_PART) * SLOT));
}

int64_t *qn__common_part(qn__common *c, uint32_t local, uint64_t words, qn_error *err) {
    return slot_of(c, FIRST_PART + local, words * 8, err);
}

int64_t *qn__common_total(qn__common *c, uint64_t generation, int odd, uint64_t words,
                          qn_error *err) {
    return slot_of(c, FIRST_TOTAL + 2 * generation + (uint64_t)odd, words * 8, err);
}

void *qn__common_heap(qn__common *c, uint64_t bytes, qn_error *err) {
    const uint64_t slots = bytes / SLOT + 1;
    if (bytes > SLOT || c->heap + slots > SLOTS - FIRST_HEAP) {
        qn__fail_memory(err, bytes, 1);
        return NULL;
    }
    void *memory = slot_of(c, FIRST_HEAP + c->heap, bytes, err);
    c->heap += slots;
    return memory;
}

/* -------------------------------------------------------------------------------------- wake-up */

void qn__common_wake(qn__common *c, uint32_t local) {
    qn__rank_state *state = &c->rank_state[local];
    atomic_fetch_add(&state->wakeups, 1);
    /* Sequential consistency: either `asleep` is seen here, or the waiter sees the new counter. */
    if (atomic_load(&state->asleep))
        qn__futex_wake(&state->wakeups, 1, QN__FUTEX_SHARED);
}

unsigned qn__common_wakeups(qn__common *c) { return atomic_load(&c->rank_state[c->index].wakeups); }

static void pause_core(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int spin(qn__rank_state *state, unsigned seen) {
    const double begun = qn__now();
    do {
        for (int i = 0; i < LOOKS; ++i) {
            if (atomic_load_explicit(&state->wakeups, memory_order_acquire) != seen)
                return 1;
            pause_core();
        }
    } while (qn__now() - begun < SPIN_SECONDS);
    return 0;
}

void qn__common_wait(qn__common *c, unsigned seen, double seconds) {
    qn__rank_state *state = &c->rank_state[c->index];
    if (c->spins && spin(state, seen))
        return;
    atomic_store(&state->asleep, 1);
    /* The futex sleeps only if the counter is unchanged; it may also return spuriously. */
    if (atomic_load(&state->wakeups) == seen)
        qn__futex_wait(&state->wakeups, seen, seconds, QN__FUTEX_SHARED);
    atomic_store(&state->asleep, 0);
}
