/* Temporary files of writers (file.h): their names, and the removal of those of dead writers.
 *
 * A writer holds a lock (flock) on its temporary file until that has been renamed or removed. The
 * kernel releases the lock when the process ends in any way. So a file that can be locked has no
 * writer. Other hosts may not see such a lock: NFS passes it to the server since Linux 2.6.12, but
 * keeps it on the client with the option local_lock, and some other network file systems always do.
 * Therefore the name contains the boot id of the writer's kernel, and on a file system that other
 * hosts may share only files of this boot are removed. A local file system has no other hosts, so
 * files from before a reboot or a power failure are removed too. If locks are not supported,
 * nothing is removed. */
#ifndef QN_BASE_FILES_LEFTOVERS_H
#define QN_BASE_FILES_LEFTOVERS_H

enum { QN__TEMPORARY_NAME = 96 };

/* A new name for a temporary file: .quern-PROCESS-COUNT-TIME-BOOT.tmp. */
void qn__temporary_name(char name[QN__TEMPORARY_NAME]);

/* Locks the temporary file `name` of a folder, which has just been created and is open as `file`.
 * Returns a descriptor that holds the lock until it is closed. -1 with errno EEXIST: another
 * process has removed the file, so another name must be tried. */
int qn__temporary_claim(int folder, const char *name, int file);

/* Removes the temporary files of dead writers from a folder. Files that cannot be removed are
 * ignored: they do no harm. */
void qn__leftovers_remove(const char *dir);

/* The same if the caller knows whether other hosts may share the folder's file system. */
void qn__leftovers_remove_from(const char *dir, int shared);

#endif
