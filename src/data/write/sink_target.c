/* What the address of a sink says. */
#include "base/files/scheme.h"
#include "base/memory.h"
#include "data/bytes/server_address.h"
#include "data/write/sink_kinds.h"
#include <stdio.h>
#include <string.h>

static const qn__sink_kind *const kinds[] = {&qn__sqlite_sink, &qn__postgres_sink, &qn__csv_sink};

static const char *begins(const char *to, const char *scheme) {
    const size_t size = strlen(scheme);
    return strncmp(to, scheme, size) == 0 ? to + size : NULL;
}

/* The kind, and where in `to` the place begins. CSV is last, since it takes every path. */
static const qn__sink_kind *kind_of(const char *to, const char **place) {
    for (size_t k = 0; k + 1 < sizeof kinds / sizeof *kinds; k++)
        for (const char *const *scheme = kinds[k]->schemes; *scheme; scheme++)
            if ((*place = begins(to, *scheme)))
                return kinds[k];
    *place = to;
    return &qn__csv_sink;
}

int qn__sink_is_database(const char *to) {
    const char *place;
    return kind_of(to, &place)->database != NULL;
}

static qn_status refuse_option(const qn__sink_target *t, const char *name, size_t size,
                               const char *what, qn_error *err) {
    qn__fail(err, QN_USAGE, "the option \"%.*s\" of the address %s", (int)(size < 40 ? size : 40),
             name, what);
    qn__at(err, "%.400s", t->shown);
    return qn__remedy(err, QN_USAGE, "write ?table=NAME, ?run=NAME or ?table=NAME&run=NAME");
}

/* Takes "table=..." or "run=..."; *taken 0: it is another option. */
static qn_status take_option(qn__sink_target *t, const char *from, size_t size, int *taken,
                             qn_error *err) {
    static const char *const names[] = {"table=", "run="};
    char **const values[] = {&t->table, &t->run};
    *taken = 0;
    for (int k = 0; k < 2; k++) {
        const size_t name = strlen(names[k]);
        if (size < name || strncmp(from, names[k], name) != 0)
            continue;
        if (*values[k] || size == name)
            return refuse_option(t, from, name - 1, *values[k] ? "is given twice" : "has no value",
                                 err);
        *taken = 1;
        *values[k] = qn__percent_decode(from + name, size - name, err);
        return *values[k] ? QN_OK : QN_MEMORY;
    }
    return QN_OK;
}

/* Our options leave the address; a server's own stay. */
static qn_status take_options(qn__sink_target *t, const qn__sink_kind *kind, qn_error *err) {
    char *options = strrchr(t->place, '?');
    if (!options || !kind->database)
        return QN_OK;
    qn__text kept = {0};
    qn_status status = QN_OK;
    for (const char *at = options + 1; *at && status == QN_OK;) {
        const size_t size = strcspn(at, "&");
        int taken;
        status = take_option(t, at, size, &taken, err);
        if (status == QN_OK && !taken && !kind->is_server)
            status = refuse_option(t, at, strcspn(at, "=&"), "is not known", err);
        if (status == QN_OK && !taken)
            qn__text_add(&kept, "%s%.*s", kept.size ? "&" : "?", (int)size, at);
        at += size + (at[size] == '&');
    }
    if (status == QN_OK && kept.failed)
        status = qn__fail_memory(err, kept.size, 1);
    *options = '\0';
    if (status == QN_OK && kept.size) /* it is not longer than what was there */
        memcpy(options, kept.data, kept.size + 1);
    qn__text_release(&kept);
    return status;
}

static char *shown_of(const qn__sink_kind *kind, const char *place, qn_error *err) {
    if (kind->is_server)
        return qn__server_shown(place, err);
    char *shown = qn__copy_text(place, err);
    char *options = shown && kind->database ? strrchr(shown, '?') : NULL;
    if (options)
        *options = '\0';
    return shown;
}

qn_status qn__sink_target_of(const char *to, const qn__sink_kind **kind, qn__sink_target *out,
                             qn_error *err) {
    const char *place;
    *out = (qn__sink_target){0};
    *kind = kind_of(to, &place);
    if (!(*kind)->schemes && qn__scheme_refuse(to, err) != QN_OK)
        return QN_USAGE;
    place = (*kind)->is_server ? to : place;
    out->shown = shown_of(*kind, place, err);
    out->place = out->shown ? qn__copy_text(place, err) : NULL;
    if (!out->place)
        return QN_MEMORY;
    const qn_status status = take_options(out, *kind, err);
    if (status == QN_OK && out->run && strlen(out->run) >= QN__SINK_NAME)
        return refuse_option(out, "run", 3, "is longer than 127 bytes", err);
    if (status != QN_OK || *out->place)
        return status;
    qn__fail(err, QN_USAGE, "the address names no file");
    qn__at(err, "%.400s", to);
    return qn__remedy(err, QN_USAGE, "write it as sqlite:FILE?table=NAME");
}

void qn__sink_target_release(qn__sink_target *t) {
    qn__free(t->place);
    qn__free(t->table);
    qn__free(t->run);
    qn__free(t->shown);
    *t = (qn__sink_target){0};
}

qn_status qn__sink_check(const char *to, qn_error *err) {
    const qn__sink_kind *kind;
    qn__sink_target target;
    qn_status status = qn__sink_target_of(to, &kind, &target, err);
    if (status == QN_OK && kind->need)
        status = kind->need(&target, err);
    qn__sink_target_release(&target);
    return status;
}
