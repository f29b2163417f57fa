#include "team/members.h"

#include "base/argument.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "layer/layer.h"
#include "num/intgemm_reference.h"
#include "team/queue.h"
#include <stdio.h>
#include <string.h>

/* The grammar of a list of devices: the remedy of every error in one. */
#define FORMS "write auto, or a list of cpu, cpu:4 (cores), KIND:0 or KIND:all, as in cpu,cuda:0"

/* Maximum length of the words of a list, and of the list of names in a message. */
enum { WORD = 64, NAMES = 320 };

typedef struct list {
    const char *text; /* as given */
    qn__member *members;
    uint32_t capacity, count;
} list;

/* The number of devices of the kind; test devices count while a plan creates some. */
static uint32_t devices_of(const qn__device_table *kind) {
    return kind->version == QN__DEVICE_VERSION ? kind->count() : 0;
}

static void id_of(const qn__device_table *kind, uint32_t index, char id[WORD]) {
    if (kind->host)
        snprintf(id, WORD, "%s", kind->name);
    else
        snprintf(id, WORD, "%s:%u", kind->name, index);
}

/* "cpu, opencl:0, opencl:1": the available devices, for a message. */
static void names_here(char names[NAMES]) {
    size_t used = 0;
    names[0] = 0;
    for (int k = 0; qn__devices[k]; ++k)
        for (uint32_t i = 0; i < devices_of(qn__devices[k]); ++i) {
            char id[WORD];
            id_of(qn__devices[k], i, id);
            if (used + strlen(id) + 8 > NAMES) {
                snprintf(names + used, NAMES - used, ", ...");
                return;
            }
            used += (size_t)snprintf(names + used, NAMES - used, "%s%s", used ? ", " : "", id);
        }
}

static qn_status bad_list(const list *l, qn_error *err, const char *what) {
    qn__fail(err, QN_USAGE, "%s", what);
    qn__at(err, "`compute.devices` \"%s\"", l->text);
    return qn__remedy(err, QN_USAGE, FORMS);
}

static qn_status unknown_kind(const list *l, const char *kind, qn_error *err) {
    const char *kinds[16];
    char what[WORD + 64], names[NAMES], gpus[NAMES] = "";
    int known = 0;
    for (int k = 0; qn__devices[k] && known < 14; ++k) {
        const size_t used = strlen(gpus);
        if (devices_of(qn__devices[k]) > 0 || qn__devices[k]->absence)
            kinds[known++] = qn__devices[k]->name;
        if (qn__devices[k]->absence) /* only interfaces of GPUs may be absent */
            snprintf(gpus + used, sizeof gpus - used, "%s%s", used ? " or " : "",
                     qn__devices[k]->name);
    }
    kinds[known++] = "auto";
    kinds[known] = NULL;
    snprintf(what, sizeof what, "there is no kind of device \"%s\"", kind);
    bad_list(l, err, what);
    names_here(names);
    if (strcmp(kind, "gpu") == 0 || strcmp(kind, "gpus") == 0)
        return qn__remedy(err, QN_USAGE,
                          "a GPU is named by its interface, %s, as in cuda:0; this machine has %s",
                          gpus, names);
    const char *near = qn__nearest(kind, kinds);
    if (near)
        return qn__remedy(err, QN_USAGE, "did you mean \"%s\"? this machine has %s", near, names);
    return qn__remedy(err, QN_USAGE, "this machine has %s; " FORMS, names);
}

/* `word` names a missing device or, with `all`, a missing kind. */
static qn_status not_there(const list *l, const qn__device_table *kind, const char *word, int all,
                           qn_error *err) {
    char names[NAMES];
    const char *why = kind->absence ? kind->absence() : "";
    names_here(names);
    qn__fail(err, QN_UNSUPPORTED, "there is no device %s\"%s\"", all ? "of the kind " : "", word);
    qn__at(err, "`compute.devices` \"%s\"", l->text);
    if (devices_of(kind) == 0 && *why)
        return qn__remedy(err, QN_UNSUPPORTED, "%s%s this machine has %s", why,
                          why[strlen(why) - 1] == '?' ? "" : ";", names);
    return qn__remedy(err, QN_UNSUPPORTED, "this machine has %s; \"quern devices\" describes them",
                      names);
}

static qn_status add(list *l, qn__member member, qn_error *err) {
    char id[WORD], what[WORD + 64];
    for (uint32_t i = 0; i < l->count; ++i) {
        if (l->members[i].device != member.device || l->members[i].index != member.index)
            continue;
        id_of(member.device, member.index, id);
        snprintf(what, sizeof what, "%s is in the list of devices twice", id);
        return bad_list(l, err, what);
    }
    if (l->count == l->capacity) {
        snprintf(what, sizeof what, "a run takes at most %u devices", l->capacity);
        return bad_list(l, err, what);
    }
    l->members[l->count++] = member;
    return QN_OK;
}

/* Adds one device by number. */
static qn_status add_one(list *l, const qn__device_table *kind, uint32_t index, qn_error *err) {
    qn_device_info info = {.size = sizeof(qn_device_info)};
    char id[WORD];
    const qn_status status = kind->describe(index, &info, err);
    if (status != QN_OK)
        return status;
    if (!info.refused)
        return add(l, (qn__member){.device = kind, .index = index}, err);
    id_of(kind, index, id);
    qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: %s", id, info.reason);
    qn__at(err, "%s", info.name);
    return qn__remedy(err, QN_UNSUPPORTED, "leave %s out of `compute.devices`", id);
}

/* Adds all usable devices of a kind: `all` means those that work. */
static qn_status add_all(list *l, const qn__device_table *kind, qn_error *err) {
    const uint32_t before = l->count;
    qn_status status = devices_of(kind) > 0 ? QN_OK : not_there(l, kind, kind->name, 1, err);
    for (uint32_t i = 0; status == QN_OK && i < devices_of(kind); ++i) {
        qn_device_info info = {.size = sizeof(qn_device_info)};
        status = kind->describe(i, &info, err);
        if (status == QN_OK && !info.refused)
            status = add(l, (qn__member){.device = kind, .index = i, .optional = 1}, err);
    }
    /* If all are refused, the first gives the reason. */
    return status == QN_OK && l->count == before ? add_one(l, kind, 0, err) : status;
}

/* "cpu", "cpu:4", "cpu:all". */
static qn_status add_cpu(list *l, const qn__device_table *cpu, const char *cores, qn_error *err) {
    char what[WORD + 96];
    uint64_t threads = 0;
    if (cores && strcmp(cores, "all") != 0 &&
        (!qn__parse_u64(cores, strlen(cores), &threads) || threads < 1 || threads > 4096)) {
        snprintf(what, sizeof what, "invalid number of cores in \"cpu:%s\": it is 1 to 4096",
                 cores);
        return bad_list(l, err, what);
    }
    return add(l, (qn__member){.device = cpu, .threads = (int)threads}, err);
}

/* One word of the list: KIND, KIND:N or KIND:all. */
static qn_status add_word(list *l, char *word, qn_error *err) {
    char what[WORD + 64], whole[WORD];
    uint64_t index;
    snprintf(whole, sizeof whole, "%s", word);
    char *number = strchr(word, ':');
    if (number)
        *number++ = 0;
    if (!*word)
        return bad_list(l, err,
                        number ? "a device without its kind is in the list"
                               : "the list of devices has an empty entry");
    if (strcmp(word, "none") == 0 || strcmp(word, "auto") == 0) {
        snprintf(what, sizeof what, "\"%s\" stands alone, not in a list", word);
        return bad_list(l, err, what);
    }
    const qn__device_table *kind = qn__device_find(word);
    if (!kind || (!kind->absence && devices_of(kind) == 0))
        return unknown_kind(l, word, err);
    if (kind->host)
        return add_cpu(l, kind, number, err);
    if (!number || strcmp(number, "all") == 0)
        return add_all(l, kind, err);
    if (!qn__parse_u64(number, strlen(number), &index)) {
        snprintf(what, sizeof what, "\"%s\" is not the name of a device", whole);
        return bad_list(l, err, what);
    }
    if (index >= devices_of(kind))
        return not_there(l, kind, whole, 0, err);
    return add_one(l, kind, (uint32_t)index, err);
}

static qn_status add_words(list *l, qn_error *err) {
    qn_status status = QN_OK;
    const char *at = l->text;
    while (status == QN_OK) {
        char word[WORD];
        const size_t size = strcspn(at, ",");
        if (size >= WORD)
            return bad_list(l, err, "a name in the list of devices is too long");
        memcpy(word, at, size);
        word[size] = 0;
        status = add_word(l, word, err);
        if (!at[size])
            break;
        at += size + 1;
    }
    return status;
}

/* Devices that cannot be described are left out: they were not requested by name. */
static qn_status add_automatic(list *l, qn_error *err) {
    qn_status status = QN_OK;
    for (int k = 0; qn__devices[k] && status == QN_OK; ++k) {
        if (qn__devices[k]->likely && !qn__devices[k]->likely())
            continue;
        for (uint32_t i = 0; i < devices_of(qn__devices[k]) && status == QN_OK; ++i) {
            qn_device_info info = {.size = sizeof(qn_device_info)};
            if (l->count < l->capacity && qn__devices[k]->describe(i, &info, NULL) == QN_OK &&
                info.automatic && !info.refused)
                status = add(l,
                             (qn__member){.device = qn__devices[k],
                                          .index = i,
                                          .optional = !qn__devices[k]->host},
                             err);
        }
    }
    return status;
}

/* "3,1": a positive number for each member, in order. */
static qn_status read_shares(const char *shares, list *l, qn_error *err) {
    uint32_t count = 0;
    for (const char *at = shares;; ++at) {
        const size_t size = strcspn(at, ",");
        float share;
        if (!qn__parse_float(at, size, &share) || !(share > 0)) {
            qn__fail(err, QN_USAGE, "invalid share \"%.*s\"", (int)(size < 40 ? size : 40), at);
            qn__at(err, "`compute.shares` \"%s\"", shares);
            return qn__remedy(
                err, QN_USAGE,
                "write a number greater than 0 for each device of `compute.devices`, as in "
                "`compute.devices` cpu,cuda:0 `compute.shares` 1,3");
        }
        if (count < l->count)
            l->members[count].share = (double)share;
        ++count;
        at += size;
        if (!*at)
            break;
    }
    if (count == l->count)
        return QN_OK;
    qn__fail(err, QN_USAGE, "%u share%s of the work for %u device%s", count, count == 1 ? "" : "s",
             l->count, l->count == 1 ? "" : "s");
    qn__at(err, "`compute.shares` \"%s\"", shares);
    return qn__remedy(err, QN_USAGE, "write one number for each device of `compute.devices`");
}

qn_status qn__members_of(const qn_compute *compute, qn__member *members, uint32_t capacity,
                         uint32_t *count, qn_error *err) {
    list l = {.text = compute->devices ? compute->devices : "auto",
              .members = members,
              .capacity = capacity};
    qn_status status;
    *count = 0;
    if (strcmp(l.text, "none") == 0) {
        qn__fail(err, QN_USAGE, "no device is left to compute with");
        qn__at(err, "`compute.devices` \"none\"");
        return qn__remedy(err, QN_USAGE, FORMS);
    }
    status = strcmp(l.text, "auto") == 0 ? add_automatic(&l, err) : add_words(&l, err);
    if (status == QN_OK && compute->shares)
        status = read_shares(compute->shares, &l, err);
    if (status == QN_OK)
        *count = l.count;
    return status;
}

/* The word of the first layer that the device cannot compute in this arithmetic, or NULL. */
static const char *layer_lacking(const qn__device_table *device, const qn__program *program,
                                 qn__arith arith) {
    for (uint32_t l = 0; l < program->layers; ++l) {
        qn__layer layer = program->layer[l];
        qn__program one = *program;
        layer.skip = 0;
        one.layer = &layer;
        one.layers = 1;
        one.arith = arith;
        if (!device->supports(&one))
            return layer.conv_groups ? "conv groups" : qn__layer_ops_of(layer.kind)->word;
    }
    return NULL;
}

/* What is lacking is the arithmetic. */
static qn_status lacks_integers(const qn__program *program, qn_error *err) {
    char able[NAMES] = "";
    for (int k = 0; qn__devices[k]; ++k) {
        const size_t used = strlen(able);
        if (devices_of(qn__devices[k]) > 0 && qn__devices[k]->supports(program))
            snprintf(able + used, sizeof able - used, "%s%s", used ? " or " : "`compute.devices` ",
                     qn__devices[k]->name);
    }
    if (!*able)
        return qn__remedy(err, QN_UNSUPPORTED, "no device here does: use `train.arith` f32");
    return qn__remedy(err, QN_UNSUPPORTED, "use %s, which does, or `train.arith` f32", able);
}

qn_status qn__member_lacks(const char *name, const qn__device_table *device,
                           const qn__program *program, qn_error *err) {
    const int bits = qn__arith_bits(program->arith);
    const char *floats = layer_lacking(device, program, QN__ARITH_F32);
    const char *integers = bits ? layer_lacking(device, program, program->arith) : NULL;
    if (floats)
        qn__fail(err, QN_UNSUPPORTED, "%s does not compute the layer \"%s\"", name, floats);
    else if (integers)
        qn__fail(err, QN_UNSUPPORTED,
                 "%s does not compute the layer \"%s\" with integers (`train.arith` i%d)", name,
                 integers, bits);
    else if (bits)
        qn__fail(err, QN_UNSUPPORTED, "%s does not compute with integers (`train.arith` i%d)", name,
                 bits);
    else
        qn__fail(err, QN_UNSUPPORTED, "%s cannot compute this model exactly", name);
    if (floats || !bits)
        return qn__remedy(err, QN_UNSUPPORTED, "leave the device out");
    return lacks_integers(program, err);
}

static qn_status check_compute(const qn_compute *compute, qn_error *err) {
    for (size_t i = 0; i < sizeof compute->reserved / sizeof *compute->reserved; ++i)
        if (compute->reserved[i]) {
            qn__fail(err, QN_USAGE, "compute.reserved[%zu] is not NULL", i);
            return qn__remedy(err, QN_USAGE, "set the whole struct to zero before its members");
        }
    qn__member members[QN__MAX_WORKERS];
    uint32_t count;
    qn_status status = QN_OK;
    for (int k = 0; qn__devices[k] && status == QN_OK; ++k)
        if (qn__devices[k]->check)
            status = qn__devices[k]->check(compute, err);
    if (status != QN_OK)
        return status;
    /* Less than the time of one reply is a mistake, and would lose every device. */
    if (compute->device_timeout != 0 &&
        !(compute->device_timeout >= 0.001 && compute->device_timeout <= 86400)) {
        qn__fail(err, QN_USAGE, "a device cannot be given %g seconds to answer",
                 compute->device_timeout);
        return qn__remedy(
            err, QN_USAGE,
            "`compute.device_timeout` takes seconds, at most 86400 and at least 0.001; 0 is "
            "the default of 60");
    }
    if (compute->parts < 0 || compute->parts > QN__MOST_PARTS) {
        qn__fail(err, QN_USAGE, "a step cannot be computed in %d parts", compute->parts);
        return qn__remedy(err, QN_USAGE,
                          "give `compute.parts` from 1 to %d; 0 is as many as the memory asks for",
                          QN__MOST_PARTS);
    }
    if (compute->recompute != 0 && compute->recompute != 1) {
        qn__fail(err, QN_USAGE, "`compute.recompute` cannot be %d", compute->recompute);
        return qn__remedy(err, QN_USAGE, "give 1, or 0 to keep all outputs");
    }
    if (compute->cache_features != 0 && compute->cache_features != 1) {
        qn__fail(err, QN_USAGE, "`compute.cache_features` cannot be %d", compute->cache_features);
        return qn__remedy(err, QN_USAGE, "give 1, or 0 to compute them in each epoch");
    }
    /* "auto" is always valid; checking it would only take time. */
    if (!compute->shares && (!compute->devices || strcmp(compute->devices, "auto") == 0))
        return QN_OK;
    return qn__members_of(compute, members, QN__MAX_WORKERS, &count, err);
}

qn_status qn_compute_check(const qn_compute *compute, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(compute, err);
    qn_compute own = {.size = sizeof own};
    const qn_status status = qn__sized_take(QN__SIZED("compute", qn_compute), compute, &own, err);
    return status == QN_OK ? check_compute(&own, err) : status;
}
