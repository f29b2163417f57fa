/* The header lines of a kernel's checkpoint: what identifies the run, with a digest. */
#ifndef QN_USERKERNEL_RUN_USER_STATE_H
#define QN_USERKERNEL_RUN_USER_STATE_H

#include "userkernel/run/user_kernel.h"

enum { QN__STATE_HEADER = 1 << 14, QN__STATE_LINE = 255 /* bytes of a line */ };

/* The first bytes of a file, or of a part of it. */
typedef struct qn__state_reader {
    const char *path;
    uint8_t bytes[QN__STATE_HEADER];
    size_t size, at;
    char line[QN__STATE_LINE + 1];
} qn__state_reader;

/* Takes the next line if it begins with the word and a blank; returns what follows, or NULL. */
const char *qn__state_take(qn__state_reader *reader, const char *word);

/* 1: the lines before the digest's line have this digest. */
int qn__state_is_whole(qn__state_reader *reader);

/* QN_FORMAT: the checkpoint is damaged. */
qn_status qn__state_damaged(const qn__state_reader *reader, const char *what, qn_error *err);

/* The lines of kernel, shape, scalars, inputs and series; digests of inputs must be there.
 * qn__state_identity_check reads them, and fails with QN_MISMATCH if they are of another run, or
 * with QN_FORMAT. */
void qn__state_identify(const qn_kernel *kernel, qn__text *out);
qn_status qn__state_identity_check(const qn_kernel *kernel, qn__state_reader *reader,
                                   qn_error *err);

/* Ends the lines: their digest, and an empty line. */
void qn__state_end(qn__text *lines);

#endif
