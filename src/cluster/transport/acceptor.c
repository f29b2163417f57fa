#include "cluster/transport/acceptor.h"

#include "base/clock.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A guest that does not finish in this time loses its place, and when all places are taken, the
 * one that came first does after the shorter time. */
static const double PATIENCE = 5, PATIENCE_FULL = 0.25;

/* The most who are accepted in one go. */
enum { ACCEPTS = 256 };

void qn__door_open(qn__door *door) {
    door->wrong_keys = 0;
    memset(&door->wrong_from, 0, sizeof door->wrong_from);
    for (size_t i = 0; i < QN__GUESTS; ++i)
        door->guest[i].shake.file = -1;
}

size_t qn__door_polls(const qn__door *door, struct pollfd *list) {
    size_t count = 0;
    for (size_t i = 0; i < QN__GUESTS; ++i) {
        const qn__shake *s = &door->guest[i].shake;
        if (s->file >= 0)
            list[count++] = (struct pollfd){
                .fd = s->file, .events = s->state == QN__SHAKE_WRITE ? POLLOUT : POLLIN};
    }
    /* poll skips negative descriptors. With all places taken, who knocks has to wait. */
    const int full = count == QN__GUESTS;
    list[count++] = (struct pollfd){.fd = full ? -1 : door->ears->tcp, .events = POLLIN};
    list[count++] = (struct pollfd){.fd = full ? -1 : door->ears->local, .events = POLLIN};
    return count;
}

static void send_away(qn__guest *guest) {
    close(guest->shake.file);
    guest->shake.file = -1;
}

static qn__guest *free_place(qn__door *door, double now) {
    qn__guest *first = NULL;
    for (size_t i = 0; i < QN__GUESTS; ++i) {
        qn__guest *g = &door->guest[i];
        if (g->shake.file < 0)
            return g;
        if (!first || g->since < first->since)
            first = g;
    }
    if (!first || now - first->since < PATIENCE_FULL)
        return NULL;
    send_away(first);
    return first;
}

/* A place for one of whom it is known whether a rank is where it comes from. A rank takes that of
 * the first stranger, or of somebody who has had time. */
static qn__guest *place_for(qn__door *door, int known, double now) {
    qn__guest *free = NULL, *first = NULL;
    uint32_t guests = 0, strangers = 0;
    for (size_t i = 0; i < QN__GUESTS; ++i) {
        qn__guest *g = &door->guest[i];
        if (g->shake.file < 0) {
            free = free ? free : g;
            continue;
        }
        ++guests;
        strangers += (uint32_t)!g->known;
        if (!first || g->known < first->known ||
            (g->known == first->known && g->since < first->since))
            first = g;
    }
    const int room = free && guests < door->places;
    if (!known)
        return room && 2 * strangers < door->places ? free : NULL;
    if (room)
        return free;
    if (!first || (first->known && now - first->since < PATIENCE_FULL))
        return NULL;
    send_away(first);
    return first;
}

/* Takes all who wait, ranks before strangers. */
static void let_ranks_in(qn__door *door, double now) {
    door->refused = 0;
    for (int tries = 0; tries < ACCEPTS; ++tries) {
        const int file = qn__meet_accept(door->ears->tcp);
        if (file < 0) {
            door->refused |= errno != EAGAIN && errno != EWOULDBLOCK;
            return;
        }
        const int known = door->knows(door->user, file);
        qn__guest *place = place_for(door, known, now);
        if (!place) {
            door->refused = 1;
            close(file);
            continue;
        }
        *place = (qn__guest){.since = now, .known = known};
        qn__shake_begin(&place->shake, file, 0, &door->own, door->key);
    }
}

static void let_in(qn__door *door, double now) {
    if (door->knows) {
        let_ranks_in(door, now);
        return;
    }
    for (int local = 0; local < 2; ++local) {
        const int ear = local ? door->ears->local : door->ears->tcp;
        qn__guest *place;
        while (ear >= 0 && (place = free_place(door, now))) {
            const int file = qn__meet_accept(ear);
            if (file < 0)
                break;
            place->since = now;
            place->local = local;
            qn__shake_begin(&place->shake, file, 0, &door->own, door->key);
            place->shake.greeting = door->greeting;
        }
    }
}

static void go_on(qn__door *door, qn__guest *guest, double now) {
    qn__shake *s = &guest->shake;
    qn__shake_state state = qn__shake_go(s);
    if (state == QN__SHAKE_ASK)
        state = qn__shake_decide(s, door->decide(door->user, &s->other));
    if (state == QN__SHAKE_DONE) {
        const int file = s->file;
        s->file = -1;
        door->joined(door->user, &s->other, file, guest->local);
        return;
    }
    if (state == QN__SHAKE_WRONG_KEY) {
        door->wrong_keys++;
        qn__address_of_peer(s->file, &door->wrong_from);
    }
    if (state > QN__SHAKE_ASK || now - guest->since > PATIENCE)
        send_away(guest);
}

void qn__door_serve(qn__door *door, double now) {
    let_in(door, now);
    for (size_t i = 0; i < QN__GUESTS; ++i)
        if (door->guest[i].shake.file >= 0)
            go_on(door, &door->guest[i], now);
}

int qn__door_guests(const qn__door *door) {
    int count = 0;
    for (size_t i = 0; i < QN__GUESTS; ++i)
        count += door->guest[i].shake.file >= 0;
    return count;
}

void qn__door_close(qn__door *door) {
    for (size_t i = 0; i < QN__GUESTS; ++i)
        if (door->guest[i].shake.file >= 0)
            send_away(&door->guest[i]);
}

void qn__meet_wait(struct pollfd *list, size_t count, double seconds) {
    const int most = seconds <= 0 ? 0 : seconds > 1 ? 1000 : (int)(seconds * 1e3) + 1;
    (void)poll(list, (nfds_t)count, most);
}

int qn__meet_transfer(int file, void *bytes, size_t size, int out, double until) {
    unsigned char *at = bytes;
    while (size > 0) {
        const ssize_t n = out ? send(file, at, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : recv(file, at, size, MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            struct pollfd wait = {.fd = file, .events = out ? POLLOUT : POLLIN};
            const double left = until - qn__now();
            if (left <= 0)
                return -1;
            qn__meet_wait(&wait, 1, left);
        } else if (n == 0 || errno != EINTR) {
            return 0;
        }
    }
    return 1;
}

void qn__word_write(unsigned char word[QN__WORD_BYTES], const char *failure) {
    memset(word, 0, QN__WORD_BYTES);
    qn__put_u32(word, failure != NULL);
    if (failure)
        memcpy(word + 4, failure, strnlen(failure, QN__WORD_BYTES - 5));
}

const char *qn__word_read(unsigned char word[QN__WORD_BYTES]) {
    word[QN__WORD_BYTES - 1] = 0;
    return qn__get_u32(word) ? (const char *)word + 4 : NULL;
}
