/* Decoded images in the user's cache folder (base/files/cache_folder.h), one file for each folder
 * or archive and each way to read it.
 *
 * An entry is used where the images have the stamp with which they were decoded
 * (base/files/files_stamp.h), the decoders are the same files, and all its digests are right. A
 * missing or invalid entry is therefore not a failure; a problem becomes a note. Two processes may
 * make one at once: the last one stays. */
#ifndef QN_DATA_IMAGES_IMAGE_CACHE_H
#define QN_DATA_IMAGES_IMAGE_CACHE_H

#include "base/files/mapped_file.h"
#include "base/system/threads.h"
#include "base/text/text.h"
#include "data/bytes/source.h"
#include "data/bytes/enclosed_files.h"
#include "image/resize.h"

/* What an entry holds. Pointers lead into its file. */
typedef struct qn__image_entry {
    uint32_t rows, columns, channels;
    uint64_t items; /* files whose mark is QN__FILE_ITEM */
    uint64_t files;
    uint8_t *values;              /* items x channels x rows x columns */
    const uint8_t *values_digest; /* D(values) of docs/exactness.md 2.2 */
    const char *names;            /* of the files, each with its NUL */
    uint64_t text;                /* bytes of them */
    const uint8_t *marks;         /* of each file: data/images/image_names.h */
    const void *sizes;            /* of each file's image: qn__item_size, not aligned */
    uint64_t turned;              /* items with an orientation of Exif */
    uint64_t newer;               /* items of formats since contract 7 */
} qn__image_entry;

typedef struct qn__image_cache {
    int off;       /* nothing is kept, and nothing is looked for */
    qn__text key;  /* which images, and how they are read; the caller may have begun it */
    char name[72]; /* of the entry in the folder */
    char stamp[65];
    qn__mapped_file *file;
    char note[512]; /* for people; "": nothing */
} qn__image_cache;

/* Decides which entry is used, unless cache->off. `turns` and `later` are how the rules of reading
 * change what is decoded (data/images/images.c). `files` are those of a folder, or NULL. Never
 * fails: without memory there is no cache. */
void qn__image_cache_begin(qn__image_cache *cache, const qn__source *source,
                           const qn__enclosed_files *files, const qn__resize *resize,
                           int skip_broken, int turns, int later);
void qn__image_cache_end(qn__image_cache *cache);

/* Finds the entry and checks it, with the threads of `pool`. 0: there is none. */
int qn__image_cache_load(qn__image_cache *cache, qn__pool *pool, qn__image_entry *out);

/* Makes a file for `entry`, of which all but values, values_digest, marks and sizes is known: its
 * values are to be written to entry->values. 0: no file could be made; the caller decodes into
 * memory. */
int qn__image_cache_make(qn__image_cache *cache, qn__image_entry *entry);

/* Keeps the entry that was made; items, channels, values_digest, marks, sizes and the counts are
 * set, and the values are the first ones of what was asked for. entry->values_digest then leads
 * into the file. The values stay mapped in any case. */
void qn__image_cache_keep(qn__image_cache *cache, qn__image_entry *entry);

/* The file of the entry that was found or made, for qn__mapped_file_close by its new owner. */
qn__mapped_file *qn__image_cache_take(qn__image_cache *cache);

#endif
