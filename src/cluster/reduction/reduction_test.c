/* Reductions over a simulated transport. Ranks die, sleep and are partitioned at any message and
 * between any two steps of a sum. Each chunk must be counted exactly once, and all remaining ranks
 * must have the same totals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/reduction/reduction_state.h"
#include "cluster/transport/simulated_transport_test.h"
#include "num/sums.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST_RANKS = 12, MOST_ROUNDS = 24, EXTRA_WORDS = 40 };

typedef enum stage { MEETING, BETWEEN, COMPUTING, ADDING, ENDING, ENDED, OUT } stage;

/* What a faulty rank does in reduction 3. */
typedef enum fault {
    NO_FAULT,
    COUNTS_A_CHUNK_TWICE, /* a chunk that another rank has too */
    LACKS_A_UNIT,
    ANNOUNCES_TWICE,
    FAULTS
} fault;

typedef struct player {
    struct game *game;
    fault fault;
    uint32_t number;
    qn__reducer reducer;
    qn__common own, common; /* private; shared with the others of its machine */
    stage stage;
    uint32_t reduction;    /* current or next reduction, from 1 */
    qn__chunk_range range; /* that it computes */
    uint32_t held;         /* chunks in its part */
    double until;          /* time when it is finished */
    int poked;             /* it will check again */
    int was_paused;
    int scribbles; /* it slept while it added */
    int spoke;
    uint64_t hash[MOST_ROUNDS + 1]; /* of each total that it received */
} player;

typedef struct game {
    sim_net net;
    uint64_t seed;
    uint32_t ranks, reductions;
    qn__reduction plan[MOST_ROUNDS + 1];
    uint32_t machine[MOST_RANKS], local[MOST_RANKS];
    char name_text[MOST_RANKS][16];
    const char *name[MOST_RANKS];
    int file[MOST_RANKS]; /* of each machine */
    int certain;          /* the only faults are clean deaths */
    int hunted;           /* a rank that alone has a total dies soon */
    uint32_t recomputed, supplied, further, shot;
    uint32_t rounded; /* words of totals */
    player player[MOST_RANKS];
} game;

static const double SILENCE = 20.0;

static const char *say(const game *g) {
    static char text[64];
    snprintf(text, sizeof text, "seed %llu", (unsigned long long)g->seed);
    return text;
}

static void check(const game *g, int fine, const char *what, uint32_t rank) {
    if (fine)
        return;
    print_error("%s: %s (rank %u, reduction %u, %.6f s)\n", say(g), what, rank,
                g->player[rank].reduction, g->net.now);
    fail();
}

/* ---------------------------------------------------------------------------------- computation */

/* One word for each chunk, in which it is counted, and a few words to which all chunks add. */
static void compute(player *p, const qn__reduction *reduction, qn__chunk_range range) {
    int64_t *part = qn__reducer_part(&p->reducer);
    for (uint32_t u = range.first; u < range.first + range.count; ++u) {
        part[u] += 1;
        for (uint64_t w = reduction->chunks; w < reduction->words; ++w)
            part[w] =
                (int64_t)((uint64_t)part[w] + (u + 1) * (w + p->reduction) * 0x9e3779b97f4a7c15u);
    }
}

static void begin_part(player *p, const qn__reduction *reduction) {
    int64_t *part = qn__reducer_part(&p->reducer);
    memset(part, 0, reduction->words * sizeof *part);
    if (reduction->chunks == 0)
        part[p->number] = 1;
}

static uint64_t bits_of_nearest(int64_t sum) {
    const float nearest = qn__from_units(sum);
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    return bits;
}

/* A word as it is used: where that is the nearest float, a rank may have the word or its float. */
static uint64_t as_used(const qn__reduction *reduction, uint64_t at, int64_t total) {
    if (at < reduction->words - reduction->floats)
        return (uint64_t)total;
    return bits_of_nearest(total);
}

static void check_total(player *p) {
    game *g = p->game;
    const qn__reduction *reduction = &g->plan[p->reduction];
    const int64_t *total = qn__reducer_total(&p->reducer);
    for (uint64_t w = 0; w < reduction->words; ++w)
        p->hash[p->reduction] =
            (p->hash[p->reduction] ^ as_used(reduction, w, total[w])) * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t u = 0; u < reduction->chunks; ++u)
        check(g, total[u] == 1, "a chunk was not counted once", p->number);
    for (uint64_t w = reduction->chunks; w < reduction->words && reduction->chunks; ++w) {
        uint64_t sum = 0;
        for (uint32_t u = 0; u < reduction->chunks; ++u)
            sum += (u + 1) * (w + p->reduction) * 0x9e3779b97f4a7c15u;
        check(g, as_used(reduction, w, total[w]) == as_used(reduction, w, (int64_t)sum),
              "a sum is wrong", p->number);
        g->rounded += (uint64_t)total[w] != sum;
    }
    if (reduction->chunks == 0)
        for (uint32_t i = 0; i < g->ranks; ++i)
            check(g,
                  total[i] == 1 || (total[i] == 0 && g->net.rank[i].ended) ||
                      (total[i] == 0 && i != p->number && !g->certain),
                  "a rank that lives was left out", i);
}

/* ---------------------------------------------------------------------------------------- ranks */

static void wait_for(player *p, double seconds);

static void begin(player *p) {
    game *g = p->game;
    const int begun = qn__reducer_begin(&p->reducer, &g->plan[p->reduction]);
    if (begun <= 0) {
        p->stage = begun < 0 ? OUT : BETWEEN;
        return;
    }
    if (p->fault == COUNTS_A_CHUNK_TWICE && p->reduction == 3)
        qn__reducer_add_range(&p->reducer, &p->reducer.current.own, 0, 1);
    begin_part(p, &g->plan[p->reduction]);
    p->range = (qn__chunk_range){0, 0};
    p->held = 0;
    p->stage = COMPUTING;
    p->until = g->net.now;
}

/* Ends a range and begins the next. */
static void go_on(player *p) {
    game *g = p->game;
    const qn__reduction *reduction = &g->plan[p->reduction];
    if (p->until > g->net.now) {
        wait_for(p, p->until - g->net.now);
        return;
    }
    compute(p, reduction, p->range);
    p->held += p->range.count;
    p->range.count = 0;
    if (qn__reducer_chunks(&p->reducer, &p->range)) {
        /* A device that computes the first of several ranges may announce words too early. */
        if (sim_pick(&g->net, 3) == 0)
            qn__reducer_final(&p->reducer, 0, reduction->words, p->held);
        p->until = g->net.now + sim_chance(&g->net) * 2e-3;
        wait_for(p, p->until - g->net.now);
        return;
    }
    if (reduction->chunks && (p->fault || sim_pick(&g->net, 2))) {
        qn__reducer_final(&p->reducer, reduction->words / 2,
                          reduction->words - reduction->words / 2, p->held);
        if (sim_pick(&g->net, 2))
            qn__reducer_final(&p->reducer, 0, reduction->words / 2, p->held);
        if (p->fault == ANNOUNCES_TWICE && p->reduction == 3)
            qn__reducer_final(&p->reducer, reduction->words / 2, 1, p->held);
    }
    qn__reducer_added(&p->reducer, p->held - (p->fault == LACKS_A_UNIT && p->reduction == 3));
    p->stage = ADDING;
}

static void share(player *p) {
    qn__reducer_share(&p->reducer, p->game->machine, p->game->local,
                      p->common.locals > 1 ? &p->common : &p->own);
}

static void next_reduction(player *p) {
    game *g = p->game;
    check_total(p);
    if (p->reduction == 1)
        share(p);
    p->reducer.costs.own[p->reduction % QN__REDUCTION_KINDS] =
        (qn__cost){1e-4, 1e-5 * (1 + sim_pick(&g->net, 50))};
    ++p->reduction;
    p->stage = p->reduction > g->reductions ? ENDING : BETWEEN;
}

static void add(player *p) {
    game *g = p->game;
    /* The rank may also die or sleep between two steps. */
    for (uint32_t steps = 1 + sim_pick(&g->net, 4); steps > 0 && p->stage == ADDING; --steps)
        switch (qn__reducer_step(&p->reducer)) {
        case QN__REDUCER_WAITS:
            return;
        case QN__REDUCER_AGAIN:
            break;
        case QN__REDUCER_MORE:
            ++g->further;
            p->stage = COMPUTING;
            p->until = g->net.now;
            break;
        case QN__REDUCER_TOTAL:
            next_reduction(p);
            break;
        case QN__REDUCER_FAILED:
            p->stage = OUT;
        }
    wait_for(p, 1e-5);
}

static int is_there(const player *p) {
    const sim_rank *rank = &p->game->net.rank[p->number];
    return !rank->ended && !rank->paused;
}

static void end(player *p) {
    int code = -1;
    switch (qn__reducer_over(&p->reducer, &code)) {
    case 2:
        p->stage = OUT;
        check(p->game, p->reducer.ending.leaving, "a rank leaves that need not", p->number);
        break;
    case 1:
        p->stage = p->reducer.ending.leaving ? OUT : ENDED;
        check(p->game, p->reducer.ending.leaving || code == 3, "the exit code is another",
              p->number);
        break;
    case 0:
        for (uint32_t i = 0; i < p->game->ranks; ++i)
            check(p->game,
                  !is_there(&p->game->player[i]) || p->game->player[i].stage >= ENDED ||
                      qn__ranks_has(&p->game->player[i].reducer.group.members, p->number),
                  "a rank speaks that others go on without", p->number);
        /* Writing takes some time, during which the rank may die. */
        if (!p->spoke)
            p->until = p->game->net.now + 1e-3;
        p->spoke = 1;
        if (p->until > p->game->net.now)
            wait_for(p, p->until - p->game->net.now);
        else
            qn__reducer_finish(&p->reducer, 3);
        break;
    default:
        break;
    }
}

/* A rank that slept while it added may still write what it was about to write, as a process that
 * was stopped in the middle of a loop. */
static void scribble(player *p) {
    const qn__reducer *r = &p->reducer;
    if (p->scribbles && r->adding.into)
        for (uint32_t i = 0; i < r->adding.pieces; ++i)
            if (r->adding.piece[i].owner == p->number && r->adding.piece[i].state == 0)
                memset(r->adding.into + r->adding.piece[i].first, 0x55,
                       r->adding.piece[i].count * sizeof(int64_t));
    p->scribbles = 0;
}

static void look(player *p) {
    if (p->was_paused)
        scribble(p);
    p->was_paused = 0;
    if (p->stage == BETWEEN)
        begin(p);
    if (p->stage == COMPUTING)
        go_on(p);
    if (p->stage == ADDING)
        add(p);
    if (p->stage == ENDING)
        end(p);
}

static void poke(sim_net *net, void *user) {
    player *p = user;
    (void)net;
    p->poked = 0;
    if (is_there(p))
        look(p);
}

static void wait_for(player *p, double seconds) {
    if (p->poked)
        return;
    p->poked = 1;
    sim_at(&p->game->net, p->game->net.now + seconds, poke, p);
}

/* -------------------------------------------------------------------------------------- one run */

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    player *p = user;
    p->game->supplied += head->type == QN__MESSAGE_SUPPLY;
    qn__reducer_message(&p->reducer, from, head, body);
}

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    player *p = user;
    qn__reducer_gone(&p->reducer, rank, how);
}

static void on_evicted(void *user, uint32_t by, const char *why) {
    player *p = user;
    qn__reducer_evicted(&p->reducer, by, why);
}

static void on_tick(void *user, double now) {
    player *p = user;
    qn__reducer_tick(&p->reducer, now);
}

static void open_machines(game *g) {
    const uint32_t machines = 1 + sim_pick(&g->net, g->ranks);
    for (uint32_t i = 0; i < MOST_RANKS; ++i)
        g->file[i] = -1;
    for (uint32_t i = 0; i < g->ranks; ++i) {
        const uint32_t message = sim_pick(&g->net, machines);
        uint32_t first = i;
        for (uint32_t k = 0; k < i; ++k)
            if (g->player[k].stage == (stage)(100 + message)) {
                g->local[i] += 1;
                first = k < first ? k : first;
            }
        g->machine[i] = first;
        g->player[i].stage = (stage)(100 + message);
        if (g->file[first] < 0)
            g->file[first] = qn__common_file();
        assert_true(g->file[first] >= 0);
    }
}

static uint32_t locals(const game *g, uint32_t rank) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->ranks; ++i)
        count += g->machine[i] == g->machine[rank];
    return count;
}

static void open_player(game *g, uint32_t i) {
    const qn__transport_events events = {&g->player[i], on_message, on_gone, on_evicted,
                                         on_tick,       NULL,       NULL};
    player *p = &g->player[i];
    const uint32_t n = locals(g, i);
    p->game = g;
    p->number = i;
    p->reduction = 1;
    p->stage = BETWEEN;
    snprintf(g->name_text[i], sizeof g->name_text[i], "rank %u", i);
    g->name[i] = g->name_text[i];
    assert_int_equal(qn__common_open(&p->own, -1, 0, 1, NULL), QN_OK);
    p->common.file = -1;
    if (n > 1)
        assert_int_equal(
            qn__common_open(&p->common, dup(g->file[g->machine[i]]), g->local[i], n, NULL), QN_OK);
    assert_int_equal(qn__reducer_open(&p->reducer, &g->net.rank[i].transport, g->ranks, i, NULL,
                                      g->name, SILENCE, &p->own, NULL),
                     QN_OK);
    sim_listen(&g->net, i, &events);
}

static void open_game(game *g, uint64_t seed, uint32_t ranks, int certain) {
    memset(g, 0, sizeof *g);
    g->seed = seed;
    g->certain = certain;
    sim_begin(&g->net, ranks ? ranks : 2, seed, SILENCE);
    if (!ranks) {
        const uint32_t some = 2 + sim_pick(&g->net, MOST_RANKS - 2);
        sim_end(&g->net);
        sim_begin(&g->net, some, seed, SILENCE);
        ranks = some;
    }
    g->ranks = ranks;
    g->reductions = 2 + sim_pick(&g->net, MOST_ROUNDS - 2);
    for (uint32_t k = 1; k <= g->reductions; ++k) {
        const uint32_t chunks = sim_pick(&g->net, 5) ? sim_pick(&g->net, 40) : 0;
        g->plan[k] = (qn__reduction){.kind = (qn__reduction_kind)(k % QN__REDUCTION_KINDS),
                                     .words = (chunks ? chunks : ranks) +
                                              sim_pick(&g->net, EXTRA_WORDS) *
                                                  (sim_pick(&g->net, 8) ? 1 : 400),
                                     .chunks = chunks};
        if (chunks)
            g->plan[k].floats = sim_pick(&g->net, (uint32_t)g->plan[k].words - chunks + 1);
    }
    open_machines(g);
    for (uint32_t i = 0; i < ranks; ++i)
        open_player(g, i);
}

static int64_t close_game(game *g) {
    for (uint32_t i = 0; i < g->ranks; ++i) {
        player *p = &g->player[i];
        qn__reducer_close(&p->reducer);
        qn__common_close(&p->own);
        qn__common_close(&p->common);
    }
    for (uint32_t i = 0; i < MOST_RANKS; ++i)
        if (g->file[i] >= 0)
            close(g->file[i]);
    return sim_end(&g->net);
}

static int is_over(const game *g) {
    for (uint32_t i = 0; i < g->ranks; ++i)
        if (!g->net.rank[i].ended && g->player[i].stage < ENDED)
            return 0;
    return 1;
}

/* Kills, with some probability, the only rank that has the total of a reduction. */
static void hunt(game *g) {
    uint32_t most = 0, holders = 0, others = 0, holder = 0;
    for (uint32_t i = 0; i < g->ranks; ++i)
        if (!g->net.rank[i].ended && g->player[i].reducer.current.finished > most)
            most = (uint32_t)g->player[i].reducer.current.finished;
    for (uint32_t i = 0; i < g->ranks; ++i) {
        const int has = g->player[i].reducer.current.finished == most;
        if (g->net.rank[i].ended)
            continue;
        holders += (uint32_t)has;
        others += (uint32_t)!has;
        holder = has ? i : holder;
    }
    if (holders != 1 || others == 0 || sim_pick(&g->net, 8))
        return;
    sim_kill(&g->net, holder);
    ++g->shot;
}

/* Runs the events: after each one some ranks check their state, others a little later. */
static void play(game *g, double seconds) {
    for (uint32_t i = 0; i < g->ranks; ++i)
        wait_for(&g->player[i], sim_chance(&g->net) * 1e-3);
    while (!is_over(g) && g->net.now < seconds && sim_step(&g->net)) {
        if (g->hunted)
            hunt(g);
        for (uint32_t i = 0; i < g->ranks; ++i) {
            player *p = &g->player[i];
            if (g->net.rank[i].paused) {
                p->was_paused = 1;
                p->scribbles |= p->stage == ADDING && p->reducer.adding.ready;
            } else if (!g->net.rank[i].ended && p->stage < ENDED) {
                if (sim_pick(&g->net, 2))
                    look(p);
                else
                    wait_for(p, sim_chance(&g->net) * 1e-3);
            }
        }
    }
    if (!is_over(g))
        for (uint32_t i = 0; i < g->ranks; ++i)
            print_error("rank %u: stage %d reduction %u ended %d frozen %d view %llu\n", i,
                        g->player[i].stage, g->player[i].reduction, g->net.rank[i].ended,
                        g->player[i].reducer.change.frozen,
                        (unsigned long long)g->player[i].reducer.group.number),
                print_error("   %s\n", g->player[i].reducer.error.what);
    check(g, is_over(g), "it hangs", 0);
    /* A total that only dead ranks had may differ if it counts ranks. */
    const player *first = NULL;
    for (uint32_t i = 0; i < g->ranks; ++i) {
        const player *p = &g->player[i];
        if (g->net.rank[i].ended || p->stage != ENDED)
            continue;
        first = first ? first : p;
        check(g, memcmp(first->hash, p->hash, sizeof p->hash) == 0,
              "two ranks have different totals", i);
    }
}

/* --------------------------------------------------------------------------------------- faults */

static void kill_rank(sim_net *net, void *user) {
    (void)net;
    sim_kill(net, ((player *)user)->number);
}

static void pause_rank(sim_net *net, void *user) {
    const double seconds =
        sim_pick(net, 2) ? SILENCE * 3 * sim_chance(net) : SILENCE * 1.2 * sim_chance(net);
    sim_pause(net, ((player *)user)->number, seconds);
}

static void cut_ranks(sim_net *net, void *user) {
    const game *g = ((player *)user)->game;
    qn__ranks side = {0};
    for (uint32_t i = 0; i < g->ranks; ++i)
        if (sim_pick(net, 2))
            qn__ranks_add(&side, i);
    sim_cut(net, &side);
}

static void heal(sim_net *net, void *user) {
    (void)user;
    sim_heal(net);
}

static uint32_t lives(const game *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->ranks; ++i)
        n += !g->net.rank[i].ended;
    return n;
}

static double moment(game *g) { return sim_chance(&g->net) * 2.5e-3 * g->reductions; }

static uint32_t cases(uint32_t usual) {
    const char *text = getenv("QN_TEST_CASES");
    return text ? (uint32_t)strtoul(text, NULL, 10) : usual;
}

static void test_nothing_happens(void **state) {
    (void)state;
    static game g;
    for (uint64_t seed = 0; seed < cases(100); ++seed) {
        open_game(&g, seed, 0, 1);
        play(&g, 100);
        for (uint32_t i = 0; i < g.ranks; ++i)
            check(&g,
                  g.player[i].stage == ENDED && g.player[i].reduction == g.reductions + 1 &&
                      g.player[i].spoke == (i == 0),
                  "a rank did not end well", i);
        assert_int_equal(close_game(&g), 0);
    }
}

static void test_deaths(void **state) {
    (void)state;
    static game g;
    uint64_t supplied = 0, further = 0, rounded = 0;
    for (uint64_t seed = 0; seed < cases(500); ++seed) {
        open_game(&g, seed, 0, 1);
        const uint32_t deaths = 1 + sim_pick(&g.net, g.ranks - 1);
        for (uint32_t i = 0; i < deaths; ++i) /* possibly the same rank twice */
            sim_at(&g.net, moment(&g), kill_rank,
                   &g.player[sim_pick(&g.net, g.ranks - 1) +
                             (sim_pick(&g.net, g.ranks) < seed % g.ranks)]);
        play(&g, 1000);
        for (uint32_t i = 0; i < g.ranks && lives(&g); ++i)
            check(&g, g.net.rank[i].ended || g.player[i].stage == ENDED,
                  "a rank that lives was cast out", i);
        supplied += g.supplied;
        rounded += g.rounded;
        further += g.further;
        assert_int_equal(close_game(&g), 0);
    }
    print_message("deaths: %llu totals supplied, %llu times further chunks, %llu rounded words\n",
                  (unsigned long long)supplied, (unsigned long long)further,
                  (unsigned long long)rounded);
    assert_true(cases(500) < 500 || (supplied > 50 && further > 500 && rounded > 5000));
}

/* One rank alone has a total and dies after the others were promised it. They must compute it
 * again, with each chunk once. */
static void test_deaths_of_holders(void **state) {
    (void)state;
    static game g;
    uint64_t shot = 0;
    for (uint64_t seed = 0; seed < cases(400); ++seed) {
        open_game(&g, 2000000 + seed, 0, 1);
        g.hunted = 1;
        play(&g, 1000);
        for (uint32_t i = 0; i < g.ranks; ++i)
            check(&g, g.net.rank[i].ended || g.player[i].stage == ENDED,
                  "a rank that lives was cast out", i);
        shot += g.shot;
        assert_int_equal(close_game(&g), 0);
    }
    print_message("holders: %llu died\n", (unsigned long long)shot);
}

static void test_silence_and_cuts(void **state) {
    (void)state;
    static game g;
    uint32_t whole = 0, out = 0, nobody = 0;
    for (uint64_t seed = 0; seed < cases(200); ++seed) {
        uint32_t ended = 0;
        open_game(&g, 1000000 + seed, 0, 0);
        const uint32_t accidents = 1 + sim_pick(&g.net, 4);
        for (uint32_t i = 0; i < accidents; ++i) {
            player *p = &g.player[sim_pick(&g.net, g.ranks)];
            const double at = moment(&g);
            const uint32_t kind = sim_pick(&g.net, 4);
            sim_at(&g.net, at, kind == 0 ? kill_rank : kind == 1 ? cut_ranks : pause_rank, p);
            if (kind == 1 && sim_pick(&g.net, 4))
                sim_at(&g.net, at + 2 * SILENCE * sim_chance(&g.net), heal, p);
        }
        play(&g, 3000);
        for (uint32_t i = 0; i < g.ranks; ++i) {
            ended += !g.net.rank[i].ended && g.player[i].stage == ENDED;
            out += g.player[i].stage == OUT;
        }
        whole += ended == g.ranks;
        nobody += ended == 0;
        assert_int_equal(close_game(&g), 0);
    }
    print_message("silence: %u runs whole, %u ranks cast out, %u runs of which nobody was left\n",
                  whole, out, nobody);
}

/* A sum that does not hold each chunk once never becomes a total: all ranks end with the same
 * error. */
static void test_faulty_ranks(void **state) {
    (void)state;
    static const char *const texts[FAULTS] = {
        [COUNTS_A_CHUNK_TWICE] = " chunks of ",
        [LACKS_A_UNIT] = "the part of sum 3 holds ",
        [ANNOUNCES_TWICE] = " of sum 3 were announced twice",
    };
    static game g;
    for (fault f = NO_FAULT + 1; f < FAULTS; ++f)
        for (uint64_t seed = 0; seed < cases(60); ++seed) {
            open_game(&g, 3000000 + seed, 0, 1);
            int machines = 0; /* on a single machine nothing is announced early */
            for (uint32_t i = 1; i < g.ranks; ++i)
                machines += g.machine[i] != g.machine[0];
            if (g.reductions < 3 || machines == 0) {
                close_game(&g);
                continue;
            }
            g.plan[3].chunks = 40; /* more than ranks: each has some */
            g.plan[3].words = 40 + EXTRA_WORDS;
            g.player[sim_pick(&g.net, g.ranks)].fault = f;
            play(&g, 100);
            for (uint32_t i = 0; i < g.ranks; ++i) {
                check(&g, g.player[i].stage == OUT && g.player[i].reduction <= 3,
                      "a rank went on with a sum that is wrong", i);
                check(&g, strstr(g.player[i].reducer.error.what, texts[f]) != NULL,
                      g.player[i].reducer.error.what, i);
            }
            assert_int_equal(close_game(&g), 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_happens),  cmocka_unit_test(test_faulty_ranks),
        cmocka_unit_test(test_deaths),           cmocka_unit_test(test_deaths_of_holders),
        cmocka_unit_test(test_silence_and_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
