/* The texts in a tar or ZIP archive: an archive is one of texts where the names of all its files
 * end in .txt. Files whose names begin with a dot do not count. */
#ifndef QN_DATA_BYTES_ENCLOSED_TEXTS_H
#define QN_DATA_BYTES_ENCLOSED_TEXTS_H

#include "data/bytes/enclosed_files.h"

/* Sets *texts to 1 where the source, of which nothing was read, is such an archive. Of a compressed
 * one the first files tell. Fails with QN_IO or QN_MEMORY. */
qn_status qn__enclosed_texts_are(qn__source *source, int *texts, qn_error *err);

/* 1: the source is a tar archive, or a ZIP archive of several files. Nothing was read from it. */
qn_status qn__is_archive(qn__source *source, int *archive, qn_error *err);

/* The files of an archive, whose bytes are all at hand. */
typedef struct qn__enclosed_texts {
    qn__enclosed_files files; /* in the bytewise order of their names */
    qn__contents contents;
    const uint8_t **text; /* of each file: its files.file[i].size bytes */
} qn__enclosed_texts;

/* `source` must outlive *out, which is released in any case. Together the texts may be larger than
 * memory. Fails with QN_INPUT, also for a file that is compressed, an image or another format. */
qn_status qn__enclosed_texts_open(qn__source *source, qn__enclosed_texts *out, qn_error *err);
void qn__enclosed_texts_release(qn__enclosed_texts *texts);

#endif
