#include "job/memory_need.h"

#include "device/device.h"
#include "job/features.h"
#include "job/full_batch.h"
#include "layer/lost.h"
#include "layer/reference.h"
#include "model/recipe/freeze.h"
#include "model/recipe/several_targets.h"
#include "team/members.h"
#include "team/queue.h"
#include <quern/cluster.h>
#include <stdio.h>

/* What a process of the command takes before it has a job: measured, 14 MiB. */
#define PROGRAM ((uint64_t)16 << 20)

/* A job whose members are known, as its devices see it. */
typedef struct subject {
    qn_compute compute;
    const qn__member *members;
    uint32_t count;
    int best; /* the parameters of the best epoch are kept */
    int full; /* the optimiser is lbfgs, which has a state of its own, and parts, too */
    int parts;
    qn__memory_ranks ranks;
    qn__program program;
    const qn__features *features; /* NULL: outputs are not kept */
    uint64_t items;
    uint64_t available;
} subject;

static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t times(uint64_t a, uint64_t b) {
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Arrays of sums: those of each device that computes a part of a step, and as many on the host. A
 * device that clips its gradient writes them to one array. */
static uint64_t sums_of(const subject *s) {
    const int clips = s->program.clip != 0.0f;
    return s->count > 1 ? 2 * (uint64_t)s->count : s->parts > 1 ? 2 : (uint64_t)clips;
}

/* The host's state, a model to write, the best epoch's parameters; and where several devices share
 * a step, each one's sums and the copy for a device that fails. */
static uint64_t of_job(const subject *s) {
    const uint64_t state = 1 + qn__program_slots(&s->program);
    uint64_t bytes = (state + 1 + (uint64_t)s->best) * sizeof(float);
    if (s->full)
        bytes += qn__lbfgs_bytes() + 1;
    if (s->count > 1)
        bytes += state * sizeof(float);
    const uint64_t sums = times(sums_of(s) * sizeof(int64_t), qn__program_sums(&s->program));
    return sum(times(bytes, s->program.parameters), sums);
}

/* What the ranks of a machine share: the sums of each of them, and two totals. */
static uint64_t of_totals(const qn__memory_ranks *r, uint64_t parameters) {
    return r->all > 1 ? times((r->here + 2) * sizeof(int64_t), parameters) : 0;
}

/* Messages of sums to and from other machines, which the ranks of this one divide: what is sent to
 * those who add it, what comes to be added, and the total of an own segment. */
static uint64_t of_messages(const qn__memory_ranks *r, uint64_t parameters) {
    const uint64_t machines = (r->all + r->here - 1) / r->here;
    return machines > 1
               ? times((2 * machines - 1) * sizeof(int64_t), parameters) / machines / r->here
               : 0;
}

/* One team after the other, where outputs are kept. */
static void add_member(const subject *s, const qn__device_table *device, const qn_compute *compute,
                       uint32_t part, qn__memory_need *need) {
    const qn__program *steps = s->features ? &s->features->second : &s->program;
    uint64_t fixed = device->memory(compute, steps, 0);
    uint64_t batch = device->memory(compute, steps, part) - fixed;
    if (s->features) {
        const qn__program *once = &s->features->first;
        const uint64_t first = device->memory(compute, once, 0);
        const uint64_t items = device->memory(compute, once, once->batch) - first;
        fixed = first > fixed ? first : fixed;
        batch = items > batch ? items : batch;
    }
    need->parameters = sum(need->parameters, fixed);
    need->batch = sum(need->batch, batch);
}

/* Outputs of the training items that are kept. Where they take more than half of the memory, they
 * are in a file (qn__table_space_make). */
static uint64_t kept_of(const subject *s) {
    const uint64_t each = s->features ? s->features->second.layer[0].in * sizeof(float) : 0;
    const uint64_t bytes = times(each, s->items);
    return bytes > s->available / 2 ? 0 : bytes;
}

static qn__memory_need need_of(const subject *s) {
    const uint64_t words = qn__program_sums(&s->program);
    const uint32_t part = qn__program_part_of(&s->program, (uint32_t)s->parts);
    qn__memory_need need = {
        .program = PROGRAM, .shared = of_totals(&s->ranks, words), .parts = s->parts};
    need.parameters = sum(sum(of_job(s), need.shared), of_messages(&s->ranks, words));
    for (uint32_t i = 0; i < s->count; ++i) {
        const qn__member *m = &s->members[i];
        qn_compute own = s->compute;
        if (m->threads)
            own.threads = m->threads;
        need.untold += !m->device->memory;
        if (!m->device->memory)
            continue;
        add_member(s, m->device, &own, part, &need);
    }
    if (s->program.arith != QN__ARITH_F32) /* for the report of rounding */
        need.batch = sum(need.batch, qn__reference_bytes(&s->program, qn__lost_items(&s->program)));
    need.kept = kept_of(s);
    need.all = sum(sum(need.batch, need.parameters), sum(need.program, need.kept));
    return need;
}

static qn__memory_ranks ranks_of(const qn__memory_job *job) {
    qn__memory_ranks ranks = {.all = qn_cluster_ranks(job->compute->cluster)};
    qn_cluster_local(job->compute->cluster, NULL, &ranks.here);
    return job->ranks.all ? job->ranks : ranks;
}

/* `layer` and `found` are the space for layers and members; they live as long as *out. */
static qn_status examine(const qn__memory_job *job, qn__layer *layer, qn__member *found,
                         subject *out, qn_error *err) {
    const qn__recipe *r = job->recipe;
    *out = (subject){.compute = *job->compute,
                     .members = job->members,
                     /* A team refuses more members before it looks at them. */
                     .count = job->count <= QN__MAX_WORKERS ? job->count : 0,
                     .best = qn__recipe_judges(r),
                     .program = {.layers = r->network.layers,
                                 .layer = layer,
                                 .arith = r->arith,
                                 .loss = r->loss,
                                 .optimizer = qn__recipe_rule(r),
                                 .numbers = r->numbers,
                                 .recompute = job->compute->recompute,
                                 .scale = r->scale,
                                 .lists = qn__schema_texts(r->table) > 0,
                                 .grain = r->grain}};
    out->items = job->items;
    out->ranks = ranks_of(job);
    const qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &out->program.parameters, err);
    if (status != QN_OK)
        return status;
    qn__recipe_freeze(r, layer, &out->program);
    qn__recipe_several(r, layer, &out->program);
    out->full = r->optimizer == QN__OPT_LBFGS;
    out->program.batch = out->full
                             ? qn__full_batch_slice(layer, r->network.layers, r->grain,
                                                    qn__schema_texts(r->table) > 0, job->items)
                         : job->items < r->batch ? (uint32_t)job->items
                                                 : r->batch;
    out->parts = job->compute->parts > 1 && !out->full ? job->compute->parts : 1;
    if (job->members)
        return status;
    out->members = found;
    return qn__members_of(job->compute, found, QN__MAX_WORKERS, &out->count, err);
}

/* Bytes that the ranks of this machine take now: the programs are there already, and a step's items
 * are divided among the ranks. */
static uint64_t of_ranks(const qn__memory_need *need, uint32_t ranks) {
    const uint64_t own = times(sum(need->parameters - need->shared, need->kept), ranks);
    return sum(sum(need->batch, need->shared), own);
}

static int fits(const subject *s, uint64_t available) {
    const qn__memory_need need = need_of(s);
    return of_ranks(&need, s->ranks.here) <= available;
}

/* "1.5 GiB" */
static const char *show(uint64_t bytes, char text[24]) {
    const int large = bytes >= (uint64_t)1 << 30;
    snprintf(text, 24, "%.1f %s", (double)bytes * (large ? 0x1p-30 : 0x1p-20),
             large ? "GiB" : "MiB");
    return text;
}

static void say(const subject *s, uint64_t available, const qn__memory_need *need, qn_error *err) {
    char all[24], batch[24], parameters[24], left[24], ranks[48] = "the training takes";
    char kept[24], outputs[80] = "";
    const uint32_t here = s->ranks.here;
    const uint64_t of_kept = times(need->kept, here);
    if (of_kept)
        snprintf(outputs, sizeof outputs, ", %s for the outputs that are kept",
                 show(of_kept, kept));
    if (here > 1)
        snprintf(ranks, sizeof ranks, "the %u ranks on this machine take", here);
    qn__fail(err, QN_MEMORY,
             "%s about %s of memory beside the data (%s for a %s of %u items, %s for the "
             "parameters%s%s), and %s are available",
             ranks, show(of_ranks(need, here), all), show(need->batch, batch),
             need->parts > 1 ? "part" : "batch",
             qn__program_part_of(&s->program, (uint32_t)need->parts),
             show(of_ranks(need, here) - need->batch - of_kept, parameters),
             here > 1 ? " of all of them" : "", outputs, show(available, left));
}

/* The fewest parts with which it fits, of 2, 4 and so on; 0: it fits with none. */
static int parts_that_fit(const subject *s, uint64_t available) {
    subject less = *s;
    uint32_t part = qn__program_part_of(&s->program, 1);
    for (less.parts = 2; !s->full && part > s->program.grain && less.parts <= QN__MOST_PARTS;
         less.parts *= 2) {
        part = qn__program_part_of(&s->program, (uint32_t)less.parts);
        if (fits(&less, available))
            return less.parts;
    }
    return 0;
}

/* More parts, the batch, halved until it fits, or one thread. */
static qn_status advise(const subject *s, uint64_t available, qn_error *err) {
    subject less = *s;
    const int parts = parts_that_fit(s, available);
    if (parts > 0) {
        qn__at(err, "`compute.parts`");
        return qn__remedy(err, QN_MEMORY,
                          "with `compute.parts` %d it fits; or use a machine with more memory",
                          parts);
    }
    while (!less.full && (less.program.batch /= 2) > 0)
        if (fits(&less, available)) {
            qn__at(err, "`train.batch`");
            return qn__remedy(err, QN_MEMORY,
                              "with `train.batch` %u it fits; or use a machine with more memory",
                              less.program.batch);
        }
    less = *s;
    less.compute.threads = 1;
    if (fits(&less, available)) {
        qn__at(err, "`compute.threads`");
        return qn__remedy(err, QN_MEMORY,
                          "with `compute.threads` 1 it fits; or use a machine with more memory");
    }
    qn__at(err, "`train.model`");
    return qn__remedy(err, QN_MEMORY,
                      "make the layers narrower, or use a machine with more memory");
}

static qn_status judge(const qn__memory_job *job, subject *s, uint64_t available,
                       qn__memory_need *out, qn_error *err) {
    *out = need_of(s);
    if (of_ranks(out, s->ranks.here) <= available)
        return QN_OK;
    const int parts = job->compute->parts == 0 ? parts_that_fit(s, available) : 0;
    if (parts > 0) {
        s->parts = parts;
        *out = need_of(s);
        return QN_OK;
    }
    say(s, available, out, err);
    return advise(s, available, err);
}

qn_status qn__memory_need_check(const qn__memory_job *job, uint64_t available, qn__memory_need *out,
                                qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    qn__member found[QN__MAX_WORKERS];
    qn__features features = {0};
    subject s;
    *out = (qn__memory_need){0};
    qn_status status = examine(job, layer, found, &s, err);
    if (status == QN_OK && job->compute->cache_features && s.program.frozen > 0) {
        status = qn__features_cut(&s.program, job->items, &features, err);
        s.features = &features;
    }
    s.available = available;
    if (status == QN_OK)
        status = judge(job, &s, available, out, err);
    qn__features_release(&features);
    return status;
}

qn_status qn__memory_need_of(const qn__memory_job *job, qn__memory_need *out, qn_error *err) {
    return qn__memory_need_check(job, UINT64_MAX, out, err);
}
