/* Letters for the images that Quern itself draws: ASCII, 5 x 7 pixels and one more below the line.
 */
#ifndef QN_IMAGE_GLYPHS_H
#define QN_IMAGE_GLYPHS_H

#include <stdint.h>

/* From one character, or line, to the next. */
enum { QN__GLYPH_WIDTH = 6, QN__GLYPH_HEIGHT = 9 };

/* Writes a text of UTF-8 in black on an image of `width` pixels in a row and `channels` bytes each,
 * from its first row on: QN__GLYPH_HEIGHT rows at most. Writes `most` characters at most. A
 * character that is not printable ASCII becomes a box. */
void qn__glyphs_draw(const char *text, uint32_t most, uint8_t *image, uint32_t width,
                     uint32_t channels);

#endif
