/* Data in parts: each rank of a cluster reads some files, and the rows of all ranks are one table
 * that no rank holds. */
#ifndef QUERN_PARTS_H
#define QUERN_PARTS_H

#include <quern/cluster.h>
#include <quern/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_parts qn_parts;

/* Each rank reads its part of a table; all ranks call this together. `paths`, `count` and `options`
 * are as in qn_data_open_files. Where all ranks name the same files, these are dealt to them in
 * ranges of about as many bytes, in their order. Files are the same if their names, sizes, first
 * and last bytes are. Else the part of each rank is what it names, and the parts follow each other
 * in the order of the ranks. A rank may have no rows: `count` may be 0, too. `cluster` may be NULL:
 * one part is the whole. Of one folder or archive of images, which all ranks name, each reads an
 * equal share.
 *
 * The whole is the table that qn_data_open_files makes of all files in this order: ranks agree on
 * the types of columns, categories, classes, a tokenizer that is learned, and the digest. Of one
 * row of tokens the items of a rank are those that begin in its files. Columns have the same names
 * in all parts, and the order of the first one.
 *
 * On success each rank owns its *out, for qn_parts_close. A failure is that of all ranks, and names
 * the rank. Fails as qn_data_open_files and qn_cluster_agree do; with QN_MISMATCH where parts
 * cannot be one table, or ranks name the same files in different orders; with QN_UNSUPPORTED for
 * what is not read in parts: tags of words, columns that are kept exactly. Where a rank ends,
 * another one reads its files, too, also in qn_statistics_of_parts and in qn_parts_table; QN_IO: it
 * cannot. The texts of `options` must stay valid until qn_parts_close. */
QN_API qn_status qn_parts_open(qn_cluster *cluster, const char *const *paths, size_t count,
                               const qn_data_options *options, qn_parts **out, qn_error *err);

/* As qn_parts_open, of tables in memory: `own` is the part of this rank, NULL: it has no rows. All
 * ranks call this together. `own` stays the caller's and does not change; its values are used where
 * they are, so it must stay open until the parts, or the table of them, are closed. `options` are
 * those with which it was made; the task, the classes and the columns of texts and categories
 * count. If a rank ends, no other can read its part again. Fails as qn_parts_open, and with
 * QN_UNSUPPORTED for a table that is in parts already. */
QN_API qn_status qn_parts_of_data(qn_cluster *cluster, const qn_data *own,
                                  const qn_data_options *options, qn_parts **out, qn_error *err);

/* Accepts NULL. Not while qn_parts_own is in use. */
QN_API void qn_parts_close(qn_parts *parts);

/* Items of the whole; 0 for NULL. */
QN_API uint64_t qn_parts_items(const qn_parts *parts);

/* The number of this rank's first item in the whole; 0 for NULL. */
QN_API uint64_t qn_parts_first(const qn_parts *parts);

/* This rank's items, with the columns, categories and classes of the whole; valid until
 * qn_parts_close. It may have no items. Its digest is that of these items. NULL for NULL. */
QN_API const qn_data *qn_parts_own(const qn_parts *parts);

/* The digest of the whole: qn_data_digest of one process that reads all files; "" for NULL. */
QN_API const char *qn_parts_digest(const qn_parts *parts);

/* How many items of the whole each class has: qn_data_classes(qn_parts_own(parts)) numbers. NULL
 * for NULL and where labels are not classes. */
QN_API const uint64_t *qn_parts_class_items(const qn_parts *parts);

/* Gives each rank what all have; all call this together. `own` has `bytes` bytes, as many on all
 * ranks; those of rank r come to `all` + r * bytes, which NULL fails on all ranks with QN_MEMORY.
 * Fails as qn_cluster_agree does, and with QN_IO if a rank has ended. */
QN_API qn_status qn_parts_gather(const qn_parts *parts, const void *own, size_t bytes, void *all,
                                 qn_error *err);

/* Where a rank has ended since the last call, another one reads its files and has its rows, too;
 * all that are left call this together. *moved is 1 on all of them then: what they made of the rows
 * is to be made again. The order of the rows in the whole stays. qn_parts_own stays at its address;
 * its arrays are others where rows have moved to this rank. A call that failed with QN_IO on all
 * ranks because a rank has ended can be repeated when *moved is 1. Fails with QN_USAGE (NULL),
 * QN_IO (the files cannot be read there, or are not those of before; the part was in memory),
 * QN_MEMORY or QN_CLUSTER; but for the last one, on all ranks alike. */
QN_API qn_status qn_parts_mend(qn_parts *parts, int *moved, qn_error *err);

/* Whether this rank has the items that `rank` had when the parts were opened: 1 of its own number,
 * and of a rank that has ended where qn_parts_mend gave it the items; of a rank without items, one
 * of those that are left has them. *first is the first of them in qn_parts_own, *count how many
 * there are; both 0 where the answer is 0. Both may be NULL. 0 for NULL. */
QN_API int qn_parts_range(const qn_parts *parts, uint32_t rank, uint64_t *first, uint64_t *count);

/* Before qn_parts_table: `copies` ranks have each part then, its own rank among them, so that as
 * many as copies - 1 ranks may end whose files no other rank can read. 1 is the default; more than
 * there are ranks means all. qn_parts_table fetches the copies, and keeps them in memory, or in the
 * cache folder where memory may not hold them. All ranks call this together, with the same number:
 * else QN_MISMATCH. Fails with QN_USAGE where it is 0, or as qn_cluster_agree. */
QN_API qn_status qn_parts_copies(qn_parts *parts, uint32_t copies, qn_error *err);

/* Makes one table of all parts; all ranks call this together. On each rank *out can be used as any
 * table: values of other ranks are fetched when they are touched, and at most `kept` bytes of
 * values are kept (0: a quarter of the memory that is available, divided among the ranks of a
 * machine). Its digest is qn_parts_digest. A system call cannot read the values, and a child of the
 * process has none.
 *
 * Takes over `parts`, also if it fails. On success each rank owns *out, for qn_data_close, which
 * must come before qn_cluster_leave; until then it gives rows to others. Where a rank ends, another
 * one reads its part again if it finds the same files. Otherwise what needs the part fails on all
 * ranks with QN_IO, and names the files. The texts of the options of qn_parts_open must stay valid
 * until then. Images have no names in it. Fails alike on all ranks: with QN_UNSUPPORTED for items
 * of more than 4 MiB where not all values are kept, and where the system does not report accesses
 * to memory (userfaultfd of Linux 5.11), with QN_MEMORY, QN_IO or QN_CLUSTER. */
QN_API qn_status qn_parts_table(qn_parts *parts, uint64_t kept, qn_data **out, qn_error *err);

/* The parts of which qn_parts_table made `data`, valid until qn_data_close; they are not for
 * qn_parts_close. NULL for NULL, for other tables, and where one part is the whole. */
QN_API const qn_parts *qn_data_parts(const qn_data *data);

/* Whether all values of other ranks that were read from a table of qn_parts_table were fetched:
 * those that were not are 0. Not collective. QN_OK for other tables. Fails with QN_IO, which names
 * the rank and its files, or QN_MEMORY. */
QN_API qn_status qn_parts_check(const qn_data *data, qn_error *err);

#ifdef __cplusplus
}
#endif

#endif
