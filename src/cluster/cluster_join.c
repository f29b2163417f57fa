/* Ranks that join a run.
 *
 * Between two reductions all ranks and the one that joins make a second set of connections. A
 * reduction over the old ones finds out whether all have them: its total is the same on all ranks,
 * so all take the new ones or none does. Each rank that takes them first makes one more reduction,
 * after which the others have the total, too. If a rank dies meanwhile, the old connections stay in
 * use, and the rank that joins gets another invitation. */
#include "cluster/cluster_state.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/rendezvous/renewal.h"
#include "cluster/transport/wire.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Limit in seconds for making all connections, at the first attempt and at later ones. All ranks
 * wait so long for one that falls silent meanwhile. */
enum { CONNECT_TIME = 4, CONNECT_TIME_MOST = 10 };

/* Seconds until a rank is let in again after that failed; and between two looks whether this rank
 * was asked to stop. */
static const double PAUSE = 1, LOOK = 0.1;

/* What each rank says before the connections are made. */
typedef struct card {
    uint32_t present, fine;
    unsigned char endpoint[QN__ENDPOINT_BYTES];
    /* Rank 0: */
    uint32_t seconds, who; /* seconds 0: it invites nobody */
    unsigned char session[QN__SESSION_BYTES], guest[QN__ENDPOINT_BYTES];
} card;

/* The answer of a live rank; a dead one reads as 0. */
enum { YES = 1, NO = 2 };

typedef struct change {
    qn_cluster *c;
    qn__renewal renewal;
    qn__commons *commons; /* with them, the other reducer is open; or NULL */
    card *card;           /* of each rank */
    uint64_t *answer;
} change;

/* ---------------------------------------------------------------------------------------- the door
 */

static qn__ranks members(const qn_cluster *c) {
    pthread_mutex_lock(&c->reducer->lock);
    const qn__ranks set = c->reducer->group.members;
    pthread_mutex_unlock(&c->reducer->lock);
    return set;
}

void qn__cluster_open_door(qn_cluster *c) {
    if (!c || c->door || !c->rendezvous.meeting.possible || c->rendezvous.rank != 0 ||
        c->agreed.size == 0 || c->agreed.size > QN__DESCRIBED_BYTES)
        return;
    /* Tables that are spread over ranks need the history of the first door. */
    const int known = !c->spread || c->history.state == QN__RUN_HISTORY_KEPT;
    c->door_was_open = 1;
    if (!known)
        return;
    if (c->history.state == QN__RUN_HISTORY_KEPT)
        c->history.state = QN__RUN_HISTORY_WHOLE;
    /* Another program may use the address meanwhile: then no rank can join. */
    (void)qn__door_open(&c->rendezvous, c->agreed.data, c->agreed.size,
                        &(qn__door_store){c, qn__run_history_supply}, &c->door, NULL);
}

void qn__cluster_close_door(qn_cluster *c) {
    if (!c)
        return;
    qn__door_close(c->door);
    c->door = NULL;
    if (c->history.state == QN__RUN_HISTORY_WHOLE)
        qn__run_history_release(&c->history);
}

void qn__cluster_ask_door(qn_cluster *c) {
    uint32_t rank, invitations;
    qn__endpoint endpoint;
    if (!c || !c->door || qn__now() < c->next_guest)
        return;
    const qn__ranks set = members(c);
    if (qn__door_waits(c->door, &set, &rank, &endpoint, &invitations))
        atomic_store(&c->reducer->requests.requested[QN__REQUEST_JOIN], 1);
}

int qn__cluster_letting_in(const qn_cluster *c) { return c->reducer->requests.joining; }

/* ------------------------------------------------------------------------------- the new
 * connections */

static void drop(change *j) {
    qn_cluster *c = j->c;
    if (j->commons) {
        qn__reducer_close(&c->slot[c->reducer == &c->slot[0]]);
        qn__commons_close(j->commons);
        j->commons = NULL;
    }
    qn__renewal_close(&j->renewal);
}

/* Makes the connections, and all that needs memory. */
static qn_status connect_anew(change *j) {
    qn_cluster *c = j->c;
    qn_status status =
        qn__renewal_connect(&j->renewal, &c->rendezvous, j->renewal.invitation.seconds, NULL);
    if (status == QN_OK)
        status = qn__cluster_prepare(c, j->renewal.transport, &j->renewal.invitation.present,
                                     &j->commons, NULL);
    return status;
}

/* A rank that cannot begin with the new connections has left the old ones. */
static qn_status lost(qn_cluster *c, qn_status status, const qn_error *why) {
    if (status != QN_OK && status != QN_CLUSTER) {
        pthread_mutex_lock(&c->reducer->lock);
        qn__reducer_leave(c->reducer, 1, why->what);
        pthread_mutex_unlock(&c->reducer->lock);
    }
    return status;
}

/* Ends the old connections, and begins with the new ones. */
static qn_status take(change *j, qn_error *err) {
    qn_cluster *c = j->c;
    qn__reducer *old = c->reducer, *next = &c->slot[old == &c->slot[0]];
    const qn__invitation *invitation = &j->renewal.invitation;
    const uint64_t reserved = c->reserved;
    qn_error why = {0};
    next->group.later = invitation->later;
    memcpy(next->costs.own, old->costs.own, QN__REDUCTION_KINDS * sizeof *next->costs.own);
    /* It has not got the state yet (team/team_follow.c). Later it says itself what it costs. */
    next->costs.all[QN__REDUCTION_STEP][j->renewal.who] = QN__COST_OUT;
    pthread_rwlock_wrlock(&c->connected);
    qn__reducer_shut(old);
    qn__cluster_renew_listeners(c);
    qn__renewal_take(&j->renewal, &c->rendezvous);
    for (int i = 0; i < QN__REQUESTS; ++i)
        if (i != QN__REQUEST_JOIN)
            atomic_store(&next->requests.requested[i], atomic_load(&old->requests.requested[i]));
    c->reducer = next;
    j->commons->before = c->commons;
    c->commons = j->commons;
    j->commons = NULL;
    qn__reducer_close(old);
    qn__cluster_forget(c);
    c->id = invitation->id;
    c->reserved = 0;
    c->quiet = 0;
    qn_status status = qn__cluster_start(c, &why);
    pthread_rwlock_unlock(&c->connected);
    if (status == QN_OK)
        status = qn__cluster_reserve(c, reserved, &why);
    if (status != QN_OK && err)
        *err = why;
    return lost(c, status, &why);
}

static void note_joined(qn_cluster *c, uint32_t who) {
    qn__reducer *r = c->reducer;
    pthread_mutex_lock(&r->lock);
    const size_t used = strlen(r->note);
    snprintf(r->note + used, sizeof r->note - used, "%s%s has joined", used ? "; " : "",
             c->name[who]);
    pthread_mutex_unlock(&r->lock);
}

/* ---------------------------------------------------------------------------- ranks of the run */

static int is_lost(void *user) {
    const change *j = user;
    qn__ranks now = members(j->c);
    qn__reducer *r = j->c->reducer;
    int gone = 0;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->ranks; ++i)
        gone |= i != j->renewal.who && qn__ranks_has(&j->renewal.invitation.present, i) &&
                (!qn__ranks_has(&now, i) || r->group.gone[i]);
    pthread_mutex_unlock(&r->lock);
    return gone;
}

/* Fills this rank's card, which needs no other rank. */
static void fill_card(change *j, card *own) {
    qn_cluster *c = j->c;
    qn__endpoint guest;
    uint32_t tries;
    const qn__ranks set = members(c);
    *own = (card){.present = YES};
    own->fine = qn__renewal_open(&j->renewal, &c->rendezvous, NULL) == QN_OK &&
                qn__renewal_listen(&j->renewal, &c->rendezvous, NULL) == QN_OK;
    if (own->fine)
        qn__endpoint_write(&j->renewal.endpoint[c->rendezvous.rank], own->endpoint);
    if (c->door && qn__door_waits(c->door, &set, &own->who, &guest, &tries)) {
        own->seconds = tries > 0 ? CONNECT_TIME_MOST : CONNECT_TIME;
        qn__endpoint_write(&guest, own->guest);
        qn__random_bytes(own->session, sizeof own->session);
    }
}

/* The invitation and the endpoints of all, from the cards. 0: nobody is let in now. */
static int read_cards(change *j) {
    qn_cluster *c = j->c;
    const card *first = &j->card[0];
    qn__renewal *n = &j->renewal;
    const uint32_t ranks = c->rendezvous.ranks;
    if (!first->present || first->seconds == 0 || first->who >= ranks ||
        j->card[first->who].present)
        return 0;
    n->who = first->who;
    n->invitation =
        (qn__invitation){.id = c->id, .later = c->reducer->group.later, .seconds = first->seconds};
    memcpy(n->invitation.session, first->session, sizeof first->session);
    for (uint32_t r = 0; r < ranks; ++r) {
        qn__endpoint other;
        const unsigned char *bytes = r == n->who ? first->guest : j->card[r].endpoint;
        if (r != n->who && !j->card[r].present)
            continue;
        if ((r != n->who && !j->card[r].fine) || !qn__endpoint_read(bytes, &other))
            return 0;
        if (r != n->who)
            other.seen = c->rendezvous.meeting.endpoint[r].seen;
        n->endpoint[r] = other;
        qn__ranks_add(&n->invitation.present, r);
    }
    qn__ranks_add(&n->invitation.later, n->who);
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        n->invitation.later.word[i] &= n->invitation.present.word[i];
    n->ends = is_lost;
    n->user = j;
    return 1;
}

/* Gathers an answer; *all is 1 if all ranks of the invitation say yes. With `first` only rank 0
 * counts. */
static qn_status hear_all(change *j, int yes, int first, int *all, qn_error *err) {
    uint64_t own = yes ? YES : NO;
    const qn_status status = qn__cluster_gather(j->c, &own, sizeof own, j->answer, err);
    *all = status == QN_OK && j->answer[0] == YES;
    for (uint32_t r = 0; r < j->c->rendezvous.ranks && !first && *all; ++r)
        *all = r == j->renewal.who || !qn__ranks_has(&j->renewal.invitation.present, r) ||
               j->answer[r] == YES;
    return status;
}

/* All ranks have the new connections, or one has died and none may use them: *all. */
static qn_status connect_all(change *j, int *all, qn_error *err) {
    qn_cluster *c = j->c;
    int go = 1;
    if (c->rendezvous.rank == 0) {
        j->renewal.held =
            qn__door_invite(c->door, j->renewal.who, &j->renewal.invitation, j->renewal.endpoint);
        go = j->renewal.held >= 0;
    }
    qn_status status = hear_all(j, go, 1, &go, err);
    if (status == QN_OK && go)
        status = hear_all(j, connect_anew(j) == QN_OK, 0, all, err);
    if (c->rendezvous.rank == 0)
        qn__door_tell(c->door, j->renewal.who, *all ? QN__DOOR_LETS_IN : QN__DOOR_AGAIN);
    return status;
}

/* One more reduction, after which all ranks know that they take the new connections. Its result and
 * what happens in it have no effect: some ranks may leave before others. */
static void take_leave(change *j) {
    const qn__rank_traffic before = j->c->reducer->traffic;
    uint64_t own = YES;
    pthread_mutex_lock(&j->c->listening);
    j->c->quiet = 1;
    pthread_mutex_unlock(&j->c->listening);
    (void)qn__cluster_gather(j->c, &own, sizeof own, j->answer, NULL);
    j->c->slot[j->c->reducer == &j->c->slot[0]].traffic = before;
}

static qn_status let_in(change *j, uint32_t *joined, qn_error *err) {
    qn_cluster *c = j->c;
    card own;
    int all = 0;
    fill_card(j, &own);
    qn_status status = qn__cluster_gather(c, &own, sizeof own, j->card, err);
    if (status == QN_OK && read_cards(j))
        status = connect_all(j, &all, err);
    if (status != QN_OK || !all) {
        c->next_guest = qn__now() + PAUSE;
        return status;
    }
    take_leave(j);
    status = take(j, err);
    if (status != QN_OK)
        return status;
    if (c->door)
        qn__door_update(c->door, c->rendezvous.meeting.endpoint);
    note_joined(c, j->renewal.who);
    *joined = j->renewal.who;
    return QN_OK;
}

qn_status qn__cluster_let_in(qn_cluster *c, uint32_t *joined, qn_error *err) {
    change j = {.c = c, .renewal = {.held = -1, .listeners = {-1, -1}}};
    *joined = c->rendezvous.ranks;
    qn__reducer_let_in(c->reducer);
    if (!c->rendezvous.meeting.possible)
        return QN_OK;
    j.card = qn__alloc(c->rendezvous.ranks, sizeof *j.card, err);
    j.answer = j.card ? qn__alloc(c->rendezvous.ranks, sizeof *j.answer, err) : NULL;
    qn_status status = QN_MEMORY;
    if (j.answer)
        status = let_in(&j, joined, err);
    else
        qn__cluster_fail(c, err);
    drop(&j);
    qn__free(j.card);
    qn__free(j.answer);
    return status;
}

/* -------------------------------------------------------------------------------- the rank that
 * joins */

static qn_status stopped(qn_cluster *c, qn_error *err) {
    (void)qn__cluster_stay_out(c, 1, "it was stopped before the run let it in", err);
    if (err)
        err->status = QN_INTERRUPTED;
    return QN_INTERRUPTED;
}

/* Seconds in which rank 0 has to say something. After an invitation all ranks connect first, and
 * may wait for one that is lost. */
static double patience_of(const qn_cluster *c, int invited) {
    return (invited ? 4 : 2) * c->patience;
}

static int has_news(void *user) {
    const change *j = user;
    return qn__door_said(j->c->rendezvous.meeting.door, 0);
}

/* The next invitation was read: prepares this rank's side of it. */
static void try_invitation(change *j) {
    qn_cluster *c = j->c;
    const qn__meeting *m = &c->rendezvous.meeting;
    j->renewal.held = m->door;
    j->renewal.who = c->rendezvous.rank;
    j->renewal.ends = has_news;
    j->renewal.user = j;
    /* Another invitation may follow, so this rank's listeners stay open. */
    j->renewal.listeners = (qn__listeners){dup(m->listeners.tcp), dup(m->listeners.local)};
    if (connect_anew(j) != QN_OK)
        drop(j);
}

static qn_status come_in(change *j, qn_error *err) {
    qn_cluster *c = j->c;
    qn__meeting *m = &c->rendezvous.meeting;
    const qn_status status = take(j, err);
    close(m->door);
    qn__listeners_close(&m->listeners);
    m->door = -1;
    return status;
}

typedef struct waiting {
    int invited;
    uint32_t invitations;
    double next; /* when it says again that it is ready */
} waiting;

static void say_ready(const qn_cluster *c, waiting *w) {
    const double now = qn__now();
    if (w->invited || now < w->next)
        return;
    (void)qn__door_ready(c->rendezvous.meeting.door, w->invitations);
    w->next = now + LOOK;
}

/* Until rank 0 says something; a rank that is not invited says that it is ready. */
static qn_status await_word(qn_cluster *c, waiting *w, qn_error *err) {
    const double patience = patience_of(c, w->invited), until = qn__now() + patience;
    char text[96];
    do {
        if (atomic_load(&c->reducer->requests.requested[QN__REQUEST_STOP]))
            return stopped(c, err);
        if (qn__now() >= until) {
            snprintf(text, sizeof text, "rank 0, which lets ranks in, has not answered for %.3g s",
                     patience);
            return qn__cluster_stay_out(c, 0, text, err);
        }
        say_ready(c, w);
    } while (!qn__door_said(c->rendezvous.meeting.door, LOOK));
    return QN_OK;
}

/* The next word but those by which rank 0 shows that it is well. */
static qn_status next_word(change *j, waiting *w, qn__door_word *word, qn_error *err) {
    qn_cluster *c = j->c;
    do {
        const qn_status status = await_word(c, w, err);
        if (status != QN_OK)
            return status;
        if (!j->renewal.endpoint && qn__renewal_open(&j->renewal, &c->rendezvous, err) != QN_OK)
            return QN_MEMORY;
        *word = qn__door_hear(c->rendezvous.meeting.door, c->rendezvous.ranks, c->rendezvous.rank,
                              &j->renewal.invitation, j->renewal.endpoint,
                              qn__now() + CONNECT_TIME_MOST);
    } while (*word == QN__DOOR_HEARS);
    w->invited = *word == QN__DOOR_INVITES;
    w->invitations += (uint32_t)w->invited;
    return QN_OK;
}

static qn_status wait_outside(change *j, qn_error *err) {
    qn_cluster *c = j->c;
    waiting w = {0};
    for (;;) {
        qn__door_word word;
        const qn_status status = next_word(j, &w, &word, err);
        if (status != QN_OK)
            return status;
        if (w.invited)
            try_invitation(j);
        else if (word == QN__DOOR_LETS_IN && j->commons)
            return come_in(j, err);
        else if (word == QN__DOOR_AGAIN)
            drop(j);
        else if (word == QN__DOOR_OVER)
            return qn__cluster_stay_out(c, 1, "the run has ended", err);
        else
            return qn__cluster_stay_out(c, 0, "rank 0 has ended, and only rank 0 lets a rank in",
                                        err);
    }
}

qn_status qn__cluster_enter(qn_cluster *c, qn_error *err) {
    const qn__meeting *m = &c->rendezvous.meeting;
    change j = {.c = c, .renewal = {.held = -1, .listeners = {-1, -1}}};
    qn_status status = qn__cluster_same_as(c, m->described, m->described_bytes, err);
    if (status == QN_OK)
        status = qn__run_history_check_end(&c->history, err);
    pthread_mutex_lock(&c->supplying); /* the door hears of nothing else now */
    qn__run_history_release(&c->history);
    if (status == QN_OK)
        status = wait_outside(&j, err);
    pthread_mutex_unlock(&c->supplying);
    drop(&j);
    return status;
}
