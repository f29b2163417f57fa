/* How long a training would take on a team, which may be imaginary: the scheduler of a run with a
 * virtual clock.
 *
 * A team is described by texts. Each is the name of a file ending in ".json" that `quern devices
 * --costs --model ... --json` wrote on a machine, or
 *
 *     text   = clause { ";" clause }
 *     clause = host { host }
 *            | "net" TIME SPEED             latency and bandwidth between hosts; 50us 1GB/s
 *            | "memory" SPEED               of a rank that adds sums and updates; 10GB/s
 *            | "sums" BYTES                 of a number of the sums in a message; 4.8B
 *            | "parts" BYTES                each host has a part of the data; of an item; 784B
 *            | "slow" WHO "at" TIME xFACTOR     later its devices are FACTOR times as fast
 *            | "die" WHO "at" TIME          its processes end
 *     WHO    = HOST [ "." RANK ]            a host, or one of its ranks
 *     host   = [N "*"] "host" "(" ranks ")" [ "power" WATTS ] [ "price" PRICE ]
 *     ranks  = rank { "|" rank } | FILE.json
 *     rank   = device { "+" device }
 *     device = [N "*"] NAME RATE [ "start" TIME ] [ "noise" PERCENT ]
 *              [ "power" WATTS ] [ "idle" WATTS ]
 *
 * RATE is items of this job per second, such as 60k. TIME has a unit: ns, us, ms, s, min or h.
 * SPEED too: B/s, kB/s, MB/s, GB/s, TB/s, or bit/s to Gbit/s. `start` is the time of a call without
 * its items. `noise` is how much the times of calls vary, at most 90 %. Hosts are counted from 0 in
 * the order of all texts, the ranks of each host from 0. BYTES are B, kB or MB. Without `sums` a
 * number takes what was measured, otherwise 8 bytes. WATTS are W or kW. A device takes `power`
 * while it computes, adds and updates, and `idle` while it waits; the `power` of a host comes on
 * top, all the time. PRICE is of an hour, such as 2.5/h, in any currency. For example
 *
 *     4*host(cpu 60k) 2*host(cpu 80k + gpu 400k start 50us | gpu 400k start 50us);
 *     slow 2 at 10s x0.5; die 3 at 20s; net 10us 1GB/s
 *
 * The plan is of the training alone, without validation, checkpoints, the reading of data and the
 * first pass of `compute.cache_features`. Layers that do not train (`freeze`) need no `init_from`.
 * An epoch counts as items / batch steps. T is the time of the whole training in seconds. */
#ifndef QUERN_PLAN_H
#define QUERN_PLAN_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_plan qn_plan;

/* What to plan. Fill with qn_plan_options_init, then set all members. Read during the call only. */
typedef struct qn_plan_options {
    size_t size;                 /* sizeof(qn_plan_options) */
    const qn_train_options *job; /* its recipe: network, loss, optimiser, batch, grain, epochs */
    uint32_t features;           /* of an item, at least 1 */
    uint64_t items;              /* of an epoch, at least 1 */
    const char *const *team;     /* `teams` texts or files, as above */
    uint32_t teams;              /* at least 1 */
} qn_plan_options;

/* Sets `size`, and every other member to 0 or NULL. */
QN_API void qn_plan_options_init(qn_plan_options *options);

/* One rank. Times are shares of T, 0..1. */
typedef struct qn_plan_rank {
    size_t size;             /* sizeof(qn_plan_rank) */
    uint32_t host;           /* counted from 0 */
    char name[64];           /* the host as it was described */
    uint32_t devices;        /* number of devices of the rank */
    double share;            /* of all grains that were computed, 0..1 */
    double items_per_second; /* of its devices together, at the beginning */
    double computing;        /* grains */
    double waiting;          /* for other ranks */
    double exchanging;       /* sums with other ranks */
    double updating;         /* parameters */
    double recovering;       /* after a death, until the others continue */
    double bytes_out;        /* sent over the network in the whole training */
    int died;                /* 1: it died before the end */
} qn_plan_rank;

/* The team with one more host of a kind. */
typedef struct qn_plan_more {
    size_t size;    /* sizeof(qn_plan_more) */
    char name[64];  /* that host as it was described */
    double seconds; /* T with it; NaN: there cannot be so many ranks */
} qn_plan_more;

/* The job on so many hosts of the described kinds, in the same proportions, without the events. */
typedef struct qn_plan_scale {
    size_t size;    /* sizeof(qn_plan_scale) */
    uint32_t hosts; /* 1, 2, 4, ... */
    uint32_t ranks;
    double seconds; /* T with these */
    double bound;   /* seconds at the full speed of all their devices */
    double joules;  /* as in qn_plan_report */
    double price;
} qn_plan_scale;

/* A plan. Pointers are owned by the qn_plan. */
typedef struct qn_plan_report {
    size_t size;             /* sizeof(qn_plan_report) */
    double seconds;          /* T */
    double bound;            /* seconds that all items take at the speed of all devices together,
                                with the deaths and changes of speed */
    double equal;            /* T if every rank had the same share of each step; NaN: no rank would
                                be left at the end */
    double step;             /* seconds of a step at the end */
    double exchange;         /* of these, seconds of the exchange between the ranks that are left */
    double items_per_second; /* mean of the training */
    uint64_t steps;          /* of the training */
    uint32_t ranks, hosts, devices; /* of the team at the beginning */
    uint32_t deaths;                /* ranks that died before the end */
    uint32_t events;                /* clauses "slow" and "die" */
    uint32_t late;                  /* of these, at or after the end: without effect */
    double parameters;              /* number of weights and biases */
    double items_again;             /* items that others computed again after deaths */
    double computing, waiting, exchanging, updating, recovering; /* means over the ranks */
    const qn_plan_rank *const *rank;                             /* `ranks` pointers */
    uint32_t mores; /* kinds of hosts of which one more was tried: at most 8; 0 without "net" */
    const qn_plan_more *const *more; /* `mores` pointers */
    double memory;   /* bytes that the CPU of this machine would take beside the data, with the
                        threads of job->compute: qn_memory.all of a single rank */
    uint32_t grain;  /* items of a grain */
    double joules;   /* of all hosts; NaN: `power` is not known for each of them */
    double price;    /* of all hosts; NaN: `price` is not known for each of them */
    uint32_t scales; /* numbers of hosts that were tried; 0 without "net" */
    uint32_t enough; /* the fewest of these hosts whose T is at most 5 % above the shortest; 0: none
                        were tried */
    const qn_plan_scale *const *scale; /* `scales` pointers */
} qn_plan_report;

/* Makes a plan. On success *out is owned by the caller, for qn_plan_free; after a failure it is
 * NULL. Fails with QN_USAGE (options, or a text; `where` shows the place in it), QN_IO (a file that
 * cannot be read) or QN_INPUT (a file that holds no such measurement). Fails with QN_MISMATCH (a
 * measurement of another job), QN_UNSUPPORTED (job->compute), QN_CLUSTER (no rank is left before
 * the end) or QN_MEMORY. */
QN_API qn_status qn_plan_make(const qn_plan_options *options, qn_plan **out, qn_error *err);

/* The plan's report; NULL for NULL. Owned by the plan. */
QN_API const qn_plan_report *qn_plan_report_of(const qn_plan *plan);

/* Frees the plan and its report. Accepts NULL. */
QN_API void qn_plan_free(qn_plan *plan);

/* The largest number of call sizes that qn_plan_measure times. */
enum { QN_PLAN_CALLS = 16 };

/* How long one device takes as part of one rank, in seconds: medians of several calls. */
typedef struct qn_plan_cost {
    size_t size;                    /* sizeof(qn_plan_cost), in each element */
    uint32_t rank;                  /* that has the device, from 0 */
    char id[32];                    /* as in qn_device_info */
    uint32_t grain;                 /* items of a grain */
    uint32_t calls;                 /* number of sizes that were measured */
    uint32_t grains[QN_PLAN_CALLS]; /* grains of a call, ascending; `calls` of them */
    double seconds[QN_PLAN_CALLS];  /* of a call of that size */
    double update;                  /* seconds of an update of all parameters */
    double step;                    /* seconds of a whole step by it alone; 0: not measured */
    double adding;                  /* bytes read and written per second when the rank adds sums */
    double word_bytes;              /* of a sum of the longest call in a message to another host */
    double pack, unpack;            /* seconds to make messages of all sums, and to add those */
    double watts;                   /* mean power in the longest calls; 0: it has no meter */
} qn_plan_cost;

/* Measures the devices that job->compute allows, each for about `seconds` (above 0, at most 3600),
 * as `ranks` ranks (1..64) on this machine would have them. The cores are divided among the ranks,
 * the other devices are dealt in turn, and all ranks work at the same time. Of `job` it reads the
 * recipe, with `model` required. The items are those of `data`, which needs labels. NULL: items of
 * `features` values, which are random bytes, or with 784 features synthetic digits.
 *
 * Fills at most `capacity` elements of `cost`, rank after rank, and sets *count to their number.
 * `cost` may be NULL when `capacity` is 0. Fails as qn_train_open does, and with QN_USAGE for more
 * ranks than cores; *count is then 0. */
QN_API qn_status qn_plan_measure(const qn_train_options *job, const qn_data *data,
                                 uint32_t features, uint32_t ranks, double seconds,
                                 qn_plan_cost *cost, uint32_t capacity, uint32_t *count,
                                 qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
