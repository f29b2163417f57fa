#include "base/system/fault_space.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* since Linux 5.11; others refuse it */
#endif

enum {
    THREADS = 4,  /* threads that fill: each waits for an answer of another machine */
    STREAMS = 16, /* sequences of accesses that are followed */
    LEAST = 1 << 22,
    RUN = QN__FAULT_RUN / QN__FAULT_BLOCK
};

enum { ABSENT, FILLING, PRESENT };

/* Accesses that follow one another: the block that is expected, and the blocks of the last run. */
typedef struct stream {
    uint64_t next;
    uint32_t run;
} stream;

struct qn__fault_space {
    qn__fault_filler filler;
    uint8_t *memory;
    uint64_t bytes, blocks, droppable; /* `bytes` of whole blocks; droppable blocks */
    int fault, end;                    /* descriptors: of faults, of the end */
    int threads;
    pthread_t thread[THREADS];
    uint8_t *buffer[THREADS];
    pthread_mutex_t lock; /* for what follows */
    uint8_t *state;       /* of each block */
    uint64_t *order;      /* ring of droppable blocks that are present, oldest first */
    uint64_t kept, oldest, count;
    stream stream[STREAMS];
    uint32_t turn; /* of the stream that is replaced next */
    uint64_t filled;
    qn_error error;
};

/* ------------------------------------------------------------------------------------- one fault
 */

/* The blocks to fill at an access to `block`: more where it follows earlier ones. */
static uint32_t run_at(qn__fault_space *s, uint64_t block) {
    stream *own = NULL;
    for (int i = 0; i < STREAMS && !own; ++i)
        if (s->stream[i].run && s->stream[i].next == block)
            own = &s->stream[i];
    if (!own) {
        own = &s->stream[s->turn++ % STREAMS];
        own->run = 0;
    }
    own->run = own->run == 0 ? 1 : own->run < RUN / 2 ? 2 * own->run : RUN;
    const uint64_t end = block < s->droppable ? s->droppable : s->blocks;
    uint32_t count = 1;
    while (count < own->run && block + count < end && s->state[block + count] == ABSENT)
        ++count;
    own->next = block + count;
    return count;
}

static void drop_oldest(qn__fault_space *s) {
    const uint64_t block = s->order[s->oldest];
    s->oldest = (s->oldest + 1) % s->kept;
    --s->count;
    (void)madvise(s->memory + block * QN__FAULT_BLOCK, QN__FAULT_BLOCK, MADV_DONTNEED);
    s->state[block] = ABSENT; /* an access before waits for the lock, and is filled again */
}

static void keep(qn__fault_space *s, uint64_t block) {
    s->state[block] = PRESENT;
    if (block >= s->droppable)
        return;
    if (s->count == s->kept)
        drop_oldest(s);
    s->order[(s->oldest + s->count++) % s->kept] = block;
}

static void put(const qn__fault_space *s, uint64_t first, uint64_t count, const uint8_t *from) {
    for (uint64_t at = 0; at < count;) {
        struct uffdio_copy copy = {.dst = (uintptr_t)s->memory + first + at,
                                   .src = (uintptr_t)from + at,
                                   .len = count - at};
        if (ioctl(s->fault, UFFDIO_COPY, &copy) == 0)
            return;
        if (copy.copy > 0)
            at += (uint64_t)copy.copy;
        else if (errno != EAGAIN && errno != EINTR)
            return; /* the process ends: its memory is going away */
    }
}

static void wake(const qn__fault_space *s, uint64_t block) {
    struct uffdio_range range = {.start = (uintptr_t)s->memory + block * QN__FAULT_BLOCK,
                                 .len = QN__FAULT_BLOCK};
    (void)ioctl(s->fault, UFFDIO_WAKE, &range);
}

/* Before anybody reads the zeros: who checks after reading must see it. */
static void keep_error(qn__fault_space *s, const qn_error *why) {
    pthread_mutex_lock(&s->lock);
    if (s->error.status == QN_OK)
        s->error = *why;
    pthread_mutex_unlock(&s->lock);
}

static void fill(qn__fault_space *s, uint64_t block, uint8_t *buffer) {
    qn_error why = {.what = ""};
    pthread_mutex_lock(&s->lock);
    const int state = s->state[block];
    if (state != ABSENT) { /* being filled by another thread, which wakes all, or just filled */
        pthread_mutex_unlock(&s->lock);
        if (state == PRESENT)
            wake(s, block);
        return;
    }
    const uint32_t count = run_at(s, block);
    memset(s->state + block, FILLING, count);
    pthread_mutex_unlock(&s->lock);
    const uint64_t first = block * QN__FAULT_BLOCK, bytes = (uint64_t)count * QN__FAULT_BLOCK;
    const qn_status status = s->filler.fill(s->filler.user, first, bytes, buffer, &why);
    if (status != QN_OK) {
        memset(buffer, 0, bytes);
        keep_error(s, &why);
    }
    put(s, first, bytes, buffer);
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < count; ++i)
        keep(s, block + i);
    s->filled += bytes;
    pthread_mutex_unlock(&s->lock);
}

/* ---------------------------------------------------------------------------------------- threads
 */

typedef struct worker {
    qn__fault_space *space;
    uint8_t *buffer;
} worker;

static void *fill_all(void *context) {
    const worker own = *(worker *)context;
    qn__fault_space *s = own.space;
    struct pollfd list[2] = {{s->fault, POLLIN, 0}, {s->end, POLLIN, 0}};
    qn__free(context);
    qn__float_state_set();
    for (;;) {
        struct uffd_msg message;
        if (poll(list, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (list[1].revents)
            return NULL;
        if (read(s->fault, &message, sizeof message) == (ssize_t)sizeof message &&
            message.event == UFFD_EVENT_PAGEFAULT)
            fill(s, (message.arg.pagefault.address - (uintptr_t)s->memory) / QN__FAULT_BLOCK,
                 own.buffer);
    }
}

static int start(qn__fault_space *s, int i) {
    worker *own = qn__alloc(1, sizeof *own, NULL);
    s->buffer[i] = own ? qn__alloc(1, QN__FAULT_RUN, NULL) : NULL;
    if (!s->buffer[i]) {
        qn__free(own);
        return ENOMEM;
    }
    *own = (worker){s, s->buffer[i]};
    const int error = qn__thread_start(&s->thread[i], NULL, fill_all, own);
    if (error)
        qn__free(own);
    return error;
}

static qn_status start_threads(qn__fault_space *s, qn_error *err) {
    for (; s->threads < THREADS; ++s->threads) {
        const int error = start(s, s->threads);
        if (error)
            return qn__fail(err, QN_MEMORY, "no thread can be started: %s", strerror(error));
    }
    return QN_OK;
}

/* ----------------------------------------------------------------------------------- begin, end */

static qn_status refuse(int error, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "the system does not report accesses to memory (userfaultfd): %s",
             strerror(error));
    return qn__remedy(err, QN_UNSUPPORTED,
                      "use Linux 5.11 or later; permit the call in the profile of the container "
                      "(seccomp)");
}

/* The descriptor that reports accesses of this process to the memory. */
static qn_status open_faults(qn__fault_space *s, qn_error *err) {
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)s->memory, s->bytes},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    s->fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (s->fault < 0 || ioctl(s->fault, UFFDIO_API, &api) < 0 ||
        ioctl(s->fault, UFFDIO_REGISTER, &range) < 0)
        return refuse(errno, err);
    return QN_OK;
}

static qn_status open_memory(qn__fault_space *s, qn_error *err) {
    void *memory =
        mmap(NULL, s->bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return qn__fail_memory(err, 1, s->bytes);
    s->memory = memory;
    (void)madvise(memory, s->bytes, MADV_DONTFORK);
    (void)madvise(memory, s->bytes, MADV_NOHUGEPAGE);
    s->state = qn__alloc(s->blocks, 1, err);
    s->order = s->state ? qn__alloc(s->kept, sizeof *s->order, err) : NULL;
    return s->order ? QN_OK : QN_MEMORY;
}

qn_status qn__fault_space_create(uint64_t bytes, uint64_t droppable, uint64_t kept,
                                 const qn__fault_filler *filler, qn__fault_space **out,
                                 qn_error *err) {
    qn__fault_space *s = qn__alloc(1, sizeof *s, err);
    *out = NULL;
    if (!s)
        return QN_MEMORY;
    s->filler = *filler;
    s->fault = s->end = -1;
    s->blocks = bytes / QN__FAULT_BLOCK + 1;
    s->bytes = s->blocks * QN__FAULT_BLOCK;
    s->droppable = droppable / QN__FAULT_BLOCK;
    kept = kept < LEAST ? LEAST : kept;
    s->kept = (kept < s->bytes ? kept : s->bytes) / QN__FAULT_BLOCK;
    pthread_mutex_init(&s->lock, NULL);
    qn_status status = open_memory(s, err);
    if (status == QN_OK)
        status = open_faults(s, err);
    if (status == QN_OK && (s->end = eventfd(0, EFD_CLOEXEC)) < 0)
        status = qn__fail(err, QN_MEMORY, "no descriptor is left: %s", strerror(errno));
    if (status == QN_OK)
        status = start_threads(s, err);
    if (status == QN_OK)
        *out = s;
    else
        qn__fault_space_destroy(s);
    return status;
}

void qn__fault_space_destroy(qn__fault_space *s) {
    const uint64_t one = 1;
    if (!s)
        return;
    if (s->end >= 0)
        (void)!write(s->end, &one, sizeof one);
    for (int i = 0; i < s->threads; ++i)
        pthread_join(s->thread[i], NULL);
    for (int i = 0; i < THREADS; ++i)
        qn__free(s->buffer[i]);
    if (s->memory)
        munmap(s->memory, s->bytes);
    if (s->fault >= 0)
        close(s->fault);
    if (s->end >= 0)
        close(s->end);
    pthread_mutex_destroy(&s->lock);
    qn__free(s->state);
    qn__free(s->order);
    qn__free(s);
}

const uint8_t *qn__fault_space_memory(const qn__fault_space *s) { return s->memory; }

void qn__fault_space_forget(qn__fault_space *s) {
    pthread_mutex_lock(&s->lock);
    while (s->count > 0)
        drop_oldest(s);
    pthread_mutex_unlock(&s->lock);
}

qn_status qn__fault_space_check(qn__fault_space *s, qn_error *err) {
    pthread_mutex_lock(&s->lock);
    const qn_error why = s->error;
    pthread_mutex_unlock(&s->lock);
    if (err && why.status != QN_OK)
        *err = why;
    return why.status;
}

uint64_t qn__fault_space_filled(qn__fault_space *s) {
    pthread_mutex_lock(&s->lock);
    const uint64_t filled = s->filled;
    pthread_mutex_unlock(&s->lock);
    return filled;
}
