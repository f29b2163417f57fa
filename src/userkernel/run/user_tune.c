/* The search for the number of iterations at once. It doubles the number as long as an iteration
 * becomes faster: 1, 2, 4 and so on. After two numbers in a row that were not faster, the best one
 * stays. Runs of the search are iterations of the job, so none is wasted. */
#include "userkernel/run/user_tune.h"

#include "userkernel/execution/user_steps.h"
#include <unistd.h>

/* Runs of a trial: the first one fills caches, and among ranks a time is known one run late. Long
 * runs of one process are disturbed less, and cost more: one is a trial. */
enum { TRIAL = 3 };
static const double LONG_RUN = 0.02; /* seconds */
/* Numbers of iterations in a row that were no better: one may have been disturbed. */
enum { MISSES = 2 };
/* Parts of the rows for each thread where one iteration is computed at a time: they take different
 * times. And rows for each row that is computed twice, at least. */
enum { PARTS = 8, ROWS_OF_TWICE = 4 };
static const double BETTER = 0.97; /* more iterations at once have to be worth it */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Bytes of the cache that a thread may fill. */
static int64_t cache_bytes(int threads) {
    long bytes = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    if (bytes <= 0)
        return 1 << 20;
    return smaller(bytes, 1 << 25) / 2 / threads;
}

/* Bytes of the arrays for one row. Outputs that are carried have three places. */
static int64_t row_bytes(const qn__user_job *job) {
    const qn__user_source *s = job->source;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_OUTPUT)
            bytes += (s->part[i].next ? 3 : 1) * (int64_t)qn__user_part_each(&s->part[i]);
        else if (s->part[i].use != QN__USER_WHOLE && s->part[i].use < QN__USER_OUTPUT &&
                 !s->part[i].next)
            bytes += (int64_t)qn__user_part_each(&s->part[i]);
    return bytes * (qn__user_job_items(job) / qn__user_job_rows(job));
}

/* Places for all rows of such arrays would be more than some systems give, even if few of their
 * pages are used. */
static int is_too_large(const qn__user_job *job) {
    const uint64_t most = SIZE_MAX > UINT32_MAX ? (uint64_t)1 << 32 : (uint64_t)1 << 26;
    return qn__user_wraps(job->source) &&
           (uint64_t)qn__user_job_items(job) > most / (uint64_t)(qn__user_job_bytes(job) + 1);
}

/* Rows of a thread's range for so many iterations at once; 0: there are too few rows. */
static int64_t rows_of(const qn__user_tune *tune, const qn__user_job *job, int64_t steps) {
    int everywhere;
    const int64_t rows = qn__user_job_rows(job), row = qn__user_job_items(job) / rows;
    const int64_t twice = (steps - 1) * qn__user_reach(job->source, &everywhere);
    const int64_t ranks = qn_cluster_ranks(job->cluster);
    const int64_t threads = ranks > 1 ? ranks * PARTS : tune->threads;
    const int64_t here = job->end > 0 ? (job->end - job->begin) / row : rows;
    int64_t own = here / (threads * PARTS) + 1;
    if (tune->grain > 0)
        own = tune->grain / row + (tune->grain % row > 0);
    else if (steps > 1 && ranks > 1) {
        const int64_t least = ROWS_OF_TWICE * twice;
        own = (rows + threads - 1) / threads;
        own = own < least && least <= rows / ranks ? least : own;
    } else if (steps > 1) {
        const int64_t fits = cache_bytes(tune->threads) / (row_bytes(job) + 1) - 2 * twice;
        const int64_t parts = fits > 0 ? (rows + fits - 1) / fits : rows;
        const int64_t even = (parts + threads - 1) / threads * threads;
        own = (rows + even - 1) / even;
    }
    if (steps == 1)
        return own;
    return (own >= ROWS_OF_TWICE * twice || own >= rows) && !is_too_large(job) ? own : 0;
}

/* Iterations at once of the next run: the best number, or one to try. */
static int64_t wanted_steps(const qn__user_tune *tune) {
    return tune->settled || tune->seconds <= 0 ? tune->best : tune->best << (1 + tune->misses);
}

void qn__user_tune_next(qn__user_tune *tune, qn__user_job *job, int64_t most) {
    const int64_t row = qn__user_job_items(job) / qn__user_job_rows(job);
    int everywhere;
    qn__user_reach(job->source, &everywhere);
    job->steps = job->steps > 0 ? job->steps : 1;
    if (everywhere || !job->source->has_next || job->source->has_scan || job->device ||
        job->iterations == 1)
        return;
    if (tune->best == 0)
        tune->best = 1;
    int64_t steps = wanted_steps(tune);
    if (steps > 1 && (steps > QN__USER_STEPS_MAX || rows_of(tune, job, steps) == 0)) {
        tune->settled = 1;
        steps = tune->best;
    }
    steps = smaller(steps, most);
    const int64_t rows = rows_of(tune, job, steps);
    const int64_t grain = steps == 1 && tune->grain > 0 ? tune->grain : rows * row;
    if (steps != job->steps || grain != job->items_of_grain)
        job->pace = 0;
    job->steps = steps;
    job->items_of_grain = grain;
}

void qn__user_tune_done(qn__user_tune *tune, qn__user_job *job) {
    const double each = job->seconds / (double)job->steps;
    if (tune->settled || job->steps != wanted_steps(tune)) /* the last iterations may be fewer */
        return;
    const int alone = qn_cluster_ranks(job->cluster) < 2 && job->seconds > LONG_RUN;
    if (tune->runs++ == 0 && !alone)
        return;
    tune->trial = tune->runs < 3 || each < tune->trial ? each : tune->trial;
    if (tune->runs < TRIAL && !alone)
        return;
    tune->runs = 0;
    if (tune->seconds <= 0 || tune->trial < BETTER * tune->seconds) {
        tune->seconds = tune->trial;
        tune->best = job->steps;
        tune->misses = 0;
    } else {
        tune->settled = ++tune->misses == MISSES;
    }
}

void qn__user_tune_give_up(qn__user_tune *tune) {
    tune->best = 1;
    tune->settled = 1;
}
