/* Files of a run as a whole: what a program does about them beside the functions that write them.
 */
#ifndef QUERN_FILES_H
#define QUERN_FILES_H

#include <quern/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Removes the temporary files that the library has open in this process. For a signal handler that
 * ends the process with _exit straight afterwards: it may be called in a signal handler. Writes
 * under way fail after it. Files that are complete are not touched. */
QN_API void qn_files_abandon(void);

#ifdef __cplusplus
}
#endif
#endif
