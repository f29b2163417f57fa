#include "base/markup.h"

#include "base/encoding.h"
#include "base/files/file.h"
#include <inttypes.h>
#include <string.h>

/* What stands for the character of `length` bytes at `at`; NULL: itself. */
static const char *entity_of(const char *at, size_t length) {
    const unsigned char c = (unsigned char)*at;
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        break;
    }
    /* U+FFFE and U+FFFF are not characters of XML; C1 controls are in no text that people read. */
    const int none = length == 3 && memcmp(at, "\xef\xbf", 2) == 0 && (unsigned char)at[2] >= 0xbe;
    const int control = length == 2 && c == 0xc2 && (unsigned char)at[1] < 0xa0;
    const int low = c < 0x20 && c != '\n' && c != '\t';
    return length == 0 || none || control || low || c == 0x7f ? "\xef\xbf\xbd" : NULL;
}

void qn__markup_add(qn__text *text, const char *plain, size_t most) {
    size_t left = strlen(plain);
    for (size_t count = 0; left > 0; ++count) {
        const size_t length = qn__utf8_length(plain, left), step = length ? length : 1;
        const char *entity = entity_of(plain, length);
        if (most > 0 && count == most) {
            qn__text_add(text, "\xe2\x80\xa6");
            return;
        }
        if (entity)
            qn__text_add(text, "%s", entity);
        else
            qn__text_add(text, "%.*s", (int)length, plain);
        plain += step;
        left -= step;
    }
}

void qn__markup_put(qn__text *text, const char *before, const char *plain, size_t most,
                    const char *after) {
    qn__text_add(text, "%s", before);
    qn__markup_add(text, plain, most);
    qn__text_add(text, "%s", after);
}

void qn__markup_add_base64(qn__text *text, const uint8_t *bytes, size_t size) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char line[512];
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t word = (uint32_t)bytes[i] << 16 |
                              (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
                              (left > 2 ? bytes[i + 2] : 0);
        line[used++] = digit[word >> 18];
        line[used++] = digit[word >> 12 & 63];
        line[used++] = left > 1 ? digit[word >> 6 & 63] : '=';
        line[used++] = left > 2 ? digit[word & 63] : '=';
        if (used == sizeof line || left <= 3) {
            qn__text_add(text, "%.*s", (int)used, line);
            used = 0;
        }
    }
}

void qn__markup_add_count(qn__text *text, uint64_t value) {
    if (value >= 1000) {
        qn__markup_add_count(text, value / 1000);
        qn__text_add(text, ",%03u", (unsigned)(value % 1000));
    } else
        qn__text_add(text, "%u", (unsigned)value);
}

void qn__markup_begin_svg(qn__text *text, unsigned width, unsigned height, const char *label) {
    qn__text_add(text,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                 "viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"%s\">\n",
                 width, height, width, height, label);
}

void qn__markup_add_page(qn__text *text, unsigned width, unsigned height) {
    qn__text_add(text,
                 "<rect x=\"0.5\" y=\"0.5\" width=\"%u\" height=\"%u\" rx=\"8\" class=\"page\"/>\n",
                 width - 1, height - 1);
}

qn_status qn__markup_write(const qn__text *text, const char *path, const qn__owner *owner,
                           qn_error *err) {
    qn__writer *writer;
    if (text->failed)
        return qn__fail_memory(err, text->size, 1);
    qn_status status = qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    if (owner)
        qn__writer_ask(writer, owner->may, owner->user);
    (void)qn__writer_add(writer, text->data ? text->data : "", text->size, err);
    return qn__writer_commit(writer, err);
}
