#include "base/system/energy.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int read_text(const char *folder, const char *zone, const char *file, char *text,
                     int capacity) {
    char path[QN__ENERGY_PATH * 2];
    const int size = snprintf(path, sizeof path, "%s/%s/%s", folder, zone, file);
    FILE *f = size > 0 && (size_t)size < sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return 0;
    const int found = fgets(text, capacity, f) != NULL;
    fclose(f);
    text[found ? strcspn(text, "\n") : 0] = 0;
    return found;
}

static int read_number(const char *path, uint64_t *value) {
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    const int found = fscanf(f, "%" SCNu64, value) == 1;
    fclose(f);
    return found;
}

/* "intel-rapl:0" is a zone; "intel-rapl:0:1" is a part of it. Of the parts only "dram" is not
 * included in the zone's counter. "psys" is the whole board, processors included, and would count
 * them twice. */
static int wanted(const char *folder, const char *zone) {
    char name[32];
    const char *number = strchr(zone, ':');
    if (strncmp(zone, "intel-rapl:", 11) != 0 ||
        !read_text(folder, zone, "name", name, sizeof name))
        return 0;
    if (strchr(number + 1, ':'))
        return strcmp(name, "dram") == 0;
    return strncmp(name, "package", 7) == 0;
}

static void add_domain(qn__energy *e, const char *folder, const char *zone) {
    char text[32];
    struct qn__energy_domain *d = &e->domain[e->domains];
    const int size = snprintf(d->path, sizeof d->path, "%s/%s/energy_uj", folder, zone);
    if (size < 0 || (size_t)size >= sizeof d->path || !read_number(d->path, &d->last))
        return;
    if (!read_text(folder, zone, "max_energy_range_uj", text, sizeof text) ||
        sscanf(text, "%" SCNu64, &d->range) != 1)
        d->range = 0;
    ++e->domains;
}

int qn__energy_open(qn__energy *e, const char *folder) {
    memset(e, 0, sizeof *e);
    DIR *zones = opendir(folder);
    if (!zones)
        return 0;
    for (const struct dirent *entry; (entry = readdir(zones)) && e->domains < QN__ENERGY_DOMAINS;)
        if (wanted(folder, entry->d_name))
            add_domain(e, folder, entry->d_name);
    closedir(zones);
    return e->domains;
}

int qn__energy_read(qn__energy *e, double *joules) {
    for (int i = 0; i < e->domains; ++i) {
        struct qn__energy_domain *d = &e->domain[i];
        uint64_t now;
        if (!read_number(d->path, &now))
            return 0;
        if (now >= d->last)
            e->joules += 1e-6 * (double)(now - d->last);
        else if (d->range >= d->last) /* wrapped around */
            e->joules += 1e-6 * (double)(d->range - d->last + now);
        d->last = now;
    }
    if (e->domains > 0)
        *joules = e->joules;
    return e->domains > 0;
}
