#include "data/tokens/steps/charsmap.h"

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/unicode/unicode_forms.h"
#include <string.h>

/* A cluster of characters is looked up as one where it has fewer bytes than this. */
enum { CLUSTER_BYTES = 6 };

/* Characters that belong to the one before them, beside all marks but those of `apart`. */
static const qn__character_range joined[] = {
    {0xE33, 0xE33},     {0xEB3, 0xEB3}, {0x200C, 0x200D}, {0xFF9E, 0xFF9F}, {0x1F3FB, 0x1F3FF},
    {0xE0020, 0xE007F}, {0, 0}};
static const qn__character_range apart[] = {{0x102B, 0x102C},   {0x1038, 0x1038},
                                            {0x1062, 0x1064},   {0x1067, 0x106D},
                                            {0x1083, 0x1083},   {0x1087, 0x108C},
                                            {0x108F, 0x108F},   {0x109A, 0x109C},
                                            {0x1A61, 0x1A61},   {0x1A63, 0x1A64},
                                            {0xAA7B, 0xAA7B},   {0xAA7D, 0xAA7D},
                                            {0x11720, 0x11721}, {0, 0}};
/* Characters to which the next one belongs. */
static const qn__character_range leading[] = {{0x600, 0x605}, {0x6DD, 0x6DD}, {0x70F, 0x70F},
                                              {0x890, 0x891}, {0x8E2, 0x8E2}, {0xD4E, 0xD4E},
                                              {0, 0}};
/* Controls and line ends, which stand alone. */
static const qn__character_range alone[] = {
    {0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},
    {0x61C, 0x61C},     {0x180E, 0x180E},   {0x200B, 0x200B},
    {0x200E, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},
    {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},   {0x13430, 0x1343F},
    {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE001F},
    {0xE0080, 0xE00FF}, {0xE01F0, 0xE0FFF}, {0, 0}};

static int is_in(const qn__character_range *range, uint32_t c) {
    for (; range->last; range++)
        if (c >= range->first && c <= range->last)
            return 1;
    return 0;
}

static int value_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Returns the bytes; SIZE_MAX: the text is not base64. */
static size_t decode(const char *text, uint8_t *bytes) {
    size_t size = 0;
    uint32_t bits = 0, count = 0;
    for (; *text && *text != '='; text++) {
        const int value = value_of(*text);
        if (value < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)value;
        if ((count += 6) >= 8)
            bytes[size++] = (uint8_t)(bits >> (count -= 8));
    }
    return text[strspn(text, "=")] ? SIZE_MAX : size;
}

static uint32_t number_at(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

qn_status qn__charsmap_read(qn__charsmap *map, const char *base64, qn_error *err) {
    map->base64 = qn__copy_text(base64, err);
    map->bytes = map->base64 ? qn__alloc(strlen(base64) + 4, 1, err) : NULL;
    if (!map->bytes)
        return QN_MEMORY;
    const size_t size = decode(base64, map->bytes);
    const uint32_t trie = size != SIZE_MAX && size >= 4 ? number_at(map->bytes) : 0;
    if (trie < 4 || trie % 4 || trie > size - 4 || map->bytes[size - 1] != 0)
        return qn__fail(err, QN_FORMAT, "\"precompiled_charsmap\" is damaged");
    map->size = size - 4;
    memmove(map->bytes, map->bytes + 4, map->size);
    map->units = trie / 4;
    return QN_OK;
}

void qn__charsmap_release(qn__charsmap *map) {
    qn__free(map->base64);
    qn__free(map->bytes);
    *map = (qn__charsmap){0};
}

static uint32_t unit_at(const qn__charsmap *map, size_t at) {
    return at < map->units ? number_at(map->bytes + 4 * at) : 0x100;
}

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << (unit >> 6 & 8); }

/* The text for the shortest beginning of `text` that the trie has; NULL: it has none. A unit is a
 * label, a mark that a leaf follows, and where the next units are. */
static const char *find(const qn__charsmap *map, const uint8_t *text, size_t size) {
    size_t at = offset_of(unit_at(map, 0));
    for (size_t k = 0; k < size && text[k]; k++) {
        at ^= text[k];
        const uint32_t unit = unit_at(map, at);
        if ((unit & 0x800000FFu) != text[k])
            return NULL;
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            const size_t begin = 4 * map->units + (unit_at(map, at) & 0x7FFFFFFFu);
            return begin < map->size ? (const char *)map->bytes + begin : NULL;
        }
    }
    return NULL;
}

static int joins(uint32_t c) {
    return c >= 0x300 && ((qn__unicode_is_mark(c) && !is_in(apart, c)) || is_in(joined, c));
}

/* The end of the cluster of characters that begins at `at`. */
static size_t cluster_end(const uint8_t *text, size_t size, size_t at) {
    size_t length;
    if (text[at] >= ' ' && text[at] < 0x7F && (at + 1 == size || text[at + 1] < 0x80))
        return at + 1;
    uint32_t c = qn__character(text + at, size - at, &length);
    at += length;
    if (c == '\r' && at < size && text[at] == '\n')
        return at + 1;
    for (; at < size && !is_in(alone, c) && c < QN__CHARACTER_BROKEN; at += length) {
        const uint32_t next = qn__character(text + at, size - at, &length);
        const int leads = is_in(leading, c) && !is_in(alone, next) && next < QN__CHARACTER_BROKEN;
        if (!joins(next) && !leads)
            return at;
        c = next;
    }
    return at;
}

static qn_status put(const qn__charsmap *map, const uint8_t *text, size_t size,
                     qn__byte_buffer *out, int *found, qn_error *err) {
    const char *made = find(map, text, size);
    *found = made != NULL;
    return made ? qn__byte_buffer_add(out, made, strlen(made), err) : QN_OK;
}

static qn_status put_cluster(const qn__charsmap *map, const uint8_t *text, size_t size,
                             qn__byte_buffer *out, qn_error *err) {
    int found = 0;
    qn_status status = QN_OK;
    if (size < CLUSTER_BYTES)
        status = put(map, text, size, out, &found, err);
    for (size_t at = 0, length; status == QN_OK && !found && at < size; at += length) {
        int own;
        (void)qn__character(text + at, size - at, &length);
        status = put(map, text + at, length, out, &own, err);
        if (status == QN_OK && !own)
            status = qn__byte_buffer_add(out, text + at, length, err);
    }
    return status;
}

qn_status qn__charsmap_apply(const qn__charsmap *map, const uint8_t *text, size_t size,
                             qn__byte_buffer *out, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t at = 0, end; status == QN_OK && at < size; at = end) {
        end = cluster_end(text, size, at);
        status = put_cluster(map, text + at, end - at, out, err);
    }
    return status;
}
