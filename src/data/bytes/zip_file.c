#include "data/bytes/zip_file.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/bytes/zip.h"
#include <stdio.h>
#include <string.h>

enum { NAMES_CAPACITY = 256 };

struct qn__zip_file {
    qn__zip *zip;
    qn__zip_stream *stream;
};

int qn__is_zip(const uint8_t *first, size_t size) {
    return size >= 4 && (memcmp(first, "PK\3\4", 4) == 0 || memcmp(first, "PK\5\6", 4) == 0);
}

static qn_status refuse(const char *path, qn_error *err, const char *remedy) {
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* ------------------------------------------------------------------ names */

int qn__ends_with_one_of(const char *name, const char *const *endings) {
    const char *dot = strrchr(name, '.');
    for (; dot && *endings; endings++)
        if (qn__same_word(*endings, dot + 1, strlen(dot + 1)) && strlen(dot + 1) > 0)
            return 1;
    return 0;
}

static int is_image(const char *name) {
    static const char *const endings[] = {"jpg",  "jpeg", "png",  "gif",  "bmp", "tif", "tiff",
                                          "webp", "heic", "heif", "avif", "jp2", "svg", NULL};
    return qn__ends_with_one_of(name, endings);
}

static int is_array(const char *name) {
    static const char *const endings[] = {"npy", NULL};
    return qn__ends_with_one_of(name, endings);
}

/* Folders, and what macOS and others put beside the files. */
static int is_ignored(const char *name) {
    const size_t size = strlen(name);
    if (size == 0 || name[size - 1] == '/' || strncmp(name, "__MACOSX/", 9) == 0 || *name == '.')
        return 1;
    for (const char *at = name; (at = strstr(at, "/.")) != NULL; at++)
        if (at[2] != '/' && at[2] != '.')
            return 1;
    return 0;
}

/* ------------------------------------------------------------------ documents */

static const struct {
    const char *entry, *what, *remedy;
} documents[] = {
    {"xl/workbook.xml", "an Excel workbook (.xlsx)",
     "save the sheet as CSV in UTF-8, or: pandas.read_excel(FILE).to_csv(NAME, index=False)"},
    {"xl/workbook.bin", "an Excel workbook (.xlsb)", "save the sheet as CSV in UTF-8"},
    {"word/document.xml", "a Word document (.docx)", "save its table as CSV in UTF-8"},
    {"META-INF/manifest.xml", "an OpenDocument file (such as .ods)",
     "save the sheet as CSV in UTF-8, or: pandas.read_excel(FILE).to_csv(NAME, index=False)"},
    {"data.pkl", "a PyTorch file, which holds pickled Python objects",
     "write arrays with numpy.savez, or a model with safetensors.torch.save_file"},
    {"config.json", "a Keras model, not data", "export its weights as safetensors"},
};

static int is_entry(const char *name, const char *wanted) {
    const size_t size = strlen(name), end = strlen(wanted);
    return size >= end && strcmp(name + size - end, wanted) == 0 &&
           (size == end || name[size - end - 1] == '/');
}

static qn_status refuse_document(const qn__zip *zip, qn_error *err) {
    int keras = 0;
    for (uint64_t i = 0; i < zip->count; i++)
        keras |= is_entry(zip->entry[i].name, "model.weights.h5");
    for (size_t k = 0; k < sizeof documents / sizeof *documents; k++)
        for (uint64_t i = 0; i < zip->count; i++) {
            if (!is_entry(zip->entry[i].name, documents[k].entry) ||
                (strcmp(documents[k].entry, "config.json") == 0 && !keras))
                continue;
            qn__fail(err, QN_INPUT, "Quern does not read such files: this is %s",
                     documents[k].what);
            return refuse(zip->path, err, documents[k].remedy);
        }
    return QN_OK;
}

/* ------------------------------------------------------------------ the file */

static void list_names(const qn__zip *zip, char text[NAMES_CAPACITY]) {
    size_t used = 0;
    *text = '\0';
    for (uint64_t i = 0; i < zip->count; i++) {
        const char *name = zip->entry[i].name;
        if (is_ignored(name))
            continue;
        if (used + strlen(name) + 8 > NAMES_CAPACITY) {
            snprintf(text + used, NAMES_CAPACITY - used, " ...");
            return;
        }
        used +=
            (size_t)snprintf(text + used, NAMES_CAPACITY - used, "%s%s", used ? ", " : "", name);
    }
}

static qn_status refuse_names(const qn__zip *zip, const char *part, qn_error *err) {
    char names[NAMES_CAPACITY];
    list_names(zip, names);
    if (part)
        qn__fail(err, QN_INPUT, "the ZIP archive has no file \"%.80s\", but %s", part, names);
    else
        qn__fail(err, QN_INPUT, "the ZIP archive holds several files: %s", names);
    return refuse(zip->path, err, "name one of them after a colon: archive.zip:train.csv");
}

/* What an archive without a named part holds. */
typedef struct contents {
    const qn__zip_entry *only; /* the last file that counts */
    uint64_t files;
    int images, arrays, tables;
    uint64_t texts; /* files whose names end in .txt */
} contents;

static contents look_at(const qn__zip *zip) {
    contents c = {0};
    for (uint64_t i = 0; i < zip->count; i++) {
        const qn__zip_entry *e = &zip->entry[i];
        if (is_ignored(e->name))
            continue;
        c.only = e;
        c.files++;
        c.images |= is_image(e->name);
        c.arrays |= is_array(e->name);
        c.tables |= qn__names_table(e->name);
        c.texts += (uint64_t)qn__names_text(e->name);
    }
    return c;
}

/* *entry is NULL where other readers take the archive. */
static qn_status find_only(const qn__zip *zip, const qn__zip_entry **entry, qn_error *err) {
    const contents c = look_at(zip);
    *entry = NULL;
    if (c.files == 0) {
        qn__fail(err, QN_INPUT, "there is no file in the ZIP archive");
        return refuse(zip->path, err, "give an archive with a data file");
    }
    const qn_status status = refuse_document(zip, err);
    if (status != QN_OK || c.images || c.arrays || (c.files > 1 && c.texts == c.files))
        return status;
    if (c.files == 1)
        *entry = c.only;
    return c.files > 1 && c.tables ? refuse_names(zip, NULL, err) : QN_OK;
}

static qn_status find_part(const qn__zip *zip, const char *part, const qn__zip_entry **entry,
                           qn_error *err) {
    *entry = NULL;
    for (uint64_t i = 0; i < zip->count && !*entry; i++)
        if (strcmp(zip->entry[i].name, part) == 0)
            *entry = &zip->entry[i];
    return *entry ? QN_OK : refuse_names(zip, part, err);
}

static int is_npz(const char *path) {
    const size_t size = strlen(path);
    return size >= 4 && strcmp(path + size - 4, ".npz") == 0;
}

static qn_status open_into(qn__zip_file *zipped, int file, const char *path, uint64_t size,
                           const char *part, int *taken, qn_error *err) {
    const qn__zip_entry *entry = NULL;
    qn_status status = qn__zip_open(file, path, size, &zipped->zip, err);
    if (status == QN_OK)
        status =
            part ? find_part(zipped->zip, part, &entry, err) : find_only(zipped->zip, &entry, err);
    *taken = entry && status == QN_OK;
    return *taken ? qn__zip_begin(zipped->zip, entry, &zipped->stream, err) : status;
}

qn_status qn__zip_file_open(int file, const char *path, uint64_t size, const char *part,
                            qn__zip_file **out, qn_error *err) {
    int taken = 0;
    *out = NULL;
    if (is_npz(path))
        return QN_OK;
    qn__zip_file *zipped = qn__alloc(1, sizeof *zipped, err);
    if (!zipped)
        return QN_MEMORY;
    const qn_status status = open_into(zipped, file, path, size, part, &taken, err);
    if (status == QN_OK && taken)
        *out = zipped;
    else
        qn__zip_file_close(zipped);
    return status;
}

qn_status qn__zip_file_read(qn__zip_file *zipped, void *bytes, size_t size, size_t *got,
                            qn_error *err) {
    return qn__zip_read(zipped->stream, bytes, size, got, err);
}

void qn__zip_file_close(qn__zip_file *zipped) {
    if (!zipped)
        return;
    qn__zip_end(zipped->stream);
    qn__zip_close(zipped->zip);
    qn__free(zipped);
}
