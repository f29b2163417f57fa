/* Status codes and messages, shared by every function of the library.
 *
 * A function that can fail returns a qn_status and takes a `qn_error *` last. The pointer may be
 * NULL; when it is not, a failure fills it and a success leaves it alone. The library never prints
 * and never exits. After a failure, objects that the call was to create are NULL and objects that
 * it was to change are as before, unless the function says otherwise.
 *
 * A pointer must not be NULL unless the comment of its function, or of its member in a struct, says
 * that it may be. A function that takes a `qn_error *` answers NULL elsewhere with QN_USAGE and
 * names itself and the argument. Functions that only ask answer 0, NULL or "" for an object that is
 * NULL and leave out what they would write through NULL. Those that initialise, stop, close or free
 * do nothing then. */
#ifndef QUERN_STATUS_H
#define QUERN_STATUS_H

#include <quern/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_status {
    QN_OK = 0,
    QN_USAGE,       /* an argument makes no sense (exit code 2 of the command) */
    QN_INPUT,       /* a data file is missing, malformed or does not fit */
    QN_IO,          /* the system refused to read or write */
    QN_MEMORY,      /* not enough memory */
    QN_FORMAT,      /* a model or checkpoint file is malformed or of a future version */
    QN_MISMATCH,    /* two things that must agree do not: recipe and data, checkpoint and recipe */
    QN_NUMERIC,     /* a NaN, an infinity or a sum out of range */
    QN_UNSUPPORTED, /* this machine or this build cannot do it */
    QN_BUSY,        /* another process holds it, such as a checkpoint folder */
    QN_DEVICE,      /* a device failed; its worker is lost */
    QN_INTERRUPTED, /* stopped on request, at a step's end */
    QN_DIFFERS,     /* a replay gave other bytes */
    QN_CLUSTER      /* the ranks of a run could not connect, or continue without this one */
} qn_status;

/* Structs. Every struct that a caller fills or reads begins with `size`, so that it can grow at its
 * end while programs that were built before still run: set it to sizeof the struct, by the struct's
 * _init function or an initialiser,
 *
 *     qn_device_info info = {.size = sizeof info};        in C
 *     qn_device_info info = {sizeof(qn_device_info)};     in C++
 *
 * Where the library reads, members beyond a smaller size take their defaults, and members that it
 * does not know must be zero. Where it writes, it writes no more than `size` bytes, and zeros for
 * what it does not know. In an array that a caller gives, every element has the same size. A size
 * that cannot be, 0 for example, is QN_USAGE. In structs that the library made itself, `size` says
 * which members there are. Three structs lie inside others by value and never change their layout:
 * qn_error and qn_score, which have no size, and qn_compute, which has room to grow.
 */

/* What happened, where, and what to do about it: three NUL-terminated texts in UTF-8, `where` and
 * `remedy` possibly empty, none with a trailing newline. A text names what to
 * change between backquotes, as the member of an options struct or as an argument:
 * `train.learning_rate` is the member learning_rate of qn_train_options; `compute`, `data`,
 * `cluster` and `plan` stand for theirs, and `synth` and `share` for the arguments of
 * qn_data_synth_digits and of the functions that share. */
typedef struct qn_error {
    qn_status status;
    char what[512];
    char where[512];
    char remedy[512];
} qn_error;

/* A plain message for a person: "resumed from step 1200", "worker fake:1 failed: ...". */
typedef void (*qn_note_fn)(void *user, const char *text);

/* The name of a status, such as "bad input". Never NULL. */
QN_API const char *qn_status_name(qn_status status);

#ifdef __cplusplus
}
#endif
#endif
