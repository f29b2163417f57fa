#include "serve/watch/watch_names.h"

#include "base/digest/siphash.h"
#include "base/memory.h"
#include <string.h>

/* Of identities so many are kept: a file is renamed soon after it was written. */
enum { FIRST_SLOTS = 1024, MOST_IDENTITIES = 1 << 17 };

static const qn__siphash_key key = {{0x7175657277617463, 0x6e616d6573303031}};

static uint64_t hash_of(const char *name) { return qn__siphash(&key, name, strlen(name)); }

int64_t qn__modified(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* ---------------------------------------------------------------------------------------- names */

static qn__watch_name **place_of(const qn__watch_names *names, const char *name) {
    uint64_t k = hash_of(name) & (names->slots - 1);
    while (names->slot[k] && strcmp(names->slot[k]->name, name) != 0)
        k = (k + 1) & (names->slots - 1);
    return &names->slot[k];
}

/* Moves all entries that `keeps` to a table of `slots`. */
static int rebuild(qn__watch_names *names, uint64_t slots, uint64_t looked, qn_error *err) {
    qn__watch_names made = {.slot = qn__alloc(slots, sizeof *made.slot, err), .slots = slots};
    if (!made.slot)
        return 0;
    for (uint64_t k = 0; k < names->slots; ++k) {
        qn__watch_name *entry = names->slot[k];
        if (!entry)
            continue;
        if (looked && entry->state != QN__NAME_QUEUED && entry->looked != looked) {
            qn__free(entry->name);
            qn__free(entry);
            continue;
        }
        *place_of(&made, entry->name) = entry;
        ++made.count;
    }
    qn__free(names->slot);
    *names = made;
    return 1;
}

qn__watch_name *qn__watch_names_get(qn__watch_names *names, const char *name, qn_error *err) {
    if (2 * names->count >= names->slots &&
        !rebuild(names, names->slots ? 2 * names->slots : FIRST_SLOTS, 0, err))
        return NULL;
    qn__watch_name **at = place_of(names, name);
    if (*at)
        return *at;
    qn__watch_name *entry = qn__alloc(1, sizeof *entry, err);
    if (entry && !(entry->name = qn__copy_text(name, err))) {
        qn__free(entry);
        entry = NULL;
    }
    if (!entry)
        return NULL;
    entry->size = -1;
    *at = entry;
    ++names->count;
    return entry;
}

void qn__watch_names_sweep(qn__watch_names *names, uint64_t looked) {
    if (names->count > 0)
        rebuild(names, names->slots, looked, NULL);
}

void qn__watch_names_release(qn__watch_names *names) {
    for (uint64_t k = 0; k < names->slots; ++k)
        if (names->slot[k]) {
            qn__free(names->slot[k]->name);
            qn__free(names->slot[k]);
        }
    qn__free(names->slot);
}

/* ----------------------------------------------------------------------------------- identities */

static uint64_t *identity_place(const qn__watch_identities *all, uint64_t file) {
    uint64_t k = file & (all->slots - 1);
    while (all->slot[2 * k] && all->slot[2 * k] != file)
        k = (k + 1) & (all->slots - 1);
    return &all->slot[2 * k];
}

static int grow(qn__watch_identities *all) {
    if (all->count >= MOST_IDENTITIES) {
        memset(all->slot, 0, all->slots * 2 * sizeof *all->slot);
        all->count = 0;
        return 1;
    }
    const uint64_t slots = all->slots ? 2 * all->slots : FIRST_SLOTS;
    qn__watch_identities made = {
        .slot = qn__alloc(slots, 2 * sizeof *made.slot, NULL), .slots = slots, .count = all->count};
    if (!made.slot)
        return 0;
    for (uint64_t k = 0; k < all->slots; ++k)
        if (all->slot[2 * k])
            memcpy(identity_place(&made, all->slot[2 * k]), &all->slot[2 * k],
                   2 * sizeof *made.slot);
    qn__free(all->slot);
    *all = made;
    return 1;
}

int qn__watch_renamed(qn__watch_identities *all, const struct stat *info, const char *name) {
    const uint64_t facts[4] = {(uint64_t)info->st_dev, (uint64_t)info->st_ino,
                               (uint64_t)qn__modified(info), (uint64_t)info->st_size};
    const uint64_t file = qn__siphash(&key, facts, sizeof facts) | 1;
    if (info->st_nlink > 1 || (2 * all->count >= all->slots && !grow(all)))
        return 0;
    uint64_t *at = identity_place(all, file);
    if (at[0])
        return at[1] != hash_of(name);
    at[0] = file;
    at[1] = hash_of(name);
    ++all->count;
    return 0;
}
