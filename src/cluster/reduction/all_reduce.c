/* The all-reduce itself: the ranks of a machine add their parts of each piece, the owner of the
 * piece adds the sums of all machines, and the total is sent back. */
#include "base/system/fetch_ahead.h"
#include "cluster/reduction/packed_words.h"
#include "cluster/reduction/reduction_state.h"

#include <string.h>

/* Words that are added between two checks of the alarm; they fit the core's own cache. */
enum { BLOCK = 4096 };

enum { PIECE_NEW, PIECE_ON_ITS_WAY, PIECE_OPEN, PIECE_DONE };

/* ----------------------------------------------------------------------------------- contributions
 *
 * The content of a sum, counted beside it: ranks in the upper half of the word, chunks in the
 * lower. Each rank sets the count of its part, and every addition of parts adds the counts too. A
 * complete sum must hold all ranks and all chunks. The count is sent with each piece, because
 * pieces of one part may be sent at different times: one can be right and another wrong. */

#define ONE_RANK (UINT64_C(1) << 32)

static uint64_t contribution(uint32_t chunks) { return ONE_RANK | chunks; }

static uint64_t complete_sum(const qn__reducer *r) {
    return r->adding.layout.members * ONE_RANK + r->current.reduction.chunks;
}

static uint32_t chunks_of(const qn__ranges *ranges) {
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < ranges->count; ++i)
        chunks += ranges->range[i].count;
    return chunks;
}

/* The counts of the parts on this machine. Read before the parts are: later they can only hold
 * more. */
static uint64_t contributions_here(qn__reducer *r) {
    const unsigned long long tag = qn__reducer_tag(r);
    const uint32_t *local, n = qn__reducer_here(r, &local);
    uint64_t holds = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const qn__rank_state *state = qn__reducer_rank_state(r, local[i]);
        holds += atomic_load(&state->arrived) == tag ? atomic_load(&state->arrived_holds)
                                                     : atomic_load(&state->final_holds);
    }
    return holds;
}

/* All ranks fail with this error, because no rank may use a wrong sum. Under the lock. */
static void fail_by_fault(qn__reducer *r, qn_error *why) {
    qn__remedy(why, QN_CLUSTER,
               "this is an error in Quern: please report it; go on from the last checkpoint");
    qn__reducer_fail_all(r, why);
}

static void miscounted(qn__reducer *r, const qn__piece *piece) {
    const uint64_t wanted = complete_sum(r);
    qn_error why;
    qn__fail(&why, QN_CLUSTER,
             "words %llu to %llu of sum %llu hold %u chunks of %u ranks, expected were %u of %u",
             (unsigned long long)piece->first,
             (unsigned long long)(piece->first + piece->count - 1),
             (unsigned long long)(r->current.finished + 1), (unsigned)(uint32_t)piece->holds,
             (unsigned)(piece->holds >> 32), (unsigned)(uint32_t)wanted, (unsigned)(wanted >> 32));
    fail_by_fault(r, &why);
}

/* ------------------------------------------------------------------------------------- own part */

/* Checks the part when it is complete. 0: its count is wrong, or words were sent too early. */
static int check_part(qn__reducer *r) {
    const uint32_t own = chunks_of(&r->current.own);
    const qn__rank_state *state = qn__reducer_rank_state(r, r->rank);
    qn_error why;
    if (r->current.added == own && (atomic_load(&state->final_tag) != qn__reducer_tag(r) ||
                                    atomic_load(&state->final_holds) == contribution(own)))
        return 1;
    qn__fail(&why, QN_CLUSTER, "the part of sum %llu holds %u of %u chunks",
             (unsigned long long)(r->current.finished + 1),
             r->current.added == own ? (unsigned)(uint32_t)atomic_load(&state->final_holds)
                                     : r->current.added,
             own);
    fail_by_fault(r, &why);
    return 0;
}

static void arrive(qn__reducer *r) {
    static const double PICOSECONDS = 1e12, MOST = 9e18;
    const qn__cost *cost = &r->costs.own[r->current.reduction.kind];
    const double start = cost->start * PICOSECONDS, each = cost->each * PICOSECONDS;
    qn__rank_state *state = qn__reducer_rank_state(r, r->rank);
    memset(r->current.part, 0, qn__reducer_trailer(r->ranks) * sizeof *r->current.part);
    for (int i = 0; i < QN__REQUESTS; ++i)
        r->current.part[i] = atomic_load(&r->requests.requested[i]);
    if (start >= 0 && start < MOST && each >= 1 && each < MOST) {
        r->current.part[QN__REQUESTS + 2 * r->rank] = (int64_t)start;
        r->current.part[QN__REQUESTS + 1 + 2 * r->rank] = (int64_t)each;
    }
    r->adding.arrived = 1;
    atomic_store(&state->signature, r->current.signature);
    atomic_store(&state->arrived_holds, contribution(r->current.added));
    atomic_store(&state->arrived, qn__reducer_tag(r));
    qn__reducer_wake_others(r);
}

/* --------------------------------------------------------------------------------------- adding */

static void add_block(int64_t *into, const int64_t *more, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i)
        into[i] = (int64_t)((uint64_t)into[i] + (uint64_t)more[i]);
}

/* Each page is another stream for the hardware, which begins to fetch it when it is read. The words
 * of another rank, and those that it has read, come from its core's cache: they are asked for some
 * lines before. */
static void add_two(int64_t *into, const int64_t *a, const int64_t *b, uint64_t n) {
    enum { LINE = 8, AHEAD = 32 * LINE };
    uint64_t i = 0;
    for (; i + LINE <= n; i += LINE) {
        __builtin_prefetch(a + i + AHEAD, 0);
        __builtin_prefetch(b + i + AHEAD, 0);
        qn__fetch_to_write(into + i + AHEAD);
        for (uint64_t k = i; k < i + LINE; ++k)
            into[k] = (int64_t)((uint64_t)a[k] + (uint64_t)b[k]);
    }
    for (; i < n; ++i)
        into[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]);
}

static int alarmed(qn__reducer *r) {
    return atomic_load_explicit(&r->change.alarm, memory_order_relaxed);
}

/* Adds words of the parts of the ranks on this machine. */
static void add_words(const qn__reducer *r, uint64_t from, uint64_t n, uint32_t parts,
                      int64_t *into) {
    if (parts == 1)
        memcpy(into, r->adding.source[0] + from, n * sizeof *into);
    else
        add_two(into, r->adding.source[0] + from, r->adding.source[1] + from, n);
    for (uint32_t i = 2; i < parts; ++i)
        add_block(into, r->adding.source[i] + from, n);
}

static uint64_t block_at(const qn__piece *piece, uint64_t at) {
    return piece->count - at < BLOCK ? piece->count - at : BLOCK;
}

/* The sum of this machine's parts of a piece. 0: interrupted. */
static int add_parts(qn__reducer *r, const qn__piece *piece, uint32_t parts, int64_t *into) {
    for (uint64_t at = 0; at < piece->count; at += BLOCK) {
        if (alarmed(r))
            return 0;
        add_words(r, piece->first + at, block_at(piece, at), parts, into + at);
    }
    return 1;
}

/* The same as a message. */
static int pack_parts(qn__reducer *r, const qn__piece *piece, uint32_t parts,
                      qn__message_buffer *body) {
    int64_t block[BLOCK];
    body->bytes = 0;
    for (uint64_t at = 0; at < piece->count; at += BLOCK) {
        const uint64_t n = block_at(piece, at);
        if (alarmed(r))
            return 0;
        if (parts > 1)
            add_words(r, piece->first + at, n, parts, block);
        body->bytes += qn__words_pack(parts > 1 ? block : r->adding.source[0] + piece->first + at,
                                      n, body->data + body->bytes);
    }
    return 1;
}

static void send(qn__reducer *r, uint32_t type, uint32_t to, const qn__piece *piece,
                 qn__message_buffer *body) {
    const qn__head head = {
        .type = type,
        .extra = r->current.signature,
        .number = {r->group.stamp, r->current.finished + 1, piece->number, piece->holds},
        .bytes = body->bytes};
    r->traffic.bytes_out += QN__FRAME_BYTES + head.bytes;
    r->traffic.bytes_early += r->adding.arrived ? 0 : QN__FRAME_BYTES + head.bytes;
    r->transport->calls->send(r->transport, to, &head, body);
}

static qn__message_buffer *buffer_for(qn__reducer *r, const qn__piece *piece) {
    return r->transport->calls->buffer(r->transport, qn__words_most(piece->count));
}

/* How many words of a piece are sent as they are; the others may be rounded. */
static uint64_t exact_words(const qn__reducer *r, const qn__piece *piece) {
    const uint64_t first_float = r->current.words - r->current.reduction.floats;
    uint64_t exact = first_float > piece->first ? first_float - piece->first : 0;
    exact = (exact + QN__WORDS_GROUP - 1) / QN__WORDS_GROUP * QN__WORDS_GROUP;
    return exact < piece->count ? exact : piece->count;
}

/* Sends the total of a piece of this rank to the other machines. */
static int send_totals(qn__reducer *r, const qn__piece *piece) {
    const qn__layout *l = &r->adding.layout;
    qn__message_buffer *body = buffer_for(r, piece);
    if (!body)
        return 0;
    const int64_t *total = r->adding.into + piece->first;
    const uint64_t exact = exact_words(r, piece);
    body->bytes = qn__words_pack(total, exact, body->data);
    body->bytes +=
        qn__words_pack_rounded(total + exact, piece->count - exact, body->data + body->bytes);
    for (uint32_t home = 0; home < l->machines; ++home)
        if (home != l->home[r->rank])
            send(r, QN__MESSAGE_TOTAL, qn__layout_delegate(l, home, r->rank), piece,
                 qn__buffer_hold(body));
    qn__buffer_drop(body);
    return 1;
}

/* The result of a piece of work. */
typedef enum outcome { FINE, NO_MEMORY, WRONG_COUNT, WRONG_BYTES } outcome;

/* The sum of a piece that this rank owns is complete. */
static outcome piece_complete(qn__reducer *r, qn__piece *piece) {
    if (piece->holds != complete_sum(r))
        return WRONG_COUNT;
    piece->state = PIECE_DONE;
    --r->adding.pieces_left;
    return r->adding.layout.machines == 1 || send_totals(r, piece) ? FINE : NO_MEMORY;
}

/* Runs on the caller's thread without the lock: it changes only state that no other thread changes.
 * The view cannot change meanwhile, because the caller has not reported. */
static outcome sum_piece(qn__reducer *r, qn__piece *piece) {
    const uint32_t *local, parts = qn__reducer_here(r, &local);
    piece->holds = contributions_here(r);
    r->traffic.bytes_shared += (parts - 1) * piece->count * sizeof(int64_t);
    if (piece->owner != r->rank) {
        qn__message_buffer *body = buffer_for(r, piece);
        if (!body)
            return NO_MEMORY;
        if (pack_parts(r, piece, parts, body)) {
            send(r, QN__MESSAGE_PART, piece->owner, piece, body);
            piece->state = PIECE_ON_ITS_WAY;
        } else
            qn__buffer_drop(body);
        return FINE;
    }
    if (!add_parts(r, piece, parts, r->adding.into + piece->first))
        return FINE;
    piece->state = PIECE_OPEN;
    return r->adding.layout.machines == 1 ? piece_complete(r, piece) : FINE;
}

/* Unpacks a message into the words of its piece. 0: it does not hold these words. Where they are
 * added, an alarm ends it early. */
static int unpack_piece(qn__reducer *r, const qn__piece *piece, const qn__message_buffer *body,
                        int adds) {
    qn__packed_words packed = {body->data, body->bytes};
    uint64_t at = 0;
    for (; at < piece->count && !(adds && alarmed(r)); at += BLOCK)
        if (!qn__words_unpack(&packed, block_at(piece, at), adds,
                              r->adding.into + piece->first + at))
            return 0;
    return at < piece->count || packed.left == 0;
}

static outcome take_message(qn__reducer *r, qn__piece *piece, const qn__queued_message *message) {
    const int is_total = message->head.type == QN__MESSAGE_TOTAL;
    const uint64_t holds = message->head.number[3];
    r->traffic.bytes_in += QN__FRAME_BYTES + message->body->bytes;
    if (is_total && holds != complete_sum(r)) {
        piece->holds = holds;
        return WRONG_COUNT;
    }
    if (!unpack_piece(r, piece, message->body, !is_total))
        return WRONG_BYTES;
    if (is_total) {
        piece->holds = holds;
        piece->state = PIECE_DONE;
        --r->adding.pieces_left;
        return FINE;
    }
    if (alarmed(r))
        return FINE;
    piece->holds += holds;
    return ++piece->parts < r->adding.layout.machines - 1 ? FINE : piece_complete(r, piece);
}

/* ------------------------------------------------------------------------------------ next step */

static void differ(qn__reducer *r, uint32_t other) {
    qn_error why;
    qn__fail(
        &why, QN_MISMATCH,
        "%s does something else than %s, which adds up %llu words of %u chunks in reduction %llu",
        r->name[other], r->name[r->rank], (unsigned long long)r->current.reduction.words,
        r->current.reduction.chunks, (unsigned long long)(r->current.finished + 1));
    qn__remedy(&why, QN_MISMATCH, "start all ranks with the same command on the same data");
    qn__reducer_fail_all(r, &why);
}

/* Whether all ranks of this machine have the words from `first` on; -1: a rank makes another
 * reduction. */
static int are_there(qn__reducer *r, uint64_t first) {
    const unsigned long long tag = qn__reducer_tag(r);
    const uint32_t *local, n = qn__reducer_here(r, &local);
    for (uint32_t i = 0; i < n; ++i) {
        qn__rank_state *state = qn__reducer_rank_state(r, local[i]);
        if (atomic_load(&state->arrived) == tag) {
            if (atomic_load(&state->signature) == r->current.signature)
                continue;
            differ(r, local[i]);
            return -1;
        }
        if (atomic_load(&state->final_tag) != tag || atomic_load(&state->final_from) > first)
            return 0;
        if (atomic_load(&state->signature) != r->current.signature) {
            differ(r, local[i]);
            return -1;
        }
    }
    return 1;
}

static void unexpected(qn__reducer *r, uint32_t from) {
    qn__reducer_set_error(r, QN_CLUSTER, "%s sent an unexpected piece of a sum", r->name[from]);
}

/* Removes the next usable message from the queue, and finds its piece. */
static qn__queued_message *next_message(qn__reducer *r, qn__piece **piece) {
    for (qn__queued_message **at = &r->mailbox.first; *at; at = &(*at)->next) {
        qn__queued_message *message = *at;
        const qn__head *head = &message->head;
        if (head->number[0] != r->group.stamp || head->number[1] != r->current.finished + 1 ||
            head->type == QN__MESSAGE_SUPPLY)
            continue;
        if (head->extra != r->current.signature) {
            differ(r, message->from);
            return NULL;
        }
        const uint32_t most = qn__layout_most_pieces(r->ranks);
        const uint32_t slot = head->number[2] < most ? r->adding.slot[head->number[2]] : 0;
        *piece = slot ? &r->adding.piece[slot - 1] : NULL;
        if (!slot) {
            unexpected(r, message->from);
            return NULL;
        }
        if ((*piece)->state != (head->type == QN__MESSAGE_PART ? PIECE_OPEN : PIECE_ON_ITS_WAY))
            continue;
        *at = message->next;
        return message;
    }
    return NULL;
}

static qn__piece *next_piece(qn__reducer *r) {
    for (uint32_t i = 0; i < r->adding.pieces; ++i)
        if (r->adding.piece[i].state == PIECE_NEW && are_there(r, r->adding.piece[i].first) > 0)
            return &r->adding.piece[i];
    return NULL;
}

/* Does one piece of work. 0: there is none. */
static int work(qn__reducer *r) {
    qn__piece *piece = NULL;
    qn__queued_message *message = next_message(r, &piece);
    if (!message && r->error.status == QN_OK)
        piece = next_piece(r);
    if (!piece || r->error.status != QN_OK)
        return 0;
    r->change.working = 1;
    pthread_mutex_unlock(&r->lock);
    const outcome came = message ? take_message(r, piece, message) : sum_piece(r, piece);
    pthread_mutex_lock(&r->lock);
    r->change.working = 0;
    if (message) {
        if (came == WRONG_BYTES)
            unexpected(r, message->from);
        message->next = NULL;
        qn__mailbox_drop(r, &message);
    }
    if (came == NO_MEMORY)
        qn__fail_memory(&r->error, 1, piece->count * sizeof(int64_t));
    else if (came == WRONG_COUNT)
        miscounted(r, piece);
    if (r->change.owed)
        qn__reducer_report(r);
    return 1;
}

static int all_done(qn__reducer *r) {
    const unsigned long long tag = qn__reducer_tag(r);
    const uint32_t *local, n = qn__reducer_here(r, &local);
    for (uint32_t i = 0; i < n; ++i)
        if (atomic_load(&qn__reducer_rank_state(r, local[i])->done) != tag)
            return 0;
    return 1;
}

static qn__progress step(qn__reducer *r) {
    if (r->error.status != QN_OK)
        return QN__REDUCER_FAILED;
    if (r->change.frozen)
        return QN__REDUCER_WAITS;
    if (r->adding.behind)
        return qn__reducer_take_supply(r);
    if (r->current.taken < r->current.own.count)
        return QN__REDUCER_MORE;
    if (!qn__reducer_prepare(r))
        return QN__REDUCER_FAILED;
    if (!r->adding.arrived && !check_part(r))
        return QN__REDUCER_FAILED;
    if (!r->adding.arrived)
        arrive(r);
    if (work(r))
        return QN__REDUCER_AGAIN;
    if (r->error.status != QN_OK)
        return QN__REDUCER_FAILED;
    if (r->adding.pieces_left > 0)
        return QN__REDUCER_WAITS;
    if (!r->adding.done_here) {
        /* Also without a piece of its own: this rank keeps its state of one reduction until ranks
         * that may be one reduction behind have read it. */
        const int there = are_there(r, 0);
        if (there <= 0)
            return there < 0 ? QN__REDUCER_FAILED : QN__REDUCER_WAITS;
        r->adding.done_here = 1;
        atomic_store(&qn__reducer_rank_state(r, r->rank)->done, qn__reducer_tag(r));
        qn__reducer_wake_others(r);
    }
    if (!all_done(r))
        return QN__REDUCER_WAITS;
    qn__reducer_finished(r, r->adding.into, r->totals.generation);
    return QN__REDUCER_TOTAL;
}

/* Whether nothing more will come: the run is over, and all other ranks have left or one has died.
 * No plan is made for that death any more. */
static int is_left_behind(const qn__reducer *r) {
    int here = 0, lost = 0;
    for (uint32_t i = 0; i < r->ranks; ++i)
        if (i != r->rank && qn__ranks_has(&r->group.members, i)) {
            here |= !r->group.gone[i];
            lost |= r->group.gone[i] && r->group.gone[i] != 1 + QN__GONE_LEFT;
        }
    return r->ending.over && (!here || lost);
}

qn__progress qn__reducer_step(qn__reducer *r) {
    pthread_mutex_lock(&r->lock);
    qn__progress how = step(r);
    if (how == QN__REDUCER_WAITS && is_left_behind(r)) {
        qn__reducer_set_error(r, QN_CLUSTER, "the other ranks have ended the run");
        how = QN__REDUCER_FAILED;
    }
    pthread_mutex_unlock(&r->lock);
    return how;
}

/* --------------------------------------------------------------------------------- early pieces */

static void announce(qn__reducer *r, uint64_t first, uint32_t chunks) {
    qn__rank_state *state = qn__reducer_rank_state(r, r->rank);
    r->adding.final_from = first;
    atomic_store(&state->signature, r->current.signature);
    atomic_store(&state->final_holds, contribution(chunks));
    atomic_store(&state->final_from, first);
    atomic_store(&state->final_tag, qn__reducer_tag(r));
    while (!r->change.frozen && r->error.status == QN_OK && work(r))
        ;
}

static void announced_twice(qn__reducer *r, uint64_t first, uint64_t count) {
    qn_error why;
    qn__fail(&why, QN_CLUSTER, "words %llu to %llu of sum %llu were announced twice",
             (unsigned long long)first, (unsigned long long)(first + count - 1),
             (unsigned long long)(r->current.finished + 1));
    fail_by_fault(r, &why);
}

void qn__reducer_final(qn__reducer *r, uint64_t first, uint64_t count, uint32_t chunks) {
    pthread_mutex_lock(&r->lock);
    first += qn__reducer_trailer(r->ranks);
    const int counts = r->current.begun && !r->change.frozen && !r->adding.behind &&
                       !r->adding.arrived && r->current.taken == r->current.own.count &&
                       chunks == chunks_of(&r->current.own) && r->error.status == QN_OK &&
                       count > 0;
    if (counts && r->adding.final_from < r->current.words && first + count > r->adding.final_from)
        announced_twice(r, first, count);
    /* On one machine nothing is sent, so adding early would only delay this rank's own work. */
    else if (counts && first < r->adding.final_from && first + count >= r->adding.final_from &&
             qn__reducer_prepare(r) && r->adding.layout.machines > 1)
        announce(r, first, chunks);
    pthread_mutex_unlock(&r->lock);
}

void qn__reducer_added(qn__reducer *r, uint32_t chunks) {
    pthread_mutex_lock(&r->lock);
    r->current.added = chunks;
    pthread_mutex_unlock(&r->lock);
}
