#include "data/tokens/unicode/unicode_forms.h"

#include "base/memory.h"
#include "base/text/character.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    HANGUL = 0xAC00,
    HANGUL_COUNT = 11172,
    LEAD = 0x1100,
    VOWEL = 0x1161,
    TAIL = 0x11A7,
    LEADS = 19,
    VOWELS = 21,
    TAILS = 28,
    MARK = 16, /* a flag beside those of the four forms */
    PAIRS_MOST = 1200,
    SEVERAL_MOST = 1400,
    FEW = 32 /* marks in a row */
};

/* Of each character's place: bit f where form f may change it or put it elsewhere. */
static uint8_t flags[QN__CHARACTER_PLACES], classes[QN__CHARACTER_PLACES];
static uint16_t composed[PAIRS_MOST]; /* rows of pairs, by both of their characters */
static uint16_t several[SEVERAL_MOST];
static size_t composed_count, several_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint8_t *flag_of(uint32_t c) { return &flags[qn__character_place(c)]; }

static uint64_t pair_key(uint16_t row) {
    const uint32_t *pair = qn__unicode_pairs + 3 * (size_t)row;
    return (uint64_t)pair[1] << 32 | pair[2];
}

static int by_pair(const void *a, const void *b) {
    const uint64_t x = pair_key(*(const uint16_t *)a), y = pair_key(*(const uint16_t *)b);
    return (x > y) - (x < y);
}

/* The row that begins with a character; NULL: there is none. */
static const uint32_t *row_of(const uint32_t *table, size_t count, size_t width, uint32_t c) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (table[width * middle] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && table[width * low] == c ? table + width * low : NULL;
}

static void mark_pairs(void) {
    for (size_t k = 0; k < qn__unicode_pairs_count; k++) {
        const uint32_t *pair = qn__unicode_pairs + 3 * k;
        const int alone = row_of(qn__unicode_alone, qn__unicode_alone_count, 1, pair[0]) != NULL;
        *flag_of(pair[0]) |= alone ? 15 : 1 << QN__NFD | 1 << QN__NFKD;
        if (!alone) {
            *flag_of(pair[2]) |= 15;
            composed[composed_count++] = (uint16_t)k;
        }
    }
    qsort(composed, composed_count, sizeof *composed, by_pair);
}

static void mark_hangul(void) {
    for (uint32_t c = HANGUL; c < HANGUL + HANGUL_COUNT; c++)
        *flag_of(c) |= 1 << QN__NFD | 1 << QN__NFKD;
    for (uint32_t c = VOWEL; c < VOWEL + VOWELS; c++)
        *flag_of(c) |= 1 << QN__NFC | 1 << QN__NFKC;
    for (uint32_t c = TAIL + 1; c < TAIL + TAILS; c++)
        *flag_of(c) |= 1 << QN__NFC | 1 << QN__NFKC;
}

static void mark_similar(void) {
    for (size_t k = 0; k < qn__unicode_similar_count; k++) {
        const uint32_t *row = qn__unicode_similar + 3 * k;
        for (uint32_t c = row[0]; c <= row[1]; c++)
            *flag_of(c) |= 1 << QN__NFKC | 1 << QN__NFKD;
    }
    for (size_t at = 0; at < qn__unicode_several_count; at += 2 + qn__unicode_several[at + 1]) {
        *flag_of(qn__unicode_several[at]) |= 1 << QN__NFKC | 1 << QN__NFKD;
        several[several_count++] = (uint16_t)at;
    }
}

/* A pair may have a part that stands for others; the part may be a pair, too. */
static void mark_similar_pairs(void) {
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < qn__unicode_pairs_count; k++) {
            const uint32_t *pair = qn__unicode_pairs + 3 * k;
            *flag_of(pair[0]) |= *flag_of(pair[1]) & 1 << QN__NFKC;
        }
}

static void mark_all(void) {
    mark_pairs();
    mark_hangul();
    mark_similar();
    mark_similar_pairs();
    for (size_t k = 0; k < qn__unicode_singles_count; k++)
        *flag_of(qn__unicode_singles[2 * k]) |= 15;
    for (size_t k = 0; k < qn__unicode_classes_count; k++) {
        const uint32_t *row = qn__unicode_classes + 3 * k;
        for (uint32_t c = row[0]; c <= row[1]; c++) {
            *flag_of(c) |= 15;
            classes[qn__character_place(c)] = (uint8_t)row[2];
        }
    }
    for (const qn__character_range *range = qn__unicode_marks; range->last; range++)
        for (uint32_t c = range->first; c <= range->last; c++)
            *flag_of(c) |= MARK;
}

int qn__unicode_is_mark(uint32_t character) {
    pthread_once(&once, mark_all);
    return character < QN__CHARACTER_BROKEN && (*flag_of(character) & MARK);
}

static uint8_t class_of(uint32_t c) {
    return c < QN__CHARACTER_BROKEN ? classes[qn__character_place(c)] : 0;
}

/* Characters from one that nothing composes with on, up to the next such one. */
typedef struct segment {
    uint32_t *character; /* for free() */
    size_t count, capacity;
    unsigned similar;
} segment;

static qn_status append(segment *s, uint32_t c, qn_error *err) {
    if (s->count == s->capacity) {
        const size_t capacity = 2 * s->capacity + 64;
        uint32_t *longer = realloc(s->character, capacity * sizeof *longer);
        if (!longer)
            return qn__fail_memory(err, capacity, sizeof *longer);
        s->character = longer;
        s->capacity = capacity;
    }
    s->character[s->count++] = c;
    return QN_OK;
}

static const uint32_t *several_of(uint32_t c) {
    size_t low = 0, high = several_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (qn__unicode_several[several[middle]] < c)
            low = middle + 1;
        else
            high = middle;
    }
    const uint32_t *row = qn__unicode_several + several[low < several_count ? low : 0];
    return *row == c ? row : NULL;
}

static uint32_t similar_to(uint32_t c) {
    size_t low = 0, high = qn__unicode_similar_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (qn__unicode_similar[3 * middle + 1] < c)
            low = middle + 1;
        else
            high = middle;
    }
    const uint32_t *row = qn__unicode_similar + 3 * low;
    return low < qn__unicode_similar_count && row[0] <= c ? row[2] + c - row[0] : c;
}

/* Of what a character is composed: its parts may be composed, too. Returns their number; 0: it is
 * not. */
static size_t parts_of(uint32_t c, unsigned similar, const uint32_t **parts, uint32_t own[3]) {
    const uint32_t *row;
    *parts = own;
    if (c >= HANGUL && c < HANGUL + HANGUL_COUNT) {
        const uint32_t k = c - HANGUL;
        own[0] = LEAD + k / (VOWELS * TAILS);
        own[1] = VOWEL + k % (VOWELS * TAILS) / TAILS;
        own[2] = TAIL + k % TAILS;
        return k % TAILS ? 3 : 2;
    }
    if ((row = row_of(qn__unicode_pairs, qn__unicode_pairs_count, 3, c))) {
        *parts = row + 1;
        return 2;
    }
    if ((row = row_of(qn__unicode_singles, qn__unicode_singles_count, 2, c))) {
        *parts = row + 1;
        return 1;
    }
    if (similar && (row = several_of(c))) {
        *parts = row + 2;
        return row[1];
    }
    own[0] = similar ? similar_to(c) : c;
    return own[0] != c;
}

static qn_status decompose(segment *s, uint32_t c, qn_error *err) {
    /* Parts that still wait, the next one last; one level has 18 at most, and there are four. */
    uint32_t waiting[80], own[3];
    size_t count = 1;
    qn_status status = QN_OK;
    waiting[0] = c;
    while (status == QN_OK && count) {
        const uint32_t *parts;
        const uint32_t next = waiting[--count];
        const size_t found =
            next < QN__CHARACTER_BROKEN ? parts_of(next, s->similar, &parts, own) : 0;
        if (!found)
            status = append(s, next, err);
        for (size_t k = found; k-- > 0;)
            waiting[count++] = parts[k];
    }
    return status;
}

size_t qn__unicode_decompose(uint32_t character, uint32_t part[QN__UNICODE_PARTS]) {
    uint32_t waiting[2 * QN__UNICODE_PARTS], own[3];
    size_t count = 1, done = 0;
    waiting[0] = character;
    pthread_once(&once, mark_all);
    while (count && done < QN__UNICODE_PARTS) {
        const uint32_t *parts, next = waiting[--count];
        const int may = next < QN__CHARACTER_BROKEN && (*flag_of(next) & 1 << QN__NFD);
        const size_t found = may ? parts_of(next, 0, &parts, own) : 0;
        if (!found)
            part[done++] = next;
        for (size_t k = found; k-- > 0;)
            waiting[count++] = parts[k];
    }
    return done;
}

/* Marks from `begin` to `end` by their class; equal classes stay in their order. */
static void order_few(segment *s, size_t begin, size_t end) {
    for (size_t k = begin + 1; k < end; k++) {
        const uint32_t c = s->character[k];
        size_t at = k;
        for (; at > begin && class_of(s->character[at - 1]) > class_of(c); at--)
            s->character[at] = s->character[at - 1];
        s->character[at] = c;
    }
}

/* The same for many: the time does not grow with the square of their number. */
static qn_status order_many(const segment *s, size_t begin, size_t end, qn_error *err) {
    uint32_t *sorted = qn__alloc(end - begin, sizeof *sorted, err);
    size_t first[257] = {0};
    if (!sorted)
        return QN_MEMORY;
    for (size_t k = begin; k < end; k++)
        first[class_of(s->character[k]) + 1]++;
    for (size_t k = 1; k < 257; k++)
        first[k] += first[k - 1];
    for (size_t k = begin; k < end; k++)
        sorted[first[class_of(s->character[k])]++] = s->character[k];
    memcpy(s->character + begin, sorted, (end - begin) * sizeof *sorted);
    qn__free(sorted);
    return QN_OK;
}

static qn_status order(segment *s, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t begin = 0, end; status == QN_OK && begin < s->count; begin = end + 1) {
        for (end = begin; end < s->count && class_of(s->character[end]); end++) {
        }
        if (end - begin > FEW)
            status = order_many(s, begin, end, err);
        else
            order_few(s, begin, end);
    }
    return status;
}

/* What two characters are together; 0: nothing. */
static uint32_t together(uint32_t a, uint32_t b) {
    if (a - LEAD < LEADS && b - VOWEL < VOWELS)
        return HANGUL + ((a - LEAD) * VOWELS + b - VOWEL) * TAILS;
    if (a - HANGUL < HANGUL_COUNT && (a - HANGUL) % TAILS == 0 && b > TAIL && b < TAIL + TAILS)
        return a + b - TAIL;
    const uint64_t key = (uint64_t)a << 32 | b;
    size_t low = 0, high = composed_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (pair_key(composed[middle]) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < composed_count && pair_key(composed[low]) == key
               ? qn__unicode_pairs[3 * (size_t)composed[low]]
               : 0;
}

static void compose(segment *s) {
    size_t kept = 0, starter = SIZE_MAX;
    for (size_t k = 0; k < s->count; k++) {
        const uint32_t c = s->character[k];
        const uint8_t own = class_of(c), last = kept ? class_of(s->character[kept - 1]) : 0;
        /* A mark of the same class between them, or a character without a class, hides it. */
        const int blocked =
            starter == SIZE_MAX || (starter + 1 < kept && (last == 0 || last >= own));
        const uint32_t both = blocked ? 0 : together(s->character[starter], c);
        if (both) {
            s->character[starter] = both;
            continue;
        }
        if (!own)
            starter = kept;
        s->character[kept++] = c;
    }
    s->count = kept;
}

static qn_status end_segment(segment *s, qn__unicode_form form, qn__byte_buffer *out,
                             qn_error *err) {
    qn_status status = order(s, err);
    if (status == QN_OK && !(form & 1))
        compose(s);
    for (size_t k = 0; status == QN_OK && k < s->count; k++)
        status = qn__byte_buffer_character(out, s->character[k], err);
    s->count = 0;
    return status;
}

/* A character that may change, after what stands before it. */
static qn_status extend(segment *s, const uint8_t *text, size_t begin, size_t end, uint32_t c,
                        qn_error *err) {
    size_t length;
    qn_status status = QN_OK;
    if (!s->count && end > begin)
        status = decompose(s, qn__character(text + begin, end - begin, &length), err);
    return status == QN_OK ? decompose(s, c, err) : status;
}

qn_status qn__unicode_normalize(qn__unicode_form form, const uint8_t *text, size_t size,
                                qn__byte_buffer *out, qn_error *err) {
    segment s = {.similar = (unsigned)form >> 1};
    size_t done = 0, last = 0; /* what is written; where the last inert character begins */
    qn_status status = qn__byte_buffer_reserve(out, size, err);
    pthread_once(&once, mark_all);
    for (size_t at = 0, length; status == QN_OK && at < size; at += length) {
        const uint32_t c = qn__character(text + at, size - at, &length);
        if (c < 0x80 || c >= QN__CHARACTER_BROKEN || !(*flag_of(c) >> form & 1)) {
            if (s.count) {
                status = end_segment(&s, form, out, err);
                done = at;
            }
            last = at;
            continue;
        }
        if (!s.count)
            status = qn__byte_buffer_add(out, text + done, last - done, err);
        if (status == QN_OK)
            status = extend(&s, text, last, at, c, err);
        done = at + length;
    }
    if (status == QN_OK && s.count)
        status = end_segment(&s, form, out, err);
    if (status == QN_OK)
        status = qn__byte_buffer_add(out, text + done, size - done, err);
    free(s.character);
    return status;
}
