/* Space for data in the user's cache folder (base/files/cache_folder.h): decoded images, and tables
 * that were read from text. */
#ifndef QN_BASE_FILES_CACHE_SPACE_H
#define QN_BASE_FILES_CACHE_SPACE_H

#include <stdint.h>

/* An entry is called by 64 hexadecimal digits and one of these. */
#define QN__CACHE_IMAGES ".images"
#define QN__CACHE_TABLES ".tables"
enum { QN__CACHE_ENTRY = 64 + sizeof QN__CACHE_IMAGES };

/* Entries take half of what the file system has for them, at most: those that were not used for
 * longest are removed from the folder `path`. The old one called `name` is to be replaced. 0: the
 * new one, of so many bytes, would take more. */
int qn__cache_space_make(const char *path, const char *name, uint64_t bytes);

#endif
