/* Space for data in the user's cache folder (base/files/cache_folder.h): decoded images, tables
 * that were read from text, files of stores. */
#ifndef QN_BASE_FILES_CACHE_SPACE_H
#define QN_BASE_FILES_CACHE_SPACE_H

#include <stdint.h>

/* An entry is called by 64 hexadecimal digits and one of these. */
#define QN__CACHE_IMAGES ".images"
#define QN__CACHE_TABLES ".tables"
#define QN__CACHE_STORED ".stored" /* a part of a file of a store */
#define QN__CACHE_BLOCKS ".blocks" /* which part: it goes with the file */
enum { QN__CACHE_ENTRY = 64 + sizeof QN__CACHE_IMAGES };

/* Makes space in the folder `path` for a new entry `name` of so many bytes, which will replace an
 * old one of that name. All entries together take at most half of the space that the file system
 * has for them; the least recently used ones are removed. Returns 1, or 0 when the new entry would
 * take more. */
int qn__cache_space_make(const char *path, const char *name, uint64_t bytes);

#endif
