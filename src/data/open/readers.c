/* The table of readers, and which of them takes a file. */
#include "base/text/text.h"
#include "data/bytes/zip_file.h"
#include "data/cells/readers.h"
#include "data/tokens/text_items.h"
#include <string.h>

/* Each NAME has a row qn__NAME_reader in a file of its own. */
#define READERS(each)                                                                              \
    each(csv) each(parquet) each(ipc) each(idx) each(npy) each(npz) each(bin) each(txt)            \
        each(texts) each(image) each(libsvm) each(json) each(sqlite) each(postgres)
#define DECLARE(name) extern const qn__reader qn__##name##_reader;
#define ADDRESS(name) &qn__##name##_reader,
READERS(DECLARE)

const qn__reader *const qn__readers[] = {READERS(ADDRESS) NULL};

const qn__reader *qn__reader_of_folders(void) {
    const qn__reader *const *at = qn__readers;
    while (!(*at)->folders)
        at++;
    return *at;
}

const qn__reader *qn__reader_of_addresses(void) {
    const qn__reader *const *at = qn__readers;
    while (!(*at)->addresses)
        at++;
    return *at;
}

/* What a name ends with, before the ending of a packing and after a dot: *size characters, 0
 * without a dot. */
static const char *ending_of(const char *path, size_t *size) {
    static const char *const packed[] = {"gz", "zst", "bz2", "xz", "zip", NULL};
    const char *end = path + strlen(path);
    if (qn__ends_with_one_of(path, packed))
        end = strrchr(path, '.');
    const char *dot = end;
    while (dot > path && dot[-1] != '.' && dot[-1] != '/')
        --dot;
    *size = dot > path && dot[-1] == '.' ? (size_t)(end - dot) : 0;
    return dot;
}

static const qn__reader *named(const char *path) {
    size_t size;
    const char *ending = ending_of(path, &size);
    for (const qn__reader *const *at = qn__readers; *at && size; ++at)
        if ((*at)->token_ending && qn__same_word((*at)->token_ending, ending, size))
            return *at;
    return NULL;
}

/* Whether the texts are in a column, so that the file is not one text: its format has columns, and
 * what could be any text is said to have them, by its name or by options. */
static int is_table(const qn__reader *found, const qn_data_options *o, const char *path) {
    static const char *const names[] = {"csv", "tsv", "tab"};
    size_t size;
    const char *ending = ending_of(path, &size);
    if (!found->columns || !qn__text_items_wanted(o))
        return 0;
    int told = !found->fallback || o->expected_tokenizer || o->label_column || o->text ||
               o->features || o->drop || o->header;
    for (size_t i = 0; i < sizeof names / sizeof *names && size; i++)
        told = told || qn__same_word(names[i], ending, size);
    return told;
}

const qn__reader *qn__reader_for(const uint8_t *first, size_t size, const char *path) {
    const qn__reader *best = NULL;
    int surest = QN__PROBE_NO;
    for (const qn__reader *const *at = qn__readers; *at; ++at) {
        const int sure = (*at)->probe(first, size, path);
        if (sure > surest || (!best && (*at)->fallback)) {
            surest = sure;
            best = *at;
        }
    }
    return best;
}

const qn__reader *qn__reader_of_tokens(const qn_data_options *options, const uint8_t *first,
                                       size_t size, const char *path) {
    const qn__reader *own = named(path), *found = own ? own : qn__reader_for(first, size, path);
    const int ids = strcmp(options->tokens, QN__TOKENS_IDS) == 0;
    if (ids || (options->tokens == options->expected_tokens && found->tokens))
        return found; /* numbers for a model that knows their tokenizer */
    if (is_table(found, options, path))
        return found;
    return found->fallback || found->text ? &qn__txt_reader : found;
}

int qn__names_table(const char *name) {
    static const char *const others[] = {"xlsx", NULL};
    for (const qn__reader *const *at = qn__readers; *at; ++at)
        if (qn__ends_with_one_of(name, (*at)->endings))
            return 1;
    return qn__ends_with_one_of(name, others);
}

int qn__names_text(const char *name) {
    size_t size;
    const char *ending = ending_of(name, &size);
    return size > 0 && qn__same_word("txt", ending, size);
}

const char *qn__format_name(const char *name) {
    static const char *const others[] = {"array", "synth"};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (strcmp(name, others[i]) == 0)
            return others[i];
    for (const qn__reader *const *at = qn__readers; *at; ++at)
        for (int i = 0; i < QN__PACKINGS; ++i)
            if ((*at)->name[i] && strcmp(name, (*at)->name[i]) == 0)
                return (*at)->name[i];
    return NULL;
}
