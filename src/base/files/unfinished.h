/* The temporary files that writers of this process have open: a table that a signal handler can
 * read, so that a program that must end immediately can remove them (quern/files.h). The table also
 * has the child processes that are killed in such a case. */
#ifndef QN_BASE_FILES_UNFINISHED_H
#define QN_BASE_FILES_UNFINISHED_H

#include <sys/types.h>

/* Records the file `name` of an open folder before the file is created, or a folder of that name,
 * which is removed with the files in it.
 * The text and the folder must be valid until the entry is removed. Returns the entry, or -1 when
 * the table is full: such a file remains after a sudden end and is removed later as a leftover
 * (base/files/leftovers.h). */
int qn__unfinished_add(int folder, const char *name);

/* Call it when the file was renamed or removed. Accepts -1. */
void qn__unfinished_remove(int entry);

/* Records a process that leads a group of its own. A sudden end kills the group before it removes
 * files. Returns the entry, or -1 when the table is full. Call `end` before the process is waited
 * for: afterwards the system may give its number to another process. `end` accepts -1. */
int qn__unfinished_process(pid_t group);
void qn__unfinished_process_end(int entry);

/* Removes a folder and the files in it, but no folders. Safe in a signal handler. */
void qn__folder_remove(int at, const char *name);

#endif
