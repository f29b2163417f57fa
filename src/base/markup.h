/* Text of HTML and SVG, which is well-formed XML too. */
#ifndef QN_BASE_MARKUP_H
#define QN_BASE_MARKUP_H

#include "base/error.h"
#include "base/files/folder_lock.h"
#include "base/text/text.h"

/* Appends a text of a user, for the content of an element or a value between double quotes. What
 * XML cannot hold (control characters, bytes that are not UTF-8) becomes U+FFFD. At most `most`
 * characters, then an ellipsis; 0: all. */
void qn__markup_add(qn__text *text, const char *plain, size_t most);

/* Appends a text of a user as qn__markup_add does, between two texts of markup. */
void qn__markup_put(qn__text *text, const char *before, const char *plain, size_t most,
                    const char *after);

/* Appends bytes in base64. */
void qn__markup_add_base64(qn__text *text, const uint8_t *bytes, size_t size);

/* "1,234,567". */
void qn__markup_add_count(qn__text *text, uint64_t value);

/* Begins a picture of this size in pixels, whose `label` is plain ASCII. */
void qn__markup_begin_svg(qn__text *text, unsigned width, unsigned height, const char *label);

/* The rounded rectangle under such a picture, of the class "page". */
void qn__markup_add_page(qn__text *text, unsigned width, unsigned height);

/* Writes the text to `path`, as qn__writer_commit does; `owner` says whether this rank is the one
 * that writes, and may be NULL. Fails with QN_IO, with QN_BUSY (another rank writes), or with
 * QN_MEMORY where the text is not complete. */
qn_status qn__markup_write(const qn__text *text, const char *path, const qn__owner *owner,
                           qn_error *err);

#endif
