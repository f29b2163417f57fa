#include "data/open/same_options.h"
#include "cluster/agreement.h"
#include "data/table/data_options.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *name;
    size_t at;    /* of the text in qn_data_options */
    int of_files; /* 1: of the files of each rank, where these are parts */
} row;

#define TEXT(member, files)                                                                        \
    { "`data." #member "`", offsetof(qn_data_options, member), files }

static const row texts[] = {
    TEXT(label_column, 0), TEXT(task, 0),        TEXT(features, 0), TEXT(drop, 0),
    TEXT(category, 0),     TEXT(weight, 0),      TEXT(text, 0),     TEXT(text_features, 0),
    TEXT(dates, 0),        TEXT(date_format, 0), TEXT(resize, 0),   TEXT(shape, 0),
    TEXT(ignore, 0),       TEXT(item, 0),        TEXT(header, 1),   TEXT(query, 1),
};
enum { TEXTS = sizeof texts / sizeof *texts, NUMBERS = 4 };

/* What a rank says; "auto" is the default of all that have it. */
static const char *value_of(const qn_data_options *o, const row *r) {
    const char *text;
    memcpy(&text, (const char *)o + r->at, sizeof text);
    return text && strcmp(text, "auto") != 0 ? text : "the default";
}

static qn_status compare(qn_cluster *cluster, const qn_data_options *o, int parts,
                         const qn_error *own, qn_error *err) {
    static const char *const names[NUMBERS] = {"`data.unlabelled`", "`data.skip_broken`",
                                               "the outputs of the model", "`data.context`"};
    const unsigned value[NUMBERS] = {o->unlabelled != 0, o->skip_broken != 0, o->classes,
                                     o->context};
    char text[NUMBERS][16];
    qn_agreement item[TEXTS + NUMBERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < TEXTS; i++)
        if (!parts || !texts[i].of_files)
            item[count++] = (qn_agreement){.name = texts[i].name, .value = value_of(o, &texts[i])};
    for (uint32_t i = 0; i < NUMBERS; i++) {
        snprintf(text[i], sizeof text[i], "%u", value[i]);
        item[count++] = (qn_agreement){.name = names[i], .value = text[i]};
    }
    for (uint32_t i = 0; i < count; i++) {
        item[i].size = sizeof *item;
        item[i].remedy = "start all ranks with the same options";
    }
    return qn__cluster_agree(cluster, own, item, count, NULL, err);
}

qn_status qn__same_options(qn_cluster *cluster, const char *function, const qn_data_options *given,
                           int parts, qn_data_options *out, qn_error *err) {
    qn_error own = {0};
    const qn_status status = qn__data_options_take(function, given, out, &own);
    if (status != QN_OK)
        qn_data_options_init(out);
    if (cluster)
        return compare(cluster, out, parts, &own, err);
    if (err)
        *err = own;
    return status;
}
