/* Whether files are texts: a corpus, or items with the folders as classes. */
#include "data/bytes/enclosed_texts.h"
#include "data/bytes/zip_file.h"
#include "data/cells/readers.h"
#include "data/tokens/text_items.h"
#include <string.h>

/* Files that are looked into, and bytes of each. */
enum { LOOKED_AT = 4, BYTES = 1 << 16 };

/* Whether each text is an item. With a tokenizer texts are a corpus, unless a model or an option
 * says what is told of an item. */
static int are_items(const qn_data_options *o) {
    const char *task = o->task && strcmp(o->task, "auto") != 0 ? o->task : NULL;
    if (!o->tokens)
        return !task || strcmp(task, "next") != 0;
    return qn__text_items_wanted(o) && (o->expected_tokenizer || task || o->label_column);
}

qn_status qn__reader_of_archive(qn__source *source, const qn_data_options *options,
                                const qn__reader **reader, qn_error *err) {
    int texts = 0;
    if (!(*reader)->folders || qn__source_is_folder(source) || qn__source_address(source))
        return QN_OK;
    const int items = are_items(options), corpus = options->tokens && !items;
    if (corpus && (strcmp(options->tokens, QN__TOKENS_IDS) == 0))
        return QN_OK;
    /* What is wrong with an archive for a tokenizer, its reader says. */
    const qn_status status =
        corpus ? qn__is_archive(source, &texts, err) : qn__enclosed_texts_are(source, &texts, err);
    if (status == QN_OK && texts)
        *reader = items ? &qn__texts_reader : &qn__txt_reader;
    return status;
}

/* ------------------------------------------------------------------ folders */

static size_t count_of(const char *line, size_t size, char sign) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += line[i] == sign;
    return count;
}

/* Whether the first two lines have as many commas, semicolons or tabs, and some: then the text is
 * that of a table. */
static int looks_like_table(const char *text, size_t size) {
    const char *line[2];
    size_t length[2];
    size_t at = 0;
    for (int k = 0; k < 2; k++) {
        const char *feed = memchr(text + at, '\n', size - at);
        line[k] = text + at;
        length[k] = (size_t)(feed ? feed - line[k] : (text + size) - line[k]);
        at += length[k] + (feed != NULL);
    }
    for (const char *sign = ",;\t"; *sign; sign++) {
        const size_t count = count_of(line[0], length[0], *sign);
        if (count > 0 && length[1] > 0 && count == count_of(line[1], length[1], *sign))
            return 1;
    }
    return 0;
}

static qn_status look_into(qn__part_files *files, size_t i, int *table, qn_error *err) {
    char text[BYTES];
    size_t size = 0;
    qn__source *source = NULL;
    qn_status status = i == 0 && files->first ? qn__source_beside(files->first, &source, err)
                                              : qn__part_files_open(files, i, &source, err);
    if (status == QN_OK)
        status = qn__source_read(source, text, sizeof text, &size, err);
    *table = status == QN_OK && looks_like_table(text, size);
    qn__source_close(source);
    return status;
}

/* Whether all files were found in folders, and have names of texts. */
static int have_names(const qn__file_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->file[i].below == SIZE_MAX || !qn__names_text(list->file[i].path))
            return 0;
    return list->keys == 0;
}

qn_status qn__reader_of_folder(qn__part_files *files, const qn_data_options *options,
                               const qn__reader **reader, qn_error *err) {
    const qn_data_options *o = options;
    const int could = (*reader)->fallback || *reader == &qn__txt_reader;
    qn_status status = QN_OK;
    if (!could || !are_items(o) || !have_names(files->list) || o->features || o->drop ||
        o->category || o->text || (o->header && strcmp(o->header, "auto") != 0))
        return QN_OK;
    int tables = 1;
    for (size_t i = 0; status == QN_OK && tables && i < files->list->count && i < LOOKED_AT; i++)
        status = look_into(files, i, &tables, err);
    if (status == QN_OK && !tables)
        *reader = &qn__texts_reader;
    return status;
}
