/* An NCCL over the fake CUDA driver: it waits for the streams and adds up on the host. Calls do not
 * block, so each says that it is in progress, and the second question finds its end. The
 * environment variable QN_FAKE_NCCL says what goes wrong, as words `name=number` separated by
 * commas:
 *
 *   version=21300  what it claims (23000)      init=2   the result of making a communicator
 *   wrong=3        the third sum has a wrong bit on the last device
 *   fail=3         the third sum fails at once, after half of it was written
 *   late=3         the same, and only a later question says so
 *   hang=3         the third sum never ends, until it is aborted
 */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INTERNAL = 3, INVALID = 4, REMOTE = 6, IN_PROGRESS = 7, MOST = 8 };

typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;

typedef struct ncclConfig {
    size_t size;
    unsigned magic, version;
    int blocking;
} ncclConfig;

typedef struct ncclComm {
    CUcontext context;
    int ranks, rank, state, asked;
} * ncclComm_t;

/* The sums of a group. */
static struct sum {
    ncclComm_t comm;
    char *from, *to;
    size_t count;
    CUstream stream;
} sums[MOST];
static int pending, depth, sums_done;

static int planned(const char *word, int otherwise) {
    const char *text = getenv("QN_FAKE_NCCL"), *found = text ? strstr(text, word) : NULL;
    return found && found[strlen(word)] == '=' ? atoi(found + strlen(word) + 1) : otherwise;
}

static void *driver(const char *name) {
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

static CUresult context_set(CUcontext context) {
    CUresult (*set)(CUcontext);
    void *found = driver("cuCtxSetCurrent");
    memcpy(&set, &found, sizeof set);
    return set(context);
}

static CUcontext context_now(void) {
    CUresult (*get)(CUcontext *);
    void *found = driver("cuCtxGetCurrent");
    CUcontext context = NULL;
    memcpy(&get, &found, sizeof get);
    get(&context);
    return context;
}

/* Whether all work of the stream is done; 0: the device has failed. */
static int finish(const struct sum *s) {
    CUresult (*ask)(CUstream), result = NOT_READY;
    void *found = driver("cuStreamQuery");
    memcpy(&ask, &found, sizeof ask);
    context_set(s->comm->context);
    for (int i = 0; i < 100000 && result == NOT_READY; ++i)
        result = ask(s->stream);
    return result == DONE;
}

EXPORT int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
    *version = planned("version", 23000);
    return OK;
}

EXPORT const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result) {
    return result == INTERNAL ? "internal error"
           : result == REMOTE ? "remote process exited or there was a network error"
                              : "unhandled system error";
}

EXPORT int ncclGetUniqueId(ncclUniqueId *id);
int ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 7, sizeof *id);
    return OK;
}

EXPORT int ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                  ncclConfig *config);
int ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                           ncclConfig *config) {
    if (depth != 1 || config->magic != 0xcafebeefu || config->version < 21400 ||
        config->blocking != 0 || id.internal[0] != 7 || rank >= ranks)
        return INVALID;
    if (planned("init", OK))
        return planned("init", OK);
    *out = calloc(1, sizeof **out);
    if (!*out)
        abort();
    **out = (struct ncclComm){context_now(), ranks, rank, IN_PROGRESS, 0};
    return IN_PROGRESS;
}

EXPORT int ncclGroupStart(void);
int ncclGroupStart(void) {
    ++depth;
    return OK;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                         ncclComm_t comm, CUstream stream);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                  ncclComm_t comm, CUstream stream) {
    if (depth != 1 || type != 4 || operation != 0 || pending == MOST || comm->state != OK ||
        comm->context != context_now())
        return INVALID;
    sums[pending++] =
        (struct sum){comm, (char *)(uintptr_t)((CUdeviceptr)(uintptr_t)from - FAR),
                     (char *)(uintptr_t)((CUdeviceptr)(uintptr_t)to - FAR), count, stream};
    return IN_PROGRESS;
}

static void set_states(int state) {
    for (int i = 0; i < pending; ++i) {
        sums[i].comm->state = state;
        sums[i].comm->asked = 0;
    }
}

static void add_up(size_t count) {
    for (size_t p = 0; p < count; ++p) {
        uint64_t all = 0, one;
        for (int i = 0; i < pending; ++i) {
            memcpy(&one, sums[i].from + p * sizeof one, sizeof one);
            all += one;
        }
        for (int i = 0; i < pending; ++i)
            memcpy(sums[i].to + p * sizeof all, &all, sizeof all);
    }
}

static int perform(void) {
    const int number = ++sums_done;
    const size_t count = sums[0].count;
    for (int i = 0; i < pending; ++i)
        if (sums[i].count != count || sums[i].comm->ranks != pending || !finish(&sums[i]))
            return INTERNAL;
    if (number == planned("hang", 0)) {
        set_states(-IN_PROGRESS); /* at every question */
        return IN_PROGRESS;
    }
    const int fails = number == planned("fail", 0), late = number == planned("late", 0);
    add_up(fails || late ? count / 2 : count);
    if (number == planned("wrong", 0))
        sums[pending - 1].to[(count - 1) * sizeof(uint64_t)] ^= 1;
    set_states(late ? REMOTE : IN_PROGRESS);
    return fails ? INTERNAL : IN_PROGRESS;
}

EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void) {
    const CUcontext context = context_now();
    int result = --depth != 0 ? INVALID : OK;
    if (result == OK && pending > 0)
        result = perform();
    pending = 0;
    context_set(context);
    return result;
}

EXPORT int ncclCommGetAsyncError(ncclComm_t comm, int *result);
int ncclCommGetAsyncError(ncclComm_t comm, int *result) {
    *result = abs(comm->state);
    if (comm->state == IN_PROGRESS && ++comm->asked == 2)
        comm->state = OK;
    return OK;
}

EXPORT int ncclCommAbort(ncclComm_t comm);
int ncclCommAbort(ncclComm_t comm) {
    free(comm);
    return OK;
}
