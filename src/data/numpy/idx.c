/* IDX, the format of MNIST: two zero bytes, a type, the number of dimensions, each dimension as a
 * big-endian 32-bit number, then the elements, the last dimension varying fastest.
 *
 * Only unsigned bytes (type 8) are supported. The first dimension counts the items, the others are
 * their shape. The header is checked against the size of the file. */
#include "base/files/file_stamp.h"
#include "base/memory.h"
#include "data/cells/readers.h"
#include "data/table/table_space.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct header {
    uint32_t dimensions;
    uint64_t items;
    uint64_t features;
    uint32_t second, third; /* dimensions, 0 if there are fewer */
    size_t size;            /* bytes of the header */
} header;

/* Reports an error at a byte of the uncompressed file. */
static qn_status refuse(const qn__source *source, size_t byte, const char *remedy, qn_error *err) {
    qn__at(err, "%s, byte %zu%s", qn__source_path(source), byte,
           qn__source_packing(source) ? " of the unpacked file" : "");
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static const char *type_name(uint8_t type) {
    switch (type) {
    case 0x09:
        return "signed bytes";
    case 0x0B:
        return "16-bit integers";
    case 0x0C:
        return "32-bit integers";
    case 0x0D:
        return "32-bit floats";
    case 0x0E:
        return "64-bit floats";
    default:
        return NULL;
    }
}

static qn_status check_type(const qn__source *source, const uint8_t magic[4], qn_error *err) {
    if (magic[2] == 0x08)
        return QN_OK;
    const char *name = type_name(magic[2]);
    if (name) {
        qn__fail(err, QN_INPUT,
                 "this IDX file holds %s (type %u); only unsigned bytes (type 8) are read", name,
                 (unsigned)magic[2]);
        return refuse(source, 2, "write the values as CSV, or convert them to unsigned bytes", err);
    }
    qn__fail(err, QN_INPUT, "the file begins like IDX, but %u is not a type of IDX",
             (unsigned)magic[2]);
    return refuse(source, 2, "give a CSV file or an IDX file of unsigned bytes (type 8)", err);
}

static qn_status cut_header(const qn__source *source, size_t byte, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file ends inside its IDX header");
    return refuse(source, byte, "copy or download the file again", err);
}

/* Multiplies the dimensions after the first, which was read before. */
static qn_status read_dimensions(qn__source *source, header *head, qn_error *err) {
    head->features = 1;
    for (uint32_t i = 0; i < head->dimensions; i++) {
        uint8_t word[4];
        size_t got = 0;
        qn_status status = qn__source_read(source, word, sizeof word, &got, err);
        if (status != QN_OK)
            return status;
        if (got < sizeof word)
            return cut_header(source, head->size + got, err);
        uint32_t length =
            (uint32_t)word[0] << 24 | (uint32_t)word[1] << 16 | (uint32_t)word[2] << 8 | word[3];
        if (length == 0) {
            qn__fail(err, QN_INPUT,
                     i == 0 ? "the file holds no items" : "dimension %u of the items is 0",
                     (unsigned)i);
            return refuse(source, head->size, "give a file with at least one item", err);
        }
        if (i == 0)
            head->items = length;
        else if (head->features * length > UINT32_MAX) {
            qn__fail(err, QN_INPUT, "the header claims items of more than %u bytes each",
                     (unsigned)UINT32_MAX);
            return refuse(source, head->size, "check that the file is IDX and whole", err);
        } else
            head->features *= length;
        if (i == 1)
            head->second = length;
        if (i == 2)
            head->third = length;
        head->size += sizeof word;
    }
    return QN_OK;
}

static qn_status read_header(qn__source *source, header *head, qn_error *err) {
    *head = (header){0};
    uint8_t magic[4];
    qn_status status = qn__source_read(source, magic, sizeof magic, &head->size, err);
    if (status != QN_OK)
        return status;
    if (head->size < sizeof magic)
        return cut_header(source, head->size, err);
    status = check_type(source, magic, err);
    if (status != QN_OK)
        return status;
    head->dimensions = magic[3];
    if (head->dimensions == 0) {
        qn__fail(err, QN_INPUT, "the IDX header says that there are no dimensions");
        return refuse(source, 3, "give a file with at least one dimension", err);
    }
    return read_dimensions(source, head, err);
}

/* Compares the header with the file's size, which is known at once for a plain file and at the end
 * of the data for a compressed one. */
static qn_status refuse_size(const qn__source *source, const header *head, uint64_t have, int more,
                             qn_error *err) {
    uint64_t want = head->items * head->features;
    qn__fail(err, QN_INPUT,
             "the IDX header claims %llu items of %llu bytes, %llu bytes in all, and %s%llu bytes "
             "follow",
             (unsigned long long)head->items, (unsigned long long)head->features,
             (unsigned long long)want, more ? "at least " : "only ", (unsigned long long)have);
    return refuse(source, more ? (size_t)(head->size + want) : (size_t)(head->size + have),
                  more ? "check that the file is one IDX file and nothing else"
                       : "the file seems cut off: copy or download it again",
                  err);
}

/* The size of a plain file must be what its header claims. */
static qn_status check_plain_size(const qn__source *source, const header *head, qn_error *err) {
    const uint64_t want = head->items * head->features; /* both below 2^32 */
    if (qn__source_packing(source))
        return QN_OK;
    const uint64_t have = qn__source_file_size(source) - head->size;
    return have == want ? QN_OK : refuse_size(source, head, have, have > want, err);
}

/* The file must end after the `have` elements that were read. */
static qn_status check_end(qn__source *source, const header *head, uint64_t have, qn_error *err) {
    const uint64_t want = head->items * head->features;
    uint8_t beyond;
    size_t got = 0;
    qn_status status = QN_OK;
    if (have == want) /* reading on makes gzip check the end of its data */
        status = qn__source_read(source, &beyond, 1, &got, err);
    if (status == QN_OK && (have < want || got > 0))
        status = refuse_size(source, head, have + got, got > 0, err);
    return status;
}

/* The elements after the header: exactly as many as it claims. The caller frees out->data. */
static qn_status read_elements(qn__source *source, const header *head, qn__buffer *out,
                               qn_error *err) {
    *out = (qn__buffer){0};
    const uint64_t want = head->items * head->features;
    qn_status status = check_plain_size(source, head, err);
    if (status == QN_OK && want > SIZE_MAX - QN__DATA_MARGIN)
        return qn__fail_memory(err, SIZE_MAX, 1);
    if (status == QN_OK)
        status = qn__source_take(source, (size_t)want, out, err);
    if (status == QN_OK)
        status = check_end(source, head, out->size, err);
    if (status != QN_OK) {
        free(out->data);
        *out = (qn__buffer){0};
    }
    return status;
}

/* Counts elements until there are none, where the header claims more than the file can hold: space
 * for these is not made. */
static qn_status count_elements(qn__source *source, uint64_t *have, qn_error *err) {
    uint8_t piece[4096];
    size_t got = sizeof piece;
    qn_status status = QN_OK;
    for (*have = 0; status == QN_OK && got == sizeof piece; *have += got)
        status = qn__source_read(source, piece, sizeof piece, &got, err);
    return status;
}

/* Whether the file can hold what its header claims, before there is memory for it. */
static qn_status check_claim(qn__source *source, const header *head, qn_error *err) {
    uint64_t have = 0;
    qn_status status = check_plain_size(source, head, err);
    if (status != QN_OK || head->items * head->features <= qn__source_unpacked_most(source))
        return status;
    status = count_elements(source, &have, err);
    return status == QN_OK ? check_end(source, head, have, err) : status;
}

/* ------------------------------------------------------------------ the items of all files */

/* "28x28 bytes", of the dimensions that are told apart here. */
static const char *show_shape(const header *head, char text[64]) {
    if (head->dimensions == 3)
        snprintf(text, 64, "%ux%u bytes", (unsigned)head->second, (unsigned)head->third);
    else if (head->dimensions == 1)
        snprintf(text, 64, "one byte");
    else
        snprintf(text, 64, "%llu bytes in %u dimensions", (unsigned long long)head->features,
                 (unsigned)head->dimensions - 1);
    return text;
}

static qn_status check_same(const qn__part_files *files, const qn__source *source,
                            const header *first, const header *head, qn_error *err) {
    char own[64], other[64];
    if (head->dimensions == first->dimensions && head->features == first->features &&
        head->second == first->second && head->third == first->third)
        return QN_OK;
    qn__fail(err, QN_INPUT, "an item has %s, and in %.200s it has %s", show_shape(head, own),
             files->list->file[0].path, show_shape(first, other));
    return refuse(source, 4, "name files whose items have one shape", err);
}

/* Compares the headers of the files after the first with its own, and counts the items of all. */
static qn_status look_at_others(qn__part_files *files, const header *first, uint64_t *items,
                                qn_error *err) {
    *items = files->items[0] = first->items;
    for (size_t i = 1; i < files->list->count; i++) {
        qn__source *source;
        header head;
        qn_status status = qn__part_files_open(files, i, &source, err);
        if (status != QN_OK)
            return status;
        status = read_header(source, &head, err);
        if (status == QN_OK)
            status = check_same(files, source, first, &head, err);
        if (status == QN_OK)
            status = check_claim(source, &head, err);
        status = qn__part_files_close(source, status, err);
        if (status != QN_OK)
            return status;
        files->items[i] = head.items;
        *items += head.items; /* each has fewer than 2^32 */
    }
    return QN_OK;
}

static qn_status read_values(qn__source *source, const header *head, uint8_t *to, qn_error *err) {
    size_t got = 0;
    const qn_status status =
        qn__source_read(source, to, (size_t)(head->items * head->features), &got, err);
    return status == QN_OK ? check_end(source, head, got, err) : status;
}

static qn_status read_others(qn__part_files *files, const header *first, uint8_t *to,
                             qn_error *err) {
    qn_status status = QN_OK;
    for (size_t i = 1; status == QN_OK && i < files->list->count; i++) {
        qn__source *source;
        header head;
        status = qn__part_files_open(files, i, &source, err);
        if (status != QN_OK)
            return status;
        status = read_header(source, &head, err); /* the same bytes as before */
        if (status == QN_OK && (head.items != files->items[i] || head.features != first->features))
            status = qn__file_stamp_refuse(files->list->file[i].path, QN_INPUT, err);
        if (status == QN_OK)
            status = read_values(source, &head, to, err);
        status = qn__part_files_close(source, status, err);
        to += head.items * head.features;
    }
    return status;
}

static qn_status make_table(const header *first, uint64_t items, qn_data *data, qn_error *err) {
    if (items > QN__ITEMS_MAX)
        return qn__fail(err, QN_INPUT, "the files hold more than 2^48 items");
    data->type = QN_U8;
    data->items = items;
    data->features = (uint32_t)first->features;
    if (first->dimensions == 3) {
        data->channels = 1;
        data->rows = first->second;
        data->columns = first->third;
    }
    return qn__table_space_make(data, err);
}

static qn_status read_items(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                            qn_data *data, qn_error *err) {
    (void)options, (void)pool;
    header first;
    qn__source *source;
    uint64_t items = 0;
    qn_status status = qn__part_files_open(files, 0, &source, err);
    if (status != QN_OK)
        return status;
    status = read_header(source, &first, err);
    if (status == QN_OK)
        status = check_claim(source, &first, err);
    if (status == QN_OK)
        status = look_at_others(files, &first, &items, err);
    if (status == QN_OK)
        status = make_table(&first, items, data, err);
    if (status == QN_OK)
        status = read_values(source, &first, qn__table_space_values(data), err);
    status = qn__part_files_close(source, status, err);
    if (status != QN_OK)
        return status;
    uint8_t *values = qn__table_space_values(data);
    return read_others(files, &first, values + first.items * first.features, err);
}

/* ------------------------------------------------------------------ labels */

/* Checks the header of a labels file for the given number of items. */
static qn_status check_labels(const qn__source *source, const header *head,
                              const qn__part_files *files, size_t i, qn_error *err) {
    const uint64_t items = files->items[i];
    const int one = qn__part_files_are_one(files);
    if (head->dimensions != 1) {
        qn__fail(err, QN_INPUT, "a file of labels has one dimension, this one has %u",
                 (unsigned)head->dimensions);
        return refuse(source, 3,
                      "give the labels with `data.labels_path` and the images as the data", err);
    }
    if (head->items != items) {
        qn__fail(err, QN_INPUT, "there are %llu labels for %llu items%s%.200s",
                 (unsigned long long)head->items, (unsigned long long)items, one ? "" : " of ",
                 one ? "" : files->list->file[i].path);
        return refuse(source, 4, "give with `data.labels_path` the file that belongs to the images",
                      err);
    }
    return QN_OK;
}

/* The labels of file `i` of the items. */
static qn_status take_labels(qn__source *source, const qn__part_files *files, size_t i, int32_t *to,
                             qn_error *err) {
    uint8_t magic[2] = {1, 1};
    size_t got = 0;
    header head;
    qn__buffer elements;
    qn_status status = qn__source_peek(source, magic, sizeof magic, &got, err);
    if (status != QN_OK)
        return status;
    if (got < 2 || magic[0] != 0 || magic[1] != 0) {
        qn__fail(err, QN_INPUT, "the file of labels is not IDX");
        return refuse(source, 0,
                      "`data.labels_path` takes an IDX file of bytes; a CSV file holds its labels "
                      "in a column, named with `data.label_column`",
                      err);
    }
    status = read_header(source, &head, err);
    if (status == QN_OK)
        status = check_labels(source, &head, files, i, err);
    if (status == QN_OK)
        status = read_elements(source, &head, &elements, err);
    if (status != QN_OK)
        return status;
    for (size_t k = 0; k < elements.size; k++)
        to[k] = elements.data[k];
    free(elements.data);
    return QN_OK;
}

static qn_status read_labels(qn__part_files *labels, qn__part_files *files,
                             const qn_data_options *options, qn_data *data, qn_error *err) {
    (void)options;
    qn_status status = QN_OK;
    data->labels = qn__alloc(data->items, sizeof *data->labels, err);
    if (!data->labels)
        return QN_MEMORY;
    int32_t *to = data->labels;
    for (size_t i = 0; status == QN_OK && i < labels->list->count; i++) {
        qn__source *source;
        status = qn__part_files_open(labels, i, &source, err);
        if (status != QN_OK)
            return status;
        status = take_labels(source, files, i, to, err);
        status = qn__part_files_close(source, status, err);
        to += files->items[i];
    }
    return status;
}

/* Films, HEIC images, icons and cursors begin with zeros too, and with a type that IDX does not
 * have. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    /* Neither a type of elements nor a dimension: zeros begin other files too, such as SAS's. */
    const int empty = size >= 4 && first[2] == 0 && first[3] == 0;
    const int film = size >= 8 && first[2] == 0 && memcmp(first + 4, "ftyp", 4) == 0;
    const int icon = size >= 4 && (first[2] == 1 || first[2] == 2) && first[3] == 0;
    return size >= 2 && first[0] == 0 && first[1] == 0 && !film && !empty && !icon ? QN__PROBE_MAGIC
                                                                                   : QN__PROBE_NO;
}

const qn__reader qn__idx_reader = {
    .name = QN__PACKED_NAMES("idx"),
    .about = "IDX, as MNIST has it",
    .labels_remedy = "give its file of labels with `data.labels_path`",
    .probe = probe,
    .read_parts = read_items,
    .read_labels = read_labels,
};
