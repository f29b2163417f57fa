#include "store/http/xml_answer.h"

#include "base/text/text.h"
#include <stdio.h>
#include <string.h>

const char *qn__xml_element(const char **at, const char *end, const char *name, size_t *size) {
    char open[32], close[32];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    const char *begin = strstr(*at, open);
    const char *stop = begin ? strstr(begin, close) : NULL;
    if (!begin || !stop || stop + strlen(close) > end)
        return NULL;
    begin += strlen(open);
    *size = (size_t)(stop - begin);
    *at = stop + strlen(close);
    return begin;
}

int qn__xml_decode(const char *from, size_t size, int percent, char *to, size_t capacity) {
    static const struct {
        const char *name;
        char byte;
    } entities[] = {{"&quot;", '"'},  {"&amp;", '&'}, {"&lt;", '<'},  {"&gt;", '>'},
                    {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};
    size_t made = 0;
    for (size_t at = 0; at < size; made++) {
        size_t used = 1;
        char byte = from[at];
        if (made + 1 >= capacity)
            return 0;
        if (percent && byte == '%' && size - at >= 3 && qn__hex_digit(from[at + 1]) >= 0 &&
            qn__hex_digit(from[at + 2]) >= 0) {
            byte = (char)(qn__hex_digit(from[at + 1]) * 16 + qn__hex_digit(from[at + 2]));
            used = 3;
        } else if (percent && byte == '+') {
            byte = ' ';
        } else if (byte == '&') {
            for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
                const size_t length = strlen(entities[i].name);
                if (size - at >= length && memcmp(from + at, entities[i].name, length) == 0) {
                    byte = entities[i].byte;
                    used = length;
                    break;
                }
            }
        }
        to[made] = byte;
        at += used;
    }
    to[made] = '\0';
    return strlen(to) == made;
}

int qn__xml_text(const char *xml, const char *name, char *text, size_t capacity) {
    size_t size = 0;
    const char *at = xml;
    const char *found = xml ? qn__xml_element(&at, xml + strlen(xml), name, &size) : NULL;
    if (found && size > 0 && qn__xml_decode(found, size, 0, text, capacity))
        return 1;
    *text = '\0';
    return 0;
}
