#include "plain.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The most bytes of a character. */
enum { MOST = 4 };

static int length_of(unsigned char first) {
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

/* Reads a character of at most `size` bytes: its length, and *code, its number. 1 and UINT32_MAX:
 * the byte belongs to none. 0: the text ends within it. */
static size_t read_character(const unsigned char *at, size_t size, uint32_t *code) {
    static const uint32_t least[MOST + 1] = {0, 0, 0x80, 0x800, 0x10000};
    const int length = length_of(*at);
    *code = length == 1 ? *at : *at & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((size_t)i == size)
            return 0;
        if ((at[i] & 0xc0) != 0x80)
            *code = UINT32_MAX;
        if (*code == UINT32_MAX)
            return 1;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    if (length > 0 && *code >= least[length] && *code < 0x110000 && *code >> 11 != 0x1b)
        return (size_t)length;
    *code = UINT32_MAX;
    return 1;
}

static int is_obeyed(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == UINT32_MAX;
}

/* *used: the bytes that were read; fewer than `size` if the text ends within a character. */
static size_t copy_whole(char *to, const char *from, size_t size, const char *keep, size_t *used) {
    size_t written = 0;
    for (*used = 0; *used < size;) {
        uint32_t code;
        const char *at = from + *used;
        const size_t length = read_character((const unsigned char *)at, size - *used, &code);
        if (length == 0)
            break;
        *used += length;
        if (is_obeyed(code) && (code == 0 || code > 0x7f || !strchr(keep, (int)code)))
            to[written++] = '?';
        else {
            memmove(to + written, at, length);
            written += length;
        }
    }
    return written;
}

size_t plain_copy(char *to, const char *from, size_t size, const char *keep) {
    size_t used;
    size_t written = copy_whole(to, from, size, keep, &used);
    if (used < size)
        to[written++] = '?';
    return written;
}

int plain_print(FILE *to, const char *text, size_t size, int most) {
    int printed = 0;
    for (size = strnlen(text, size); size > 0 && printed < most; printed++) {
        uint32_t code;
        const size_t length = read_character((const unsigned char *)text, size, &code);
        if (length == 0 || is_obeyed(code))
            fputc('?', to);
        else
            fwrite(text, 1, length, to);
        text += length;
        size -= length > 0 ? length : size;
    }
    return printed;
}

void plain_cell(const char *text, int most, int width) {
    const int used = plain_print(stdout, text, SIZE_MAX, most);
    printf("%*s", width > used ? width - used : 0, "");
}

/* ---------------------------------------------------------------------------------- the terminal
 */

static int is_on;

#ifdef __GLIBC__
enum { BLOCK = 4096 };

/* The beginning of a character whose end comes with the next block. */
static struct {
    char byte[MOST];
    size_t size;
} begun;

static int write_all(const char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t n = write(STDOUT_FILENO, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return 0;
        bytes += n;
        size -= (size_t)n;
    }
    return 1;
}

static ssize_t write_plain(void *cookie, const char *bytes, size_t size) {
    char block[MOST + BLOCK];
    (void)cookie;
    for (size_t at = 0; at < size;) {
        size_t used, all = begun.size;
        const size_t some = size - at < BLOCK ? size - at : BLOCK;
        memcpy(block, begun.byte, all);
        memcpy(block + all, bytes + at, some);
        all += some;
        at += some;
        const size_t written = copy_whole(block, block, all, "\n\t", &used);
        begun.size = all - used;
        memcpy(begun.byte, block + used, begun.size);
        if (!write_all(block, written))
            return 0;
    }
    return (ssize_t)size;
}

void plain_start(void) {
    const cookie_io_functions_t calls = {.write = write_plain};
    FILE *plain = isatty(STDOUT_FILENO) ? fopencookie(NULL, "w", calls) : NULL;
    if (plain) {
        setvbuf(plain, NULL, _IOLBF, BUFSIZ);
        stdout = plain;
        is_on = 1;
    }
}
#else
/* stdout cannot be replaced; names are printed by plain_print. */
void plain_start(void) {}
#endif

int plain_is_on(void) { return is_on; }
