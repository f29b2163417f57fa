#include "serve/watch/watch_masks.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "data/table/data.h"
#include "model/formats/model.h"
#include "predict/predicted_masks.h"
#include <string.h>

/* Bytes of the last part of a name, beside which an ending and a temporary one find place. */
enum { LONGEST = 200 };

int qn__watch_has_masks(const qn_model *m) {
    return m->answers && m->mask.height > 0 && !m->tokens;
}

static int leads_out(const char *name) {
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return 1;
    }
    return 0;
}

/* "a.jpg.png": with its ending, so that a.jpg and a.bmp, which may come later, have two masks. A
 * version is a part of the name, too. */
static qn_status find_name(qn__watch_unit *u, qn_error *err) {
    const char *name = u->file;
    while (*name == '/' || strncmp(name, "./", 2) == 0)
        name += *name == '/' ? 1 : 2;
    const char *last = strrchr(name, '/');
    if (leads_out(name) || strlen(last ? last + 1 : name) > LONGEST)
        return qn__fail(err, QN_INPUT, "the mask cannot have the name of the file, which %s",
                        leads_out(name) ? "leads out of a folder" : "is too long");
    qn__text text = {0};
    qn__text_add(&text, "%s%s%s.png", name, u->version ? "." : "", u->version ? u->version : "");
    u->mask = qn__text_take(&text, err);
    return u->mask ? QN_OK : QN_MEMORY;
}

static qn_status write_one(const qn_model *m, const char *folder, qn__watch_unit *u,
                           qn_error *err) {
    const qn__predicted_masks masks = {.data = u->data,
                                       .answers = u->answer.answers,
                                       .rows = m->mask.height,
                                       .columns = m->mask.width};
    const qn_status status = u->mask ? QN_OK : find_name(u, err);
    if (status != QN_OK || !u->mask)
        return status;
    if (masks.answers[0] == QN__NO_TARGET)
        u->mask[0] = '\0';
    return u->mask[0] ? qn__predicted_mask_write(&masks, 0, folder, u->mask, err) : QN_OK;
}

qn_status qn__watch_masks_write(const qn_model *m, const char *folder, qn__watch_unit *units,
                                qn_error *err) {
    qn_error own;
    for (qn__watch_unit *u = units; u; u = u->next) {
        if (u->skip || u->status != QN_OK)
            continue;
        const qn_status status = write_one(m, folder, u, &own);
        if (status == QN_IO || status == QN_MEMORY) {
            *err = own;
            return status;
        }
        u->status = status;
        u->error = own;
    }
    return QN_OK;
}
