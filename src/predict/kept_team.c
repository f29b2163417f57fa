#include "predict/kept_team.h"

#include "base/memory.h"
#include "job/apply.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Threads do not survive a fork: what another process made is left alone. */
static void release(qn__model_extra *extra) {
    qn__kept_team *kept = (qn__kept_team *)extra;
    if (kept->process != getpid())
        return;
    qn__team_destroy(kept->team);
    qn__free(kept);
}

static void name_options(const qn_compute *c, char asked[256]) {
    const int size = snprintf(asked, 256, "%d %a %s;%s;%s;%s", c->threads, c->device_timeout,
                              c->isa ? c->isa : "", c->gpu_isa ? c->gpu_isa : "",
                              c->devices ? c->devices : "auto", c->shares ? c->shares : "");
    if (size >= 256 || c->cluster)
        asked[0] = '\0';
}

static qn_status make(const qn_model *model, const qn_compute *compute, uint64_t items,
                      qn_note_fn note, qn__kept_team *kept, qn_error *err) {
    kept->extra.release = release;
    kept->process = getpid();
    qn__model_program(model, &kept->program);
    /* Prediction has no optimiser state, and without losses no grains. */
    kept->program.optimizer = QN__OPT_SGD;
    kept->program.grain = 1;
    kept->program.batch = qn__apply_batch(&kept->program, items);
    qn_status status = qn__team_create(&kept->program, compute, NULL, 0, &kept->team, err);
    if (status != QN_OK)
        return status;
    qn__team_notes(kept->team, note, NULL);
    /* load reads the arrays only. */
    const qn__state state = {.parameters = (float *)(uintptr_t)qn__model_parameters(model)};
    return qn__team_load(kept->team, &state, err);
}

qn_status qn__kept_team_take(const qn_model *model, const qn_compute *compute, uint64_t items,
                             qn_note_fn note, qn__kept_team **out, qn_error *err) {
    char asked[256];
    qn__kept_team *kept = (qn__kept_team *)qn__model_exchange(model, NULL);
    name_options(compute, asked);
    if (kept && kept->process == getpid() && *asked && strcmp(kept->asked, asked) == 0 &&
        kept->program.batch >= qn__apply_batch(&kept->program, items)) {
        *out = kept;
        return QN_OK;
    }
    if (kept)
        release(&kept->extra);
    *out = NULL;
    kept = qn__alloc(1, sizeof *kept, err);
    if (!kept)
        return QN_MEMORY;
    memcpy(kept->asked, asked, sizeof asked);
    const qn_status status = make(model, compute, items, note, kept, err);
    if (status == QN_OK)
        *out = kept;
    else
        release(&kept->extra);
    return status;
}

void qn__kept_team_give(const qn_model *model, qn__kept_team *kept, qn_status status) {
    if (!kept)
        return;
    const int keep = status == QN_OK && *kept->asked && qn__team_is_the_cpu(kept->team);
    qn__model_extra *const old = keep ? qn__model_exchange(model, &kept->extra) : &kept->extra;
    if (old)
        old->release(old);
}
