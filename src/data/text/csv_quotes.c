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

static void walk_all(const char *at, const char *end, const uint8_t kind[256], qn__csv_piece *out) {
    while (at < end) {
        const byte_kind k = (byte_kind)kind[(uint8_t)*at++];
        out->line_ends += k == LINE_END;
        for (int s = 0; s < QN__CSV_STATES; s++) {
            out->rows[s] += k == LINE_END && out->after[s] != QN__CSV_QUOTED;
            out->after[s] = next_state[out->after[s]][k];
        }
        if (k == OTHER)
            at = skip_text(at, end, kind);
    }
}

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
    if (at < end && (memchr(at, '"', (size_t)(end - at)) || !walk_plain(at, end, kind, out)))
        walk_all(at, end, kind, out);
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
