/* The readers of qn_data_open, one row of a table for each format. A new format is one file
 * with a qn__reader and one word in data/open/readers.c. */
#ifndef QN_DATA_CELLS_READERS_H
#define QN_DATA_CELLS_READERS_H

#include "base/system/library.h"
#include "data/bytes/part_files.h"
#include "data/cells/described.h"
#include "data/bytes/source.h"
#include "data/table/data.h"

/* How certain a reader is that a file has its format. The reader with the highest number reads it.
 */
enum {
    QN__PROBE_NO = 0,
    QN__PROBE_REST = 1,
    QN__PROBE_NAME = 2,
    QN__PROBE_MAGIC = 3,
    QN__PROBE_BOTH = 4
};

/* The first bytes that a probe sees, at most. */
enum { QN__PROBE_BYTES = 512 };

typedef struct qn__reader {
    /* What qn_data_format says, at most 15 bytes: of a plain file first, then for each packing.
     * NULL: the format is not read from a file that is packed so, which is refused. Probes and
     * reads get the unpacked bytes (source.h). */
    const char *name[QN__PACKINGS];
    const char *about; /* what it holds, for a help text */
    /* How the names of its files end, after a dot: such a file in an archive is a table. At most 7,
     * and none of a format that has no columns. */
    const char *endings[8];
    int columns; /* 1: it has columns, so the options about columns mean something */
    int queries; /* 1: its rows are those of qn_data_options.query */
    int typed;   /* 1: the file names its columns and their types, so a header is not looked for */
    int weights; /* 1: it can hold weights of items (qn_data_options.weight) */
    int files;   /* 1: an item is a file, which can be broken (qn_data_options.skip_broken) */
    int folders; /* 1: it takes folders */
    int addresses; /* 1: it takes addresses of servers */
    int fallback;  /* 1: it reads files that no other reader recognises */
    int text;      /* 1: numbers are text, so that reading the table from the cache is faster */
    int tokens;    /* 1: its values may be numbers of tokens (qn_data_options.tokens) */
    /* How the names of its files end, after a dot and before that of a packing, where nothing in
     * them tells what they are: they are its files with qn_data_options.tokens alone. Else NULL. */
    const char *token_ending;
    int quantities; /* 1: labels may be quantities, so that many different ones are ambiguous */
    /* Where to find labels, as a remedy for `data.label_column` in a format without columns or for
     * `data.labels_path` in one without read_labels. */
    const char *labels_remedy;
    qn__optional_library *library; /* that reads the format; NULL: none is needed */
    int (*probe)(const uint8_t *first, size_t size, const char *path);
    /* Fills type, items, features, values, memory, release and what else the file has: labels or
     * targets, schema, image size, notes. The digest, classes and format are the caller's. What a
     * failed call left in `data` is released by qn_data_close. `pool` is never NULL. */
    qn_status (*read)(qn__source *source, const qn_data_options *options, qn__pool *pool,
                      qn_data *data, qn_error *err);
    /* Optional, instead of `read`: reads one or several files as one table, with the columns from
     * names of folders if the format has columns. NULL: several files are refused. */
    qn_status (*read_parts)(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                            qn_data *data, qn_error *err);
    /* Reads files of labels for the items already in `data`: as many as there are files of items,
     * each for those of its file (files->items). NULL: the format has no such file. */
    qn_status (*read_labels)(qn__part_files *labels, qn__part_files *files,
                             const qn_data_options *options, qn_data *data, qn_error *err);
    /* Optional: what an open file of `size` bytes says about its columns, read without the rows.
     * Fails with QN_INPUT also for a file of another format. */
    qn_status (*describe)(int file, uint64_t size, const char *path, qn__described *out,
                          qn_error *err);
} qn__reader;

/* All readers; the last is NULL. */
extern const qn__reader *const qn__readers[];

/* The one of texts to be tokenised, and that of files that are items. */
extern const qn__reader qn__txt_reader, qn__texts_reader;

/* The reader that takes folders, or addresses. */
const qn__reader *qn__reader_of_folders(void);
const qn__reader *qn__reader_of_addresses(void);

/* The same where the options say that the values are tokens: a text is then one to be tokenised. */
const qn__reader *qn__reader_of_tokens(const qn_data_options *options, const uint8_t *first,
                                       size_t size, const char *path);

/* Where the files of an archive or of a folder are texts, *reader becomes the one that reads them
 * as such; it is the one for the first file. Fails with QN_INPUT, QN_IO or QN_MEMORY. */
qn_status qn__reader_of_archive(qn__source *source, const qn_data_options *options,
                                const qn__reader **reader, qn_error *err);
qn_status qn__reader_of_folder(qn__part_files *files, const qn_data_options *options,
                               const qn__reader **reader, qn_error *err);

/* The reader for a file that begins with these bytes. Never NULL: the fallback
 * takes what no other does. */
const qn__reader *qn__reader_for(const uint8_t *first, size_t size, const char *path);

/* The constant text of qn_data_format that is equal to `name`; NULL if no format has this name. */
const char *qn__format_name(const char *name);

#endif
