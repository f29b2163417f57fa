/* The first lines of a CSV file: what comes before the first item. */
#include "data/text/csv_header.h"
#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/bytes/named_formats.h"
#include "data/cells/commas.h"
#include "data/table/rules.h"
#include "data/text/csv_quotes.h"
#include <string.h>

/* The one that the first line has most of outside quotes, a comma before the others. A quote counts
 * where a cell may begin. */
char qn__csv_find_separator(const char *at, const char *end) {
    size_t commas = 0, semicolons = 0, tabs = 0;
    int quoted = 0, fresh = 1;
    for (; at < end && (*at != '\n' || quoted); at++) {
        if (*at == '"' && (quoted || fresh))
            quoted = !quoted;
        commas += !quoted && *at == ',';
        semicolons += !quoted && *at == ';';
        tabs += !quoted && *at == '\t';
        fresh = strchr(",;\t \r\"", *at) != NULL && (fresh || strchr(",;\t\"", *at));
    }
    if (commas >= semicolons && commas >= tabs)
        return ',';
    return semicolons >= tabs ? ';' : '\t';
}

qn__csv_line qn__csv_line_walk(const char *at, const char *end, char separator) {
    qn__csv_line line = {.begin = at};
    for (;;) {
        qn__cell cell;
        const char *next = qn__cell_read(at, end, separator, &cell);
        const qn__content content = qn__cell_content(&cell);
        line.columns++;
        line.numbers += content == QN__CONTENT_NUMBER;
        line.texts += content == QN__CONTENT_TEXT;
        line.broken |= cell.broken;
        for (const char *p = at; p < next; p++)
            line.line_ends += *p == '\n';
        if (next == end || *next == '\n') {
            line.end = next;
            return line;
        }
        at = next + 1;
    }
}

/* ------------------------------------------------------------------ names */

char *qn__csv_copy_name(const qn__cell *cell, qn_error *err) {
    static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};
    char *name = qn__alloc(3 * (uint64_t)cell->size + 1, 1, err);
    size_t length = 0;
    for (size_t i = 0; name && i < cell->size; i++) {
        const size_t size = qn__utf8_length(cell->text + i, cell->size - i);
        if (cell->quoted && cell->text[i] == '"')
            i++; /* two quotes stand for one; a single one would have ended the cell */
        if (size == 0 || cell->text[i] == '\0') {
            memcpy(name + length, replacement, sizeof replacement);
            length += sizeof replacement;
        } else {
            memcpy(name + length, cell->text + i, size);
            length += size;
            i += size - 1;
        }
    }
    return name;
}

/* names[columns] is NULL, which ends the list. */
static qn_status copy_names(qn__csv_header *header, const char *at, const char *end,
                            qn_error *err) {
    header->table.names =
        qn__alloc(header->table.shape.columns + 1, sizeof *header->table.names, err);
    if (!header->table.names)
        return QN_MEMORY;
    for (uint64_t i = 0; i < header->table.shape.columns; i++) {
        qn__cell cell;
        at = qn__cell_read(at, end, header->table.shape.separator, &cell);
        header->table.names[i] = qn__csv_copy_name(&cell, err);
        if (!header->table.names[i])
            return QN_MEMORY;
        at += at < end;
    }
    return QN_OK;
}

void qn__csv_header_release(qn__csv_header *header) {
    qn__columns_release(&header->table);
    qn__free(header->note);
    header->note = NULL;
}

int qn__csv_header_is_settled(const qn__csv_header *header) {
    const char *at = header->body;
    for (int lines = 0; lines < QN__LOOK_LINES; lines++) {
        if (lines > 0 && (size_t)(at - header->text) >= QN__LOOK_BYTES)
            return 1;
        at = qn__csv_row_end(at, header->end, header->table.shape.separator, QN__CSV_CELL);
        if (at == header->end)
            return 0;
        at++;
    }
    return 1;
}

/* ------------------------------------------------------------------ the first line */

const char *qn__csv_skip_prefix(const char *at, const char *end, qn__csv_prefix *out) {
    *out = (qn__csv_prefix){0};
    if (end - at >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0)
        at += 3; /* the mark that some programs put before UTF-8 */
    while (at < end) {
        const char *first = at, *line_end = qn__line_end(at, end);
        while (first < line_end && (*first == ' ' || *first == '\r'))
            first++;
        if (first < line_end && *first != '#')
            return at;
        if (first < line_end) {
            out->comment = first + 1;
            out->comment_end = line_end;
        }
        out->lines++;
        at = line_end + (line_end < end);
    }
    return end;
}

/* A CR that text follows, in a part of a line. */
static int is_cr_inside(const char *at, const char *end, char separator) {
    for (; at < end; at++)
        if (*at == '\r' && !strchr("\r\n \t", at[1]) && at[1] != separator)
            return 1;
    return 0;
}

/* A first line in which a CR outside quotes is followed by text: only CR ends lines, as on early
 * Macintoshes. Where a cell ends, another byte of the text follows, or its end does. */
static int has_lone_cr(const qn__csv_line *line, char separator) {
    for (const char *at = line->begin, *next;; at = next + 1) {
        qn__cell cell;
        next = qn__cell_read(at, line->end, separator, &cell);
        const char *stop = next == line->end && next > at ? next - 1 : next;
        if (is_cr_inside(at, cell.quoted ? cell.text : stop, separator) ||
            (cell.quoted && is_cr_inside(cell.text + cell.size, stop, separator)))
            return 1;
        if (next == line->end)
            return 0;
    }
}

/* Words of a line that are numbers, when nothing but blanks separates them. */
static uint64_t count_spaced_numbers(const char *at, const char *end) {
    uint64_t count = 0;
    for (end = qn__line_end(at, end); at < end;) {
        qn__decimal number;
        while (at < end && (*at == ' ' || *at == '\r'))
            at++;
        const char *word = at;
        while (at < end && *at != ' ' && *at != '\r')
            at++;
        count += at > word && qn__decimal_read(word, at, &number) == at;
    }
    return count;
}

qn_status qn__csv_check_first_line(const qn__csv_header *h, const qn__csv_line *line,
                                   qn_error *err) {
    if (line->broken) {
        qn__fail(err, QN_INPUT, "a quote in the first line is not closed, or text follows it");
        return qn__csv_refuse_line(h->table.path, h->first_line,
                                   "write a quote inside a quoted cell twice", err);
    }
    if (has_lone_cr(line, h->table.shape.separator)) {
        qn__fail(err, QN_INPUT, "lines end in CR alone");
        return qn__csv_refuse_line(h->table.path, h->first_line,
                                   "end them in LF or CR LF: tr '\\r' '\\n' < OLD > NEW", err);
    }
    const char *next = line->end < h->end ? line->end + 1 : line->begin;
    if (line->columns == 1 && count_spaced_numbers(next, h->end) > 1) {
        qn__fail(err, QN_INPUT, "the cells are separated by blanks alone");
        return qn__csv_refuse_line(h->table.path, h->first_line,
                                   "separate them by commas: sed 's/^ *//; s/ *$//; s/  */,/g' OLD "
                                   "> NEW",
                                   err);
    }
    return QN_OK;
}

/* A comment with the cells of the first line names its columns, as NumPy writes them. */
static qn_status take_comment(qn__csv_header *header, const qn__csv_prefix *p,
                              const qn__csv_line *line, qn_error *err) {
    if (!p->comment || line->columns < 2)
        return QN_OK;
    const qn__csv_line names =
        qn__csv_line_walk(p->comment, p->comment_end, header->table.shape.separator);
    if (names.columns != line->columns || names.texts == 0 || names.broken)
        return QN_OK;
    return copy_names(header, p->comment, p->comment_end, err);
}

/* Numbers with a decimal comma count as numbers where that rule holds. */
static qn_status guess_header(qn__csv_header *header, const qn__csv_line *line,
                              qn__csv_guess *guess, qn_error *err) {
    qn__csv_guess before;
    qn_status status = qn__csv_guess_header(header, line, 0, &before, err);
    *guess = before;
    if (status == QN_OK && header->table.shape.commas)
        status = qn__csv_guess_header(header, line, 1, guess, err);
    if (status == QN_OK && guess->is_header != before.is_header)
        header->rules |= QN__RULE_COMMAS;
    return status;
}

/* Reads the names, when the first line has any, and moves the body after it. */
static qn_status take_names(qn__csv_header *header, const qn__csv_prefix *p,
                            const qn__csv_line *line, const char *wanted, qn_error *err) {
    qn__csv_guess guess = {.is_header = wanted && strcmp(wanted, "yes") == 0};
    const int open = !wanted || strcmp(wanted, "auto") == 0;
    qn_status status = open ? guess_header(header, line, &guess, err) : QN_OK;
    if (status == QN_OK && (open ? !guess.is_header : guess.is_header && line->texts == 0))
        status = take_comment(header, p, line, err);
    if (header->table.names)
        guess = (qn__csv_guess){0};
    if (status == QN_OK && guess.note && !(header->note = qn__copy_text(guess.note, err)))
        status = QN_MEMORY;
    if (status != QN_OK || !guess.is_header)
        return status;
    status = copy_names(header, header->body, header->end, err);
    if (status != QN_OK)
        return status;
    header->first_line += 1 + line->line_ends;
    header->body = line->end < header->end ? line->end + 1 : header->end;
    return QN_OK;
}

/* 1 when all cells of the first line are numbers, cut by this separator, some with a decimal comma.
 */
static int is_line_of_commas(const char *at, const char *end, char separator) {
    int cells = 0, commas = 0;
    for (;; at++) {
        qn__cell cell;
        char number[QN__COMMA_BYTES];
        size_t size;
        at = qn__cell_read(at, end, separator, &cell);
        const int form = qn__comma_read(&cell, number, &size);
        if (form < 0)
            return 0;
        cells++;
        commas += (form & QN__COMMA_DECIMAL) != 0;
        if (at == end || *at == '\n')
            return cells > 1 && commas > 0;
    }
}

/* A first line such as 0;0,5 has as many commas as semicolons. */
static void correct_separator(qn__csv_header *header, const qn_data_options *options) {
    static const char others[] = ";\t";
    if (header->table.shape.separator != ',' || !qn__rule_holds(options, QN__RULE_COMMAS))
        return;
    for (const char *other = others; *other && header->table.shape.separator == ','; other++)
        if (is_line_of_commas(header->body, header->end, *other)) {
            header->table.shape.separator = *other;
            header->rules |= QN__RULE_COMMAS;
        }
}

/* Moves the body to the first line, and sets the separator. */
static qn_status find_first_line(qn__csv_header *header, qn__csv_prefix *p, qn_error *err) {
    while (header->end > header->body && qn__csv_is_ending(header->end[-1]))
        header->end--;
    header->body = qn__csv_skip_prefix(header->body, header->end, p);
    header->first_line += p->lines;
    if (header->body == header->end) {
        qn__fail(err, QN_INPUT, "the file has no line of data");
        return qn__csv_refuse_line(header->table.path, 1,
                                   "give a file with at least one line of numbers", err);
    }
    header->table.shape.separator = qn__csv_find_separator(header->body, header->end);
    return QN_OK;
}

/* ------------------------------------------------------------------ columns of folders */

static int has_name(const qn__csv_header *header, const char *name) {
    for (uint64_t i = 0; header->table.names && i < header->own; i++)
        if (strcmp(header->table.names[i], name) == 0)
            return 1;
    return 0;
}

static qn_status note_known(qn__csv_header *header, const char *name, qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text,
                 "%s%sthe column \"%.60s\" is read from the files, not from the names of their "
                 "folders",
                 header->note ? header->note : "", header->note ? "\n" : "", name);
    char *note = qn__text_take(&text, err);
    qn__free(header->note);
    header->note = note;
    return note ? QN_OK : QN_MEMORY;
}

/* Their names follow those of the file, which are empty where it has none. */
static qn_status add_keys(qn__csv_header *header, const qn__csv_keys *keys, qn_error *err) {
    header->own = header->table.shape.columns;
    if (!keys || keys->count == 0)
        return QN_OK;
    char **names = qn__alloc(header->own + keys->count + 1, sizeof *names, err);
    if (!names)
        return QN_MEMORY;
    if (header->table.names)
        memcpy(names, header->table.names, header->own * sizeof *names);
    const int named = header->table.names != NULL;
    qn__free(header->table.names);
    header->table.names = names;
    for (uint64_t i = 0; i < header->own && !named; i++)
        if (!(names[i] = qn__copy_text("", err)))
            return QN_MEMORY;
    for (size_t k = 0; k < keys->count; k++) {
        if (has_name(header, keys->key[k].name)) {
            if (note_known(header, keys->key[k].name, err) != QN_OK)
                return QN_MEMORY;
            continue;
        }
        if (!(names[header->table.shape.columns] = qn__copy_text(keys->key[k].name, err)))
            return QN_MEMORY;
        header->table.shape.columns++;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ all of it */

static qn_status read_lines(qn__csv_header *header, const qn__csv_keys *keys,
                            const qn_data_options *options, qn_error *err) {
    qn__csv_prefix p;
    qn_status status = find_first_line(header, &p, err);
    if (status != QN_OK)
        return status;
    correct_separator(header, options);
    const qn__csv_line line =
        qn__csv_line_walk(header->body, header->end, header->table.shape.separator);
    header->table.shape.columns = line.columns;
    header->table.shape.marks = qn__rule_holds(options, QN__RULE_NONE);
    header->table.shape.commas =
        header->table.shape.separator != ',' && qn__rule_holds(options, QN__RULE_COMMAS);
    header->table.shape.known = options->expected_rules != NULL;
    status = qn__csv_check_first_line(header, &line, err);
    if (status == QN_OK)
        status = take_names(header, &p, &line, options->header, err);
    if (status == QN_OK)
        status = add_keys(header, keys, err);
    return status == QN_OK ? qn__columns_choose(&header->table, options, err) : status;
}

qn_status qn__csv_header_read(const char *text, size_t size, const char *path,
                              const qn__csv_keys *keys, const qn_data_options *options,
                              qn__csv_header *out, qn_error *err) {
    qn_status status = qn__named_format_check(text, size, path, err);
    if (status != QN_OK)
        return status;
    *out = (qn__csv_header){
        .table = {.path = path}, .text = text, .body = text, .end = text + size, .first_line = 1};
    status = read_lines(out, keys, options, err);
    if (status != QN_OK)
        qn__csv_header_release(out);
    return status;
}
