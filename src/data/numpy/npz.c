/* NPZ: a ZIP archive of NPY files, each with the name of an array. */
#include "data/numpy/npz.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

struct qn__npz {
    const qn__source *source;
    qn__zip *zip;
    char **name; /* of each entry: the array's, or NULL for another file */
    qn__zip_stream *open;
};

/* What features and their labels are called. A name may also have a word before or after it:
 * train_x, x_train. */
enum { PARTNERS = 5 };
static const struct {
    const char *features, *labels[PARTNERS];
} pairs[] = {
    {"x", {"y"}},
    {"X", {"y", "Y"}},
    {"data", {"labels", "label", "targets", "target", "y"}},
    {"images", {"labels", "label", "targets", "target"}},
    {"features", {"labels", "label", "targets", "target"}},
    {"inputs", {"targets", "target", "labels", "label"}},
    {"arr_0", {"arr_1"}},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };
/* Arrays that are taken when none is named, in this order. */
static const char *const forms[] = {"%s", "%s_train", "train_%s"};
enum { FORMS = sizeof forms / sizeof *forms, NAME_CAPACITY = 256 };

static uint64_t find(const qn__npz *npz, const char *name) {
    uint64_t at = 0;
    while (at < npz->zip->count && !(npz->name[at] && strcmp(npz->name[at], name) == 0))
        at++;
    return at;
}

static const char *known(const qn__npz *npz, const char *name) {
    const uint64_t at = find(npz, name);
    return at < npz->zip->count ? npz->name[at] : NULL;
}

/* The names in the archive, for a message. */
static void list_names(const qn__npz *npz, char text[NAME_CAPACITY]) {
    size_t used = 0;
    *text = '\0';
    for (uint64_t i = 0; i < npz->zip->count; i++) {
        const char *name = npz->name[i];
        if (!name)
            continue;
        if (used + strlen(name) + 8 > NAME_CAPACITY) {
            snprintf(text + used, NAME_CAPACITY - used, " ...");
            return;
        }
        used += (size_t)snprintf(text + used, NAME_CAPACITY - used, "%s%s", used ? ", " : "", name);
    }
}

static qn_status refuse_name(const qn__npz *npz, const char *name, const char *what,
                             qn_error *err) {
    char names[NAME_CAPACITY];
    list_names(npz, names);
    if (name)
        qn__fail(err, QN_INPUT, "the archive has no array \"%s\", only %s", name, names);
    else
        qn__fail(err, QN_INPUT, "none of the archive's arrays has a name for %s: %s", what, names);
    qn__at(err, "%s", qn__source_path(npz->source));
    return qn__remedy(err, QN_INPUT, "name the array after a colon: FILE.npz:NAME");
}

static qn_status take_names(qn__npz *npz, qn_error *err) {
    uint64_t arrays = 0;
    npz->name = qn__alloc(npz->zip->count, sizeof *npz->name, err);
    if (!npz->name)
        return QN_MEMORY;
    for (uint64_t i = 0; i < npz->zip->count; i++) {
        const char *file = npz->zip->entry[i].name;
        const size_t size = strlen(file);
        if (size < 4 || strcmp(file + size - 4, ".npy") != 0)
            continue;
        char *name = qn__copy_text(file, err);
        if (!name)
            return QN_MEMORY;
        name[size - 4] = '\0';
        npz->name[i] = name;
        arrays++;
    }
    if (arrays > 0)
        return QN_OK;
    qn__fail(err, QN_INPUT,
             "the file is a ZIP archive without NumPy arrays; many spreadsheets are ZIP archives");
    qn__at(err, "%s", qn__source_path(npz->source));
    return qn__remedy(err, QN_INPUT, "write arrays with numpy.savez, or a spreadsheet as CSV");
}

qn_status qn__npz_open(const qn__source *source, qn__npz **out, qn_error *err) {
    *out = NULL;
    qn__npz *npz = qn__alloc(1, sizeof *npz, err);
    if (!npz)
        return QN_MEMORY;
    npz->source = source;
    qn_status status = qn__zip_open(qn__source_descriptor(source), qn__source_path(source),
                                    qn__source_file_size(source), &npz->zip, err);
    if (status == QN_OK)
        status = take_names(npz, err);
    if (status != QN_OK) {
        qn__npz_close(npz);
        return status;
    }
    *out = npz;
    return QN_OK;
}

void qn__npz_close(qn__npz *npz) {
    if (!npz)
        return;
    qn__zip_end(npz->open);
    for (uint64_t i = 0; npz->name && i < npz->zip->count; i++)
        qn__free(npz->name[i]);
    qn__free(npz->name);
    qn__zip_close(npz->zip);
    qn__free(npz);
}

/* ------------------------------------------------------------------ names */

/* The array that the source names, or the only one; NULL: neither. */
static qn_status named(const qn__npz *npz, const char **name, qn_error *err) {
    const char *part = qn__source_part(npz->source);
    *name = NULL;
    if (part) {
        *name = known(npz, part);
        return *name ? QN_OK : refuse_name(npz, part, NULL, err);
    }
    uint64_t arrays = 0;
    for (uint64_t i = 0; i < npz->zip->count; i++)
        if (npz->name[i]) {
            *name = npz->name[i];
            arrays++;
        }
    *name = arrays == 1 ? *name : NULL;
    return QN_OK;
}

static const char *known_form(const qn__npz *npz, const char *form, const char *base) {
    char name[NAME_CAPACITY];
    const char *gap = strstr(form, "%s");
    snprintf(name, sizeof name, "%.*s%s%s", (int)(gap - form), form, base, gap + 2);
    return known(npz, name);
}

qn_status qn__npz_features(const qn__npz *npz, const char **name, qn_error *err) {
    const qn_status status = named(npz, name, err);
    for (int f = 0; f < FORMS; f++)
        for (int p = 0; p < PAIRS && status == QN_OK && !*name; p++)
            *name = known_form(npz, forms[f], pairs[p].features);
    return status != QN_OK || *name ? status : refuse_name(npz, NULL, "features", err);
}

qn_status qn__npz_labels(const qn__npz *npz, const char **name, qn_error *err) {
    const qn_status status = named(npz, name, err);
    for (int f = 0; f < FORMS; f++)
        for (int i = 0; i < PAIRS * PARTNERS && status == QN_OK && !*name; i++) {
            const char *label = pairs[i / PARTNERS].labels[i % PARTNERS];
            *name = label ? known_form(npz, forms[f], label) : NULL;
        }
    return status != QN_OK || *name ? status : refuse_name(npz, NULL, "labels", err);
}

/* The labels of `features` when that is `before` and `base` and `after`; they keep both words. */
static const char *partner(const qn__npz *npz, const char *features, int p) {
    const char *base = pairs[p].features;
    const size_t size = strlen(features), length = strlen(base);
    if (size < length || size >= NAME_CAPACITY / 2)
        return NULL;
    const int leads =
        strncmp(features, base, length) == 0 && (size == length || features[length] == '_');
    const int ends = size > length && features[size - length - 1] == '_' &&
                     strcmp(features + size - length, base) == 0;
    const char *found = NULL;
    for (int i = 0; i < PARTNERS && !found && pairs[p].labels[i]; i++) {
        char name[NAME_CAPACITY];
        const char *label = pairs[p].labels[i];
        snprintf(name, sizeof name, "%s%s", label, features + length);
        found = leads ? known(npz, name) : NULL;
        snprintf(name, sizeof name, "%.*s%s", (int)(size - length), features, label);
        found = ends && !found ? known(npz, name) : found;
    }
    return found;
}

const char *qn__npz_labels_of(const qn__npz *npz, const char *features) {
    const char *found = NULL;
    for (int p = 0; p < PAIRS && !found; p++)
        found = partner(npz, features, p);
    return found;
}

qn_status qn__npz_find(const qn__npz *npz, const char *name, qn_error *err) {
    return known(npz, name) ? QN_OK : refuse_name(npz, name, NULL, err);
}

/* ------------------------------------------------------------------ arrays */

qn_status qn__npz_begin(qn__npz *npz, const char *name, qn__npy_bytes *bytes, qn_error *err) {
    const qn__zip_entry *entry = &npz->zip->entry[find(npz, name)];
    const qn_status status = qn__zip_begin(npz->zip, entry, &npz->open, err);
    if (status != QN_OK)
        return status;
    *bytes = (qn__npy_bytes){.read = qn__zip_read,
                             .self = npz->open,
                             .size = entry->size,
                             .exact = 1,
                             .path = npz->zip->path};
    snprintf(bytes->of, sizeof bytes->of, " of the array %.60s", name);
    return QN_OK;
}

void qn__npz_end(qn__npz *npz, qn__npy_bytes *bytes) {
    qn__zip_end(npz->open);
    npz->open = NULL;
    *bytes = (qn__npy_bytes){0};
}
