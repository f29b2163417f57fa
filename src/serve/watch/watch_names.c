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

static void free_entry(qn__watch_name *entry) {
    qn__free(entry->name);
    qn__free(entry->version);
    qn__free(entry);
}

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
            free_entry(entry);
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
    qn__watch_name *const known = *at;
    if (known)
        return known;
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
        if (names->slot[k])
            free_entry(names->slot[k]);
    qn__free(names->slot);
}

/* ----------------------------------------------------------------------------------- identities
 */

static qn__watch_identity *identity_place(const qn__watch_identities *all, uint64_t file) {
    uint64_t k = file & (all->slots - 1);
    while (all->slot[k].file && all->slot[k].file != file)
        k = (k + 1) & (all->slots - 1);
    return &all->slot[k];
}

void qn__watch_identities_release(qn__watch_identities *all) {
    for (uint64_t k = 0; k < all->slots; ++k)
        qn__free(all->slot[k].name);
    qn__free(all->slot);
    *all = (qn__watch_identities){.count = 0};
}

static int grow(qn__watch_identities *all) {
    if (all->count >= MOST_IDENTITIES)
        qn__watch_identities_release(all);
    const uint64_t slots = all->slots ? 2 * all->slots : FIRST_SLOTS;
    qn__watch_identities made = {
        .slot = qn__alloc(slots, sizeof *made.slot, NULL), .slots = slots, .count = all->count};
    if (!made.slot)
        return 0;
    for (uint64_t k = 0; k < all->slots; ++k)
        if (all->slot[k].file)
            *identity_place(&made, all->slot[k].file) = all->slot[k];
    qn__free(all->slot);
    *all = made;
    return 1;
}

static uint64_t number_of(const qn__watch_who *who) {
    return qn__siphash(&key, who, sizeof *who) | 1;
}

const char *qn__watch_identities_find(qn__watch_identities *all, const qn__watch_who *who,
                                      const char *name) {
    if (2 * all->count >= all->slots && !grow(all))
        return NULL;
    const uint64_t file = number_of(who);
    qn__watch_identity *at = identity_place(all, file);
    if (at->name)
        return at->name;
    all->count += at->file == 0;
    at->file = file;
    at->name = qn__copy_text(name, NULL);
    return NULL;
}

void qn__watch_identities_forget(qn__watch_identities *all, const qn__watch_who *who) {
    if (all->slots == 0)
        return;
    qn__watch_identity *at = identity_place(all, number_of(who));
    qn__free(at->name);
    at->name = NULL;
}
