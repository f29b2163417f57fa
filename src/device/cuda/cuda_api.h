/* The CUDA driver, NVRTC and NVML: declarations of the parts that Quern uses, so that building
 * needs no toolkit. The libraries are opened at run time.
 *
 * Names are those of the libraries without their prefix. Opaque types of the libraries are
 * incomplete structs here; enumerations are int. */
#ifndef QN_DEVICE_CUDA_CUDA_API_H
#define QN_DEVICE_CUDA_CUDA_API_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef int qn__cu_result;
typedef int qn__cu_device;
typedef uint64_t qn__cu_address;
typedef struct qn__cu_context qn__cu_context;
typedef struct qn__cu_stream qn__cu_stream;
typedef struct qn__cu_event qn__cu_event;
typedef struct qn__cu_module qn__cu_module;
typedef struct qn__cu_function qn__cu_function;
typedef struct qn__cu_graph qn__cu_graph;
typedef struct qn__cu_graph_exec qn__cu_graph_exec;

/* Results that are handled separately. */
enum {
    QN__CU_SUCCESS = 0,
    QN__CU_OUT_OF_MEMORY = 2,
    QN__CU_NO_DEVICE = 100,
    QN__CU_INVALID_IMAGE = 200,
    QN__CU_NO_BINARY_FOR_GPU = 209,
    QN__CU_INVALID_PTX = 218,
    QN__CU_UNSUPPORTED_PTX_VERSION = 222,
    QN__CU_NOT_FOUND = 500,
    QN__CU_NOT_READY = 600,
    QN__CU_FIRST_OF_WORK = 700, /* failures of kernels, returned by any later call */
    QN__CU_LAST_OF_WORK = 719,
    QN__CU_SYSTEM_DRIVER_MISMATCH = 803
};

/* Attributes of a device. */
enum {
    QN__CU_MULTIPROCESSORS = 16,
    QN__CU_COMPUTE_MODE = 20, /* its value 2: no process may use the device */
    QN__CU_L2_CACHE = 38,
    QN__CU_CAPABILITY_MAJOR = 75,
    QN__CU_CAPABILITY_MINOR = 76
};

enum { QN__CU_STREAM_NON_BLOCKING = 1, QN__CU_CAPTURE_THREAD_LOCAL = 1 };

typedef struct qn__cuda_driver {
    qn__cu_result (*init)(unsigned flags);
    qn__cu_result (*driver_version)(int *version);
    qn__cu_result (*error_name)(qn__cu_result result, const char **text);
    qn__cu_result (*error_string)(qn__cu_result result, const char **text);
    qn__cu_result (*device_count)(int *count);
    qn__cu_result (*device_get)(qn__cu_device *device, int ordinal);
    qn__cu_result (*device_name)(char *name, int capacity, qn__cu_device device);
    qn__cu_result (*device_memory)(size_t *bytes, qn__cu_device device);
    qn__cu_result (*device_attribute)(int *value, int attribute, qn__cu_device device);
    qn__cu_result (*device_pci_id)(char *id, int capacity, qn__cu_device device);
    qn__cu_result (*context_retain)(qn__cu_context **context, qn__cu_device device);
    qn__cu_result (*context_release)(qn__cu_device device);
    qn__cu_result (*context_set)(qn__cu_context *context);
    /* Optional functions: whether the primary context is retained, and others. */
    qn__cu_result (*context_state)(qn__cu_device device, unsigned *flags, int *active);
    qn__cu_result (*context_create)(qn__cu_context **context, unsigned flags, qn__cu_device device);
    qn__cu_result (*context_destroy)(qn__cu_context *context);
    qn__cu_result (*memory_info)(size_t *unused, size_t *all);
    qn__cu_result (*memory_allocate)(qn__cu_address *address, size_t bytes);
    qn__cu_result (*memory_free)(qn__cu_address address);
    qn__cu_result (*host_allocate)(void **memory, size_t bytes, unsigned flags);
    qn__cu_result (*host_free)(void *memory);
    qn__cu_result (*copy_up)(qn__cu_address to, const void *from, size_t bytes,
                             qn__cu_stream *stream);
    qn__cu_result (*copy_down)(void *to, qn__cu_address from, size_t bytes, qn__cu_stream *stream);
    qn__cu_result (*clear)(qn__cu_address to, unsigned char value, size_t bytes,
                           qn__cu_stream *stream);
    qn__cu_result (*stream_create)(qn__cu_stream **stream, unsigned flags);
    qn__cu_result (*stream_destroy)(qn__cu_stream *stream);
    qn__cu_result (*stream_query)(qn__cu_stream *stream);
    qn__cu_result (*stream_wait)(qn__cu_stream *stream, qn__cu_event *event, unsigned flags);
    qn__cu_result (*stream_begin_capture)(qn__cu_stream *stream, int mode);
    qn__cu_result (*stream_end_capture)(qn__cu_stream *stream, qn__cu_graph **graph);
    qn__cu_result (*event_create)(qn__cu_event **event, unsigned flags);
    qn__cu_result (*event_destroy)(qn__cu_event *event);
    qn__cu_result (*event_record)(qn__cu_event *event, qn__cu_stream *stream);
    qn__cu_result (*event_query)(qn__cu_event *event);
    qn__cu_result (*event_elapsed)(float *milliseconds, qn__cu_event *from, qn__cu_event *to);
    qn__cu_result (*module_load)(qn__cu_module **module, const void *image, unsigned options,
                                 int *names, void **values);
    qn__cu_result (*module_unload)(qn__cu_module *module);
    qn__cu_result (*module_function)(qn__cu_function **function, qn__cu_module *module,
                                     const char *name);
    qn__cu_result (*launch)(qn__cu_function *function, unsigned groups0, unsigned groups1,
                            unsigned groups2, unsigned lanes0, unsigned lanes1, unsigned lanes2,
                            unsigned shared, qn__cu_stream *stream, void **arguments, void **extra);
    /* Two versions of graph instantiation: the first is of CUDA 11.4, the second of 11.0. */
    qn__cu_result (*graph_ready)(qn__cu_graph_exec **exec, qn__cu_graph *graph, uint64_t flags);
    qn__cu_result (*graph_ready_old)(qn__cu_graph_exec **exec, qn__cu_graph *graph, void **node,
                                     char *log, size_t capacity);
    qn__cu_result (*graph_launch)(qn__cu_graph_exec *exec, qn__cu_stream *stream);
    qn__cu_result (*graph_exec_destroy)(qn__cu_graph_exec *exec);
    qn__cu_result (*graph_destroy)(qn__cu_graph *graph);
    int version; /* 12040: it supports CUDA 12.4 */
} qn__cuda_driver;

/* The driver, opened and initialised at the first call, once for the process; NULL when there is
 * none that can be used. *why, when not NULL, is then the reason and a remedy, otherwise "". */
const qn__cuda_driver *qn__cuda_driver_get(const char **why);

/* "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"; space for 160. */
void qn__cuda_result_text(const qn__cuda_driver *driver, qn__cu_result result, char *text);

/* ---- libraries of any kind */

typedef struct qn__cuda_symbol {
    const char *name;
    size_t place; /* offset in a struct of function pointers */
    int optional;
} qn__cuda_symbol;

/* The first of a NULL-terminated list of library names that can be opened, or NULL; `why` (space
 * for 256) is then the system's message for the last. Libraries are never closed. */
void *qn__cuda_library_open(const char *const *names, const char **found, char *why);

/* Fills the struct; returns NULL, or the name of a missing function that is not optional. The list
 * ends with an empty name. */
const char *qn__cuda_library_fill(void *library, const qn__cuda_symbol *symbols, void *functions);

#endif
