/* A described team: from a text (include/quern/plan.h has the grammar) or from measurements (`quern
 * devices --costs --model`). */
#ifndef QN_PLAN_PLAN_TEAM_H
#define QN_PLAN_PLAN_TEAM_H

#include "base/error.h"
#include "num/program.h"
#include "team/virtual.h"

enum {
    QN__PLAN_RANKS = 1024,   /* the maximum of a run */
    QN__PLAN_DEVICES = 8192, /* in a description, before hosts are repeated */
    QN__PLAN_EVENTS = 256
};

typedef struct qn__plan_device {
    char name[32];
    double rate;             /* items per second; if calls were measured, of the longest */
    double start;            /* seconds of a call */
    double noise;            /* relative deviation of a call's time */
    double update;           /* seconds of an update; 0: not measured */
    double step;             /* seconds of a whole step by it alone; 0: not measured */
    double power, idle;      /* watts while it works, and while it waits; power 0: not known */
    qn__virtual_calls calls; /* measured; sizes in grains */
} qn__plan_device;

typedef struct qn__plan_rank {
    uint32_t first, count; /* of its devices */
    double memory;         /* bytes per second, when it adds; 0: not measured */
    double word;           /* bytes of a word of its sums in a message; 0: not measured */
    double pack,
        unpack; /* seconds to make messages of all sums, and to add them; 0: not measured */
} qn__plan_rank;

/* Equal hosts. */
typedef struct qn__plan_host {
    char name[64];                 /* as written, or the file */
    uint32_t copies, first, count; /* of its ranks */
    double power;                  /* watts beside those of its devices; 0: none are known */
    double price;                  /* of an hour; negative: not known */
} qn__plan_host;

#define QN__PLAN_ALL_RANKS UINT32_MAX

typedef enum qn__plan_event_kind { QN__PLAN_SLOW, QN__PLAN_DIE } qn__plan_event_kind;

typedef struct qn__plan_event {
    qn__plan_event_kind kind;
    uint32_t host; /* counted from 0 in the order of the description, including copies */
    uint32_t rank; /* of that host, counted from 0; QN__PLAN_ALL_RANKS: all of it */
    double at;     /* seconds from the start of training */
    double factor; /* of the speed: 0.5 is half as fast */
} qn__plan_event;

/* The properties of a job that a measured file must match. */
typedef struct qn__plan_subject {
    const char *model; /* canonical text */
    const char *optimizer, *arith;
    uint32_t features, batch, grain;
    qn__shape shape;    /* of an item, where the network needs it; else 0 */
    const char *freeze; /* as in a recipe; "": all layers train */
    uint32_t layers, recompute, cache_features;
} qn__plan_subject;

typedef struct qn__plan_team {
    qn__plan_device *device;
    qn__plan_rank *rank;
    qn__plan_host *host;
    qn__plan_event *event;
    uint32_t devices, ranks, hosts, events;
    double latency, bandwidth; /* 0: not given */
    double memory;             /* 0: not given */
    double word;               /* bytes of a word of sums in a message; 0: not given */
    double item;               /* bytes of an item that travels; 0: all hosts have the data */
} qn__plan_team;

qn_status qn__plan_team_create(qn__plan_team *team, qn_error *err);
void qn__plan_team_release(qn__plan_team *team);

/* Adds what a text describes; files in it must match `subject`. QN_USAGE, with a caret under the
 * error. */
qn_status qn__plan_team_read(qn__plan_team *team, const char *text, const qn__plan_subject *subject,
                             qn_error *err);

/* Adds a host as measured by `quern devices --costs --model ... --json`. QN_INPUT for another kind
 * of file, QN_MISMATCH for one of another job, with the command that measures this one. */
qn_status qn__plan_team_measured(qn__plan_team *team, const char *path, uint32_t copies,
                                 const qn__plan_subject *subject, qn_error *err);

/* The same from a text that was read from `name`. */
qn_status qn__plan_team_parse(qn__plan_team *team, const char *text, size_t size, const char *name,
                              uint32_t copies, const qn__plan_subject *subject, qn_error *err);

/* Ranks and hosts, including copies. */
uint32_t qn__plan_team_ranks(const qn__plan_team *team);
uint32_t qn__plan_team_hosts(const qn__plan_team *team);

/* Fails with QN_USAGE: the team has more than `most` of `what`. */
qn_status qn__plan_too_many(qn_error *err, const char *what, unsigned most);

/* A place for one more; NULL, with a message, if there are too many. */
qn__plan_device *qn__plan_add_device(qn__plan_team *team, qn_error *err);
qn__plan_rank *qn__plan_add_rank(qn__plan_team *team, qn_error *err);
qn__plan_host *qn__plan_add_host(qn__plan_team *team, qn_error *err);

#endif
