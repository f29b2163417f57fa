#include "data/images/image_classes.h"
#include "base/memory.h"
#include "data/cells/label_values.h"
#include "data/cells/labels.h"
#include "data/cells/text_column.h"
#include "data/images/image_names.h"
#include "data/table/rules.h"
#include <string.h>

/* The part of the names from..to-1 that is skipped: folders that hold everything, as "train/" in an
 * archive of the folder "train", as long as there is another folder below. Clutter does not count,
 * unless `marks` is NULL. */
static size_t common_folders(const qn__enclosed_files *f, const uint8_t *marks, uint64_t from,
                             uint64_t to) {
    size_t skip = f->file[from].top;
    uint64_t begin = from;
    while (begin + 1 < to && marks && marks[begin] == QN__FILE_CLUTTER)
        begin++;
    for (;;) {
        const char *first = f->file[begin].name;
        const size_t size = strcspn(first + skip, "/") + 1;
        for (uint64_t i = begin; i < to; i++) {
            const char *name = f->file[i].name;
            if (marks && marks[i] == QN__FILE_CLUTTER)
                continue;
            if (strncmp(name, first, skip + size) != 0 || !strchr(name + skip, '/') ||
                !strchr(name + skip + size, '/'))
                return skip;
        }
        skip += size;
    }
}

static qn_status refuse_top(const qn__enclosed_files *f, uint64_t i, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file lies beside the folders of the classes, in none of them");
    qn__enclosed_files_at(f, i, err);
    return qn__remedy(err, QN_INPUT,
                      "move it into the folder of its class, or remove it; with "
                      "`data.unlabelled` folders mean nothing");
}

/* Files that lie in no folder; all of them: there are no classes. */
static qn_status check_top(const qn__enclosed_files *f, const uint8_t *marks, int *none,
                           qn_error *err) {
    uint64_t top = 0, last = 0, clutter = 0;
    for (uint64_t i = 0; i < f->count; i++)
        if (marks[i] == QN__FILE_CLUTTER) {
            clutter++;
        } else if (!strchr(f->file[i].name + f->file[i].top, '/')) {
            last = i;
            top++;
        }
    *none = top == f->count - clutter;
    return top == 0 || *none ? QN_OK : refuse_top(f, last, err);
}

typedef struct labelling {
    const qn__enclosed_files *files;
    const uint8_t *marks;
    size_t *skip; /* of the names of each folder or archive */
    qn_data *data;
    double *value; /* of each item, where the names of all folders are numbers */
    qn__text_set texts;
} labelling;

static qn__cell class_of(const labelling *l, uint64_t i) {
    const char *name = l->files->file[i].name + l->skip[l->files->file[i].of];
    return (qn__cell){.text = name, .size = strcspn(name, "/")};
}

/* 0 when a folder has a name that is not a number. */
static int take_values(labelling *l) {
    uint64_t item = 0;
    for (uint64_t i = 0; i < l->files->count; i++) {
        const qn__cell cell = class_of(l, i);
        if (!l->marks[i] && !qn__class_value(&cell, &l->value[item++]))
            return 0;
    }
    return 1;
}

static qn_status take_texts(labelling *l, qn_error *err) {
    uint64_t item = 0;
    qn_status status = qn__data_need_labels(l->data, err);
    for (uint64_t i = 0; status == QN_OK && i < l->files->count; i++) {
        uint32_t number = 0;
        const qn__cell cell = class_of(l, i);
        if (l->marks[i])
            continue;
        status = qn__text_column_add(&l->texts, cell.text, cell.size, 1, &number, err);
        l->data->labels[item++] = (int32_t)number;
        if (status == QN_INPUT) {
            qn__enclosed_files_at(l->files, i, err);
            return qn__remedy(err, QN_INPUT, "rename the folder; its name is that of the class");
        }
    }
    return status == QN_OK ? qn__labels_from_texts(l->data, &l->texts, err) : status;
}

/* Numbers are class numbers by the rule of all formats: docs/exactness.md 2.1.5. */
static qn_status settle_values(labelling *l, const qn_data_options *options, qn_error *err) {
    uint64_t item = 0;
    qn_data_options own = *options;
    if (!own.task || strcmp(own.task, "regress") != 0)
        own.task = "classify";
    qn_status status = qn__labels_from_numbers(l->data, l->value, own.task, &item, err);
    if (status == QN_OK)
        return qn__labels_settle(l->data, &own, 1, l->files->path, err);
    qn__at(err, "%s", l->files->path);
    return qn__remedy(err, status, "give the folders names, or smaller numbers");
}

static qn_status label(labelling *l, const qn_data_options *options, qn_error *err) {
    l->value = qn__alloc(l->data->items, sizeof *l->value, err);
    if (!l->value)
        return QN_MEMORY;
    if (take_values(l))
        return settle_values(l, options, err);
    if (!options->task || strcmp(options->task, "regress") != 0)
        return take_texts(l, err);
    qn__fail(err, QN_INPUT, "the names of the folders are texts, and regression needs numbers");
    qn__at(err, "%s", l->files->path);
    return qn__remedy(err, QN_INPUT, "leave `data.task` out, or set it to classify");
}

/* By the old rule a folder of clutter was refused, unless broken files were left out. */
static qn_status find_skips(labelling *l, const qn_data_options *options, qn_error *err) {
    const qn__enclosed_files *f = l->files;
    const int rule = qn__rule_holds(options, QN__RULE_FILES) || !options->skip_broken;
    l->skip = qn__alloc(f->several ? f->several : 1, sizeof *l->skip, err);
    if (!l->skip)
        return QN_MEMORY;
    for (uint64_t from = 0, to; from < f->count; from = to) {
        const uint32_t of = f->file[from].of;
        for (to = from + 1; to < f->count && f->file[to].of == of;)
            to++;
        const size_t old = common_folders(f, NULL, from, to);
        const size_t skip = common_folders(f, l->marks, from, to);
        l->data->rules |= rule && skip != old ? QN__RULE_FILES : 0;
        l->skip[of] = rule ? skip : old;
    }
    return QN_OK;
}

qn_status qn__image_classes(const qn__enclosed_files *files, const uint8_t *marks,
                            const qn_data_options *options, qn_data *data, qn_error *err) {
    int none = 0;
    labelling l = {.files = files, .marks = marks, .data = data};
    qn_status status = check_top(files, marks, &none, err);
    if (status != QN_OK || none)
        return status;
    status = find_skips(&l, options, err);
    if (status == QN_OK)
        status = label(&l, options, err);
    qn__text_set_release(&l.texts);
    qn__free(l.value);
    qn__free(l.skip);
    return status;
}
