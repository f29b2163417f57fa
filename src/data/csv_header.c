/* The first line of a CSV file, the label column, and the messages about rows. */
#include "data/csv_header.h"
#include "base/memory.h"
#include "base/text.h"
#include <string.h>

static qn_status refuse_line(const char *path, uint64_t line, const char *remedy, qn_error *err) {
    qn__at(err, "%s, line %llu", path, (unsigned long long)line);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* The format of a file that is certainly not CSV text, or NULL. */
static const char *other_format(const char *text, size_t size) {
    static const struct {
        const char *magic, *name;
    } known[] = {{"\x89PNG", "a PNG image"},
                 {"PK\x03\x04", "a ZIP archive or a spreadsheet"},
                 {"\x93NUMPY", "a NumPy array"},
                 {"PAR1", "a Parquet file"},
                 {"\xFF\xD8\xFF", "a JPEG image"},
                 {"\xFF\xFE", "UTF-16 text"},
                 {"\xFE\xFF", "UTF-16 text"},
                 {"\x1F\x8B", "gzip inside gzip"},
                 {"\x89HDF", "an HDF5 file"},
                 {"BZh", "bzip2 data"},
                 {"\xFD"
                  "7zXZ",
                  "xz data"},
                 {"\x28\xB5\x2F\xFD", "zstd data"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].magic);
        if (size >= length && memcmp(text, known[i].magic, length) == 0)
            return known[i].name;
    }
    return memchr(text, '\0', size < 1024 ? size : 1024) ? "not text" : NULL;
}

static qn_status check_text(const char *text, size_t size, const char *path, qn_error *err) {
    const char *name = other_format(text, size);
    if (!name)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the file is neither CSV nor IDX: it is %s", name);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "convert it to CSV in UTF-8, or to IDX; either may be gzipped");
}

/* The most frequent of , ; and tab in the first line outside quotes; a comma wins a tie. */
static char find_separator(const char *at, const char *end) {
    size_t commas = 0, semicolons = 0, tabs = 0;
    int quoted = 0;
    for (; at < end && (*at != '\n' || quoted); at++) {
        quoted ^= *at == '"';
        commas += !quoted && *at == ',';
        semicolons += !quoted && *at == ';';
        tabs += !quoted && *at == '\t';
    }
    if (commas >= semicolons && commas >= tabs)
        return ',';
    return semicolons >= tabs ? ';' : '\t';
}

/* Result of one pass over the first line. */
typedef struct first_line {
    uint64_t columns;
    uint64_t names;     /* cells that are neither a number nor a gap */
    uint64_t line_ends; /* inside quotes */
    int broken;
    const char *end; /* its '\n', or the end of the text */
} first_line;

static first_line walk_first_line(const char *at, const char *end, char separator) {
    first_line line = {0};
    for (;;) {
        qn__cell cell;
        qn__decimal number;
        const char *next = qn__cell_read(at, end, separator, 1, &cell);
        line.columns++;
        line.names += !qn__cell_number(&cell, &number) && !qn__cell_is_gap(&cell);
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

/* A column's name: the cell with doubled quotes replaced by single ones. */
static char *copy_name(const qn__cell *cell, qn_error *err) {
    char *name = qn__alloc(cell->size + 1, 1, err);
    if (!name)
        return NULL;
    size_t length = 0;
    for (size_t i = 0; i < cell->size; i++) {
        if (cell->quoted && cell->text[i] == '"')
            i++; /* two quotes mean one; a single one would have ended the cell */
        name[length++] = cell->text[i];
    }
    name[length] = '\0';
    return name;
}

/* names[columns] is NULL, which ends the list. */
static qn_status copy_names(qn__csv_header *header, const char *at, const char *end,
                            qn_error *err) {
    header->names = qn__alloc(header->shape.columns + 1, sizeof *header->names, err);
    if (!header->names)
        return QN_MEMORY;
    for (uint64_t i = 0; i < header->shape.columns; i++) {
        qn__cell cell;
        at = qn__cell_read(at, end, header->shape.separator, 1, &cell);
        header->names[i] = copy_name(&cell, err);
        if (!header->names[i])
            return QN_MEMORY;
        at += at < end;
    }
    return QN_OK;
}

void qn__csv_header_release(qn__csv_header *header) {
    for (uint64_t i = 0; header->names && i < header->shape.columns; i++)
        qn__free(header->names[i]);
    qn__free(header->names);
    header->names = NULL;
}

char **qn__csv_header_take_names(qn__csv_header *header) {
    char **names = header->names;
    const uint64_t columns = header->shape.columns, label = header->shape.label;
    if (names && label < columns) {
        qn__free(names[label]);
        memmove(names + label, names + label + 1, (columns - label) * sizeof *names);
    }
    header->names = NULL;
    return names;
}

/* The column of that name: a name in the header takes precedence over "last", and both over a
 * number. Returns the number of columns with the name; 0 leaves *out unchanged. */
static uint64_t find_column(const qn__csv_header *header, const char *word, uint64_t *out) {
    uint64_t found = 0, number = 0;
    for (uint64_t i = 0; header->names && i < header->shape.columns; i++) {
        if (strcmp(header->names[i], word) == 0) {
            *out = i;
            found++;
        }
    }
    if (found > 0)
        return found;
    if (strcmp(word, "last") == 0)
        number = header->shape.columns;
    else if (!qn__parse_u64(word, strlen(word), &number) || number > header->shape.columns)
        number = 0;
    if (number > 0)
        *out = number - 1;
    return number > 0;
}

/* --label matches no column: lists the columns. */
static qn_status refuse_label(const qn__csv_header *header, const char *word, qn_error *err) {
    unsigned long long columns = (unsigned long long)header->shape.columns;
    qn__cell cell = {.text = word, .size = strlen(word)};
    char shown[64];
    qn__cell_show(&cell, shown);
    uint64_t number;
    const char *near = NULL; /* a number out of range is not a misspelled name */
    if (header->names && !qn__parse_u64(word, strlen(word), &number))
        near = qn__nearest(word, (const char *const *)header->names);
    qn__fail(err, QN_INPUT, "there is no label column \"%s\"", shown);
    qn__at(err, "%s, line 1", header->path);
    if (near) {
        cell = (qn__cell){.text = near, .size = strlen(near)};
        qn__cell_show(&cell, shown);
        return qn__remedy(err, QN_INPUT, "did you mean `data.label_column` %s?", shown);
    }
    return qn__remedy(err, QN_INPUT,
                      "`data.label_column` takes %sa number from 1 to %llu, or last; "
                      "`data.unlabelled`: no labels",
                      header->names ? "a column's name, " : "", columns);
}

static qn_status choose_label(qn__csv_header *header, const qn_data_options *options,
                              qn_error *err) {
    qn__csv_shape *shape = &header->shape;
    shape->label = 0;
    if (options->unlabelled) {
        shape->label = shape->columns;
    } else if (options->label_column) {
        uint64_t found = find_column(header, options->label_column, &shape->label);
        if (found == 0)
            return refuse_label(header, options->label_column, err);
        if (found > 1) {
            qn__fail(err, QN_INPUT, "%llu columns have the name of the label column",
                     (unsigned long long)found);
            return refuse_line(header->path, 1, "give the column's number with `data.label_column`",
                               err);
        }
    }
    uint64_t features = shape->columns - (shape->label < shape->columns);
    if (features == 0) {
        qn__fail(err, QN_INPUT, "the only column is the label, so there are no features");
        return refuse_line(
            header->path, 1,
            "columns are separated by comma, semicolon or tab; a file without labels is "
            "read with `data.unlabelled`",
            err);
    }
    if (features > UINT32_MAX) {
        qn__fail(err, QN_INPUT, "the first line has %llu cells, more than 2^32",
                 (unsigned long long)shape->columns);
        return refuse_line(header->path, 1, "check that the file has line ends", err);
    }
    shape->features = (uint32_t)features;
    return QN_OK;
}

/* Reads the names, if the first line has any, and moves the body after it. */
static qn_status take_names(qn__csv_header *header, const first_line *line, qn_error *err) {
    if (line->names == 0)
        return QN_OK;
    qn_status status = copy_names(header, header->body, header->end, err);
    if (status != QN_OK)
        return status;
    header->first_line = 2 + line->line_ends;
    header->body = line->end < header->end ? line->end + 1 : header->end;
    if (header->body < header->end)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the file has a header and no items");
    return refuse_line(header->path, 1, "give a file with at least one line of numbers", err);
}

qn_status qn__csv_header_read(const char *text, size_t size, const char *path,
                              const qn_data_options *options, qn__csv_header *out, qn_error *err) {
    qn_status status = check_text(text, size, path, err);
    if (status != QN_OK)
        return status;
    *out = (qn__csv_header){.path = path, .body = text, .end = text + size, .first_line = 1};
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        out->body += 3; /* the UTF-8 byte order mark */
    while (out->end > out->body && (out->end[-1] == '\n' || out->end[-1] == '\r'))
        out->end--;
    if (out->body == out->end) {
        qn__fail(err, QN_INPUT, "the file has no line of data");
        return refuse_line(path, 1, "give a file with at least one line of numbers", err);
    }
    out->shape.separator = find_separator(out->body, out->end);
    first_line line = walk_first_line(out->body, out->end, out->shape.separator);
    if (line.broken) {
        qn__fail(err, QN_INPUT, "a quote in the first line is not closed, or text follows it");
        return refuse_line(path, 1, "write a quote inside a quoted cell twice", err);
    }
    out->shape.columns = line.columns;
    status = take_names(out, &line, err);
    if (status == QN_OK)
        status = choose_label(out, options, err);
    if (status != QN_OK)
        qn__csv_header_release(out);
    return status;
}

/* The error of a cell and its remedy, by qn__row_fault. */
static const struct {
    const char *what, *remedy;
} cell_faults[] = {
    [QN__ROW_QUOTE] = {"the quotes of the cell \"%s\" do not pair",
                       "close the quote on the same line; write a quote inside a cell twice"},
    [QN__ROW_TEXT] =
        {"\"%s\" is not a number",
         "features are numbers with a decimal point; if this column is the label, name "
         "it with `data.label_column`"},
    [QN__ROW_EMPTY] = {"a cell is empty%s", "fill in missing values, or leave out their lines"},
    [QN__ROW_INFINITE] = {"\"%s\" is not a finite number",
                          "replace NaN, infinite and missing values, or leave out their lines"},
    [QN__ROW_RANGE] = {"\"%s\" is beyond the range of a 32-bit float",
                       "scale the column so that it fits, 3.4e38 being the greatest value"},
    [QN__ROW_NO_LABEL] = {"the label is missing%s",
                          "fill it in, or name another column with `data.label_column`; "
                          "`data.unlabelled`: no labels"},
    [QN__ROW_LABEL_TEXT] =
        {"the label \"%s\" is not a number",
         "number the classes from 0, or name another column with `data.label_column`"},
    [QN__ROW_LABEL_BROKEN] =
        {"the label \"%s\" is not a whole number",
         "number the classes from 0, or name another column with `data.label_column`"},
    [QN__ROW_LABEL_SIGN] =
        {"the label \"%s\" is negative",
         "number the classes from 0, or name another column with `data.label_column`"},
    [QN__ROW_LABEL_RANGE] =
        {"the label \"%s\" is 2^31 or more",
         "number the classes from 0, or name another column with `data.label_column`"},
};

static qn_status refuse_ragged(const qn__csv_header *header, const qn__row_failure *failure,
                               uint64_t line, qn_error *err) {
    unsigned long long columns = (unsigned long long)header->shape.columns;
    if (failure->fault == QN__ROW_BLANK)
        qn__fail(err, QN_INPUT, "the line is empty");
    else
        qn__fail(err, QN_INPUT, "the line has %llu cell%s, the first line has %llu",
                 (unsigned long long)failure->column, failure->column == 1 ? "" : "s", columns);
    return refuse_line(header->path, line, "give every line as many cells as the first", err);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void say_fault(const qn__row_failure *failure, qn_error *err) {
    qn__fail(err, QN_INPUT, cell_faults[failure->fault].what, failure->text);
}
#pragma GCC diagnostic pop

qn_status qn__csv_refuse_row(const qn__csv_header *header, const qn__row_failure *failure,
                             qn_error *err) {
    uint64_t line = header->first_line + failure->row;
    if (failure->fault == QN__ROW_FEW || failure->fault == QN__ROW_MANY ||
        failure->fault == QN__ROW_BLANK)
        return refuse_ragged(header, failure, line, err);
    say_fault(failure, err);
    const char *name = header->names ? header->names[failure->column] : "";
    qn__cell cell = {.text = name, .size = strlen(name)};
    char shown[64];
    qn__cell_show(&cell, shown);
    qn__at(err, *shown ? "%s, line %llu, column %llu (%s)" : "%s, line %llu, column %llu",
           header->path, (unsigned long long)line, (unsigned long long)failure->column + 1, shown);
    return qn__remedy(err, QN_INPUT, "%s", cell_faults[failure->fault].remedy);
}
