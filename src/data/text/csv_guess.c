/* Whether the first line of a CSV file is a header: what stands below each of its cells tells. */
#include "base/memory.h"
#include "data/cells/commas.h"
#include "data/text/csv_header.h"
#include <string.h>

/* A column of the lines that are looked at, below the first. */
typedef struct column {
    qn__cell top; /* the first line's cell */
    qn__content content;
    const char *first; /* the first text below, for comparison */
    size_t first_size;
    uint32_t cells, numbers, whole, texts; /* below; `whole`: digits alone */
    int repeated;                          /* the top cell stands below again */
    int varied;                            /* the cells below differ */
} column;

static int is_digits(const qn__cell *cell) {
    for (size_t i = 0; i < cell->size; i++)
        if (cell->text[i] < '0' || cell->text[i] > '9')
            return 0;
    return cell->size > 0;
}

static qn__content content_of(const qn__cell *cell, int commas) {
    char number[QN__COMMA_BYTES];
    size_t size;
    const qn__content content = qn__cell_content(cell);
    if (!commas || content != QN__CONTENT_TEXT)
        return content;
    return qn__comma_read(cell, number, &size) >= 0 ? QN__CONTENT_NUMBER : QN__CONTENT_TEXT;
}

static void look_at(column *c, const qn__cell *cell, int commas) {
    const qn__content content = content_of(cell, commas);
    c->numbers += content == QN__CONTENT_NUMBER;
    c->texts += content == QN__CONTENT_TEXT;
    c->whole += (uint32_t)is_digits(cell);
    c->repeated |= content == QN__CONTENT_TEXT && cell->size == c->top.size &&
                   memcmp(cell->text, c->top.text, cell->size) == 0;
    if (c->cells++ == 0) {
        c->first = cell->text;
        c->first_size = cell->size;
    }
    c->varied |= cell->size != c->first_size || memcmp(cell->text, c->first, cell->size) != 0;
}

/* Reads a line; a first line gives the tops. Returns where the next one begins. */
static const char *look_at_line(const qn__csv_header *header, column *columns, const char *at,
                                int is_first, int commas) {
    const char *end = header->end;
    for (uint64_t i = 0;; i++) {
        qn__cell cell;
        at = qn__cell_read(at, end, header->table.shape.separator, &cell);
        if (i < header->table.shape.columns && is_first) {
            columns[i].top = cell;
            columns[i].content = content_of(&cell, commas);
        } else if (i < header->table.shape.columns) {
            look_at(&columns[i], &cell, commas);
        }
        if (at == end || *at == '\n')
            return at + (at < end);
        at++;
    }
}

static uint32_t look_below(const qn__csv_header *header, column *columns, const char *at,
                           int commas) {
    uint32_t lines = 0;
    while (at < header->end && lines < QN__LOOK_LINES &&
           (lines == 0 || (size_t)(at - header->text) < QN__LOOK_BYTES)) {
        at = look_at_line(header, columns, at, 0, commas);
        lines++;
    }
    return lines;
}

/* 0, 1, 2 and so on, as pandas names columns without names; before them it may write an empty cell
 * over its index. */
static int is_counting(const column *c, uint64_t columns) {
    const uint64_t skip = c[0].top.size == 0;
    if (columns < 3)
        return 0;
    for (uint64_t i = skip; i < columns; i++) {
        qn__decimal number;
        if (!is_digits(&c[i].top) || !qn__cell_number(&c[i].top, &number) || number.cut ||
            number.exponent != 0 || number.mantissa != i - skip)
            return 0;
    }
    return 1;
}

/* Columns in which a whole number would be strange: two of them make a counting line a header. */
enum { ODD_ENOUGH = 2, CONSTANT_ENOUGH = 10 };

static int count_odd(const column *c, uint64_t columns, uint32_t lines) {
    int odd = 0;
    for (uint64_t i = 0; i < columns && odd < ODD_ENOUGH; i++) {
        const int constant = lines >= CONSTANT_ENOUGH && !c[i].varied &&
                             (c[i].top.size != c[i].first_size ||
                              memcmp(c[i].top.text, c[i].first, c[i].first_size) != 0);
        odd += (c[i].numbers + c[i].texts > 0 && c[i].whole == 0) || constant;
    }
    return odd;
}

static qn__csv_guess guess_counting(const column *c, uint64_t columns, uint32_t lines) {
    if (!is_counting(c, columns))
        return (qn__csv_guess){0};
    if (c[0].top.size == 0 || count_odd(c, columns, lines) >= ODD_ENOUGH)
        return (qn__csv_guess){1, "the first line counts 0, 1, 2 and so on, so it was read as a "
                                  "header; `data.header` no reads it as an item"};
    return (qn__csv_guess){0, "the first line counts 0, 1, 2 and so on and was read as an item; "
                              "`data.header` yes reads it as a header"};
}

static qn__csv_guess guess_texts(const column *c, uint64_t columns, uint64_t numbers) {
    int repeated = 0, has_numbers = 0;
    for (uint64_t i = 0; i < columns; i++) {
        const int text = c[i].content == QN__CONTENT_TEXT || c[i].content == QN__CONTENT_NONE;
        if (text && c[i].numbers > 0 && c[i].numbers >= c[i].texts)
            return (qn__csv_guess){1, NULL};
        repeated |= c[i].repeated;
        has_numbers |= c[i].numbers > 0;
    }
    if (repeated)
        return (qn__csv_guess){0};
    if (numbers == 0)
        return (qn__csv_guess){1, has_numbers ? NULL
                                              : "the first line was read as a header; "
                                                "`data.header` no reads it as an item"};
    return (qn__csv_guess){0, "the first line holds numbers above numbers and texts above texts "
                              "and was read as an item; `data.header` yes reads it as a header"};
}

qn_status qn__csv_guess_header(const qn__csv_header *header, const qn__csv_line *line, int commas,
                               qn__csv_guess *out, qn_error *err) {
    column *columns = qn__alloc(line->columns, sizeof *columns, err);
    if (!columns)
        return QN_MEMORY;
    const char *below = look_at_line(header, columns, line->begin, 1, commas);
    const uint32_t lines = look_below(header, columns, below, commas);
    uint64_t texts = 0, numbers = 0;
    for (uint64_t i = 0; i < line->columns; i++) {
        texts += columns[i].content == QN__CONTENT_TEXT;
        numbers += columns[i].content == QN__CONTENT_NUMBER;
    }
    *out = texts > 0 ? guess_texts(columns, line->columns, numbers)
                     : guess_counting(columns, line->columns, lines);
    qn__free(columns);
    return QN_OK;
}
