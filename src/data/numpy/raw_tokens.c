/* The reader of rows of tokens without a header: numbers of 16 bits, little-endian, as nanoGPT and
 * others write them with numpy.ndarray.tofile. Nothing in such a file tells what it is, so it is
 * read only where the user says so. */
#include "base/binary/little_endian.h"
#include "data/cells/readers.h"
#include "data/table/token_row.h"
#include "data/table/table_space.h"
#include <stdio.h>

enum { PIECE = 1 << 16 };

static qn_status refuse_half(const qn__source *source, uint64_t bytes, qn_error *err) {
    qn__fail(err, QN_INPUT, "%llu bytes are not numbers of two bytes each",
             (unsigned long long)bytes);
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(
        err, QN_INPUT,
        "write numbers of 16 bits, or write an array with numpy.save, which says what "
        "it holds");
}

/* Reads a file to its end. `to`: where the first `most` of its bytes go; NULL: nowhere. */
static qn_status read_all(qn__source *source, uint8_t *to, uint64_t most, uint64_t *bytes,
                          qn_error *err) {
    uint8_t piece[PIECE];
    *bytes = 0;
    for (size_t got = PIECE; got == PIECE; *bytes += got) {
        const qn_status status = qn__source_read(source, piece, PIECE, &got, err);
        if (status != QN_OK)
            return status;
        if (to && *bytes < most)
            qn__copy_little_halves(to + *bytes, piece,
                                   (got < most - *bytes ? got : (size_t)(most - *bytes)) / 2);
    }
    return *bytes % 2 ? refuse_half(source, *bytes, err) : QN_OK;
}

static qn_status count_file(qn__part_files *files, size_t i, uint64_t *tokens, qn_error *err) {
    qn__source *source;
    uint64_t bytes = 0;
    qn_status status = qn__part_files_open(files, i, &source, err);
    if (status != QN_OK)
        return status;
    if (qn__source_packing(source) == QN__PLAIN) {
        bytes = qn__source_file_size(source);
        status = bytes % 2 ? refuse_half(source, bytes, err) : QN_OK;
    } else {
        status = read_all(source, NULL, 0, &bytes, err);
    }
    files->items[i] = bytes / 2;
    *tokens += bytes / 2;
    return qn__part_files_close(source, status, err);
}

static qn_status read_file(qn__part_files *files, size_t i, uint8_t *to, qn_error *err) {
    qn__source *source;
    uint64_t bytes;
    const qn_status status = qn__part_files_open(files, i, &source, err);
    return status == QN_OK
               ? qn__part_files_close(source,
                                      read_all(source, to, 2 * files->items[i], &bytes, err), err)
               : status;
}

static qn_status read_raw(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    qn_status status = QN_OK;
    (void)pool;
    data->type = QN_TOKENS16;
    data->features = 1;
    snprintf(data->tokens, sizeof data->tokens, "%s", QN__TOKENS_IDS);
    for (size_t i = 0; status == QN_OK && i < files->list->count; i++)
        status = count_file(files, i, &data->items, err);
    if (status == QN_OK && data->items > QN__ITEMS_MAX)
        status = qn__fail(err, QN_INPUT, "there are more than 2^48 tokens");
    if (status == QN_OK)
        status = qn__table_space_make(data, err);
    uint8_t *to = qn__table_space_values(data);
    for (size_t i = 0; status == QN_OK && i < files->list->count; i++) {
        status = read_file(files, i, to, err);
        to += 2 * files->items[i];
    }
    return status == QN_OK ? qn__token_row_cut(data, qn__token_row_context(options),
                                               files->list->file[0].path, err)
                           : status;
}

/* It is never found by what it holds. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)first, (void)size, (void)path;
    return QN__PROBE_NO;
}

const qn__reader qn__bin_reader = {
    .name = QN__PACKED_NAMES("bin"),
    .about = "a row of tokens of 16 bits, if the user says so",
    .tokens = 1,
    .token_ending = "bin",
    .labels_remedy = "a row of tokens has no labels",
    .probe = probe,
    .read_parts = read_raw,
};
