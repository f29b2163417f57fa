#include "data/tokens/models/marks.h"

#include <stdio.h>
#include <string.h>

size_t qn__byte_name(uint8_t byte, char name[8]) {
    return (size_t)snprintf(name, 8, "<0x%02X>", (unsigned)byte);
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int is_byte(const char *text, size_t size, uint8_t *byte) {
    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || digit_of(text[3]) < 0 ||
        digit_of(text[4]) < 0)
        return 0;
    *byte = (uint8_t)(digit_of(text[3]) << 4 | digit_of(text[4]));
    return 1;
}

size_t qn__marked_bytes(const qn__text_path *path, int fallback, const char *text, size_t size,
                        uint8_t *bytes) {
    int before;
    const char *mark = qn__text_path_mark(path, &before);
    const size_t own = strlen(mark);
    size_t count = 0;
    if (fallback && is_byte(text, size, bytes))
        return 1;
    for (size_t at = 0; at < size;) {
        const int is_mark = own && size - at >= own && memcmp(text + at, mark, own) == 0;
        bytes[count++] = is_mark ? ' ' : (uint8_t)text[at];
        at += is_mark ? own : 1;
    }
    return count;
}

size_t qn__marked_end(const uint8_t *text, size_t size, size_t at, const char *mark,
                      size_t mark_size) {
    while (size - at >= mark_size && memcmp(text + at, mark, mark_size) == 0)
        at += mark_size;
    const uint8_t *next = at < size ? memmem(text + at, size - at, mark, mark_size) : NULL;
    return next ? (size_t)(next - text) : size;
}

void qn__marked_write(qn__token_output *output, uint64_t k, int drops, const char *bytes,
                      size_t size) {
    const size_t left_out = k == 0 && drops && size && *bytes == ' ';
    qn__token_write(output, bytes + left_out, size - left_out);
}

void qn__marked_decoder(const qn__text_path *path, qn__text *json) {
    int before;
    const char *mark = qn__text_path_mark(path, &before);
    if (!*mark) {
        qn__text_add(json, "{\"type\": \"Fuse\"}");
        return;
    }
    qn__text_add(json, "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", "
                       "\"pattern\": {\"String\": ");
    qn__text_add_json(json, mark);
    qn__text_add(json,
                 "}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, "
                 "{\"type\": \"Strip\", \"content\": \" \", \"start\": %d, \"stop\": 0}]}",
                 before);
}
