#include "store/soon.h"
#include "base/digest/siphash.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "store/listed.h"
#include <string.h>
#include <sys/resource.h>

/* Connections, and files that wait, are asked for or held open, at most; fewer where the process
 * may open few files. */
enum { THREADS = 16, PLACES = 64, FILES_EACH = 16, BUCKETS = 1 << 12 };
/* Bytes of small files that are kept, at most, and what one takes beside its bytes. */
#define KEPT_MOST ((size_t)64 << 20)
#define KEPT_EACH ((size_t)512)

typedef enum state { WAITS, RUNS, HELD, KEPT } state;

typedef struct entry {
    struct entry *same;             /* the next one of its bucket */
    struct entry *later, **earlier; /* of all, the oldest first */
    const void *owner;              /* NULL: it is forgotten when it was asked for */
    const qn__soon_way *way;
    char *address;
    uint64_t hash;
    state state;
    int file;     /* HELD: the open one */
    int answered; /* `first` or `error` is set */
    qn__object_first first;
    qn_status status;
    qn_error error;
} entry;

static struct {
    pthread_mutex_t guard;
    pthread_cond_t work, changed;
    entry *bucket[BUCKETS];
    entry *oldest, **end;
    size_t places, kept; /* entries other than KEPT; bytes of those */
    int threads, idle;
} the = {.guard = PTHREAD_MUTEX_INITIALIZER,
         .work = PTHREAD_COND_INITIALIZER,
         .changed = PTHREAD_COND_INITIALIZER,
         .end = &the.oldest};

/* How many there are: most processes have none, and need no lock. */
static atomic_size_t entries;

/* ------------------------------------------------------------------ entries, under the guard */

static uint64_t hash_of(const char *address) {
    static const qn__siphash_key key = {{0x736F6F6E736F6F6Eu, 0x66696C6566696C65u}};
    return qn__siphash(&key, address, strlen(address));
}

static entry *find(const char *address) {
    const uint64_t hash = hash_of(address);
    entry *e = the.bucket[hash % BUCKETS];
    while (e && (e->hash != hash || strcmp(e->address, address) != 0))
        e = e->same;
    return e;
}

static size_t cost_of(const entry *e) { return KEPT_EACH + e->first.size; }

static void insert(entry *e) {
    entry **bucket = &the.bucket[e->hash % BUCKETS];
    e->same = *bucket;
    *bucket = e;
    e->earlier = the.end;
    *the.end = e;
    the.end = &e->later;
    the.places++;
    atomic_fetch_add(&entries, 1);
}

/* Takes it out; the caller frees it without the guard. */
static void cut(entry *e) {
    entry **at = &the.bucket[e->hash % BUCKETS];
    while (*at != e)
        at = &(*at)->same;
    *at = e->same;
    *e->earlier = e->later;
    if (e->later)
        e->later->earlier = e->earlier;
    else
        the.end = e->earlier;
    if (e->state == KEPT)
        the.kept -= cost_of(e);
    else
        the.places--;
    atomic_fetch_sub(&entries, 1);
    pthread_cond_broadcast(&the.changed);
}

/* Without the guard. */
static void destroy(entry *e) {
    if (!e)
        return;
    if (e->file >= 0)
        e->way->close(e->file);
    qn__free(e->first.bytes);
    qn__free(e->address);
    qn__free(e);
}

static entry *next_waiting(void) {
    entry *e = the.oldest;
    while (e && e->state != WAITS)
        e = e->later;
    return e;
}

/* ------------------------------------------------------------------ asking */

/* In memory that is not larger than the file. */
static void shrink(qn__object_first *first) {
    uint8_t *bytes = first->size > 0 ? qn__alloc(first->size, 1, NULL) : NULL;
    if (!bytes)
        return;
    memcpy(bytes, first->bytes, first->size);
    qn__free(first->bytes);
    first->bytes = bytes;
}

/* Without the guard. 0: what is known now does not help who opens it. */
static int ask(entry *e) {
    qn__remote_about listed;
    qn__object_first first = {0};
    if (!qn__listed_find(e->address, &listed) || listed.size <= QN__OBJECT_FIRST) {
        const int known = e->way->known(e->address, &listed);
        const qn_status status =
            qn__object_look(e->address, known ? listed.tag : "", &first, &e->error);
        const int whole = !first.unchanged && first.sized && first.about.size == first.size;
        if (first.unchanged)
            qn__listed_note(e->address, &listed);
        if (whole)
            shrink(&first);
        pthread_mutex_lock(&the.guard);
        e->first = first;
        e->status = status;
        e->answered = !first.unchanged;
        pthread_mutex_unlock(&the.guard);
        if (status != QN_OK || whole)
            return 1;
    }
    return e->way->open(e->address, &e->file) == QN_OK;
}

/* After it was asked for. Returns it where it is to be freed. */
static entry *settle(entry *e, int is_useful) {
    const int keeps = e->answered && e->status == QN_OK && e->file < 0;
    if (!e->owner || !is_useful) {
        cut(e);
        return e;
    }
    e->state = HELD;
    if (keeps && the.kept + cost_of(e) <= KEPT_MOST) {
        e->state = KEPT;
        the.places--;
        the.kept += cost_of(e);
    }
    pthread_cond_broadcast(&the.changed);
    return NULL;
}

/* Gives the guard up meanwhile. */
static void run(entry *e) {
    e->state = RUNS;
    pthread_mutex_unlock(&the.guard);
    const int is_useful = ask(e);
    pthread_mutex_lock(&the.guard);
    entry *old = settle(e, is_useful);
    if (!old)
        return;
    pthread_mutex_unlock(&the.guard);
    destroy(old);
    pthread_mutex_lock(&the.guard);
}

static void *ask_all(void *unused) {
    (void)unused;
    qn__float_state_set();
    pthread_mutex_lock(&the.guard);
    for (;;) {
        entry *e = next_waiting();
        if (!e) {
            the.idle++;
            pthread_cond_wait(&the.work, &the.guard);
            the.idle--;
            continue;
        }
        run(e);
    }
    return NULL;
}

/* ------------------------------------------------------------------ adding and forgetting */

static void start_thread(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    the.threads += qn__thread_start(&thread, &attributes, ask_all, NULL) == 0;
    pthread_attr_destroy(&attributes);
}

static entry *make(const void *owner, const char *address, const qn__soon_way *way) {
    entry *e = qn__alloc(1, sizeof *e, NULL);
    if (!e)
        return NULL;
    *e = (entry){.owner = owner, .way = way, .hash = hash_of(address), .state = WAITS, .file = -1};
    e->address = qn__copy_text(address, NULL);
    if (e->address)
        return e;
    qn__free(e);
    return NULL;
}

static size_t most_places(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / FILES_EACH >= PLACES)
        return PLACES;
    return (size_t)files.rlim_cur / FILES_EACH;
}

int qn__soon_add(const void *owner, const char *address, const qn__soon_way *way) {
    pthread_mutex_lock(&the.guard);
    const int known = find(address) != NULL, full = the.places >= most_places();
    entry *e = known || full ? NULL : make(owner, address, way);
    if (e) {
        insert(e);
        if (the.idle == 0 && the.threads < THREADS)
            start_thread();
        else
            pthread_cond_signal(&the.work);
    }
    pthread_mutex_unlock(&the.guard);
    return known || !full;
}

void qn__soon_end(const void *owner) {
    entry *old = NULL;
    pthread_mutex_lock(&the.guard);
    for (entry *e = the.oldest, *later; e; e = later) {
        later = e->later;
        if (e->owner != owner)
            continue;
        e->owner = NULL; /* one that runs ends by itself */
        if (e->state == RUNS)
            continue;
        cut(e);
        e->same = old;
        old = e;
    }
    pthread_mutex_unlock(&the.guard);
    for (entry *next; old; old = next) {
        next = old->same;
        destroy(old);
    }
}

/* ------------------------------------------------------------------ readers */

/* The reader asks by itself where no thread has begun to. */
void qn__soon_wait(const char *address) {
    if (atomic_load(&entries) == 0)
        return;
    pthread_mutex_lock(&the.guard);
    for (entry *e; (e = find(address)) != NULL;)
        if (e->state == WAITS)
            run(e);
        else if (e->state == RUNS)
            pthread_cond_wait(&the.changed, &the.guard);
        else
            break;
    pthread_mutex_unlock(&the.guard);
}

/* Gives the bytes away, or a copy of them. 0: memory is short. */
static int give(entry *e, qn__object_first *out) {
    *out = e->first;
    if (e->state != KEPT) {
        e->first = (qn__object_first){0};
        e->answered = 0;
        return 1;
    }
    out->bytes = out->size > 0 ? qn__alloc(out->size, 1, NULL) : NULL;
    if (out->bytes)
        memcpy(out->bytes, e->first.bytes, out->size);
    return out->bytes != NULL || out->size == 0;
}

int qn__soon_find(const char *address, qn__object_first *out, qn_status *status, qn_error *err) {
    entry *old = NULL;
    int found = 0;
    if (atomic_load(&entries) == 0)
        return 0;
    pthread_mutex_lock(&the.guard);
    entry *e = find(address);
    if (e && e->answered) {
        *status = e->status;
        if (e->status != QN_OK && err)
            *err = e->error;
        found = e->status != QN_OK || give(e, out);
        if (e->state == HELD && e->file < 0) {
            cut(e);
            old = e;
        }
    }
    pthread_mutex_unlock(&the.guard);
    destroy(old);
    return found;
}

void qn__soon_opened(const char *address) {
    if (atomic_load(&entries) == 0)
        return;
    pthread_mutex_lock(&the.guard);
    entry *e = find(address);
    const int held = e && e->state == HELD;
    if (held)
        cut(e);
    pthread_mutex_unlock(&the.guard);
    if (held)
        destroy(e);
}
