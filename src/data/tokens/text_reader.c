/* The reader of texts whose tokens are a corpus (docs/exactness.md 25.44). */
#include "data/cells/readers.h"
#include "data/tokens/corpus_table.h"

static qn_status read_text(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                           qn_data *data, qn_error *err) {
    (void)pool;
    return qn__corpus_table_of_files(files, options, data, err);
}

/* Any text may be one: only the options tell. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)first, (void)size, (void)path;
    return QN__PROBE_NO;
}

const qn__reader qn__txt_reader = {
    .name = QN__PACKED_NAMES("txt"),
    .about = "a text to be tokenised, if the user says so",
    .tokens = 1,
    .labels_remedy = "a row of tokens has no labels",
    .probe = probe,
    .read_parts = read_text,
};
