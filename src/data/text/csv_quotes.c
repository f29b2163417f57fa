#include "data/text/csv_quotes.h"

#include <stddef.h>
#include <string.h>

/* What a byte is, for the states. */
typedef enum byte_kind { OTHER, BLANK, QUOTE, SEPARATOR, LINE_END, KINDS } byte_kind;

static const uint8_t next_state[QN__CSV_STATES][KINDS] = {
    [QN__CSV_CELL] = {QN__CSV_PLAIN, QN__CSV_CELL, QN__CSV_QUOTED, QN__CSV_CELL, QN__CSV_CELL},
    [QN__CSV_PLAIN] = {QN__CSV_PLAIN, QN__CSV_PLAIN, QN__CSV_PLAIN, QN__CSV_CELL, QN__CSV_CELL},
    [QN__CSV_QUOTED] = {QN__CSV_QUOTED, QN__CSV_QUOTED, QN__CSV_QUOTE, QN__CSV_QUOTED,
                        QN__CSV_QUOTED},
    [QN__CSV_QUOTE] = {QN__CSV_CLOSED, QN__CSV_CLOSED, QN__CSV_QUOTED, QN__CSV_CELL, QN__CSV_CELL},
    [QN__CSV_CLOSED] = {QN__CSV_CLOSED, QN__CSV_CLOSED, QN__CSV_CLOSED, QN__CSV_CELL, QN__CSV_CELL},
};

static void find_kinds(char separator, uint8_t kind[256]) {
    memset(kind, OTHER, 256);
    kind[' '] = kind['\t'] = kind['\r'] = BLANK;
    kind['"'] = QUOTE;
    kind['\n'] = LINE_END;
    kind[(uint8_t)separator] = SEPARATOR;
}

/* The next byte that can change a state once another byte than a blank was read. */
static const char *skip_text(const char *at, const char *end, const uint8_t kind[256]) {
    while (at < end && kind[(uint8_t)*at] <= BLANK)
        at++;
    return at;
}

static int is_one_state(const qn__csv_piece *piece) {
    int same = 1;
    for (int s = 1; s < QN__CSV_STATES; s++)
        same &= piece->after[s] == piece->after[0];
    return same;
}

/* Walks in all states until they are one, mostly within a few cells; returns where. */
static const char *walk_all(const char *at, const char *end, const uint8_t kind[256],
                            qn__csv_piece *out) {
    while (at < end) {
        const byte_kind k = (byte_kind)kind[(uint8_t)*at++];
        out->line_ends += k == LINE_END;
        for (int s = 0; s < QN__CSV_STATES; s++) {
            out->rows[s] += k == LINE_END && out->after[s] != QN__CSV_QUOTED;
            out->after[s] = next_state[out->after[s]][k];
        }
        if (k == OTHER)
            at = skip_text(at, end, kind);
        else if (k >= SEPARATOR && is_one_state(out))
            break;
    }
    return at;
}

/* ------------------------------------------------------------------ one state */

typedef struct one_walk {
    uint64_t rows, line_ends;
    uint8_t state;
} one_walk;

/* Bytes that are looked at together: a bit of a word for each. */
enum { TOGETHER = 64, LANES = 16 };
typedef uint8_t lanes __attribute__((vector_size(LANES)));

static uint64_t bits_of(const lanes bytes[TOGETHER / LANES], char c) {
    const lanes place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t sum = 0x0101010101010101; /* its product has the sum of bytes at the top */
    uint64_t bits = 0;
    for (int i = 0; i < TOGETHER / LANES; i++) {
        const lanes found = (lanes)(bytes[i] == (uint8_t)c) & place;
        uint64_t half[2];
        memcpy(half, &found, sizeof half);
        bits |= (half[0] * sum >> 56 | half[1] * sum >> 56 << 8) << LANES * i;
    }
    return bits;
}

/* Bit i: whether an odd number of bits up to i is set. */
static uint64_t odd_so_far(uint64_t bits) {
    for (int shift = 1; shift < TOGETHER; shift *= 2)
        bits ^= bits << shift;
    return bits;
}

/* Goes on while each quote opens a cell, right after the separator or line end, or is within
 * quotes: then quotes alone say what is within them. Begins in CELL or QUOTED. */
static const char *skip_regular(const char *at, const char *end, char separator, one_walk *r) {
    uint64_t quoted = r->state == QN__CSV_QUOTED ? UINT64_MAX : 0;
    uint64_t begins = 1; /* a quote at `at` may open a cell */
    for (; end - at >= TOGETHER; at += TOGETHER) {
        lanes bytes[TOGETHER / LANES];
        memcpy(bytes, at, sizeof bytes);
        const uint64_t quotes = bits_of(bytes, '"'), line_ends = bits_of(bytes, '\n');
        const uint64_t marks = quotes | line_ends | bits_of(bytes, separator);
        const uint64_t within = odd_so_far(quotes) ^ quoted;
        if (quotes & within & ~(marks << 1 | begins))
            break;
        r->rows += (uint64_t)__builtin_popcountll(line_ends & ~within);
        r->line_ends += (uint64_t)__builtin_popcountll(line_ends);
        quoted = within >> 63 ? UINT64_MAX : 0;
        begins = marks >> 63;
    }
    r->state = quoted ? QN__CSV_QUOTED : QN__CSV_CELL;
    return at;
}

/* The state at `at`, outside quotes, of a text that skip_regular went over from its beginning. */
static uint8_t find_state(const char *begin, const char *at, const uint8_t kind[256]) {
    const char *last = at;
    while (last > begin && kind[(uint8_t)last[-1]] <= BLANK)
        last--;
    uint8_t now = last > begin && last[-1] == '"' ? QN__CSV_QUOTE : QN__CSV_CELL;
    for (; last < at; last++)
        now = next_state[now][kind[(uint8_t)*last]];
    return now;
}

/* Walks in one state: regular text, and one byte after the other what is not. */
static void walk_one(const char *at, const char *end, char separator, const uint8_t kind[256],
                     one_walk *r) {
    while (at < end) {
        const char *begin = at;
        at = skip_regular(begin, end, separator, r);
        if (r->state != QN__CSV_QUOTED)
            r->state = find_state(begin, at, kind);
        const char *least = end - at > TOGETHER ? at + TOGETHER : end;
        while (at < least || (at < end && r->state != QN__CSV_CELL && r->state != QN__CSV_QUOTED)) {
            const byte_kind k = (byte_kind)kind[(uint8_t)*at++];
            r->rows += k == LINE_END && r->state != QN__CSV_QUOTED;
            r->line_ends += k == LINE_END;
            r->state = next_state[r->state][k];
        }
    }
}

/* ------------------------------------------------------------------ pieces */

uint64_t qn__csv_line_ends(const char *at, const char *end) {
    uint64_t count = 0;
    for (const char *c = at; c < end && (c = memchr(c, '\n', (size_t)(end - c))); c++)
        count++;
    return count;
}

/* Without a quote: the state at the end depends on what follows the last separator or line end, and
 * within quotes nothing changes. 0: neither is there. */
static int walk_plain(const char *at, const char *end, const uint8_t kind[256],
                      qn__csv_piece *out) {
    const char *last = end;
    while (last > at && kind[(uint8_t)last[-1]] <= BLANK)
        last--;
    if (last == at)
        return 0;
    out->line_ends = qn__csv_line_ends(at, end);
    const char *text = last;
    while (text < end && kind[(uint8_t)*text] == BLANK)
        text++;
    for (int s = 0; s < QN__CSV_STATES; s++) {
        if (s == QN__CSV_QUOTED)
            continue;
        out->rows[s] = out->line_ends;
        out->after[s] = text < end ? QN__CSV_PLAIN : QN__CSV_CELL;
    }
    return 1;
}

void qn__csv_piece_walk(const char *at, const char *end, char separator, qn__csv_piece *out) {
    uint8_t kind[256];
    find_kinds(separator, kind);
    *out = (qn__csv_piece){.line_ends = 0};
    for (int s = 0; s < QN__CSV_STATES; s++)
        out->after[s] = (uint8_t)s;
    const char *quote = at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
    const char *plain = quote ? quote : end;
    at = walk_all(walk_plain(at, plain, kind, out) ? plain : at, end, kind, out);
    one_walk rest = {.state = out->after[0]};
    walk_one(at, end, separator, kind, &rest);
    out->line_ends += rest.line_ends;
    for (int s = 0; at < end && s < QN__CSV_STATES; s++) {
        out->rows[s] += rest.rows;
        out->after[s] = rest.state;
    }
}

const char *qn__csv_row_end(const char *at, const char *end, char separator, qn__csv_state state) {
    uint8_t kind[256], now = (uint8_t)state;
    find_kinds(separator, kind);
    while (at < end) {
        const byte_kind k = (byte_kind)kind[(uint8_t)*at];
        if (k == LINE_END && now != QN__CSV_QUOTED)
            return at;
        now = next_state[now][k];
        at = k == OTHER ? skip_text(at + 1, end, kind) : at + 1;
    }
    return end;
}
