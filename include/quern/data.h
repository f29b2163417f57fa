/* Data sets: tables of items, read from files or given as arrays.
 *
 * A data set is a matrix of items x features, stored item after item without gaps. The elements are
 * bytes (QN_U8), float32 (QN_F32) or tokens (QN_TOKENS16, QN_TOKENS32). It may have one label for
 * each item, a whole number from 0 to 2^31 - 1. It has at least one item and one feature, and at
 * most 2^48 items and 2^32 - 1 features.
 *
 * A data set never changes after it was made, and any number of threads may read it. It holds its
 * own copy of the values, unless qn_data_lend made it: the file or the arrays that it came from may
 * change afterwards. Every function here that makes a data set sets *out to NULL when it fails. */
#ifndef QUERN_DATA_H
#define QUERN_DATA_H

#include <quern/cluster.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_data qn_data;

/* The type of the elements. The file decides it, or the caller of qn_data_from_arrays. A token is a
 * number of a vocabulary: networks take it as it is, without scaling. */
typedef enum qn_data_type {
    QN_U8 = 1,       /* uint8_t, 0..255 */
    QN_F32 = 2,      /* float, finite, or NaN: missing (CSV, NPY) */
    QN_TOKENS16 = 3, /* uint16_t: tokens */
    QN_TOKENS32 = 4  /* uint32_t: tokens */
} qn_data_type;

/* Reports progress: `done` of `all` images are decoded. `user` is qn_data_options.decoded_user. */
typedef void (*qn_data_decoded)(void *user, uint64_t done, uint64_t all);

/* How to read a file. Fill with qn_data_options_init, then change members. Texts are read during
 * the call only. Each may be NULL. What is said of columns of CSV files also holds for the other
 * formats with columns: JSON lines, Parquet, Arrow IPC, SQLite and PostgreSQL. Their columns always
 * have names. */
typedef struct qn_data_options {
    size_t size; /* sizeof(qn_data_options) */
    /* IDX: the file of labels, one byte for each item. NPY: an array of labels, or an NPZ archive
     * of one. NPZ: the same, in place of the archive's own labels. NULL: none. CSV files hold their
     * labels: QN_INPUT. */
    const char *labels_path;
    /* CSV: the label column: a name in the header, a number from 1, or "last". NULL: the first
     * column. Files without columns: QN_INPUT. Where it is not the name of a column, it may be a
     * list as for `features`, "a,b" or "3-7": each item then has these labels, in this order
     * (qn_data_several). Such a column has numbers 0 and 1, or two texts, of which the second in
     * the order of bytes is 1. A missing value does not count. */
    const char *label_column;
    /* 1: CSV: no column is the label; NPZ: the archive's labels are not read; images: folders are
     * not classes. QN_USAGE with one of the two above. */
    int unlabelled;
    int threads; /* for reading and digests, at most 4096; 0: every core the process may use */
    /* What labels are: "classify": classes; "regress": real numbers; NULL or "auto": IDX:
     * classes, other formats: by the labels (docs/exactness.md 2.1.5). */
    const char *task;
    /* CSV: whether the first line is a header: "yes", "no"; NULL or "auto": by the lines below it.
     */
    const char *header;
    /* CSV: the columns to read in addition to the label, or those to leave out; NULL: all, none.
     * Not both: QN_USAGE. A list, separated by commas: a name in the header (in double quotes where
     * it holds a comma), a number from 1, "last", or a range of numbers (3-7, 3-last). Columns keep
     * the order of the file. */
    const char *features, *drop;
    uint32_t classes; /* outputs of the network that the labels are for: whole labels below this are
                         class numbers, also where some numbers do not occur; 0: unknown */
    /* CSV with a header: the name of the label column of a model (qn_model_label_name). It is used
     * where `label_column` is NULL, and instead of a `label_column` that is a number or "last".
     * Where `label_column` is NULL and the header lacks this name, no column is the label. NULL:
     * unknown. */
    const char *expected_label;
    /* CSV: the features that hold categories in a model (qn_model_categories). They hold categories
     * here too, also where most of their cells are numbers or "none". A list as above, of names in
     * double quotes ("" for a column without a name), and of positions among the features, from 1.
     * Where the list has names and the file has a header, the names decide, and names that the
     * header lacks are skipped. Else the positions decide. NULL: the cells decide. */
    const char *expected_categories;
    /* CSV, Arrow: features that hold categories even if their cells are numbers, such as codes. A
     * list as for `features`. NULL: by the cells. */
    const char *category;
    /* CSV: the column of weights: a name in the header, a number from 1, or "last". NPZ: the name
     * of an array of one number for each item. Weights are finite, from 0, one of them above 0
     * (docs/tables.md); the column is not a feature. Other files: QN_INPUT. NULL: no weights. */
    const char *weight;
    /* CSV: the column of weights in other data (qn_data_weight_name, or what `weight` was). It is
     * not read as a feature. Ignored where the file has no such column, and where `weight` is set.
     * NULL: none. */
    const char *expected_weight;
    /* Folders and archives of images: 1: files that are broken, or are not images, are left out,
     * and qn_data_note names them; 0: the first one is an error. Other files: QN_INPUT. */
    int skip_broken;
    /* Folders and archives of images: what to make of each. "32x48": this height and width. "short
     * 36 crop 32" (or "32x32"): the shorter side becomes 36, the other in proportion, and the
     * middle is cut out (docs/exactness.md 2.9). "32x48 bilinear", "short 36 crop 32 bicubic": by a
     * filter of Pillow (24.50). Other files: QN_INPUT. NULL: they stay as they are, and all have
     * the same size. */
    const char *resize;
    /* CSV, IDX, NPY, NPZ: what image an item is: "28x28" (height x width) or "3x32x32" (channels x
     * height x width). Images: QN_INPUT. NULL: as stored in the file. */
    const char *shape;
    /* Images and LIBSVM: the number of features that the data should have, such as that of a model.
     * Grey images get three equal channels where that gives this number. Items of LIBSVM with fewer
     * features get zeros for the others. 0: unknown. */
    uint32_t expected_features;
    /* 1: decoded images, and tables of large text files, are neither looked for in the user's cache
     * folder nor kept there (docs/images.md, docs/formats.md); 0: large ones are. */
    int no_cache;
    /* Images: how the images of a model were resized (qn_model_resize). These are resized in the
     * same way. QN_USAGE where `resize` differs. Ignored for other files. NULL: unknown, or not at
     * all. */
    const char *expected_resize;
    /* Images: called on the caller's thread while they are decoded, after each that this thread has
     * decoded, and once when all are. It is not called where the cache has them. NULL: no calls. */
    qn_data_decoded decoded;
    void *decoded_user;
    /* SQLite and PostgreSQL: the rows to read: one SELECT with ORDER BY outside parentheses, by
     * columns that tell all rows apart; QN_USAGE where there is no ORDER BY. NULL: SQLite: the only
     * table, by its rowid; PostgreSQL: QN_USAGE. Other files: QN_INPUT. */
    const char *query;
    /* The rules of reading that a model's recipe names (qn_model_rules; docs/exactness.md 23). Only
     * these are applied. NULL: all rules. */
    const char *expected_rules;
    /* Columns of dates: the inputs that a network gets from each: names separated by commas, of
     * year, quarter, month, day, weekday, yearday, hour, minute, second, days (docs/tables.md).
     * NULL: year, month, weekday and days, and the hour where there are times. */
    const char *dates;
    /* CSV: how dates are written: %d.%m.%Y, %m/%d/%Y %H:%M and so on, as Python's strptime has it.
     * A column is one of dates when all its cells are written so. NULL: as ISO 8601 has it. */
    const char *date_format;
    /* Further files of labels, after `labels_path`, `labels_more_count` of them. Where several
     * files are one table, each has those of one file, in the same order. All may be named as in
     * qn_data_open_files: by a folder, a pattern or a list. */
    const char *const *labels_more;
    size_t labels_more_count;
    /* 1: doubles of typed columns and of NPY files, and decimals as the nearest double, are kept
     * beside their floats where the memory suffices: for qn_data_write and qn_data_exact. Nothing
     * else changes, nor does the digest. */
    int keep_doubles;
    /* Images: a folder with a mask for each: a PNG file, in grey or with a palette, with the name
     * of the image but for its ending. The number of a pixel is its class (qn_data_several), and
     * its folders are not classes. `resize` takes the nearest pixel of a mask. Other files:
     * QN_INPUT. NULL: no masks. */
    const char *masks;
    /* With `masks`: the number of pixels that do not count, "0" to "255", beside 255. NULL: 255. */
    const char *ignore;
    /* "ids": NPY, NPZ: the elements are numbers of tokens: items x positions, or one row of them, a
     * corpus. Integers of at most 16 bits become QN_TOKENS16, others QN_TOKENS32. A file whose name
     * ends in ".bin" is a corpus of numbers of 16 bits, little-endian. Other files: QN_INPUT. The
     * text of a tokenizer, as for qn_tokenizer_open: the files are texts, of which it makes a
     * corpus; what it learns, it learns from them. Tables: an item has the tokens of its text, in
     * the one column of texts; other columns but the label and the weight are left out. So are
     * files of text whose name ends in ".csv", ".tsv" or ".tab", or that have an option of columns,
     * unless `task` is "next". NULL: numbers. */
    const char *tokens;
    /* What `tokens` was for the data of a model (qn_model_tokens). These are read in the same way.
     * QN_USAGE where `tokens` is of another kind, or a file with another tokenizer. NULL: unknown,
     * or not at all. */
    const char *expected_tokens;
    /* A corpus: an item has so many tokens and the next one, with which the next item begins.
     * Tokens at the end that do not fill an item are left out. 0: `expected_context`. A column of
     * texts: the tokens of an item; shorter texts are filled up with the largest number of the
     * type, longer ones are cut. 0: `expected_features`. */
    uint32_t context;
    uint32_t expected_context; /* that of the data of a model (qn_model_context); 0: unknown */
    /* The tokenizer of a model (qn_model_tokenizer), which makes the tokens of these texts, too.
     * NULL: unknown, or none. */
    const char *expected_tokenizer;
    /* Tables: columns of texts, such as reviews: a network gets their words. A list as for
     * `features`; "none": no column, unless one has that name. NULL: columns that look so, with
     * different texts of several words (docs/tables.md). */
    const char *text;
    /* Tables: the columns of texts of a model (qn_model_text_inputs); no others are. A list as for
     * `expected_categories`. NULL: unknown. */
    const char *expected_text;
    /* With a tokenizer: "line": each line of the texts is an item of its own, "row": each row of
     * the column `text` is. An item has as many tokens as one of a corpus with this context has, or
     * else `expected_features`; shorter ones are filled up as above. QN_INPUT where a text has
     * more. Labels are not read. NULL: items are as the other options say. */
    const char *item;
    /* Tables: what a network gets of columns of texts: "words", "chars" (pieces of words),
     * "chars-across" (pieces of the text) or several, separated by commas. Each may have a range
     * of lengths, "chars:3..5". NULL: "words:1..2", words and pairs of words. */
    const char *text_features;
} qn_data_options;

/* Sets `size`, and every other member to 0 or NULL, its default. */
QN_API void qn_data_options_init(qn_data_options *options);

/* Reads the regular file `path` in one of the formats of QN_CHOICE_READ (choices.h,
 * docs/exactness.md 2.1). All but NPZ and Parquet may be compressed with gzip, zstd, bzip2 or xz,
 * or be a file in a ZIP archive. Images are in a folder that has a folder of image files for each
 * class, or in a tar (plain or compressed) or ZIP archive of it (docs/images.md); the values are
 * bytes, [channel][row][column]. Of a SQLite file it reads the rows of qn_data_options.query. So it
 * does of a PostgreSQL server, where `path` is the address, "postgresql://USER@HOST:PORT/DATABASE",
 * without a password. The content of a file decides its format, not the name. "FILE.npz:NAME" is
 * the array NAME of an archive, with the labels that belong to it (docs/formats.md). "-" is the
 * standard input, which is read to its end, but for SQLite; "./-" is a file of that name. `options`
 * may be NULL: the defaults. The type is QN_U8 for IDX and for arrays of integers from 0 to 255.
 * For CSV and LIBSVM it is QN_U8 where every feature is written as a plain whole number from 0 to
 * 255. In CSV, a column of texts is a category. A missing value of any column is a NaN.
 *
 * On success *out is owned by the caller, for qn_data_close. Fails with QN_USAGE (options),
 * QN_INPUT (the file is missing or malformed; `where` has line and column, or the byte), QN_IO or
 * QN_MEMORY. Fails with QN_UNSUPPORTED for gzip or NPZ in a build without zlib, and for a format
 * whose library is not installed: zstd (libzstd.so.1), bzip2 (libbz2.so.1.0), xz (liblzma.so.5),
 * SQLite (libsqlite3.so.0), PostgreSQL (libpq.so.5) and images (docs/images.md). Also on a
 * processor that computes wrongly. */
QN_API qn_status qn_data_open(const char *path, const qn_data_options *options, qn_data **out,
                              qn_error *err);

/* Reads several files as one table, in the order of `paths`, of which there are `count`. Each path
 * may be a file, a folder of files, a pattern with `*`, `?`, `[...]` or `**`, or "@FILE": a text
 * with such a path in each line. qn_data_open takes them too; a file whose name begins with @ is
 * "./@...". The rows of a folder or a pattern are in the order of the paths, bytewise. Columns are
 * matched by their names; folders such as "year=2026" are columns (docs/exactness.md 2.12). Files
 * cut from one have its digest. IDX, NPY and NPZ: items of one shape, elements of one type. A
 * folder of images, "-", a database and the address of a server cannot be combined with other
 * files.
 *
 * Fails as qn_data_open does, and with QN_INPUT where the files cannot be one table: `where` has
 * the file. */
QN_API qn_status qn_data_open_files(const char *const *paths, size_t count,
                                    const qn_data_options *options, qn_data **out, qn_error *err);

/* Makes a data set from copies of arrays. `values` is items x features, item after item: uint8_t
 * for QN_U8, finite floats for QN_F32. `labels` has `items` elements, none of them negative; it may
 * be NULL: no labels.
 *
 * On success *out is owned by the caller, for qn_data_close. Fails with QN_USAGE (an unknown type),
 * QN_INPUT (no items or no features, a value that is not finite, a negative label; `where` has the
 * item) or QN_MEMORY. */
QN_API qn_status qn_data_from_arrays(qn_data_type type, uint64_t items, uint32_t features,
                                     const void *values, const int32_t *labels, qn_data **out,
                                     qn_error *err);

/* Arrays of a caller, and what they mean. Fill with qn_data_arrays_init, then set type, items,
 * features and values. All but `values` is read during the call only; pointers other than it may be
 * NULL. Texts are UTF-8. */
typedef struct qn_data_arrays {
    size_t size; /* sizeof(qn_data_arrays) */
    qn_data_type type;
    uint32_t features;
    uint64_t items;
    const void *values;    /* items x features, as for qn_data_from_arrays */
    int missing;           /* 1: a NaN is a missing value; 0: it is refused */
    const int32_t *labels; /* one whole label for each item */
    const float *targets;  /* or one real label for each, finite */
    /* What `labels` are. NULL: class numbers, or indices into `class_name`. "auto", "classify",
     * "regress": what qn_data_options.task makes of the labels of a file. */
    const char *task;
    const char *label_name;
    /* `classes` texts; not with `task` and `targets`. With `several` labels: a name for each. */
    const char *const *class_name;
    uint32_t classes;
    const char *const *feature_name; /* `features` texts, each may be NULL */
    /* `features` numbers: 0 for a column of numbers, else the number of its categories; the values
     * of the column are then indices into category[k], whose texts ascend bytewise, or missing.
     * NULL: all columns are numbers. */
    const uint32_t *categories;
    const char *const *const *category;
    void *owner;                  /* passed to `release` */
    void (*release)(void *owner); /* called when the values are no longer needed */
    const float *weights; /* one for each item: finite, from 0, one of them above 0; copied */
    /* `features` numbers, 1 for a feature that holds whole numbers from 0 to 255 and no missing
     * value. Where only the other features make the table QN_F32, and a model does not use those,
     * the table counts as QN_U8 for that model. NULL: all are 0. */
    const uint8_t *feature_bytes;
    /* QN_F32: 1, `values` are doubles; each is rounded to float32 once. */
    int doubles;
    /* QN_F32: elements of `values` from one item to the next, and from one feature to the next,
     * both above 0. Columns that lie one after the other have 1 and `items`. Both 0: items x
     * features values, a feature after the other. */
    uint64_t item_step, feature_step;
    /* The rules of reading that changed something where the values come from (qn_data_rules), which
     * a recipe then names. NULL: none did. */
    const char *rules;
    /* QN_F32: `features` arrays of `items` exact values, of features whose values float32 may not
     * hold: whole numbers, where INT64_MIN is missing, or doubles. Each may be NULL: `values` has
     * all that there is, which are doubles with `doubles` 1. They are copied where float32 does not
     * hold them (docs/exactness.md 23.4). */
    const int64_t *const *whole;
    const double *const *real;
    const char *expected_rules; /* as in qn_data_options */
    /* `features` texts: what a network gets of a column of dates, as qn_data_dates tells it, whose
     * values are days since 1970-01-01; NULL or "" for other columns. `date_kinds`: for each a
     * qn_date_kind, and those with times have microseconds since 1970 in `whole`. `date_format` as
     * in qn_data_options. NULL: there are no dates. */
    const char *const *dates;
    const uint8_t *date_kinds;
    const char *date_format;
    /* QN_U8: how the images that the items are were made equal, as in qn_data_options: a recipe
     * then has it, and images to which a model is applied are resized in the same way. NULL: they
     * were not, or are not images. */
    const char *resize;
    /* Several targets for each item, instead of `labels` and `targets`: `each` of them, copied.
     * With `mask_rows` and `mask_columns`, whose product is `each`, they are the classes of pixels,
     * from 0 to 254. Else they are labels that an item has (1) or has not (0). 255: the target is
     * ignored. */
    const uint8_t *several;
    uint32_t each, mask_rows, mask_columns;
    /* `features` numbers, 1 for a feature whose categories are texts, of which a network gets the
     * words. NULL: those that look so (qn_data_options.text). */
    const uint8_t *texts;
    const char *text_features; /* as in qn_data_options */
} qn_data_arrays;

/* Sets `size`, `type` to QN_F32, and every other member to 0 or NULL. */
QN_API void qn_data_arrays_init(qn_data_arrays *arrays);

/* Makes a data set that reads the values where they are: they must stay and not change. It copies
 * them in three cases: floats at an address that is not a multiple of 4; fewer than 64 bytes from
 * the end of the values to the end of their page; a NaN with other bits than 0x7fc00000. Doubles,
 * and values with steps, are copied by every core; nothing is read from them afterwards.
 * qn_data_values shows which happened.
 *
 * On success *out is owned by the caller, for qn_data_close, and `release` is called once: by
 * qn_data_close, on the thread that calls it, or before this function returns when the values were
 * copied. After a failure it is never called. Fails as qn_data_from_arrays does, and with QN_USAGE
 * for members that contradict each other. Fails with QN_INPUT for a class, a category or one of
 * `feature_bytes` that is out of range, texts that do not ascend, a target that is not finite, and
 * weights out of range. */
QN_API qn_status qn_data_lend(const qn_data_arrays *arrays, qn_data **out, qn_error *err);

/* Some items from a caller, as arrays that are read before the next call. */
typedef struct qn_data_batch {
    size_t size;           /* set by the library */
    uint64_t items;        /* 0: there are no more */
    const void *values;    /* items x features, of the type in qn_data_arrays */
    const int32_t *labels; /* one whole label for each item, or NULL */
    const float *targets;  /* or one real label for each, or NULL */
    const float *weights;  /* one for each item, as in qn_data_arrays, or NULL */
} qn_data_batch;

/* Gives the next items. All members of *batch but `size` are 0 or NULL before each call. `user` is
 * the argument of qn_data_from_batches. A status other than QN_OK ends the reading; *err says why.
 */
typedef qn_status (*qn_data_next)(void *user, qn_data_batch *batch, qn_error *err);

/* Makes a data set from batches of items, for tables that never exist as one array. `arrays` says
 * what the batches hold, as for qn_data_lend; its values, labels, targets, weights, owner and
 * release must be NULL, and its doubles and steps 0. Its `items` is the expected number of items,
 * or 0: unknown; the batches decide. `next` is called until it gives no items, on the thread of the
 * caller, in the library's floating-point state. Batches may differ in length. All have labels, or
 * all have targets, or none has any. All have weights, or none.
 *
 * Values are copied once into memory that doubles when it is full. Where `arrays->items` is exact,
 * the data set needs no more memory than its values.
 *
 * On success *out is owned by the caller, for qn_data_close. A failure of `next` is returned as it
 * is; what was read until then is freed. Fails also as qn_data_lend does, with QN_INPUT for batches
 * that differ in kind (`where` has the number of the batch, from 0) and for no items at all. After
 * a failure `next` is not called again. */
QN_API qn_status qn_data_from_batches(const qn_data_arrays *arrays, qn_data_next next, void *user,
                                      qn_data **out, qn_error *err);

/* Draws `items` images like handwritten digits: QN_U8, 784 features (28 x 28 pixels, row after row,
 * 0 is the background), labels 0..9 in random order. Image `i` of the set depends on `seed` and
 * `first + i` alone, so a set can be drawn in parts. Uses every core the process may use.
 *
 * On success *out is owned by the caller, for qn_data_close. Fails with QN_USAGE (`items` is 0, or
 * `first + items` is above 2^48) or QN_MEMORY. */
QN_API qn_status qn_data_synth_digits(uint64_t seed, uint64_t first, uint64_t items, qn_data **out,
                                      qn_error *err);

/* Opens a data set on a rank. `user` is the argument of qn_data_share. On success *out is a data
 * set that qn_data_share owns from then on; after a failure it is NULL and *err says why. */
typedef qn_status (*qn_data_opener)(void *user, qn_data **out, qn_error *err);

/* Gives all ranks of a cluster one data set. All ranks call this together, with the same
 * `from_first`. With `from_first` 0, one rank of each machine calls `open`, and the other ranks of
 * the machine map the same memory. With `from_first` 1, only the rank with the lowest number calls
 * `open`, and sends the data to the other machines. When such a rank dies, another one calls its
 * `open`. `user` is passed to `open`, and may be NULL. `cluster` may be NULL: the answer is that of
 * one call of `open`.
 *
 * On success each rank owns its *out, for qn_data_close, which must come before qn_cluster_leave.
 * When `open` fails on a rank, all ranks get its status and its message, which names the rank, and
 * the cluster can be used further. After QN_CLUSTER, or a failure of this function's own
 * (QN_MEMORY), the rank calls qn_cluster_leave. The data of different machines is not compared
 * here: qn_train_open and qn_predict compare it. */
QN_API qn_status qn_data_share(qn_cluster *cluster, int from_first, qn_data_opener open, void *user,
                               qn_data **out, qn_error *err);

/* The same for files: `paths`, `count` and `options` as in qn_data_open_files. Ranks of one machine
 * name the same files, also of labels; a file may have several names. They fail with QN_MISMATCH
 * where they do not, since one of them reads for all. */
QN_API qn_status qn_data_share_files(qn_cluster *cluster, int from_first, const char *const *paths,
                                     size_t count, const qn_data_options *options, qn_data **out,
                                     qn_error *err);

/* Frees the data set and all that its functions returned. Accepts NULL. Not while a qn_train or
 * qn_predictions uses it. */
QN_API void qn_data_close(qn_data *data);

/* Number of items, at least 1; 0 for NULL. */
QN_API uint64_t qn_data_items(const qn_data *data);
/* Number of texts of which the items are windows (docs/exactness.md 25.69): an item that is a line
 * or a row, and longer than the context, is several. Of other data the number of items; 0 for NULL.
 */
QN_API uint64_t qn_data_texts(const qn_data *data);
/* Number of features of an item, without the label, at least 1; 0 for NULL. */
QN_API uint32_t qn_data_features(const qn_data *data);
/* Number of inputs of a network for this data: one for each feature, but for each category one
 * where a feature holds categories. 0 for NULL. */
QN_API uint32_t qn_data_inputs(const qn_data *data);
/* The type of the values; 0 for NULL. */
QN_API qn_data_type qn_data_type_of(const qn_data *data);
/* The values, items x features, item after item: uint8_t, float, uint16_t or uint32_t by the type.
 * Owned by the data set. */
QN_API const void *qn_data_values(const qn_data *data);
/* The values of item `item`, counted from 0, as there. NULL where `item` is too large. */
QN_API const void *qn_data_item(const qn_data *data, uint64_t item);
/* Of a corpus how many tokens there are from one item to the next; an item has one more. So
 * qn_data_values has items x context + 1 tokens. 0 where items share no values, and for NULL. */
QN_API uint32_t qn_data_context(const qn_data *data);
/* How the tokens were made, for qn_data_options.expected_tokens: "ids", or the kind of the
 * tokenizer and its digest, "chars 4f1a...". NULL where the values are not tokens, and for NULL.
 * Owned by the data set. */
QN_API const char *qn_data_tokens(const qn_data *data);
/* The tokenizer of a text as JSON, for qn_tokenizer_from_json and
 * qn_data_options.expected_tokenizer; NULL where there is none, and for NULL. Owned by the data
 * set. */
QN_API const char *qn_data_tokenizer(const qn_data *data);
/* One label for each item; NULL when there are none. Owned by the data set. */
QN_API const int32_t *qn_data_labels(const qn_data *data);
/* The greatest label plus 1; 0 without labels. */
QN_API uint32_t qn_data_classes(const qn_data *data);
/* The digest of values, labels and weights (docs/exactness.md 2.2): 64 hexadecimal digits, "" for
 * NULL. Owned by the data set. Of arrays, lent ones too, it is computed at the first call; any
 * threads may call. */
QN_API const char *qn_data_digest(const qn_data *data);
/* Height and width of an image in pixels. Both are 0 when they are unknown; they are known for
 * digits of qn_data_synth_digits, for images, for IDX and NPY files of three dimensions, and where
 * qn_data_options.shape tells them. `rows`
 * and `columns` may be NULL. */
QN_API void qn_data_image_size(const qn_data *data, uint32_t *rows, uint32_t *columns);
/* Height and width that the image of item `item` had before qn_data_options.resize, as it is to be
 * seen; those of the item where it was not resized. Both are 0 where items are not images, and for
 * an `item` that the data does not have. Both pointers may be NULL. */
QN_API void qn_data_original_size(const qn_data *data, uint64_t item, uint32_t *rows,
                                  uint32_t *columns);
/* Brings classes of pixels to the size of the original image (docs/exactness.md 24.16): `mask` has
 * rows x columns classes of item `item`, over the whole of it, and `to` gets those of
 * qn_data_original_size. A pixel that a crop has cut off gets 255. Fails with QN_USAGE (NULL,
 * rows or columns 0, no such item, or items are not images) or QN_INPUT (as qn_data_open). */
QN_API qn_status qn_data_original_mask(const qn_data *data, uint64_t item, const uint8_t *mask,
                                       uint32_t rows, uint32_t columns, uint8_t *to, qn_error *err);
/* The name of the file that item `item` was read from, below its folder or in its archive: bytes,
 * perhaps not UTF-8. NULL for data of other formats, and when `item` is too large. Owned by the
 * data set. */
QN_API const char *qn_data_item_name(const qn_data *data, uint64_t item);
/* Where the words of item `item` begin among its tokens, of texts whose words have tags
 * (docs/exactness.md 25.47): *count numbers, one for each position and one after them. Of a
 * position where a word begins it is 1 more than the words between that one and the last one before
 * it with a position; of other positions 0. The last number is that of the words after all these.
 * NULL, and *count 0, for other data and when `item` is too large. Owned by the data set. `count`
 * may be NULL. */
QN_API const uint32_t *qn_data_item_words(const qn_data *data, uint64_t item, uint32_t *count);
/* 3 for colour images (red, green, blue), 1 for grey images and for all other data whose image size
 * is known, 0 where it is unknown. The values of an item are ordered [channel][row][column]. */
QN_API uint32_t qn_data_image_channels(const qn_data *data);
/* The library that decodes images of a kind, "jpeg", "png", "webp", "gif" or "tiff", or unpacks
 * "zstd", "bzip2" or "xz", or reads "sqlite" or "postgresql", or addresses ("http"), with what it
 * is called and its version where it tells one; "" for another kind, and where the library is not
 * installed. Static. */
QN_API const char *qn_data_image_library(const char *kind);
/* What the data was made from: "csv", "idx", "npy", "images", "json",
 * "libsvm", "arrow", each with ".gz" or ".zst" where it was compressed, "npz", "parquet",
 * "sqlite", "postgresql", "array", "synth"; "" for NULL. The text is static.
 */
QN_API const char *qn_data_format(const qn_data *data);

/* The name of feature `k`, counted from 0 without the label column, from the header of a CSV file.
 * Owned by the data set. NULL when there is no such name: the file had no header, or `k` is too
 * large. */
QN_API const char *qn_data_feature_name(const qn_data *data, uint32_t k);

/* The type of a table that has feature `k` alone: QN_U8 in a table of QN_F32 where others make it
 * so. 0 when `data` is NULL or `k` is too large. */
QN_API qn_data_type qn_data_feature_type(const qn_data *data, uint32_t k);

/* Inputs of a network for the words of feature `k`, which holds texts. 0: it does
 * not, or `k` is too large. The different texts are its categories (qn_data_category). */
QN_API uint32_t qn_data_text_inputs(const qn_data *data, uint32_t k);
/* What these inputs are, as qn_data_options.text_features names it, with all ranges; "" for another
 * feature. `text` has `size` bytes, of which QN_TEXT_FEATURES always suffice. */
enum { QN_TEXT_FEATURES = 64 };
QN_API void qn_data_text_features(const qn_data *data, uint32_t k, char *text, size_t size);

/* The exact values of feature `k`, one for each item, where float32 does not hold them
 * (docs/exactness.md 23.4): whole numbers, INT64_MIN where one is missing, or doubles, NaN where
 * one is. At most one of the functions has them; NULL where float32 holds them, and when `k` is too
 * large. Owned by the data set. */
QN_API const int64_t *qn_data_whole(const qn_data *data, uint32_t k);
QN_API const double *qn_data_real(const qn_data *data, uint32_t k);
/* The exact value of feature `k` of item `item` as the shortest text that gives it again; "" where
 * it is missing, and where float32 holds the feature. Doubles that qn_data_options.keep_doubles
 * kept are given too. `text` has `size` bytes, of which 32 always suffice; a longer text is cut. */
QN_API void qn_data_exact(const qn_data *data, uint64_t item, uint32_t k, char *text, size_t size);

/* Number of categories of feature `k`; 0 for a column of numbers. The values of a category are
 * indices from 0, or NaN where it is missing. */
QN_API uint32_t qn_data_categories(const qn_data *data, uint32_t k);
/* The text of category `i` of feature `k`; the texts ascend bytewise. Owned by the data set. NULL
 * when there is none. */
QN_API const char *qn_data_category(const qn_data *data, uint32_t k, uint32_t i);

/* What a column of dates holds. */
typedef enum qn_date_kind {
    QN_DATE_NONE, /* no dates */
    QN_DATE_DAYS,
    QN_DATE_TIMES, /* dates with times, of no zone */
    QN_DATE_TIMES_UTC
} qn_date_kind;
/* Whether feature `k` holds dates; `parts`, which may be NULL, then gets what a network gets of
 * them, as qn_data_options.dates names it, else "". It has `size` bytes, of which QN_DATE_TEXT
 * always suffice. The values of such a feature are days since 1970-01-01, or NaN where a date is
 * missing. */
enum { QN_DATE_TEXT = 96 };
QN_API qn_date_kind qn_data_dates(const qn_data *data, uint32_t k, char *parts, size_t size);
/* Microseconds since 1970-01-01 of each item of feature `k`, whose dates have times; INT64_MIN
 * where one is missing. NULL where it holds no such dates. Owned by the data set. */
QN_API const int64_t *qn_data_moments(const qn_data *data, uint32_t k);
/* The date of item `item`, both counted from 0: 2026-11-28, with times 2026-11-28T13:30:00 and as
 * many decimals as are needed, in UTC with a Z after it. "" where it is missing, and where feature
 * `k` holds no dates. `text` has `size` bytes, of which 40 always suffice. */
QN_API void qn_data_date(const qn_data *data, uint64_t item, uint32_t k, char *text, size_t size);
/* How the dates of a CSV file were written, where qn_data_options.date_format said it and a column
 * has them; else NULL. Owned by the data set. */
QN_API const char *qn_data_date_format(const qn_data *data);

/* What the labels are. */
typedef enum qn_target {
    QN_TARGET_NONE,   /* there are none */
    QN_TARGET_INDEX,  /* class numbers, as written: qn_data_labels */
    QN_TARGET_CLASS,  /* indices of classes with names: qn_data_labels, qn_data_class_name */
    QN_TARGET_REAL,   /* real numbers: qn_data_targets */
    QN_TARGET_SEVERAL /* several for each item: qn_data_several, and their names
                         qn_data_class_name */
} qn_target;
QN_API qn_target qn_data_target(const qn_data *data);
/* Several targets for each item. Members that a caller's struct does not have stay unset. */
typedef struct qn_several {
    size_t size;            /* sizeof(qn_several) */
    uint32_t each;          /* targets of an item; 0: the data has none of this kind */
    uint32_t rows, columns; /* of a mask, whose pixels have a class each; 0: labels, 0 and 1 */
    const uint8_t *target; /* items x each: a class, or 255: it is ignored. Owned by the data set */
} qn_several;
/* Fails with QN_USAGE for NULL. */
QN_API qn_status qn_data_several(const qn_data *data, qn_several *several, qn_error *err);
/* One real label for each item; NULL when there are none. Owned by the data set. */
QN_API const float *qn_data_targets(const qn_data *data);
/* One weight for each item, finite and from 0; NULL when there are none. Owned by the data set. */
QN_API const float *qn_data_weights(const qn_data *data);
/* The name of the column of weights, or NULL. Owned by the data set. */
QN_API const char *qn_data_weight_name(const qn_data *data);
/* The name of the label column in the header, or NULL. Owned by the data set. */
QN_API const char *qn_data_label_name(const qn_data *data);
/* The name of class `k`, from 0; NULL when it has none (QN_TARGET_INDEX). Numbers come first, by
 * value, then texts, which ascend bytewise. Owned by the data set. */
QN_API const char *qn_data_class_name(const qn_data *data, uint32_t k);

/* The rules of reading that changed something in the data set, as a recipe names them
 * (docs/exactness.md 23); "" where none did, and for NULL. `text` has `size` bytes, of which
 * QN_RULES_TEXT always suffice; a longer text is cut. */
enum { QN_RULES_TEXT = 128 };
QN_API void qn_data_rules(const qn_data *data, char *text, size_t size);

/* What the reader decided where the file was ambiguous, for a person: one sentence a line, options
 * between backquotes as in messages. NULL when nothing was ambiguous. Owned by the data set. */
QN_API const char *qn_data_note(const qn_data *data);

/* These functions write a temporary file in the folder of the path, sync it and rename it to the
 * path. A device, a pipe or a name such as /dev/stdout is written to directly. They fail with QN_IO
 * or QN_MEMORY, and leave the old file as it was. */

/* Writes the values as IDX, and the labels into a second file; `labels_path` may be NULL: only the
 * values. Also fails with QN_INPUT: values that are not QN_U8, labels that are missing or above
 * 255, 2^32 items or more. Fails with QN_USAGE when both paths name one file. Both files are
 * complete before the first is renamed. When only the second renaming fails, the file of values is
 * the new one. */
QN_API qn_status qn_data_write_idx(const qn_data *data, const char *images_path,
                                   const char *labels_path, qn_error *err);
/* Writes the data set as CSV: the label first, where there are labels or targets, then the
 * features, then the weights, where there are any. The header has the names that are known, else
 * "label", and "f0", "f1" and so on, or "r0c0", "r0c1" for images of known size. Categories and
 * classes are written with their names, and a missing value as an empty cell. Floats have the
 * digits that give the same float32 when read. */
QN_API qn_status qn_data_write_csv(const qn_data *data, const char *path, qn_error *err);
/* What a contact sheet shows. Fill with qn_sheet_options_init, then change members. */
typedef struct qn_sheet_options {
    size_t size;         /* sizeof(qn_sheet_options) */
    const char *augment; /* as in qn_train_options; NULL: none */
    float mixup, cutmix; /* the same; 0: items are not mixed */
    const char *shape;   /* what image an item is, as in qn_data_options; NULL: as the data knows */
} qn_sheet_options;
/* Fills *options with the defaults: nothing changes an item. Ignores NULL. */
QN_API void qn_sheet_options_init(qn_sheet_options *options);
/* Writes a contact sheet as PNG: the first 16 images of each class in a row, for the first 40
 * classes; without labels the first 640 images. Where `options` change items, a row has the first
 * image of a class (without labels any image), and how a training with seed 1 and without a part
 * for validation sees it in epochs 1 to 15. Below a mixture are its two classes with their shares;
 * without labels the numbers of the items, from 0. An image with a mask has it to the right, and a
 * row half as many. Images of more than 96 pixels a side are made smaller. `options` may be NULL.
 * Also fails with QN_INPUT when the items are not images of bytes with 1 or 3 channels, and with
 * QN_USAGE when an option is refused, as a training refuses it. */
QN_API qn_status qn_data_write_sheet(const qn_data *data, const qn_sheet_options *options,
                                     const char *path, qn_error *err);
/* Writes the images as PNG in a tar archive, as qn_data_open reads it: a folder for each class,
 * CLASS/NUMBER.png with the number of the item, from 0; without labels NUMBER.png. Also fails with
 * QN_INPUT when the items are not images of bytes with 1 or 3 channels, or the name of a class
 * cannot be that of a folder. */
QN_API qn_status qn_data_write_tar(const qn_data *data, const char *path, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
