/* Files that are texts, in a folder or an archive, as a table of items (docs/exactness.md 25.84):
 * the columns "class", which is the folder that a file lies in, and "text". */
#include "base/memory.h"
#include "data/arrow/arrow_build.h"
#include "data/bytes/enclosed_texts.h"
#include "data/cells/cell.h"
#include "data/cells/readers.h"
#include <stdio.h>
#include <string.h>

enum { CLASS, TEXT };

typedef struct reading {
    qn__part_files *files;
    qn__enclosed_texts in; /* of an archive */
    int archive;
    const char **name; /* of each text: its path below the folder, or in the archive */
    uint64_t count;
    size_t skip; /* of each name: folders that hold everything */
    int classes; /* 0: no text lies in a folder */
    qn__arrow_build *build;
} reading;

static void at_text(const reading *r, uint64_t i, qn_error *err) {
    if (r->archive)
        qn__enclosed_files_at(&r->in.files, i, err);
    else
        qn__at(err, "%s", r->files->list->file[i].path);
}

/* ------------------------------------------------------------------ names */

static qn_status list_texts(reading *r, qn_error *err) {
    const qn__file_list *list = r->files->list;
    qn_status status = QN_OK;
    if (qn__part_files_are_one(r->files))
        status = qn__is_archive(r->files->first, &r->archive, err);
    if (status == QN_OK && r->archive)
        status = qn__enclosed_texts_open(r->files->first, &r->in, err);
    if (status != QN_OK)
        return status;
    r->count = r->archive ? r->in.files.count : list->count;
    r->name = (const char **)qn__alloc(r->count, sizeof *r->name, err);
    for (uint64_t i = 0; r->name && i < r->count; i++)
        r->name[i] =
            r->archive ? r->in.files.file[i].name : list->file[i].path + list->file[i].below;
    return r->name ? QN_OK : QN_MEMORY;
}

/* Whether all names go on with `size` bytes of the first one, and lie in another folder after
 * that. */
static int share(const reading *r, size_t size) {
    for (uint64_t i = 0; i < r->count; i++)
        if (strncmp(r->name[i] + r->skip, r->name[0] + r->skip, size) != 0 ||
            !strchr(r->name[i] + r->skip + size, '/'))
            return 0;
    return 1;
}

static qn_status find_classes(reading *r, qn_error *err) {
    uint64_t top = 0, last = 0;
    for (uint64_t i = 0; i < r->count; i++)
        if (!strchr(r->name[i], '/')) {
            last = i;
            top++;
        }
    r->classes = top == 0;
    while (r->classes && share(r, strcspn(r->name[0] + r->skip, "/") + 1))
        r->skip += strcspn(r->name[0] + r->skip, "/") + 1;
    if (top == 0 || top == r->count)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the text lies beside the folders of the classes, in none of them");
    at_text(r, last, err);
    return qn__remedy(err, QN_INPUT,
                      "move it into the folder of its class, or remove it; with "
                      "`data.unlabelled` folders mean nothing");
}

/* ------------------------------------------------------------------ rows */

static qn_status put_text(reading *r, uint64_t i, const uint8_t *bytes, size_t size,
                          qn_error *err) {
    const size_t mark = size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    const qn__cell cell = {.text = (const char *)bytes + mark, .size = size - mark};
    const uint64_t column = r->classes ? TEXT : 0;
    if (cell.size == 0)
        return qn__build_put_missing(r->build, column, err);
    if (qn__cell_is_utf8(&cell))
        return qn__build_put_text(r->build, column, cell.text, cell.size, err);
    qn__fail(err, QN_INPUT, "the text is not UTF-8, or holds a NUL");
    at_text(r, i, err);
    return qn__remedy(err, QN_INPUT,
                      "convert it to UTF-8: iconv -f latin1 -t utf-8 OLD > NEW; or leave it out");
}

static qn_status put_file(reading *r, uint64_t i, qn_error *err) {
    qn__source *source;
    qn__contents text = {0};
    qn_status status = qn__part_files_open(r->files, (size_t)i, &source, err);
    if (status != QN_OK)
        return status;
    status = qn__source_contents(source, &text, err);
    if (status == QN_OK)
        status = put_text(r, i, (const uint8_t *)text.data, text.size, err);
    qn__contents_release(&text);
    return qn__part_files_close(source, status, err);
}

static qn_status put_row(reading *r, uint64_t i, qn_error *err) {
    const char *class = r->name[i] + r->skip;
    const qn__cell cell = {.text = class, .size = strcspn(class, "/")};
    qn_status status = QN_OK;
    if (r->classes && !qn__cell_is_utf8(&cell)) {
        qn__fail(err, QN_INPUT, "the name of the folder is not UTF-8");
        at_text(r, i, err);
        return qn__remedy(err, QN_INPUT, "rename the folder; its name is that of the class");
    }
    if (r->classes)
        status = qn__build_put_text(r->build, CLASS, cell.text, cell.size, err);
    if (status != QN_OK)
        return status;
    return r->archive ? put_text(r, i, r->in.text[i], (size_t)r->in.files.file[i].size, err)
                      : put_file(r, i, err);
}

static qn_status make_columns(reading *r, qn_error *err) {
    static const char *const names[] = {[CLASS] = "class", [TEXT] = "text"};
    qn_status status = qn__build_create(&r->build, err);
    for (int k = r->classes ? CLASS : TEXT; status == QN_OK && k <= TEXT; k++)
        status = qn__build_add(r->build, names[k], strlen(names[k]), QN__BUILD_TEXT, err);
    for (uint64_t i = 0; status == QN_OK && i < r->count; i++)
        status = put_row(r, i, err);
    return status;
}

/* ------------------------------------------------------------------ the table */

/* Predictions name the files. */
static qn_status keep_names(const reading *r, qn_data *data, qn_error *err) {
    uint64_t size = 0;
    for (uint64_t i = 0; i < r->count; i++)
        size += strlen(r->name[i]) + 1;
    char *names = qn__alloc(size, 1, err), *to = names;
    if (!names)
        return QN_MEMORY;
    for (uint64_t i = 0; i < r->count; i++) {
        const size_t own = strlen(r->name[i]) + 1;
        memcpy(to, r->name[i], own);
        to += own;
    }
    const qn_status status = qn__item_names_take(names, size, data->items, &data->names, err);
    qn__free(names);
    return status;
}

static qn_status fill(reading *r, const qn_data_options *options, qn_data *data, qn_error *err) {
    qn_data_options own = *options;
    own.text = own.text ? own.text : "text";
    own.unlabelled |= !r->classes;
    if (r->classes && !own.unlabelled && !own.label_column)
        own.label_column = "class";
    return qn__build_fill(&r->build, r->files->name, &own, data, err);
}

static qn_status read(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                      qn_data *data, qn_error *err) {
    reading r = {.files = files};
    (void)pool;
    qn_status status = list_texts(&r, err);
    if (status == QN_OK && !options->unlabelled)
        status = find_classes(&r, err);
    if (status == QN_OK)
        status = make_columns(&r, err);
    if (status == QN_OK)
        status = fill(&r, options, data, err);
    if (status == QN_OK)
        status = keep_names(&r, data, err);
    if (r.archive)
        status = qn__source_end(files->first, status, err);
    qn__build_destroy(r.build);
    qn__enclosed_texts_release(&r.in);
    qn__free((void *)r.name);
    return status;
}

/* What files are such texts, their names and the options tell: data/open. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)first, (void)size, (void)path;
    return QN__PROBE_NO;
}

const qn__reader qn__texts_reader = {
    .name = QN__PACKED_NAMES("texts"),
    .about = "a folder or an archive of .txt files, in a folder for each class",
    .columns = 1,
    .typed = 1,
    .labels_remedy = "put the texts of each class into a folder of its name",
    .probe = probe,
    .read_parts = read,
};
