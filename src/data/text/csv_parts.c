#include "data/text/csv_parts.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/bytes/named_formats.h"
#include "data/cells/text_set.h"
#include "data/table/dates.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Bytes of a file that are read to find its first line, at first; and those of which lines are
 * looked at together with lines of other files. */
enum { FIRST_PIECE = 1 << 16, LOOK_PIECE = 1 << 21 };

/* The first line of a file. */
typedef struct beginning {
    const char *at, *end; /* of the text that was read */
    qn__csv_prefix prefix;
    qn__csv_line line; /* without bytes: there is none */
    uint64_t lines;    /* before it */
} beginning;

/* Reads as much of the file as the first line needs, at least `least` bytes where it has them. The
 * bytes are the text's, until its next call. */
static qn_status begin(qn__csv_text *text, char separator, size_t least, beginning *out,
                       qn_error *err) {
    const size_t size = qn__csv_text_size(text);
    for (size_t piece = least;; piece *= 2) {
        const size_t part = piece < size ? piece : size;
        const char *bytes = qn__csv_text_at(text, 0, 0, part);
        if (!bytes)
            return qn__csv_text_status(text, err);
        *out = (beginning){.at = bytes, .end = bytes + part};
        const char *end = out->end;
        while (part == size && end > bytes && qn__csv_is_ending(end[-1]))
            end--;
        const char *first = qn__csv_skip_prefix(bytes, end, &out->prefix);
        out->line = (qn__csv_line){.begin = first, .end = first};
        if (first < end)
            out->line = qn__csv_line_walk(first, end, separator);
        out->end = end;
        if (part == size || out->line.end < end)
            return QN_OK;
    }
}

/* ------------------------------------------------------------------ the header of the table */

/* The beginnings of files as one text. */
typedef struct look {
    char *bytes;
    size_t size, capacity;
} look;

static qn_status append(look *l, const char *bytes, size_t size, qn_error *err) {
    if (l->capacity - l->size < size + 1) {
        const size_t capacity = 2 * (l->size + size + 1);
        char *more = qn__alloc(capacity, 1, err);
        if (!more)
            return QN_MEMORY;
        if (l->size > 0)
            memcpy(more, l->bytes, l->size);
        qn__free(l->bytes);
        l->bytes = more;
        l->capacity = capacity;
    }
    if (size > 0)
        memcpy(l->bytes + l->size, bytes, size);
    l->size += size;
    return QN_OK;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, uint64_t count) {
    for (uint64_t i = 0; names && i < count; i++)
        qn__free(names[i]);
    qn__free((void *)names);
}

/* The cells of a line as names. */
static char **names_of(const qn__csv_line *line, char separator, qn_error *err) {
    char **names = (char **)qn__alloc(line->columns + 1, sizeof *names, err);
    const char *at = line->begin;
    for (uint64_t i = 0; names && i < line->columns; i++) {
        qn__cell cell;
        at = qn__cell_read(at, line->end, separator, &cell);
        at += at < line->end;
        names[i] = qn__csv_copy_name(&cell, err);
        if (!names[i]) {
            free_names(names, i);
            return NULL;
        }
    }
    return names;
}

/* How two lines are alike. */
enum { OTHER, SAME, SAME_CELLS };

/* Whether they have the same cells, perhaps in another order. */
static qn_status compare_lines(const qn__csv_line *a, const qn__csv_line *b, char separator,
                               int *alike, qn_error *err) {
    *alike = OTHER;
    if (a->columns != b->columns)
        return QN_OK;
    char **one = names_of(a, separator, err), **other = one ? names_of(b, separator, err) : NULL;
    uint64_t same = 0, found = 0;
    for (uint64_t i = 0; other && i < a->columns; i++)
        same += strcmp(one[i], other[i]) == 0;
    if (other) {
        qsort((void *)one, a->columns, sizeof *one, compare_texts);
        qsort((void *)other, a->columns, sizeof *other, compare_texts);
    }
    for (uint64_t i = 0; other && i < a->columns; i++)
        found += strcmp(one[i], other[i]) == 0;
    const qn_status status = other ? QN_OK : QN_MEMORY;
    if (other)
        *alike = same == a->columns ? SAME : found == a->columns ? SAME_CELLS : OTHER;
    free_names(one, one ? a->columns : 0);
    free_names(other, other ? a->columns : 0);
    return status;
}

/* Appends the first rows of another file: without its first line where that is the one of the first
 * file. Where the cells only have another order, no line says something about a column; *reordered
 * becomes 1. */
static qn_status append_rows(look *l, const char *path, qn__csv_text *text,
                             const qn__csv_line *first, char separator, int *reordered,
                             qn_error *err) {
    beginning b;
    int alike = OTHER;
    qn_status status = begin(text, separator, LOOK_PIECE, &b, err);
    if (status == QN_OK)
        status = qn__named_format_check(b.at, (size_t)(b.end - b.at), path, err);
    if (status == QN_OK && b.line.end > b.line.begin)
        status = compare_lines(first, &b.line, separator, &alike, err);
    *reordered |= alike == SAME_CELLS;
    if (status != QN_OK || b.line.end == b.line.begin || alike == SAME_CELLS)
        return status;
    const char *at = alike == SAME ? b.line.end + (b.line.end < b.end) : b.line.begin;
    const char *end = b.end;
    while (end > at && end[-1] != '\n' && (size_t)(b.end - b.at) < qn__csv_text_size(text) &&
           memchr(at, '\n', (size_t)(end - at)))
        end--; /* the last line was cut */
    if (at == end)
        return QN_OK;
    if (l->size > 0 && l->bytes[l->size - 1] != '\n')
        status = append(l, "\n", 1, err);
    return status == QN_OK ? append(l, at, (size_t)(end - at), err) : status;
}

static qn_status open_text(qn__part_files *files, size_t i, qn__source **source,
                           qn__csv_text **text, qn_error *err) {
    *text = NULL;
    qn_status status = qn__part_files_open(files, i, source, err);
    if (status != QN_OK)
        return status;
    status = qn__csv_text_open(*source, 1, text, err);
    return status == QN_OK ? QN_OK : qn__part_files_close(*source, status, err);
}

/* The first file has one line, and others have its cells in another order: it is a header. A row of
 * zeros stands for the rows, whose values do not matter here. */
static qn_status take_lone_header(look *l, const char *path, const qn__csv_line *line,
                                  char separator, const qn__csv_keys *keys,
                                  const qn_data_options *options, qn__csv_header *out,
                                  qn_error *err) {
    qn_data_options own = *options;
    own.header = "yes";
    qn_status status = append(l, "\n0", 2, err);
    for (uint64_t i = 1; i < line->columns && status == QN_OK; i++)
        status = append(l, (const char[]){separator, '0'}, 2, err);
    return status == QN_OK ? qn__csv_header_read(l->bytes, l->size, path, keys, &own, out, err)
                           : status;
}

/* Adds files to the text until it says all, or none is left. */
static qn_status look_at_more(qn__part_files *files, look *l, const qn__csv_keys *keys,
                              const qn_data_options *options, qn__csv_header *out, qn_error *err) {
    const char *path = files->list->file[0].path;
    qn_status status = qn__csv_header_read(l->bytes, l->size, path, keys, options, out, err);
    char *copy = qn__alloc(l->size + 1, 1, NULL); /* the text moves when it grows */
    if (!copy) {
        if (status == QN_OK)
            qn__csv_header_release(out);
        return qn__fail_memory(err, l->size, 1);
    }
    memcpy(copy, l->bytes, l->size);
    qn__csv_prefix prefix;
    const char *first = qn__csv_skip_prefix(copy, copy + l->size, &prefix);
    const char separator = qn__csv_find_separator(first, copy + l->size);
    const qn__csv_line line = qn__csv_line_walk(first, copy + l->size, separator);
    int reordered = 0;
    for (size_t i = 1; i < files->list->count; i++) {
        qn__source *source;
        qn__csv_text *text;
        const size_t before = l->size;
        if (status == QN_OK ? qn__csv_header_is_settled(out) : l->size > 2 * LOOK_PIECE)
            break;
        qn_status done = open_text(files, i, &source, &text, err);
        if (done == QN_OK) {
            done =
                append_rows(l, files->list->file[i].path, text, &line, separator, &reordered, err);
            qn__csv_text_close(text);
            done = qn__part_files_close(source, done, err);
        }
        if (done == QN_OK && l->size == before)
            continue;
        if (status == QN_OK)
            qn__csv_header_release(out);
        status = done;
        if (done != QN_OK)
            break;
        status = qn__csv_header_read(l->bytes, l->size, path, keys, options, out, err);
    }
    if (status == QN_INPUT && reordered && (!options->header || strcmp(options->header, "no") != 0))
        status = take_lone_header(l, path, &line, separator, keys, options, out, err);
    qn__free(copy);
    return status;
}

qn_status qn__csv_parts_header(qn__part_files *files, const qn__csv_keys *keys,
                               const qn_data_options *options, qn__csv_header *out, qn_error *err) {
    qn__source *source;
    qn__csv_text *text;
    look l = {0};
    int all = 0;
    qn_status status = open_text(files, 0, &source, &text, err);
    if (status != QN_OK)
        return status;
    const char *path = files->list->file[0].path;
    for (size_t piece = FIRST_PIECE; status == QN_OK && !all; piece *= 2) {
        const size_t size = qn__csv_text_size(text), part = piece < size ? piece : size;
        const char *bytes = qn__csv_text_at(text, 0, 0, part);
        if (!bytes) {
            status = qn__csv_text_status(text, err);
        } else if (part == size) {
            all = 1;
            status = append(&l, bytes, size, err);
        } else if (qn__csv_header_read(bytes, part, path, keys, options, out, NULL) == QN_OK) {
            if (qn__csv_header_is_settled(out))
                break;
            qn__csv_header_release(out);
        }
    }
    qn__csv_text_close(text);
    status = qn__part_files_close(source, status, err);
    if (status == QN_OK && all)
        status = look_at_more(files, &l, keys, options, out, err);
    if (status == QN_OK)
        out->text = out->body = out->end = NULL;
    qn__free(l.bytes);
    return status;
}

qn_status qn__csv_parts_mark_keys(const qn__file_list *list, qn__csv_header *header,
                                  qn_error *err) {
    const qn__row_shape *shape = &header->table.shape;
    uint64_t column = header->own;
    for (size_t k = 0; k < list->keys && column < shape->columns; k++) {
        int texts = 0, others = 0;
        if (strcmp(header->table.names[column], list->file[0].key[k].name) != 0)
            continue; /* the files have this column themselves */
        for (size_t i = 0; i < list->count; i++) {
            qn__moment moment;
            const char *value = list->file[i].key[k].value;
            const qn__cell cell = {.text = value, .size = strlen(value)};
            const qn__content content = qn__cell_content(&cell);
            texts |= content == QN__CONTENT_TEXT;
            others |= content != QN__CONTENT_GAP &&
                      !(shape->dates && qn__cell_moment(&cell, shape->date_format, &moment));
        }
        texts &= others; /* dates alone are a column of dates */
        if (texts && !header->table.categories &&
            !(header->table.categories = qn__alloc(header->table.shape.columns, 1, err)))
            return QN_MEMORY;
        if (texts)
            header->table.categories[column] = 1;
        column++;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ the columns of a file */

static qn_status refuse_column(const qn__csv_part *part, const char *what, const char *name,
                               const char *remedy, qn_error *err) {
    char shown[64];
    qn__cell_show_text(name, shown);
    qn__fail(err, QN_INPUT, "the column \"%s\" %s", shown, what);
    qn__at(err, "%s, line %llu", part->path, (unsigned long long)part->first_line);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static int is_skipped(const qn__csv_header *header, uint64_t column) {
    const qn__special *special = header->table.special;
    while (special->column < column)
        special++;
    return special->column == column && special->kind == QN__COLUMN_SKIP;
}

/* The names of the table, to find them. */
static qn_status collect(const qn__csv_header *header, qn__text_set *set, qn_error *err) {
    for (uint64_t i = 0; i < header->own; i++) {
        const qn__cell cell = {.text = header->table.names[i],
                               .size = strlen(header->table.names[i])};
        if (qn__text_set_add(set, &cell, err) != QN_OK)
            return QN_MEMORY;
    }
    return QN_OK;
}

static uint32_t find(const qn__text_set *set, const char *name) {
    return qn__text_set_find(set, &(qn__cell){.text = name, .size = strlen(name)});
}

/* Whether most cells are names of the table, whatever their case: then the line is a header. The
 * case is looked at in tables of few columns: each cell is compared with each name. */
enum { FEW = 1000 };

static int is_header(const qn__text_set *set, char *const *names, uint64_t count) {
    uint64_t known = 0, filled = 0;
    for (uint64_t i = 0; i < count; i++) {
        int found = *names[i] && find(set, names[i]) != QN__NO_TEXT;
        for (uint32_t k = 0; *names[i] && !found && set->count <= FEW && k < set->count; k++)
            found = strcasecmp(names[i], set->text[k]) == 0;
        known += (uint64_t)found;
        filled += *names[i] != '\0';
    }
    return known > 0 && 2 * known >= filled;
}

#define COLUMNS_REMEDY                                                                             \
    "give all files the same columns, in any order; `data.features` reads only those it names"

static qn_status match_names(const qn__csv_header *header, const qn_data_options *options,
                             const qn__text_set *set, char *const *names, qn__csv_part *part,
                             qn_error *err) {
    part->from = qn__alloc(header->own, sizeof *part->from, err);
    if (!part->from)
        return QN_MEMORY;
    for (uint64_t i = 0; i < header->own; i++)
        part->from[i] = UINT64_MAX;
    if (set->count < header->own)
        return refuse_column(part,
                             "is not where the first file has it, and other columns have its "
                             "name",
                             names[0], "give the columns different names, or one order", err);
    for (uint64_t i = 0; i < part->cells; i++) {
        const uint32_t column = find(set, names[i]);
        if (column == QN__NO_TEXT && !options->features)
            return refuse_column(part, "is not in the first file", names[i], COLUMNS_REMEDY, err);
        if (column == QN__NO_TEXT)
            continue;
        if (part->from[column] != UINT64_MAX)
            return refuse_column(part, "is in the file twice", names[i],
                                 "give the columns different names", err);
        part->from[column] = i;
    }
    for (uint64_t i = 0; i < header->own; i++)
        if (part->from[i] == UINT64_MAX && !is_skipped(header, i))
            return refuse_column(part, "of the first file is missing", header->table.names[i],
                                 COLUMNS_REMEDY "; `data.drop` leaves columns out", err);
    return QN_OK;
}

/* Finds out whether the first line is a header, and where its columns are. */
static qn_status match_line(const qn__csv_header *header, const qn_data_options *options,
                            const qn__csv_line *line, qn__csv_part *part, int *named,
                            qn_error *err) {
    qn__text_set set = {0};
    char **names = names_of(line, header->table.shape.separator, err);
    if (!names)
        return QN_MEMORY;
    uint64_t same = 0;
    for (uint64_t i = 0; i < line->columns && i < header->own; i++)
        same += strcmp(names[i], header->table.names[i]) == 0;
    *named = same == header->own && line->columns == header->own;
    qn_status status = *named ? QN_OK : collect(header, &set, err);
    if (status == QN_OK && !*named && is_header(&set, names, line->columns)) {
        *named = 1;
        part->cells = line->columns;
        status = match_names(header, options, &set, names, part, err);
    }
    qn__text_set_release(&set);
    free_names(names, line->columns);
    return status;
}

/* A file without a header has the columns of the first file, in their order. */
static qn_status check_line(const qn__csv_header *header, const qn__csv_part *part,
                            const beginning *b, qn_error *err) {
    qn__csv_header own = *header;
    const char separator = qn__csv_find_separator(b->line.begin, b->end);
    own.table.path = part->path;
    own.first_line = part->first_line;
    own.end = b->end;
    if (b->line.columns == 1 && header->own > 1 && separator != header->table.shape.separator) {
        qn__fail(err, QN_INPUT, "the cells are separated in another way than in the first file");
        return qn__csv_refuse_line(part->path, part->first_line,
                                   "separate them by the same sign in all files", err);
    }
    return qn__csv_check_first_line(&own, &b->line, err);
}

qn_status qn__csv_part_find(const qn__file_list *list, size_t i, const qn__csv_header *header,
                            const qn_data_options *options, qn__csv_text *text, qn__csv_part *out,
                            qn_error *err) {
    beginning b = {.at = NULL};
    int named = 0;
    *out = (qn__csv_part){.path = list->file[i].path, .cells = header->own};
    qn_status status = qn__csv_part_add_keys(list, i, header, out, err);
    if (status == QN_OK)
        status = begin(text, header->table.shape.separator, FIRST_PIECE, &b, err);
    if (status == QN_OK)
        status = qn__named_format_check(b.at, (size_t)(b.end - b.at), out->path, err);
    if (status != QN_OK)
        return status;
    out->first_line = b.prefix.lines + 1;
    if (b.line.begin == b.line.end && b.line.begin == b.end) /* no row */
        return QN_OK;
    status = check_line(header, out, &b, err);
    if (status == QN_OK && header->table.names)
        status = match_line(header, options, &b.line, out, &named, err);
    if (status != QN_OK)
        return status;
    out->begin = (size_t)(b.line.begin - b.at);
    if (named) {
        out->begin = (size_t)(b.line.end + (b.line.end < b.end) - b.at);
        out->first_line += 1 + b.line.line_ends;
    }
    const size_t begin = out->begin;
    size_t end = begin;
    status = qn__csv_text_end(text, begin, &end, err);
    out->size = end - begin;
    return status;
}

/* A cell in quotes, where a separator or a quote stands in it. */
static void add_cell(qn__text *text, char separator, const char *value) {
    const char needs[] = {separator, '"', ' ', '\0'};
    if (!strpbrk(value, needs)) {
        qn__text_add(text, "%c%s", separator, value);
        return;
    }
    qn__text_add(text, "%c\"", separator);
    for (; *value; value++)
        qn__text_add(text, *value == '"' ? "\"%c" : "%c", *value);
    qn__text_add(text, "\"");
}

qn_status qn__csv_part_add_keys(const qn__file_list *list, size_t i, const qn__csv_header *header,
                                qn__csv_part *part, qn_error *err) {
    qn__text text = {0};
    uint64_t column = header->own;
    for (size_t k = 0; k < list->keys && column < header->table.shape.columns; k++) {
        const qn__folder_key *key = &list->file[i].key[k];
        if (strcmp(header->table.names[column], key->name) != 0)
            continue;
        add_cell(&text, header->table.shape.separator, key->value);
        column++;
    }
    part->suffix = qn__text_take(&text, err);
    return part->suffix ? QN_OK : QN_MEMORY;
}

void qn__csv_part_release(qn__csv_part *part) {
    qn__free(part->from);
    qn__free(part->suffix);
    part->from = NULL;
    part->suffix = NULL;
}

/* ------------------------------------------------------------------ lines */

void qn__csv_line_space_release(qn__csv_line_space *buffer) {
    qn__free(buffer->bytes);
    qn__free(buffer->cell);
    *buffer = (qn__csv_line_space){0};
}

static int make_line_space(qn__csv_line_space *buffer, size_t size, uint64_t cells) {
    if (size > buffer->size) {
        qn__free(buffer->bytes);
        buffer->size = 2 * size;
        buffer->bytes = qn__alloc(buffer->size, 1, NULL);
        buffer->size = buffer->bytes ? buffer->size : 0;
    }
    if (cells > buffer->cells) {
        qn__free(buffer->cell);
        buffer->cell = qn__alloc(cells, sizeof *buffer->cell, NULL);
        buffer->cells = buffer->cell ? cells : 0;
    }
    return buffer->size >= size && buffer->cells >= cells;
}

/* Where the cells of a line lie. 0: it has another number of them, or is empty. */
static int cut_line(const qn__csv_part *part, char separator, const char *at, const char *end,
                    qn__csv_span *cell) {
    qn__cell read;
    for (uint64_t i = 0;; i++) {
        const char *next = qn__cell_read(at, end, separator, &read);
        if (i < part->cells)
            cell[i] = (qn__csv_span){at, next};
        if (next == end)
            return i + 1 == part->cells && (i > 0 || read.size > 0 || read.quoted);
        at = next + 1;
    }
}

/* Copies a cell without a CR at its end. */
static char *copy_cell(char *to, const qn__csv_span *cell) {
    const char *end = cell->end;
    while (end > cell->begin && end[-1] == '\r')
        end--;
    memcpy(to, cell->begin, (size_t)(end - cell->begin));
    return to + (end - cell->begin);
}

const char *qn__csv_part_line(const qn__csv_part *part, const qn__csv_header *header,
                              qn__csv_line_space *buffer, const char *at, const char *end,
                              const char **next, size_t *size, qn__row_failure *failure) {
    const char separator = header->table.shape.separator;
    const char *line_end = qn__row_end(&header->table.shape, at, end);
    const size_t suffix = strlen(part->suffix);
    const size_t most = (size_t)(line_end - at) + header->own + suffix + 1;
    *next = line_end + (line_end < end);
    if (!make_line_space(buffer, most, part->cells)) {
        failure->fault = QN__ROW_FINE;
        return NULL;
    }
    if (!cut_line(part, separator, at, line_end, buffer->cell)) {
        const qn__row_shape own = {
            .separator = separator, .columns = part->cells, .spread = header->table.shape.spread};
        qn__row_count(&own, at, line_end, failure);
        if (failure->fault == QN__ROW_FINE)
            failure->fault = QN__ROW_BLANK;
        return NULL;
    }
    char *to = buffer->bytes;
    for (uint64_t i = 0; i < header->own; i++) {
        const uint64_t from = part->from ? part->from[i] : i;
        if (i > 0)
            *to++ = separator;
        if (from != UINT64_MAX)
            to = copy_cell(to, &buffer->cell[from]);
    }
    memcpy(to, part->suffix, suffix);
    to += suffix;
    *to++ = '\n';
    *size = (size_t)(to - buffer->bytes);
    return buffer->bytes;
}

qn_status qn__csv_part_refuse_row(const qn__csv_part *part, const qn__csv_header *header,
                                  const qn__row_failure *failure, qn_error *err) {
    qn__csv_header own = *header;
    qn__row_failure there = *failure;
    own.table.path = part->path;
    own.first_line = part->first_line;
    own.table.shape.columns = part->cells;
    const int ragged = failure->fault == QN__ROW_FEW || failure->fault == QN__ROW_MANY ||
                       failure->fault == QN__ROW_BLANK;
    if (ragged || !part->from || failure->column >= header->own)
        return qn__csv_refuse_row(&own, &there, err);
    there.column = part->from[failure->column];
    char **names = (char **)qn__alloc(part->cells, sizeof *names, err);
    if (!names)
        return QN_MEMORY;
    names[there.column] = header->table.names[failure->column];
    own.table.names = names;
    const qn_status status = qn__csv_refuse_row(&own, &there, err);
    qn__free((void *)names);
    return status;
}
