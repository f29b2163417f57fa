/* User-defined kernels: a function of an index, written in C, that runs over arrays on all cores.
 * docs/kernels.md says what its text may contain.
 *
 *     qn_kernel *k;
 *     qn_kernel_open("distance.c", &k, &err);
 *     qn_kernel_bind_file(k, "x", "x.npy", &err);
 *     qn_kernel_bind_file(k, "y", "y.npy", &err);
 *     qn_kernel_set(k, "scale", "0.5", &err);
 *     qn_kernel_run(k, NULL, &err);
 *
 * The results depend on the text, the arrays, the scalars and the seed alone: not on the number of
 * threads, the grain, the compiler or the instruction set.
 *
 * A kernel is used by one thread at a time. Messages name what to change with the word `kernel`:
 * `kernel.input` and `kernel.output` are arrays that are bound, `kernel.scalar` is qn_kernel_set,
 * `kernel.shape` is qn_kernel_set_shape, `kernel.seed` is qn_kernel_set_seed; the others are
 * members of qn_kernel_options. */
#ifndef QUERN_KERNEL_H
#define QUERN_KERNEL_H

#include <quern/device.h>
#include <quern/export.h>
#include <quern/status.h>
#include <quern/train.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QN_KERNEL_DIMENSIONS = 3 };

typedef struct qn_kernel qn_kernel;

/* The kinds of declarations. */
typedef enum qn_kernel_use {
    QN_KERNEL_INPUT,  /* array with the shape of the index space: an item reads its own element */
    QN_KERNEL_WHOLE,  /* array of any shape: an item reads any element */
    QN_KERNEL_HALO,   /* array with the shape of the index space: an item reads elements of its
                         neighbours */
    QN_KERNEL_OUTPUT, /* array with the shape of the index space: an item writes its own element;
                         also a SCAN */
    QN_KERNEL_SCALAR,
    QN_KERNEL_SUM, /* exact sum of what the items give, rounded once */
    QN_KERNEL_MIN, /* least number, and the first item that gives it */
    QN_KERNEL_MAX,
    QN_KERNEL_COUNT,  /* of items */
    QN_KERNEL_ARGMIN, /* of each bin the first item with the least number */
    QN_KERNEL_ARGMAX
} qn_kernel_use;

/* A declaration. The texts are owned by the kernel; `text` changes with the next qn_kernel_set. */
typedef struct qn_kernel_part {
    size_t size; /* sizeof(qn_kernel_part) */
    const char *name;
    qn_kernel_use use;
    const char *type;    /* as NumPy calls it: "float32", "int64"; "uint64" of a count; of an ARGMIN
                            or ARGMAX "int64" */
    uint32_t dimensions; /* of an array: its dimensions; 1 of an array of totals; else 0 */
    uint32_t reach;      /* of a halo: the largest offset of a neighbour */
    const char *text;    /* of a scalar: its value; NULL: it has none yet */
    const char
        *next;     /* of an array in a NEXT declaration: the name of the other array; else NULL */
    uint32_t bins; /* of a total that is an array: its length; else 0 */
    uint32_t components; /* of an OUTPUT with several numbers an item: how many, which is the last
                            length of its array; else 0 */
} qn_kernel_part;

/* Reads a kernel's file. Fails with QN_INPUT (with line, column and what to do), QN_IO or
 * QN_MEMORY. *out is for qn_kernel_free. Nothing is compiled yet. */
QN_API qn_status qn_kernel_open(const char *path, qn_kernel **out, qn_error *err);

/* The same for a text that ends with a NUL; messages call it `name`. */
QN_API qn_status qn_kernel_read(const char *text, const char *name, qn_kernel **out, qn_error *err);

/* Frees the kernel. Accepts NULL. Memory that was bound stays the caller's. */
QN_API void qn_kernel_free(qn_kernel *kernel);

/* The number of dimensions of the index space, 1 to 3, and of declarations; 0 for NULL. */
QN_API uint32_t qn_kernel_dimensions(const qn_kernel *kernel);
QN_API uint32_t qn_kernel_parts(const qn_kernel *kernel);

/* Describes a declaration, in the order of the text. Fails with QN_USAGE (no such one). */
QN_API qn_status qn_kernel_part_get(const qn_kernel *kernel, uint32_t index, qn_kernel_part *part,
                                    qn_error *err);

/* Gives a scalar a value, a decimal number such as "12" or "-0.5e3", which is rounded once to its
 * type. Fails with QN_USAGE (no such scalar, or not a number of its type). */
QN_API qn_status qn_kernel_set(qn_kernel *kernel, const char *name, const char *value,
                               qn_error *err);

/* Binds an array to a file. That of an input is an NPY file, which is mapped at once, and must not
 * be changed before the run has ended. If another process makes it shorter, or its disk fails, the
 * system ends this process with SIGBUS, unless the program handles that; a library cannot. Read a
 * file that others may change, and give its numbers to qn_kernel_bind. The file of an output is
 * written by the run: beside its place, then renamed. The end of its name decides its format:
 * ".raw" has the numbers alone, little-endian; ".png" is a picture of uint8 numbers, height x width
 * (grey) or height x width x 3 or 4 (red, green, blue, opacity); all others are NPY. Outputs that
 * would take a large part of the memory are computed in their files, with their space on the disk
 * reserved first. A file that the run writes must not be bound to a second array: QN_USAGE. Fails
 * with QN_USAGE (no such array), QN_INPUT (the file is malformed, or of another type or number of
 * dimensions), QN_IO or QN_MEMORY. */
QN_API qn_status qn_kernel_bind_file(qn_kernel *kernel, const char *name, const char *path,
                                     qn_error *err);

/* Binds an array to memory: numbers of its declared type, in C order, with this shape. It is read
 * or written by the runs until it is bound to something else, and stays the caller's. An array of
 * totals has the shape of its bins. An output may not overlap another array. Fails with QN_USAGE
 * (no such array, another number of dimensions, a length of 0). */
QN_API qn_status qn_kernel_bind(qn_kernel *kernel, const char *name, void *data,
                                const uint64_t *shape, uint32_t dimensions, qn_error *err);

/* Binds an array whose rows, along its first length, are with several ranks: an input, or an output
 * of the index space. The whole array has the rows of rank 0, then those of rank 1, and so on.
 *
 * Of an input `path` is an NPY file, a folder of them, a pattern, or a list, and it is opened by
 * the run. Where all ranks name the same files, each has an equal share of all rows. Else each has
 * the rows of the files that it names. A process alone has all rows. Of an output `path` is the
 * file for the rows of this rank: %r in it stands for the number of the rank.
 *
 * Each rank computes the items of its rows: those that it has of the first input in parts, or an
 * equal share where no input of the index space is. It gets rows of others that a HALO or a WHOLE
 * needs. A rank that ends is not replaced: the run fails with QN_IO. SCAN, checkpoints and devices
 * other than the CPU are not for such runs: QN_UNSUPPORTED.
 *
 * Fails with QN_USAGE (no such array, an output without %r) or QN_MEMORY. */
QN_API qn_status qn_kernel_bind_parts(qn_kernel *kernel, const char *name, const char *path,
                                      qn_error *err);

/* The same for memory, as qn_kernel_bind: the rows of this rank, of which there may be none. That
 * of an output has as many rows as the rank computes; the run fails with QN_USAGE otherwise. */
QN_API qn_status qn_kernel_bind_part(qn_kernel *kernel, const char *name, void *data,
                                     const uint64_t *shape, uint32_t dimensions, qn_error *err);

/* Sets the shape of the index space; needed where no array has it. Fails with QN_USAGE (another
 * number of dimensions than the text's, a length of 0). */
QN_API qn_status qn_kernel_set_shape(qn_kernel *kernel, const uint64_t *shape, uint32_t dimensions,
                                     qn_error *err);

/* Requests the value of a result after every iteration: of a SUM, MIN, MAX or COUNT, as an array of
 * one number an iteration, of float64, int64 or uint64. `path` is an NPY file to write, or NULL.
 * qn_kernel_result_get gives the array. Fails with QN_USAGE (no such result) or QN_MEMORY. */
QN_API qn_status qn_kernel_series(qn_kernel *kernel, const char *name, const char *path,
                                  qn_error *err);

/* Sets the seed of random numbers; without it, it is 1. Fails with QN_USAGE where the kernel does
 * not declare RANDOM. */
QN_API qn_status qn_kernel_set_seed(qn_kernel *kernel, uint64_t seed, qn_error *err);

/* The progress of a run. */
typedef struct qn_kernel_progress {
    size_t size;             /* sizeof(qn_kernel_progress) */
    uint64_t done, items;    /* items computed so far, and all; of all iterations and ranks */
    double seconds;          /* since the first item */
    double items_per_second; /* so far; 0: unknown */
    double seconds_left;     /* at that speed */
} qn_kernel_progress;

/* How to run. Zeros are the defaults, except of `iterations`. Nothing but `recipe` and `iterations`
 * changes what is written. */
typedef struct qn_kernel_options {
    size_t size;         /* sizeof(qn_kernel_options) */
    int threads;         /* cores to use, at most 4096; 0: every core the process may use */
    const char *devices; /* as in qn_compute: "cpu:4", "cuda:0", "cpu,opencl:0"; NULL, "auto": the
                            CPU, and the GPUs of this machine if there are 2^22 items or more, in
                            all iterations */
    uint64_t grain;      /* items that a core takes at once, at most 2^32; 0: by their number */
    const char *recipe;  /* file to which the recipe is written, as JSON; NULL: none */
    uint64_t iterations; /* 1 to 2^48; default 1. After each one the outputs that the text pairs by
                            NEXT become what the next one reads. Results are those of the last one.
                            A replay has those of its recipe. */
    /* The CPU and the other ranks; NULL: this process alone. Of it `threads`, `devices` and
     * `cluster` count; `threads` and `devices` above replace those of it unless they are 0 or
     * NULL. */
    const qn_compute *compute;
    /* A file for the state between two iterations, or between two items if there is one iteration;
     * NULL: none. It is written beside its place, then renamed; with one iteration the new items
     * are added to it, and the state before stays whole. It must not exist without `resume`. Among
     * ranks the lowest one writes it, and all read it. The run locks `checkpoint`.lock beside it:
     * it fails with QN_BUSY while another run uses the file. */
    const char *checkpoint;
    double checkpoint_seconds;      /* between two of them; 0: not by time */
    uint64_t checkpoint_iterations; /* between two; 0: not by number, and with one iteration it must
                                       be 0; both 0: every 60 seconds */
    int resume; /* 1: continue from the checkpoint, if there is one. It fails with QN_MISMATCH if
                   that is of another kernel, shape, scalars, seed, inputs or series. */
    /* File for a time line of the workers of all ranks, a Chrome trace, also of a run that is
     * stopped; NULL: none. If it cannot be
     * written, on_note gets the reason, and the run succeeds. */
    const char *trace;
    void *user; /* passed to the callbacks, which may be NULL. They come from the thread that
                   called. */
    qn_note_fn on_note; /* a worker that failed, or could not be used */
    void (*on_progress)(void *user, const qn_kernel_progress *progress); /* at most 10 a second */
} qn_kernel_options;

/* Sets `size`, and every other member to its default. */
QN_API void qn_kernel_options_init(qn_kernel_options *options);

/* Compiles the kernel, unless the user's cache folder has it, and computes all items. `options` may
 * be NULL. Files are written when all is computed.
 *
 * Among ranks the call is collective: all have the same text, scalars, shape, inputs and options,
 * which they compare first, and names of files that may differ. They divide the items by measured
 * speed, and compute those of a rank that dies. Every rank gets all results, in memory of its own.
 * The lowest rank that is alive writes the files. All wait for that, and all fail where one does.
 *
 * Fails with QN_USAGE (something is not bound, shapes differ, options), QN_UNSUPPORTED (no C
 * compiler, one that computes wrongly, another device), QN_NUMERIC (NaN in a result, an infinity in
 * a sum, a division of integers by zero, an index out of range: for the first such item),
 * QN_INTERRUPTED (qn_kernel_stop), QN_BUSY (another run uses the checkpoint), QN_IO or QN_MEMORY.
 * No file is changed then; memory of outputs may be. */
QN_API qn_status qn_kernel_run(qn_kernel *kernel, const qn_kernel_options *options, qn_error *err);

/* Ends a run or replay that another thread is making: it fails with QN_INTERRUPTED when the cores
 * have computed the items that they took. Without a run it does nothing. Accepts NULL. Safe in a
 * signal handler. */
QN_API void qn_kernel_stop(qn_kernel *kernel);

/* Size, time and compiler of the last run. */
typedef struct qn_kernel_report {
    size_t size; /* sizeof(qn_kernel_report) */
    uint64_t items;
    uint64_t shape[3]; /* of the index space, `dimensions` lengths */
    uint32_t dimensions;
    int threads;            /* of all ranks */
    int cached;             /* 1: the compiled kernel was in the cache */
    double compile_seconds; /* to compile the kernel, or find it */
    double seconds;         /* to compute all items */
    const char *compiler;   /* its path; owned by the kernel */
    const char *note;       /* why the compiled kernel could not be kept, for a person; "" */
    uint64_t iterations;
    const char *devices; /* those of this process that computed, such as "cpu, cuda:0"; owned by
                            the kernel */
    const char
        *checkpoint_note;  /* why the last checkpoint could not be written, for a person; "" */
    uint64_t resumed_from; /* iterations of the checkpoint from which the run went on, or items if
                            * there is one iteration; 0: none */
    /* What the workers of all ranks did, rank after rank, and the ranks; owned by the kernel, until
     * its next run. `items` count an item once for each iteration. */
    uint32_t workers, ranks;
    const qn_worker_report *const *worker;
    const qn_rank_report *const *rank;
    double bound; /* W/S in seconds: all items over the speed of all workers while they computed */
} qn_kernel_report;

/* Fails with QN_USAGE before a run has succeeded. */
QN_API qn_status qn_kernel_report_get(const qn_kernel *kernel, qn_kernel_report *report,
                                      qn_error *err);

/* A result of the last run. Texts are owned by the kernel, until its next run. */
typedef struct qn_kernel_result {
    size_t size; /* sizeof(qn_kernel_result) */
    /* Of an output or an array of totals that has a file or after a run with a recipe: 64
     * hexadecimal digits, the digest of type, shape and numbers. Else "". */
    const char *digest;
    const char *path;  /* of an output: its file, or NULL */
    const char *value; /* of a sum, extreme or count: the number, in the shortest text that reads
                          back as it; NULL: no item gave one, or an array */
    uint64_t item[3];  /* of an extreme: its first item */
    uint64_t count;    /* of an extreme: items that gave a number */
    /* Of a result with a series: its numbers, one an iteration, and their type as NumPy calls it;
     * owned by the kernel, until its next run. `digest` and `path` are those of the series. Else
     * NULL. */
    const void *series;
    const char *series_type;
} qn_kernel_result;

/* Fails with QN_USAGE (no such result, no run that succeeded). */
QN_API qn_status qn_kernel_result_get(const qn_kernel *kernel, const char *name,
                                      qn_kernel_result *result, qn_error *err);

/* Opens the kernel of a recipe: its text, its scalars, its shape, and the files of its inputs where
 * they exist; another file can be bound. A recipe may come from an untrusted person: of the files
 * that it names only those below its own folder are opened, `..` and symbolic links resolved. Fails
 * with QN_FORMAT (not a recipe of a kernel), QN_IO, QN_INPUT or QN_MEMORY. */
QN_API qn_status qn_kernel_from_recipe(const char *path, qn_kernel **out, qn_error *err);

/* Permits a path outside the recipe's folder, and opens the files named in the recipe that are
 * `path` or below it. Messages call this `kernel.allow_path`. Fails with QN_USAGE (the kernel is
 * not of a recipe), QN_IO, QN_INPUT or QN_MEMORY. */
QN_API qn_status qn_kernel_allow_path(qn_kernel *kernel, const char *path, qn_error *err);

/* Runs the kernel of a recipe and compares all results with it; writes no file. `recipe` in the
 * options is not used. Fails with QN_DIFFERS (the message names the first result that differs),
 * QN_MISMATCH (an input is not that of the recipe), QN_USAGE (the kernel is not of a recipe), or as
 * qn_kernel_run. */
QN_API qn_status qn_kernel_replay(qn_kernel *kernel, const qn_kernel_options *options,
                                  qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
