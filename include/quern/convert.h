/* Data sets written to files of other formats, and cut into parts. */
#ifndef QUERN_CONVERT_H
#define QUERN_CONVERT_H

#include <quern/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a data set to a file. `format` is one of these; NULL: by the ending of the path.
 *
 *   "csv"     .csv                      numbers, categories, names, labels, weights
 *   "parquet" .parquet                  the same with the type of each column, not compressed
 *   "arrow"   .arrow .feather           the same in Arrow IPC
 *   "json"    .jsonl .ndjson .json      the same as objects of JSON
 *   "npy"     .npy                      numbers; the labels are a second array, `labels_path`
 *   "npz"     .npz                      the arrays x, y (labels) and weight, not compressed
 *   "libsvm"  .libsvm .svmlight .svm    numbers, and labels that are numbers
 *   "idx"     .idx -ubyte               bytes; the labels are a second file, `labels_path`
 *   "tar"     .tar                      images of bytes, as PNG in a folder for each class
 *
 * Reading the file with qn_data_open, and the options that qn_data_reading names, gives the digest
 * of `data`. The exception is tar, where the items are in another order. What the format cannot
 * hold is refused with QN_INPUT before the file is made. Names of columns that it cannot hold are
 * left out. `labels_path` may be NULL, and then the labels are left out; it is QN_USAGE where the
 * format holds its labels itself.
 *
 * Files are written as by qn_data_write_csv, and fail as it does. QN_USAGE: the format is unknown,
 * or the path has no such ending. */
QN_API qn_status qn_data_write(const qn_data *data, const char *format, const char *path,
                               const char *labels_path, qn_error *err);

/* The format that the ending of a path names for qn_data_write; NULL: it names none. Static. */
QN_API const char *qn_data_write_format(const char *path);

/* Writes `count` data sets to files of one format, as qn_data_write does: parts[i] to paths[i], and
 * its labels to labels_paths[i] (`labels_paths` and its members may be NULL). All files are
 * complete and synced before the first is put in its place. So a failure, such as a full disk or a
 * part that the format cannot hold, leaves every old file as it was and no new one. Only when a
 * renaming itself fails, the files that were renamed before it stay. The paths must name different
 * files. */
QN_API qn_status qn_data_write_parts(const qn_data *const *parts, uint32_t count,
                                     const char *format, const char *const *paths,
                                     const char *const *labels_paths, qn_error *err);

/* Writes, for a person, which options are needed to read a file of this format that qn_data_write
 * made. Options are between backquotes, as in messages. The text also says when labels get other
 * numbers in this format, so that the digest differs. It is "" when there is nothing to say, and
 * for NULL or an unknown format. `text` has `capacity` bytes, at least 1; a longer text is cut. */
QN_API void qn_data_reading(const qn_data *data, const char *format, char *text, size_t capacity);

/* Cuts a data set into `count` parts, from 1 to 256, in proportion to `shares`: whole numbers from
 * 1, of which the sum is below 2^31. Each item is in one part; the parts keep its place in the
 * order of the items. Which items a part has depends on `seed`, the number of items and the shares
 * alone (docs/exactness.md 2.10), so with the shares 1, 4 the first part has the items that
 * training with `train.valid_fraction` 0.2 and the same seed sets aside. `stratify` 1: each class
 * is cut in these proportions.
 *
 * On success the caller owns the data sets out[0] to out[count - 1], for qn_data_close; `data` may
 * be closed before. They keep all names, categories and classes of `data`. Fails with QN_USAGE
 * (count, shares; `stratify` without classes), QN_INPUT (a part would have no item, or weights of 0
 * alone) or QN_MEMORY. All of `out` is then NULL, but untouched where `count` is above 256. */
QN_API qn_status qn_data_split(const qn_data *data, const uint64_t *shares, uint32_t count,
                               uint64_t seed, int stratify, qn_data **out, qn_error *err);

/* Fold number `fold`, from 0, of a cross validation with `folds` folds, from 2 to 256: *valid has
 * its items, *train all others, in the order of `data`. Each item is in one fold. Folds differ by
 * one item at most, with `stratify` 1 also in each class. Which items a fold has depends on `seed`,
 * the number of items, the folds and, with `stratify`, the labels (docs/exactness.md 2.11).
 *
 * On success the caller owns both, for qn_data_close; `data` may be closed before. After a failure
 * both are NULL. Fails with QN_USAGE (`folds`, `fold`; `stratify` without classes), QN_INPUT (fewer
 * items than folds; weights of 0 alone) or QN_MEMORY. */
QN_API qn_status qn_data_fold(const qn_data *data, uint32_t folds, uint32_t fold, uint64_t seed,
                              int stratify, qn_data **train, qn_data **valid, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
