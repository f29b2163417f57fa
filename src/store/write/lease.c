/* Leases: who owns a place of a store.
 *
 * The object holds who has it and a number that grows with each writing. Every change names the
 * state that it replaces, so of two processes that take it at once one succeeds. A store that
 * ignores conditions would let both: what was written is read again for this. */
#include "base/files/other_hosts.h"
#include "base/files/remote_write.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "base/text/text.h"
#include "store/write/write_kind.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_MS = 20000, BEATS = 3, TEXT = 1024, WORD = 256, TRIES = 100 };

/* What the object says. `kernel` names the boot of a kernel and the space of process numbers:
 * there the process can be looked for. */
typedef struct content {
    char process[24], host[WORD], kernel[WORD], nonce[24];
    uint64_t owner, number;
} content;

struct qn__lease {
    const qn__write_kind *kind;
    void *object;
    content own;
    qn__object_tag tag; /* of what this process wrote last */
    int is_lost, is_ending, has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* of the members above */
    pthread_cond_t ends;
};

/* ------------------------------------------------------------------------------------- its text */

#define FIRST "a lease of Quern\n"

static int write_text(const content *c, char text[TEXT]) {
    return snprintf(text, TEXT,
                    FIRST "process %s\nhost %s\nkernel %s\nnonce %s\nowner %" PRIx64
                          "\nnumber %" PRIu64 "\n",
                    c->process, c->host, c->kernel, c->nonce, c->owner, c->number) < TEXT;
}

/* The rest of the line that begins with `name` and a space. */
static void word_of(const char *text, const char *name, char *to, size_t capacity) {
    char key[16];
    snprintf(key, sizeof key, "\n%s ", name);
    const char *at = strstr(text, key);
    *to = '\0';
    if (at && strcspn(at + strlen(key), "\n") < capacity)
        snprintf(to, capacity, "%.*s", (int)strcspn(at + strlen(key), "\n"), at + strlen(key));
}

/* 0: it is something else. */
static int read_text(const char *text, content *out) {
    char owner[24], number[24];
    *out = (content){.owner = 0};
    if (strncmp(text, FIRST, strlen(FIRST)) != 0)
        return 0;
    word_of(text, "process", out->process, sizeof out->process);
    word_of(text, "host", out->host, sizeof out->host);
    word_of(text, "kernel", out->kernel, sizeof out->kernel);
    word_of(text, "nonce", out->nonce, sizeof out->nonce);
    word_of(text, "owner", owner, sizeof owner);
    word_of(text, "number", number, sizeof number);
    out->owner = strtoull(owner, NULL, 16);
    out->number = strtoull(number, NULL, 10);
    return 1;
}

static void name_kernel(char kernel[WORD]) {
    char boot[QN__BOOT_ID], space[64] = "";
    qn__boot_id(boot);
    const ssize_t size = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    if (*boot && size > 0)
        snprintf(kernel, WORD, "%s %s", boot, space);
}

static void describe_self(uint64_t owner, content *own) {
    uint64_t nonce = 0;
    *own = (content){.owner = owner, .number = 1};
    snprintf(own->process, sizeof own->process, "%ld", (long)getpid());
    if (gethostname(own->host, sizeof own->host - 1) != 0 || !*own->host)
        snprintf(own->host, sizeof own->host, "unknown");
    own->host[strcspn(own->host, "\n")] = '\0';
    name_kernel(own->kernel);
    if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)
        nonce = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
    snprintf(own->nonce, sizeof own->nonce, "%016" PRIx64, nonce);
}

/* A process of this kernel that has ended. */
static int is_dead(const content *holder, const content *own) {
    const long process = strtol(holder->process, NULL, 10);
    return *own->kernel && strcmp(holder->kernel, own->kernel) == 0 && process > 0 &&
           kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/* -------------------------------------------------------------------------------------- keeping */

static long beat_ms(void) {
    const char *text = getenv("QUERN_STORE_BEAT_MS");
    const long given = text ? strtol(text, NULL, 10) : 0;
    return given > 0 && given < BEAT_MS ? given : BEAT_MS;
}

/* Writes it anew. A store that does not answer may answer the next time. */
static void beat(qn__lease *l) {
    char text[TEXT];
    int done = 0;
    content next = l->own;
    next.number++;
    if (!write_text(&next, text) || l->kind->swap(l->object, text, &l->tag, &done, NULL) != QN_OK)
        return;
    l->is_lost |= !done;
    l->own = next;
}

static void *keep_lease(void *context) {
    qn__float_state_set();
    qn__lease *l = context;
    pthread_mutex_lock(&l->lock);
    while (!l->is_ending) {
        const struct timespec until = qn__after((double)beat_ms() / 1000);
        const int why = pthread_cond_timedwait(&l->ends, &l->lock, &until);
        if (!l->is_ending && !l->is_lost && why == ETIMEDOUT)
            beat(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int qn__lease_held(qn__lease *l) {
    char text[TEXT];
    content now;
    int64_t seconds;
    qn__object_tag tag;
    pthread_mutex_lock(&l->lock);
    int held = 0;
    if (!l->is_lost && l->kind->look(l->object, text, sizeof text, &tag, &seconds, NULL) == QN_OK) {
        held = *tag.text && read_text(text, &now) && strcmp(now.nonce, l->own.nonce) == 0;
        l->is_lost = !held;
    }
    pthread_mutex_unlock(&l->lock);
    return held;
}

static void free_lease(qn__lease *l) {
    if (l->object)
        l->kind->close(l->object);
    pthread_cond_destroy(&l->ends);
    pthread_mutex_destroy(&l->lock);
    qn__free(l);
}

void qn__lease_release(qn__lease *l) {
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->is_ending = 1;
    pthread_cond_signal(&l->ends);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread)
        pthread_join(l->thread, NULL);
    if (qn__lease_held(l))
        l->kind->remove(l->object, NULL);
    free_lease(l);
}

/* --------------------------------------------------------------------------------------- taking */

/* Writes this process's text over the state `tag`; *done says whether it is there then. */
static qn_status write_own(qn__lease *l, int *done, qn_error *err) {
    char text[TEXT], again[TEXT];
    content now;
    qn__object_tag tag;
    int64_t seconds;
    *done = 0;
    if (!write_text(&l->own, text))
        return qn__fail(err, QN_IO, "the name of this host is too long for a lease");
    qn_status status = l->kind->swap(l->object, text, &l->tag, done, err);
    if (status == QN_OK && *done)
        status = l->kind->look(l->object, again, sizeof again, &tag, &seconds, err);
    if (status == QN_OK && *done)
        *done = read_text(again, &now) && strcmp(now.nonce, l->own.nonce) == 0;
    return status;
}

static void wait_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static qn_status refuse_other(const char *address, qn_error *err) {
    qn__fail(err, QN_IO, "cannot use %s: it is not a lease of Quern", address);
    qn__at(err, "%s", address);
    return qn__remedy(err, QN_IO, "move it away, or use another place");
}

typedef struct taking {
    qn__lease *lease;
    const char *address;
    int (*may)(void *user);
    void *user;
    qn__lease_holder *holder;
    char seen[24]; /* the nonce and the number of a holder that is waited for, */
    uint64_t seen_number;
    double since; /* and when they were first seen */
} taking;

/* Whether the lease of `held` may be taken; 1: yes, 0: not yet, -1: its holder is alive. */
static int may_take(taking *t, const content *held, int64_t seconds) {
    const content *own = &t->lease->own;
    t->holder->inherited = own->owner != 0 && held->owner == own->owner;
    if (t->holder->inherited)
        return 1;
    if (is_dead(held, own) || seconds * 1000 >= (int64_t)BEATS * beat_ms())
        return 1;
    if (*t->seen && (strcmp(t->seen, held->nonce) != 0 || t->seen_number != held->number))
        return -1;
    if (*t->seen)
        return (qn__now() - t->since) * 1000 >= (double)BEATS * (double)beat_ms();
    t->since = qn__now();
    snprintf(t->seen, sizeof t->seen, "%s", held->nonce);
    t->seen_number = held->number;
    return 0;
}

/* One attempt. *done: 1 it is taken, 0 not yet. */
static qn_status try_once(taking *t, int *done, qn_error *err) {
    qn__lease *l = t->lease;
    char text[TEXT];
    content held;
    int64_t seconds = 0;
    const int may = !t->may || t->may(t->user);
    qn_status status = l->kind->look(l->object, text, sizeof text, &l->tag, &seconds, err);
    *t->holder = (qn__lease_holder){.inherited = 0};
    if (status != QN_OK || !*l->tag.text)
        return status == QN_OK && may ? write_own(l, done, err)
               : status == QN_OK      ? QN_BUSY
                                      : status;
    if (!read_text(text, &held))
        return refuse_other(t->address, err);
    const int take = may_take(t, &held, seconds);
    if (!may)
        return QN_BUSY;
    l->own.number = held.number + 1;
    if (take > 0)
        return write_own(l, done, err);
    snprintf(t->holder->process, sizeof t->holder->process, "%s", held.process);
    snprintf(t->holder->host, sizeof t->holder->host, "%s", held.host);
    if (take < 0)
        return QN_BUSY;
    wait_ms(beat_ms() / 4);
    return QN_OK;
}

static qn_status start_keeping(qn__lease *l, qn_error *err) {
    const int why = qn__thread_start(&l->thread, NULL, keep_lease, l);
    l->has_thread = why == 0;
    if (l->has_thread)
        return QN_OK;
    errno = why;
    return qn__fail_errno(err, "start a thread for", "a lease");
}

static qn__lease *make_lease(const qn__write_kind *kind, uint64_t owner, qn_error *err) {
    pthread_condattr_t clock;
    qn__lease *l = qn__alloc(1, sizeof *l, err);
    if (!l)
        return NULL;
    l->kind = kind;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&l->ends, &clock);
    pthread_condattr_destroy(&clock);
    describe_self(owner, &l->own);
    return l;
}

qn_status qn__lease_take(const char *address, uint64_t owner, int (*may)(void *user), void *user,
                         qn__lease_holder *holder, qn__lease **out, qn_error *err) {
    *out = NULL;
    const qn__write_kind *kind = qn__write_kind_of(address, err);
    if (!kind)
        return QN_UNSUPPORTED;
    taking t = {.address = address, .may = may, .user = user, .holder = holder};
    if (!(t.lease = make_lease(kind, owner, err)))
        return QN_MEMORY;
    int done = 0;
    qn_status status = kind->open(address, &t.lease->object, err);
    for (int tries = 0; tries < TRIES && status == QN_OK && !done; tries++)
        status = try_once(&t, &done, err);
    if (status == QN_OK)
        status = done ? start_keeping(t.lease, err) : QN_BUSY;
    if (status != QN_OK) {
        free_lease(t.lease);
        return status;
    }
    *out = t.lease;
    return QN_OK;
}
