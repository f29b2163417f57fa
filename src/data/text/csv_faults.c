/* Messages about lines, rows and columns of a CSV file. */
#include "data/bytes/zip_file.h"
#include "data/cells/commas.h"
#include "data/cells/label_values.h"
#include "data/text/csv_header.h"

qn_status qn__csv_refuse_line(const char *path, uint64_t line, const char *remedy, qn_error *err) {
    qn__at(err, "%s, line %llu", path, (unsigned long long)line);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

qn_status qn__csv_refuse_empty(const char *path, uint64_t line, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file has a header and no items");
    return qn__csv_refuse_line(path, line,
                               "add the lines of items; where the first line is an item, set "
                               "`data.header` no",
                               err);
}

#define OTHER_LABEL "name another column with `data.label_column`"

/* What is wrong with a cell, and what to do about it, by qn__row_fault. */
static const struct {
    const char *what, *remedy;
} cell_faults[] = {
    [QN__ROW_QUOTE] =
        {"the quotes of the cell \"%s\" do not pair",
         "close the quote, after which the separator or the line's end follows; write a "
         "quote inside a quoted cell twice"},
    [QN__ROW_TEXT] =
        {"\"%s\" is not a number",
         "correct the cell, or leave the column out with `data.drop`; if it is the label, name it "
         "with `data.label_column`; if it holds categories, name it with `data.category`"},
    [QN__ROW_EMPTY] = {"a cell is empty%s", "fill it in, or leave its line out"},
    [QN__ROW_INFINITE] = {"\"%s\" is not a finite number",
                          "replace the infinite value, or leave its line or column out"},
    [QN__ROW_RANGE] = {"\"%s\" is beyond the range of a 32-bit float",
                       "scale the column so that it fits, 3.4e38 being the greatest value"},
    [QN__ROW_NO_LABEL] = {"the label is missing%s",
                          "fill it in, leave its line out, or " OTHER_LABEL
                          "; `data.unlabelled`: no labels"},
    [QN__ROW_LABEL_TEXT] = {"the label \"%s\" is not a number, as others are",
                            "correct it, or " OTHER_LABEL
                            "; `data.task` classify takes numbers and texts as classes"},
    [QN__ROW_LABEL_BROKEN] = {"the label \"%s\" is not a whole number",
                              "correct it, or " OTHER_LABEL},
    [QN__ROW_LABEL_RANGE] = {"the label \"%s\" is 2^31 or more",
                             OTHER_LABEL "; " QN__LABEL_RANGE_REMEDY},
    [QN__ROW_WEIGHT] = {"the weight \"%s\" is not a finite number from 0",
                        "correct it, or name another column with `data.weight`; an item of weight "
                        "0 does not count"},
    [QN__ROW_ENCODING] = {"the text \"%s\" is not UTF-8",
                          "convert the file: iconv -f latin1 -t utf-8 OLD > NEW"},
};

#define PLAIN_TEXT                                                                                 \
    "a table has as many cells in every line; a plain text is read with `data.tokens` chars "      \
    "`data.context` 256"

/* Whether the name says that the file may be a text. */
static int is_text(const char *path) {
    static const char *const endings[] = {"txt", "text", "md", NULL};
    return path && qn__ends_with_one_of(path, endings);
}

static int is_ragged(const qn__row_failure *failure) {
    return failure->fault == QN__ROW_FEW || failure->fault == QN__ROW_MANY ||
           failure->fault == QN__ROW_BLANK;
}

/* A line that cannot be an item, and begins as comments do; the text is its first cell. */
static int is_comment(const qn__row_failure *failure) {
    const int first = failure->fault == QN__ROW_TEXT && failure->column == 0;
    return failure->text[0] == '#' && (first || is_ragged(failure));
}

static qn_status refuse_ragged(const qn__csv_header *header, const qn__row_failure *failure,
                               uint64_t line, qn_error *err) {
    unsigned long long columns = (unsigned long long)header->table.shape.columns;
    if (is_comment(failure)) {
        qn__fail(err, QN_INPUT, "the line is a comment below the first line");
        return qn__csv_refuse_line(header->table.path, line,
                                   "leave out such lines: grep -v '^ *#' OLD > NEW; comments stand "
                                   "above the header and the items",
                                   err);
    }
    if (failure->fault == QN__ROW_BLANK) {
        qn__fail(err, QN_INPUT, "the line is empty");
        return qn__csv_refuse_line(header->table.path, line,
                                   is_text(header->table.path)
                                       ? PLAIN_TEXT
                                       : "leave out such lines: sed '/^[[:space:]]*$/d' OLD > NEW",
                                   err);
    }
    qn__fail(err, QN_INPUT, "the line has %llu cell%s, the first line has %llu",
             (unsigned long long)failure->column, failure->column == 1 ? "" : "s", columns);
    return qn__csv_refuse_line(
        header->table.path, line,
        is_text(header->table.path) ? PLAIN_TEXT : "give every line as many cells as the first",
        err);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void say_fault(const qn__row_failure *failure, qn_error *err) {
    qn__fail(err, QN_INPUT, cell_faults[failure->fault].what, failure->text);
}
#pragma GCC diagnostic pop

/* The remedy; of a cell that other files may have, as a missing value or a number, its own. */
static const char *remedy_of(const qn__row_failure *failure) {
    const char *own = failure->fault == QN__ROW_TEXT ? qn__text_remedy(failure->text) : NULL;
    return own ? own : cell_faults[failure->fault].remedy;
}

qn_status qn__csv_refuse_row(const qn__csv_header *header, const qn__row_failure *failure,
                             qn_error *err) {
    uint64_t line = header->first_line + failure->line;
    if (is_ragged(failure) || is_comment(failure))
        return refuse_ragged(header, failure, line, err);
    say_fault(failure, err);
    char shown[64];
    qn__cell_show_text(header->table.names ? header->table.names[failure->column] : "", shown);
    qn__at(err, *shown ? "%s, line %llu, column %llu (%s)" : "%s, line %llu, column %llu",
           header->table.path, (unsigned long long)line, (unsigned long long)failure->column + 1,
           shown);
    return qn__remedy(err, QN_INPUT, "%s", remedy_of(failure));
}
