/* Texts for people. Names of classes and columns, paths, notes and records come from files, and may
 * hold characters that control a terminal: it would move its cursor, change its title, or show
 * words in another order. Each of them is printed as a question mark: C0 controls, DEL, C1
 * controls, marks of the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069), separators of lines (U+2028, U+2029), and bytes that are not UTF-8. */
#ifndef APP_PLAIN_H
#define APP_PLAIN_H

#include <stddef.h>
#include <stdio.h>

/* Copies `size` bytes of text, without a byte of NUL at the end. Characters in `keep` stay as they
 * are. Never writes more bytes than it reads, so `to` may be `from`. Returns the bytes written. */
size_t plain_copy(char *to, const char *from, size_t size, const char *keep);

/* Prints a text that ends after `size` bytes, at a NUL, or after `most` characters. Returns the
 * characters printed. */
int plain_print(FILE *to, const char *text, size_t size, int most);

/* Prints at most `most` characters of a text to standard output, and blanks up to `width`. */
void plain_cell(const char *text, int most, int width);

/* Called first. If standard output is a terminal, this rule is applied to all that is printed to
 * it, except line ends and tabs. Files and pipes get the bytes as they are. */
void plain_start(void);

/* Whether standard output is a terminal, so that the rule is applied. */
int plain_is_on(void);

#endif
