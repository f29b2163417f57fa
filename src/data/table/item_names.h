/* The names of items that came from files of their own: a text for each, in one block. */
#ifndef QN_DATA_TABLE_ITEM_NAMES_H
#define QN_DATA_TABLE_ITEM_NAMES_H

#include "base/error.h"
#include "base/text/text.h"
#include <stddef.h>
#include <stdint.h>

/* Pixels of an image as it is to be seen, before it was resized. */
typedef struct qn__item_size {
    uint32_t height, width;
} qn__item_size;

typedef struct qn__item_names {
    char *text;          /* all names, each ended by a NUL */
    uint64_t size;       /* of them */
    uint64_t *at;        /* where the name of each item begins */
    qn__item_size *seen; /* of each image; NULL: none was resized */
} qn__item_names;

/* Copies a block of `items` names. Fails with QN_MEMORY, and with QN_FORMAT, without a remedy, when
 * it does not hold so many. */
qn_status qn__item_names_take(const char *text, uint64_t size, uint64_t items, qn__item_names **out,
                              qn_error *err);
/* Appends the sizes of all images as a text without NUL; nothing where none was resized. */
enum { QN__ITEM_SIZE_TEXT = 16 }; /* bytes of each */
void qn__item_sizes_add(const qn__item_names *names, uint64_t items, qn__text *text);
/* Reads them from such a text of `size` bytes. Fails with QN_MEMORY, and as above with QN_FORMAT.
 */
qn_status qn__item_sizes_take(const char *text, uint64_t size, uint64_t items,
                              qn__item_names *names, qn_error *err);

void qn__item_names_free(qn__item_names *names); /* accepts NULL */

#endif
