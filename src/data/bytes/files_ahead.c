#include "data/bytes/files_ahead.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include <pthread.h>

/* Files that are told before they are read, and how far threads that read one set are apart. */
enum { AHEAD = 32, NEAR = 64 };

struct qn__files_ahead {
    pthread_mutex_t guard;
    size_t last, told; /* the last file that was read; the first one that was not told */
    int begun;
};

qn__files_ahead *qn__files_ahead_begin(void) {
    qn__files_ahead *a = qn__alloc(1, sizeof *a, NULL);
    if (a)
        pthread_mutex_init(&a->guard, NULL);
    return a;
}

void qn__files_ahead_end(qn__files_ahead *a) {
    if (!a)
        return;
    qn__remote_soon_end(a);
    pthread_mutex_destroy(&a->guard);
    qn__free(a);
}

/* Whether the files after this one come next. Reading from the beginning again is in order; the
 * first file is told, too, so that what comes of it is kept. */
static int is_in_order(qn__files_ahead *a, size_t i) {
    const int near = i == 0 || (a->begun && i + NEAR > a->last && i < a->last + NEAR);
    if (!near || i == 0)
        a->told = i == 0 ? 0 : i + 1;
    a->last = i;
    a->begun = 1;
    return near;
}

void qn__files_ahead_at(qn__files_ahead *a, size_t i, size_t count, qn__files_ahead_path path,
                        const void *set) {
    char text[PATH_MAX];
    if (!a || count < 2)
        return;
    pthread_mutex_lock(&a->guard);
    if (is_in_order(a, i))
        for (; a->told < count && a->told <= i + AHEAD; a->told++) {
            path(set, a->told, text);
            if (!qn__remote_soon(a, text))
                break;
        }
    pthread_mutex_unlock(&a->guard);
}
