/* The table of readers, and which of them takes a file. */
#include "base/text/text.h"
#include "data/bytes/zip_file.h"
#include "data/cells/readers.h"
#include <string.h>

/* Each NAME has a row qn__NAME_reader in a file of its own. */
#define READERS(each)                                                                              \
    each(csv) each(parquet) each(ipc) each(idx) each(npy) each(npz) each(bin) each(txt)            \
        each(image) each(libsvm) each(json) each(sqlite) each(postgres)
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

static const qn__reader *named(const char *path) {
    static const char *const packed[] = {"gz", "zst", "bz2", "xz", "zip", NULL};
    const char *end = path + strlen(path);
    if (qn__ends_with_one_of(path, packed))
        end = strrchr(path, '.');
    const char *dot = end;
    while (dot > path && dot[-1] != '.' && dot[-1] != '/')
        --dot;
    for (const qn__reader *const *at = qn__readers; *at; ++at) {
        const char *ending = (*at)->token_ending;
        if (ending && dot > path && dot[-1] == '.' &&
            qn__same_word(ending, dot, (size_t)(end - dot)))
            return *at;
    }
    return NULL;
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
    return found->fallback || found->text ? &qn__txt_reader : found;
}

int qn__names_table(const char *name) {
    static const char *const others[] = {"xlsx", NULL};
    for (const qn__reader *const *at = qn__readers; *at; ++at)
        if (qn__ends_with_one_of(name, (*at)->endings))
            return 1;
    return qn__ends_with_one_of(name, others);
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
