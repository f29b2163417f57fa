/* Ranks compute shares of one result, so all of them must have the same kernel, numbers and
 * inputs. Each rank states these as texts, and the texts are compared before the first item. */
#include "userkernel/run/user_ranks.h"

#include "base/digest/sha256.h"
#include "team/together.h"
#include <inttypes.h>
#include <quern/version.h>
#include <stdio.h>
#include <string.h>

static const char other_version[] = "install the same version of Quern everywhere";
static const char other_options[] = "start all ranks with the same options";

static void tell_text(const qn_kernel *k, qn__text *out) {
    uint8_t hash[32];
    char hex[65];
    qn__sha256_of(k->text, strlen(k->text), hash);
    qn__hex(hash, hex);
    qn__text_add(out, "digest %s", hex);
}

static void tell_shape(const qn_kernel *k, qn__text *out) {
    const uint32_t skip = QN_KERNEL_DIMENSIONS - k->source.dimensions;
    for (uint32_t d = skip; d < QN_KERNEL_DIMENSIONS; d++)
        qn__text_add(out, "%s%" PRId64, d > skip ? "x" : "", k->job.extent[d]);
}

static void tell_scalars(const qn_kernel *k, qn__text *out) {
    const char *between = "";
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (k->source.part[i].use == QN__USER_SCALAR) {
            qn__text_add(out, "%s%s=%s", between, k->source.part[i].name, k->part[i].text);
            between = ", ";
        }
    qn__text_add(out, "%s", *between ? "" : "none");
}

static void tell_options(const qn_kernel *k, const qn_kernel_options *o, int recipe,
                         qn__text *out) {
    qn__text_add(
        out, "%" PRIu64 " iterations, seed %" PRIu64 ", grain %" PRIu64 ", recipe: %s, trace: %s",
        k->iterations, k->seed, o->grain, recipe ? "yes" : "no", o->trace ? "yes" : "no");
    qn__text_add(out, ", checkpoint: %s, from iteration %" PRIu64 ", item %" PRIu64,
                 k->checkpoint.path ? "yes" : "no", k->checkpoint.from, k->checkpoint.items);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_bound *b = &k->part[i];
        if (qn__user_part_is_written(&k->source.part[i]))
            qn__text_add(out, ", %s %s", k->source.part[i].name, b->path ? "to a file" : "kept");
        else if (b->wants_series)
            qn__text_add(out, ", series of %s %s", k->source.part[i].name,
                         b->series_path ? "to a file" : "kept");
    }
}

enum { TEXTS = 4, ITEMS = 2 + TEXTS + QN__USER_PARTS };

/* An item for each input: its digest. Returns their number. */
static uint32_t add_inputs(const qn_kernel *k, char name[][QN__USER_NAME_MAX + 20],
                           qn_agreement *items) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (k->source.part[i].use >= QN__USER_OUTPUT)
            continue;
        snprintf(name[count], sizeof name[count], "the input \"%s\"", k->source.part[i].name);
        items[count] = (qn_agreement){sizeof *items, name[count], k->part[i].digest,
                                      "give every machine the same array"};
        count++;
    }
    return count;
}

static qn_status compare(const qn_kernel *k, const qn__text text[TEXTS], qn_status status,
                         qn_error *err) {
    static const char *const names[TEXTS] = {"the kernel", "the shape", "the scalars",
                                             "the options"};
    char contract[16], name[QN__USER_PARTS][QN__USER_NAME_MAX + 20];
    qn_agreement items[ITEMS] = {
        {sizeof *items, "the version of Quern", qn_version(), other_version},
        {sizeof *items, "the exactness contract", contract, other_version}};
    uint32_t count = 2;
    snprintf(contract, sizeof contract, "%d", QN_CONTRACT);
    for (int i = 0; i < TEXTS; i++) {
        if (text[i].failed && status == QN_OK)
            status = qn__fail_memory(err, 1, text[i].size);
        items[count++] =
            (qn_agreement){sizeof *items, names[i], text[i].failed ? "" : text[i].data,
                           i == 0 ? "give every machine the same kernel" : other_options};
    }
    count += add_inputs(k, name, items + count);
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn_cluster_agree(k->compute.cluster, &own, items, count, err);
}

qn_status qn__user_agree(const qn_kernel *k, const qn_kernel_options *o, int recipe,
                         qn_status status, qn_error *err) {
    qn__text text[TEXTS] = {{0}};
    if (!k->compute.cluster)
        return status;
    tell_text(k, &text[0]);
    tell_shape(k, &text[1]);
    tell_scalars(k, &text[2]);
    tell_options(k, o, recipe, &text[3]);
    status = compare(k, text, status, err);
    for (int i = 0; i < TEXTS; i++)
        qn__text_release(&text[i]);
    return status;
}

qn_status qn__user_ranks_write(qn_cluster *cluster,
                               qn_status (*write)(void *context, qn_error *err), void *context,
                               qn_error *err) {
    const qn_status status = qn__by_writer(cluster, write, context, err);
    if (!cluster || status == QN_CLUSTER)
        return status;
    if (status == QN_BUSY) /* another rank became the writer */
        return qn__cluster_refuse(cluster, err);
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn_cluster_agree(cluster, &own, NULL, 0, err);
}
