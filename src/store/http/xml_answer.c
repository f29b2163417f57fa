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

/* The byte of an entity, which begins with '&'; *used: how many bytes it has. */
static char entity_at(const char *from, size_t size, size_t *used) {
    static const struct {
        const char *name;
        char byte;
    } entities[] = {{"&quot;", '"'},  {"&amp;", '&'}, {"&lt;", '<'},  {"&gt;", '>'},
                    {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        const size_t length = strlen(entities[i].name);
        if (size >= length && memcmp(from, entities[i].name, length) == 0) {
            *used = length;
            return entities[i].byte;
        }
    }
    return *from;
}

/* The same of "%20" and "+". */
static char percent_at(const char *from, size_t size, size_t *used) {
    if (*from == '+')
        return ' ';
    const int high = size >= 3 ? qn__hex_digit(from[1]) : -1;
    const int low = high >= 0 ? qn__hex_digit(from[2]) : -1;
    if (low < 0)
        return *from;
    *used = 3;
    return (char)(high * 16 + low);
}

int qn__xml_decode(const char *from, size_t size, int percent, char *to, size_t capacity) {
    size_t made = 0;
    for (size_t at = 0, used; at < size; at += used) {
        if (made + 1 >= capacity)
            return 0;
        used = 1;
        const char *byte = from + at;
        to[made++] = *byte == '&' ? entity_at(byte, size - at, &used)
                     : percent && (*byte == '%' || *byte == '+')
                         ? percent_at(byte, size - at, &used)
                         : *byte;
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
