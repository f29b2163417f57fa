/* How long a training would take on a team, which may be imagined: the scheduler of a run with a
 * virtual clock.
 *
 * A team is described by texts. Each is a file that `quern devices --costs --model ... --json`
 * wrote on a machine, its name ending in ".json", or
 *
 *     text   = clause { ";" clause }
 *     clause = host { host }
 *            | "net" TIME SPEED             latency and bandwidth between hosts; 50us 1GB/s
 *            | "memory" SPEED               at which a rank adds sums up and updates; 10GB/s
 *            | "slow" WHO "at" TIME xFACTOR     from then on its devices go at FACTOR the speed
 *            | "die" WHO "at" TIME          its processes end
 *     WHO    = HOST [ "." RANK ]            a host, or one of its ranks
 *     host   = [N "*"] "host" "(" rank { "|" rank } ")"
 *            | [N "*"] "host" "(" FILE.json ")"
 *     rank   = device { "+" device }
 *     device = [N "*"] NAME RATE [ "start" TIME ] [ "noise" PERCENT ]
 *
 * RATE is items of this job a second, such as 60k; TIME has a unit (ns, us, ms, s, min, h), SPEED
 * too (B/s, kB/s, MB/s, GB/s, or bit/s and so on). `start` is what a call costs beside its items,
 * `noise` how far calls lie beside that. Hosts are counted from 0 in the order of all texts, the
 * ranks of each from 0 too. For example
 *
 *     4*host(cpu 60k) 2*host(cpu 80k + gpu 400k start 50us | gpu 400k start 50us);
 *     slow 2 at 10s x0.5; die 3 at 20s; net 10us 1GB/s
 *
 * What is planned is the training alone, without validation, checkpoints and the reading of data;
 * an epoch counts as items / batch steps. */
#ifndef QUERN_PLAN_H
#define QUERN_PLAN_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_plan qn_plan;

typedef struct qn_plan_options {
    size_t size;                 /* sizeof(qn_plan_options) */
    const qn_train_options *job; /* the network, the loss, the optimiser, batch, grain, epochs */
    uint32_t features;           /* of an item */
    uint64_t items;              /* that are trained on in an epoch */
    const char *const *team;     /* `teams` texts or files, as above; at least 1 */
    uint32_t teams;
} qn_plan_options;

QN_API void qn_plan_options_init(qn_plan_options *options);

/* How one rank spends its time, each part as a share of the whole T, 0..1. */
typedef struct qn_plan_rank {
    size_t size;
    uint32_t host;           /* counted from 0 */
    char name[64];           /* the host as it was described */
    uint32_t devices;        /* of the rank */
    double share;            /* of all grains that were computed */
    double items_per_second; /* of its devices together, at the beginning */
    double computing, waiting, exchanging, updating, recovering;
    double bytes_out; /* over the network, in all */
    int died;
} qn_plan_rank;

/* One host more of a kind. */
typedef struct qn_plan_more {
    size_t size;
    char name[64];
    double seconds; /* T with it; NaN: there cannot be so many ranks */
} qn_plan_more;

typedef struct qn_plan_report {
    size_t size;
    double seconds; /* T */
    double bound;   /* all items over the rates of all devices, deaths and changes included */
    double equal;   /* T if every rank had the same share of each step; NaN: nobody would be left */
    double step;    /* seconds of a step at the end */
    double exchange;         /* of it: adding up over the ranks that are left */
    double items_per_second; /* in the mean */
    uint64_t steps;
    uint32_t ranks, hosts, devices, deaths;
    uint32_t events, late; /* changes and deaths described; of these, after the end: of no effect */
    double parameters;
    double items_again; /* computed again by others after deaths */
    double computing, waiting, exchanging, updating, recovering; /* means over the ranks */
    const qn_plan_rank *const *rank;                             /* `ranks` of them */
    uint32_t mores;
    const qn_plan_more *const
        *more; /* `mores` of them, one for each of the first 8 kinds of hosts */
} qn_plan_report;

/* Plans. QN_USAGE for options and descriptions that make no sense, with the place in the text;
 * QN_INPUT and QN_MISMATCH for files that are none, or of another job; QN_CLUSTER when nobody is
 * left before the end. */
QN_API qn_status qn_plan_make(const qn_plan_options *options, qn_plan **out, qn_error *err);
QN_API const qn_plan_report *qn_plan_report_of(const qn_plan *plan);
QN_API void qn_plan_free(qn_plan *plan);

/* What a device of this machine costs a rank that has it: calls over some grains, an update. */
enum { QN_PLAN_CALLS = 16 };
typedef struct qn_plan_cost {
    size_t size;    /* sizeof(qn_plan_cost), in each element */
    uint32_t rank;  /* of those that the machine was divided among */
    char id[32];    /* as in qn_device_info */
    uint32_t grain; /* items */
    uint32_t calls; /* sizes of calls that were measured, ascending */
    uint32_t grains[QN_PLAN_CALLS];
    double seconds[QN_PLAN_CALLS]; /* a call's, each */
    double update;                 /* seconds of an update with the sums of all */
    double step;   /* seconds of a whole step of `batch` items by it alone; 0: not measured */
    double adding; /* bytes read and written a second when the rank adds sums up */
} qn_plan_cost;

/* Measures the devices that job->compute lets take part, for about `seconds` each, as `ranks` ranks
 * on this machine would have them: cores divided, other devices dealt round, all ranks at work at
 * the same time. Of `job` the network, the loss, the optimiser, batch and grain count. The items
 * are those of `data`, or, when that is NULL, random bytes, `features` of them each. Fills at most
 * `room` costs, ranks one after another, their number in *count. Fails as qn_train_open does, and
 * with QN_USAGE for more ranks than cores. */
QN_API qn_status qn_plan_measure(const qn_train_options *job, const qn_data *data,
                                 uint32_t features, uint32_t ranks, double seconds,
                                 qn_plan_cost *cost, uint32_t room, uint32_t *count, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
