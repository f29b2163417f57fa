#include "store/fetch.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Requests at once, and the bytes that one asks for at most: less would wait for the store's answer
 * too often, more would keep a reader waiting for the end of one. */
enum { THREADS = 8, RUN_BLOCKS = 64, WAITING = 64 };
/* A reader that has read so many bytes in order goes on: four times as much as it has read is
 * fetched ahead of it, up to a limit. */
#define BEGINS_AHEAD ((uint64_t)256 << 10)
#define AHEAD_MOST ((uint64_t)128 << 20)
/* A reader that leaves out so much still goes forward, such as one of the heads in a tar archive.
 */
#define GAP_MOST ((uint64_t)1 << 20)

/* Blocks that are fetched, or wait for it. */
typedef struct run {
    qn__cached *file; /* NULL: the place is free */
    uint64_t begin, end;
    uint64_t order;
    int running;
} run;

static struct {
    pthread_mutex_t guard;
    pthread_cond_t work;
    run runs[WAITING];
    uint64_t order;
    int threads;
} the = {.guard = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

/* Nanoseconds between two looks at what another process has locked, and how many looks. */
enum { CLAIM_STEP = 10000000, CLAIM_STEPS = 3000 };

/* ------------------------------------------------------------------ one run */

/* An answer on its way into blocks. */
typedef struct filling {
    qn__cached *file;
    uint64_t at; /* the next byte */
    size_t have; /* bytes in the block that is not full */
    uint8_t *block;
    qn_status status;
    qn_error *err;
} filling;

static int finish_block(filling *f) {
    qn__cached *file = f->file;
    const uint64_t block = (f->at - 1) / QN__CACHED_BLOCK;
    if (!qn__cached_has(file, block))
        f->status = qn__cached_write(file, block, f->block, f->have, f->err);
    f->have = 0;
    pthread_mutex_lock(&file->guard);
    pthread_cond_broadcast(&file->changed);
    pthread_mutex_unlock(&file->guard);
    return f->status == QN_OK;
}

static int take_bytes(void *user, const void *bytes, size_t size) {
    filling *f = user;
    const char *from = bytes;
    while (size > 0) {
        const size_t space = QN__CACHED_BLOCK - f->have, now = size < space ? size : space;
        memcpy(f->block + f->have, from, now);
        f->have += now;
        f->at += now;
        from += now;
        size -= now;
        if ((f->have == QN__CACHED_BLOCK || f->at == f->file->about.size) && !finish_block(f))
            return 0;
    }
    return 1;
}

static int is_missing(const qn__cached *file, uint64_t begin, uint64_t end) {
    while (begin < end && qn__cached_has(file, begin))
        begin++;
    return begin < end;
}

/* Another process may fetch the same blocks. It holds a lock of their bytes in the map; the lock
 * ends with the process. Returns the descriptor that holds ours, or -1. A process that was stopped
 * is not waited for longer than CLAIM_STEPS: without a lock both fetch the blocks, which is slower
 * and not wrong. */
static int claim(const qn__cached *file, uint64_t begin, uint64_t end) {
#ifdef F_OFD_SETLK
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->map);
    const int own = open(path, O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)begin,
                         .l_len = (off_t)(end - begin)};
    for (int i = 0; own >= 0 && i < CLAIM_STEPS && !atomic_load(&file->stop) &&
                    atomic_load(&qn__remote_hurries) == 0;
         i++) {
        if (fcntl(own, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES) ||
            !is_missing(file, begin, end))
            break;
        nanosleep(&(struct timespec){.tv_nsec = CLAIM_STEP}, NULL);
    }
    return own;
#else
    (void)file, (void)begin, (void)end;
    return -1;
#endif
}

static qn_status fetch_run(qn__cached *file, uint64_t begin, uint64_t end, qn_error *err) {
    uint8_t *block = qn__alloc(QN__CACHED_BLOCK, 1, err);
    qn_status status = block ? QN_OK : QN_MEMORY;
    const int own = claim(file, begin, end);
    while (status == QN_OK && begin < end) {
        uint64_t stop = begin;
        while (begin < end && qn__cached_has(file, begin))
            begin++;
        for (stop = begin; stop < end && !qn__cached_has(file, stop);)
            stop++;
        if (begin == end)
            break;
        const uint64_t last = stop * QN__CACHED_BLOCK;
        qn_error why = {.what = ""}; /* `err` has what the request says of its end */
        filling f = {.file = file, .at = begin * QN__CACHED_BLOCK, .block = block, .err = &why};
        const qn__object_range range = {.address = file->address,
                                        .about = &file->about,
                                        .from = f.at,
                                        .end = last < file->about.size ? last : file->about.size,
                                        .take = take_bytes,
                                        .user = &f,
                                        .stop = &file->stop};
        status = qn__object_read(&range, err);
        if (f.status != QN_OK && err)
            *err = why;
        if (f.status != QN_OK)
            status = f.status;
        begin = stop;
    }
    if (own >= 0)
        close(own);
    qn__free(block);
    return status;
}

/* ------------------------------------------------------------------ threads */

/* The run that waits for longest, or NULL. */
static run *next_run(void) {
    run *first = NULL;
    for (int i = 0; i < WAITING; i++) {
        run *r = &the.runs[i];
        if (r->file && !r->running && (!first || r->order < first->order))
            first = r;
    }
    return first;
}

static void end_run(run *r, qn_status status, const qn_error *error) {
    qn__cached *file = r->file;
    pthread_mutex_lock(&the.guard);
    r->file = NULL;
    pthread_mutex_unlock(&the.guard);
    pthread_mutex_lock(&file->guard);
    if (status != QN_OK && file->failed == QN_OK) {
        file->failed = status;
        file->error = *error;
    }
    file->active--;
    pthread_cond_broadcast(&file->changed);
    pthread_mutex_unlock(&file->guard);
}

static void *fetch_runs(void *unused) {
    (void)unused;
    qn__float_state_set();
    for (;;) {
        qn_error error = {.what = ""};
        pthread_mutex_lock(&the.guard);
        run *r;
        while (!(r = next_run()))
            pthread_cond_wait(&the.work, &the.guard);
        r->running = 1;
        pthread_mutex_unlock(&the.guard);
        const qn_status status = atomic_load(&r->file->stop)
                                     ? QN_INTERRUPTED
                                     : fetch_run(r->file, r->begin, r->end, &error);
        end_run(r, status, &error);
    }
    return NULL;
}

/* Under the.guard. */
static void start_thread(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    the.threads += qn__thread_start(&thread, &attributes, fetch_runs, NULL) == 0;
    pthread_attr_destroy(&attributes);
}

/* Whether a run of the file has the block. */
static int is_coming(const qn__cached *file, uint64_t block) {
    for (int i = 0; i < WAITING; i++) {
        const run *r = &the.runs[i];
        if (r->file == file && r->begin <= block && block < r->end)
            return 1;
    }
    return 0;
}

/* Queues a run; 0: there is no place for it. Under file->guard. */
static int queue(qn__cached *file, uint64_t begin, uint64_t end) {
    int at = 0, used = 0;
    pthread_mutex_lock(&the.guard);
    for (int i = WAITING; i-- > 0;)
        if (the.runs[i].file)
            used++;
        else
            at = i;
    if (used < WAITING && used >= the.threads && the.threads < THREADS)
        start_thread();
    const int taken = used < WAITING && the.threads > 0;
    if (taken) {
        the.runs[at] = (run){.file = file, .begin = begin, .end = end, .order = the.order++};
        file->active++;
        pthread_cond_signal(&the.work);
    }
    pthread_mutex_unlock(&the.guard);
    return taken;
}

/* Queues what is missing of the blocks [begin, end); some of it where the places are taken. Under
 * file->guard. */
static void queue_missing(qn__cached *file, uint64_t begin, uint64_t end) {
    const uint64_t most = file->ranges ? RUN_BLOCKS : UINT64_MAX;
    for (uint64_t at = begin, stop; at < end; at = stop) {
        stop = at + 1;
        if (qn__cached_has(file, at))
            continue;
        pthread_mutex_lock(&the.guard);
        const int coming = is_coming(file, at);
        while (!coming && stop < end && stop - at < most && !qn__cached_has(file, stop) &&
               !is_coming(file, stop))
            stop++;
        pthread_mutex_unlock(&the.guard);
        if (!coming && !queue(file, at, stop))
            return;
    }
}

/* ------------------------------------------------------------------ readers */

/* How far a reader of these bytes will go on. */
static uint64_t ahead_of(qn__cached *file, uint64_t from, uint64_t end) {
    qn__cached_stream *s = NULL;
    for (unsigned i = 0; i < QN__CACHED_STREAMS && !s; i++)
        if (i < file->streams && from >= file->stream[i].begin &&
            from <= file->stream[i].next + GAP_MOST && end > file->stream[i].next)
            s = &file->stream[i];
    if (!s) {
        s = &file->stream[file->streams++ % QN__CACHED_STREAMS];
        *s = (qn__cached_stream){from, from};
    }
    s->next = end;
    const uint64_t read = end - s->begin;
    if (file->planned)
        return 0;
    return read < BEGINS_AHEAD || s->begin == from ? 0
           : 4 * read < AHEAD_MOST                 ? 4 * read
                                                   : AHEAD_MOST;
}

/* Waits for the blocks. Under file->guard. A failure of reading ahead is one only where its blocks
 * are needed, and a reader that comes later tries once more. */
static qn_status wait_for(qn__cached *file, uint64_t begin, uint64_t end, qn_error *err) {
    if (file->active == 0)
        file->failed = QN_OK;
    while (is_missing(file, begin, end)) {
        if (file->failed != QN_OK) {
            if (err)
                *err = file->error;
            return file->failed;
        }
        queue_missing(file, begin, end);
        if (file->active > 0) {
            pthread_cond_wait(&file->changed, &file->guard);
            continue;
        }
        pthread_mutex_unlock(&file->guard); /* all places are taken by other files */
        const qn_status status = fetch_run(file, begin, end, err);
        pthread_mutex_lock(&file->guard);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

qn_status qn__cached_fetch(qn__cached *file, uint64_t from, uint64_t size, qn_error *err) {
    if (!file->mapped || from >= file->about.size || size == 0)
        return QN_OK;
    const uint64_t left = file->about.size - from, end = from + (size < left ? size : left);
    const uint64_t blocks = qn__cached_blocks(file);
    /* A server without ranges sends the file from its beginning each time: all is read at once. */
    const uint64_t begin = file->ranges ? from / QN__CACHED_BLOCK : 0,
                   stop = file->ranges ? (end + QN__CACHED_BLOCK - 1) / QN__CACHED_BLOCK : blocks;
    pthread_mutex_lock(&file->guard);
    const uint64_t ahead = ahead_of(file, from, end);
    const qn_status status = wait_for(file, begin, stop, err);
    if (status == QN_OK && ahead > 0) {
        const uint64_t most = (end + ahead + QN__CACHED_BLOCK - 1) / QN__CACHED_BLOCK;
        queue_missing(file, stop, most < blocks ? most : blocks);
    }
    pthread_mutex_unlock(&file->guard);
    return status;
}

void qn__fetch_plan(qn__cached *file, uint64_t from, uint64_t size) {
    if (!file->mapped || from >= file->about.size || size == 0)
        return;
    const uint64_t left = file->about.size - from, end = from + (size < left ? size : left);
    pthread_mutex_lock(&file->guard);
    file->planned = 1;
    if (file->ranges)
        queue_missing(file, from / QN__CACHED_BLOCK,
                      (end + QN__CACHED_BLOCK - 1) / QN__CACHED_BLOCK);
    pthread_mutex_unlock(&file->guard);
}

void qn__fetch_stop(qn__cached *file) {
    atomic_store(&file->stop, 1);
    pthread_mutex_lock(&the.guard);
    int ended = 0;
    for (int i = 0; i < WAITING; i++)
        if (the.runs[i].file == file && !the.runs[i].running) {
            the.runs[i].file = NULL;
            ended++;
        }
    pthread_mutex_unlock(&the.guard);
    pthread_mutex_lock(&file->guard);
    file->active -= ended;
    while (file->active > 0)
        pthread_cond_wait(&file->changed, &file->guard);
    pthread_mutex_unlock(&file->guard);
}
