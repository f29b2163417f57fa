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

/* Reads a file to its end. `to`: the first `most` of its bytes are the tokens after `before` ones;
 * NULL: they go nowhere. */
static qn_status read_all(qn__source *source, const qn_data *to, uint64_t before, uint64_t most,
                          uint64_t *bytes, qn_error *err) {
    uint8_t piece[PIECE];
    *bytes = 0;
    for (size_t got = PIECE; got == PIECE; *bytes += got) {
        const qn_status status = qn__source_read(source, piece, PIECE, &got, err);
        if (status != QN_OK)
            return status;
        if (!to || *bytes >= most)
            continue;
        uint16_t *token = (uint16_t *)qn__table_space_values(to) + before + *bytes / 2;
        const size_t wanted = got < most - *bytes ? got : (size_t)(most - *bytes);
        qn__copy_little_halves(token, piece, wanted / 2);
        qn__table_space_wrote(to, before + (*bytes + wanted) / 2);
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
        status = read_all(source, NULL, 0, 0, &bytes, err);
    }
    files->items[i] = bytes / 2;
    *tokens += bytes / 2;
    return qn__part_files_close(source, status, err);
}

static qn_status read_file(qn__part_files *files, size_t i, const qn_data *to, uint64_t before,
                           qn_error *err) {
    qn__source *source;
    uint64_t bytes;
    qn_status status = qn__part_files_open(files, i, &source, err);
    if (status != QN_OK)
        return status;
    status = read_all(source, to, before, 2 * files->items[i], &bytes, err);
    return qn__part_files_close(source, status, err);
}

/* A single file that is larger than memory is used where it lies. */
static qn_status borrow_file(qn__part_files *files, qn_data *data, int *borrowed, qn_error *err) {
    qn__source *source;
    *borrowed = 0;
    if (!qn__part_files_are_one(files))
        return QN_OK;
    const qn_status status = qn__part_files_open(files, 0, &source, err);
    if (status != QN_OK)
        return status;
    *borrowed =
        qn__source_packing(source) == QN__PLAIN &&
        qn__table_space_borrow(data, qn__source_descriptor(source), qn__source_stamp(source), 0);
    return qn__part_files_close(source, status, err);
}

static qn_status read_tokens(qn__part_files *files, qn_data *data, qn_error *err) {
    uint64_t before = 0;
    qn_status status = qn__table_space_make(data, err);
    for (size_t i = 0; status == QN_OK && i < files->list->count; i++) {
        status = read_file(files, i, data, before, err);
        before += files->items[i];
    }
    return status;
}

static qn_status read_raw(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                          qn_data *data, qn_error *err) {
    qn_status status = QN_OK;
    int borrowed = 0;
    (void)pool;
    data->type = QN_TOKENS16;
    data->features = 1;
    snprintf(data->tokens, sizeof data->tokens, "%s", QN__TOKENS_IDS);
    for (size_t i = 0; status == QN_OK && i < files->list->count; i++)
        status = count_file(files, i, &data->items, err);
    if (status == QN_OK && data->items > QN__ITEMS_MAX)
        status = qn__fail(err, QN_INPUT, "there are more than 2^48 tokens");
    if (status == QN_OK)
        status = borrow_file(files, data, &borrowed, err);
    if (status == QN_OK && !borrowed)
        status = read_tokens(files, data, err);
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
