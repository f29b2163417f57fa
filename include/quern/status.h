/* Status codes and messages, shared by every function of the library.
 *
 * A function that can fail returns a qn_status and takes a `qn_error *` last, which may be NULL. A
 * failure fills the qn_error; a success does not change it. The library never prints and never
 * exits. After a failure, objects that the call was to create are NULL. Objects that it was to
 * change are as before, unless the function says otherwise.
 *
 * A pointer must not be NULL unless the comment of its function, or of its member in a struct, says
 * that it may be. A function that takes a `qn_error *` returns QN_USAGE for NULL elsewhere, and the
 * message names the function and the argument. A function without one returns 0, NULL or "" for an
 * object that is NULL, and does not write results to NULL. Functions that initialise, stop, close
 * or free do nothing then. */
#ifndef QUERN_STATUS_H
#define QUERN_STATUS_H

#include <quern/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_status {
    QN_OK = 0,
    QN_USAGE,       /* an argument is invalid (exit code 2 of the command) */
    QN_INPUT,       /* a data file is missing, malformed or does not fit */
    QN_IO,          /* the system failed to read or write */
    QN_MEMORY,      /* not enough memory */
    QN_FORMAT,      /* a model or checkpoint file is malformed or of a future version */
    QN_MISMATCH,    /* two things do not fit each other: recipe and data, checkpoint and recipe */
    QN_NUMERIC,     /* a NaN, an infinity or a sum out of range */
    QN_UNSUPPORTED, /* this machine or this build does not support it */
    QN_BUSY,        /* another process uses it, such as a checkpoint folder */
    QN_DEVICE,      /* a device failed; its worker is lost */
    QN_INTERRUPTED, /* stopped on request, at the end of a step */
    QN_DIFFERS,     /* a replay produced other bytes */
    QN_CLUSTER      /* the ranks of a run could not connect, or continue without this one */
} qn_status;

/* Structs. Every struct that a caller fills or reads begins with `size`. It can then grow at its
 * end while programs that were built before still run. Set `size` to sizeof the struct, by the
 * struct's _init function or an initialiser:
 *
 *     qn_device_info info = {.size = sizeof info};        in C
 *     qn_device_info info = {sizeof(qn_device_info)};     in C++
 *
 * Where the library reads, members beyond a smaller size take their defaults, and members that it
 * does not know must be zero. Where it writes, it writes no more than `size` bytes, and zeros for
 * members that it does not know. All elements of a caller's array have the same size. An impossible
 * size, 0 for example, is QN_USAGE. In structs that the library made, `size` says which members
 * there are. Three structs are members of others by value and never change their layout: qn_error
 * and qn_score, which have no size, and qn_compute, which has space to grow.
 */

/* What happened, where, and what to do about it: three NUL-terminated texts in UTF-8 without a
 * newline at the end. `where` and `remedy` may be empty. A name between backquotes is what to
 * change: a member of an options struct or an argument. `train.learning_rate` is the member
 * learning_rate of qn_train_options. `compute`, `data`, `cluster` and `plan` stand for their
 * structs in the same way; `synth` and `share` stand for the arguments of qn_data_synth_digits and
 * of the functions that share. */
typedef struct qn_error {
    qn_status status; /* as returned */
    char what[512];   /* one line, such as "the batch is 0" */
    char where[512];  /* file and line, option, or step */
    char remedy[512]; /* what the user can do */
} qn_error;

/* Receives a message for a person: "resumed from step 1200", "worker fake:1 failed: ...". `user` is
 * the pointer that was set beside the callback. `text` is valid during the call only. */
typedef void (*qn_note_fn)(void *user, const char *text);

/* The name of a status, such as "bad input". Never NULL; "unknown status" for other numbers. The
 * text is static. */
QN_API const char *qn_status_name(qn_status status);

#ifdef __cplusplus
}
#endif
#endif
