/* Parcels and letters are used again, so that a steady state allocates nothing. */
#include "cluster/transport/socket_state.h"

#include "base/memory.h"

/* The class whose parcels have room for `bytes`: 2^class is at least that. */
static unsigned class_of(uint64_t bytes) {
    return bytes <= 256 ? 8 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

qn__parcel *qn__pool_parcel(qn__post *base, uint64_t bytes) {
    qn__sockets_post *post = qn__sockets_of(base);
    if (bytes > QN__BODY_MOST)
        return NULL;
    const unsigned class = class_of(bytes);
    pthread_mutex_lock(&post->pool_lock);
    qn__parcel *parcel = post->pool[class];
    if (parcel)
        post->pool[class] = parcel->next;
    pthread_mutex_unlock(&post->pool_lock);
    if (!parcel)
        parcel = qn__parcel_create(base, UINT64_C(1) << class);
    if (!parcel)
        return NULL;
    parcel->next = NULL;
    parcel->bytes = bytes;
    atomic_store_explicit(&parcel->holders, 1, memory_order_relaxed);
    return parcel;
}

void qn__pool_recycle(qn__post *base, qn__parcel *parcel) {
    qn__sockets_post *post = qn__sockets_of(base);
    const unsigned class = class_of(parcel->room);
    pthread_mutex_lock(&post->pool_lock);
    parcel->next = post->pool[class];
    post->pool[class] = parcel;
    pthread_mutex_unlock(&post->pool_lock);
}

qn__letter *qn__pool_letter(qn__sockets_post *post) {
    pthread_mutex_lock(&post->pool_lock);
    qn__letter *letter = post->letters;
    if (letter)
        post->letters = letter->next;
    pthread_mutex_unlock(&post->pool_lock);
    return letter ? letter : qn__alloc(1, sizeof *letter, NULL);
}

void qn__pool_take_letter(qn__sockets_post *post, qn__letter *letter) {
    pthread_mutex_lock(&post->pool_lock);
    letter->next = post->letters;
    post->letters = letter;
    pthread_mutex_unlock(&post->pool_lock);
}

void qn__pool_release(qn__sockets_post *post) {
    for (int i = 0; i < QN__POOL_CLASSES; ++i)
        while (post->pool[i]) {
            qn__parcel *parcel = post->pool[i];
            post->pool[i] = parcel->next;
            qn__free(parcel);
        }
    while (post->letters) {
        qn__letter *letter = post->letters;
        post->letters = letter->next;
        qn__free(letter);
    }
}
