/* Shared libraries that are opened at run time, since a machine may not have them. */
#ifndef QN_BASE_SYSTEM_LIBRARY_H
#define QN_BASE_SYSTEM_LIBRARY_H

#include "base/error.h"
#include <stdatomic.h>

typedef void (*qn__library_function)(void);

typedef struct qn__library {
    void *handle; /* NULL: not opened */
    int lacks;    /* a function that was looked for is not there */
} qn__library;

/* Opens a library by its file name, such as "libzstd.so.1", and sets the floating-point state again
 * (base/system/float_state.h). Returns 1, or 0 where there is none. */
int qn__library_open(qn__library *library, const char *file);
/* Why the last qn__library_open of this thread returned 0, for a person; valid until the next. */
const char *qn__library_reason(void);
/* A function of an open library, to be cast to its type; NULL, with `lacks` set, if it has none. */
qn__library_function qn__library_find(qn__library *library, const char *name);
/* After the functions were looked for: 1, or 0 and the library is closed if it lacks one. */
int qn__library_is_whole(qn__library *library);
/* Closes it, if it is open. */
void qn__library_close(qn__library *library);

/* A function of a library, and the pointer to a function that gets it. */
typedef struct qn__library_symbol {
    const char *name;
    void *pointer;
} qn__library_symbol;

/* A library of which one copy serves the process: a row of constants, and what was found. */
typedef struct qn__optional_library {
    const char *name, *file;          /* "libzstd", "libzstd.so.1" */
    const char *debian, *fedora;      /* packages that have it */
    const qn__library_symbol *symbol; /* the last one has no name */
    void (*version)(char text[32]);   /* NULL: the library has no such function */
    atomic_int asked;
    qn__library library;
    char about[80];
} qn__optional_library;

/* Its handle, as dlopen gives it; NULL: it is not installed, or lacks a function. The first call
 * opens it. Any thread. */
void *qn__optional_open(qn__optional_library *library);
/* Its name, version and file; "" where it is missing. */
const char *qn__optional_about(qn__optional_library *library);
/* QN_OK where it is there, else QN_UNSUPPORTED. `use`: what needs it, such as "zstd data needs
 * libzstd"; `otherwise`: what to do without it. */
qn_status qn__optional_need(qn__optional_library *library, const char *use, const char *otherwise,
                            qn_error *err);

#endif
