/* The reader of texts whose tokens are a corpus (docs/exactness.md 25.44). */
#include "base/memory.h"
#include "data/cells/readers.h"
#include "data/tokens/corpus_table.h"

static qn_status read_text(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                           qn_data *data, qn_error *err) {
    const size_t count = files->list->count;
    const char **paths = (const char **)qn__alloc(count, sizeof *paths, err);
    (void)pool;
    if (!paths)
        return QN_MEMORY;
    for (size_t i = 0; i < count; i++)
        paths[i] = files->list->file[i].path;
    const qn_status status =
        qn__corpus_table_of_files(paths, count, options, files->name, data, err);
    qn__free((void *)paths);
    return status;
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
