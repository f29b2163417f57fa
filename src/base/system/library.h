/* Shared libraries that are opened at run time, since a machine may not have them. */
#ifndef QN_BASE_SYSTEM_LIBRARY_H
#define QN_BASE_SYSTEM_LIBRARY_H

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

#endif
