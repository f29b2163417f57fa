/* The temporary files that writers of this process have open: a table that a signal handler can
 * read, so that a program that must end immediately can remove them (quern/files.h). */
#ifndef QN_BASE_UNFINISHED_H
#define QN_BASE_UNFINISHED_H

/* Records the file `name` of an open folder before the file is created, or a folder of that name.
 * The text and the folder must be valid until the entry is removed. Returns the entry, or -1 when
 * the table is full: such a file remains after a sudden end and is removed later as a leftover
 * (base/leftovers.h). */
int qn__unfinished_add(int folder, const char *name);

/* Call it when the file was renamed or removed. Accepts -1. */
void qn__unfinished_remove(int entry);

#endif
