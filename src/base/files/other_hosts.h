/* What other hosts may see of this one's files, and which run of the system this is. */
#ifndef QN_BASE_FILES_OTHER_HOSTS_H
#define QN_BASE_FILES_OTHER_HOSTS_H

enum { QN__BOOT_ID = 40 };

/* The kernel's name of its run, which differs after a restart and on other hosts: 36 characters.
 * "": it is not known. */
void qn__boot_id(char id[QN__BOOT_ID]);

/* 1: other hosts may use the file system of an open folder, or it is not known. Their changes are
 * not seen at once there, and locks may not reach them. */
int qn__folder_is_shared(int folder);

#endif
