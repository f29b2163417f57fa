/* Rows of a file that grows, or of the standard input: CSV with a header, JSON lines, texts, or
 * paths of images. Rows are numbered from 0, without the header, and stored in their order, so the
 * last number that is stored says where to go on. A row is a line; in CSV its quoted cells may hold
 * line ends. */
#include "base/memory.h"
#include "base/text/text.h"
#include "data/text/csv_header.h"
#include "data/text/csv_quotes.h"
#include "model/formats/model.h"
#include "serve/watch/watch_files.h"
#include "serve/watch/watch_state.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { CHUNK = 256, READ = 1 << 16 };
static const size_t LONGEST = (size_t)1 << 28;        /* of a line */
static const size_t LONGEST_QUOTED = (size_t)1 << 20; /* of a row with line ends in quotes */

typedef enum line_kind { LINES_UNKNOWN, LINES_CSV, LINES_JSON, LINES_TEXT, LINES_PATHS } line_kind;

typedef struct rows {
    qn_watch *w;
    line_kind kind;
    int file, inotify;
    int cut;        /* the last row that was taken has a quote that is not closed */
    off_t at;       /* bytes read */
    qn__text left;  /* bytes that are not taken yet */
    size_t taken;   /* of them */
    char *header;   /* of CSV, with its end; NULL: none, or not read yet */
    int begun;      /* the first row of CSV was seen */
    int ended;      /* there is nothing more to read */
    int64_t next;   /* the number of the next row */
    int64_t last;   /* rows up to this one are stored */
    char separator; /* of CSV */
} rows;

static int is_stream(const rows *r) { return r->file == STDIN_FILENO; }

/* ------------------------------------------------------------------------------------- its lines
 */

/* A model whose item is one text takes lines as they are. */
static int takes_texts(const qn_model *m) {
    return qn_model_text_inputs(m, 0) > 0 ? qn_model_feature_name(m, 0) == NULL
                                          : qn_model_tokenizer(m) && *qn_model_tokenizer(m);
}

/* A model of pictures; one of plain numbers may be, where the line is the path of a file. */
static int takes_paths(const rows *r, const char *line, size_t size) {
    const qn_model *m = r->w->model;
    char path[PATH_MAX];
    struct stat info;
    if (m->kind != &qn__network_kind || m->tokens || qn__body_has_header(r->w->units.reader))
        return 0;
    const qn__shape item = qn__recipe_input(qn__model_recipe_of(m));
    if (item.height * item.width > 1)
        return 1;
    size = strcspn(line, "\r\n") < size ? strcspn(line, "\r\n") : size;
    if (size >= sizeof path)
        return 0;
    memcpy(path, line, size);
    path[size] = '\0';
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static line_kind kind_of(const rows *r, const char *line, size_t length) {
    const size_t size = strlen(r->w->options.path);
    if (line[strspn(line, " \t\r\n\xef\xbb\xbf")] == '{')
        return LINES_JSON;
    if (r->w->units.texts)
        return LINES_TEXT;
    if (is_stream(r) && takes_paths(r, line, length))
        return LINES_PATHS;
    if ((is_stream(r) || (size > 4 && strcmp(r->w->options.path + size - 4, ".txt") == 0)) &&
        takes_texts(r->w->model))
        return LINES_TEXT;
    return LINES_CSV;
}

static int is_blank(const char *line, size_t size) {
    for (size_t k = 0; k < size; ++k)
        if (line[k] != ' ' && line[k] != '\t' && line[k] != '\r' && line[k] != '\n')
            return 0;
    return 1;
}

/* Where the row at `begin` ends; NULL: it is not complete. A quote that stays open for too long is
 * one that nobody closes: then the row is its first line, and *cut is 1. */
static const char *row_end(const rows *r, const char *begin, const char *end, int *cut) {
    const char *line_end = memchr(begin, '\n', (size_t)(end - begin));
    *cut = 0;
    if (!line_end || r->kind != LINES_CSV || !memchr(begin, '"', (size_t)(line_end - begin)))
        return line_end;
    const int long_enough = (size_t)(end - begin) > LONGEST_QUOTED;
    const char *last = long_enough ? begin + LONGEST_QUOTED : end;
    const char *found = qn__csv_row_end(begin, last, r->separator, QN__CSV_CELL);
    if (found < last)
        return found;
    *cut = long_enough;
    return long_enough ? line_end : NULL;
}

/* The next whole row, with its end; at the end of the input also one without. NULL: there is none.
 */
static const char *next_row(rows *r, size_t *size) {
    const char *begin = r->left.data ? r->left.data + r->taken : NULL;
    const char *stop = r->left.data ? r->left.data + r->left.size : NULL;
    if (begin == stop)
        return NULL;
    const char *first = begin;
    if (r->kind == LINES_CSV && !r->begun) {
        qn__csv_prefix before;
        first = qn__csv_skip_prefix(begin, stop, &before);
        r->separator = qn__csv_find_separator(first, stop);
    }
    const char *end = row_end(r, first, stop, &r->cut);
    if (!end && !r->ended)
        return NULL;
    *size = end ? (size_t)(end - begin) + 1 : (size_t)(stop - begin);
    r->taken += *size;
    return begin;
}

/* ------------------------------------------------------------------------------------- its units
 */

static qn_status items_of_texts(rows *r, qn__watch_unit *unit) {
    qn__body_text text[CHUNK];
    uint64_t count = 0;
    for (const char *at = unit->lines; *at && count < CHUNK; ++count) {
        const size_t size = strcspn(at, "\r\n");
        text[count] = (qn__body_text){at, size};
        at += size + strspn(at + size, "\r\n");
    }
    return qn__body_of_texts(r->w->units.reader, text, count, &unit->data, &unit->error);
}

/* The items of the lines of a unit, which are as many. */
static qn_status read_lines(rows *r, qn__watch_unit *unit) {
    qn__text body = {0};
    if (r->w->units.texts)
        return qn__watch_prompts_read(unit->lines, strlen(unit->lines), r->kind == LINES_JSON,
                                      &unit->prompts, &unit->error);
    if (r->kind == LINES_TEXT)
        return items_of_texts(r, unit);
    qn__text_add(&body, "%s%s", r->header ? r->header : "", unit->lines);
    qn_status status = body.failed
                           ? qn__fail_memory(&unit->error, body.size, 1)
                           : qn__body_read(r->w->units.reader,
                                           r->kind == LINES_JSON ? QN__BODY_JSON : QN__BODY_CSV,
                                           body.data, body.size, &unit->data, &unit->error);
    qn__text_release(&body);
    if (status == QN_OK && qn_data_items(unit->data) != unit->items) {
        status = qn__fail(&unit->error, QN_INPUT, "the line is not one row");
        qn_data_close(unit->data);
        unit->data = NULL;
    }
    return status;
}

static qn_status read_path(rows *r, qn__watch_unit *unit) {
    qn__watch_bytes bytes = {.bytes = NULL};
    int64_t last;
    qn_status status = qn__watch_last(r->w, unit->file, NULL, &last, &unit->error);
    if (status != QN_OK)
        return status;
    unit->skip =
        last >= 0 ? QN__SKIP_KNOWN : qn__watch_file_read(AT_FDCWD, unit->file, 1, &bytes, unit);
    if (unit->skip == QN__SKIP_GONE)
        unit->status = qn__fail(&unit->error, QN_INPUT, "there is no such file");
    else if (unit->skip == QN__SKIP_LATER)
        unit->status = qn__fail(&unit->error, QN_INPUT, "the file changed while it was read");
    if (unit->skip != QN__SKIP_KNOWN)
        unit->skip = QN__SKIP_NOT;
    if (!unit->skip && unit->status == QN_OK)
        qn__watch_file_items(&r->w->units, unit->file, &bytes, unit);
    r->w->report.known += unit->skip == QN__SKIP_KNOWN;
    qn__free(bytes.bytes);
    return QN_OK;
}

/* Submits `count` lines, up to row r->next - 1. What is wrong with them is seen with their answer.
 */
static qn_status submit_lines(rows *r, const char *lines, size_t size, int64_t first,
                              uint64_t count, qn_error *err) {
    const int paths = r->kind == LINES_PATHS;
    char *copied = qn__copy_unquoted(lines, paths ? strcspn(lines, "\r\n") : size, 0, err);
    qn__watch_unit *unit =
        copied ? qn__watch_unit_make(paths ? copied : r->w->options.path, paths ? 0 : first, err)
               : NULL;
    if (!unit) {
        qn__free(copied);
        return QN_MEMORY;
    }
    unit->lines = copied;
    unit->items = count;
    qn_status status = QN_OK;
    if (paths)
        status = read_path(r, unit);
    else
        unit->status = read_lines(r, unit);
    if (status == QN_OK) {
        qn__watch_submit(&r->w->units, unit);
        return QN_OK;
    }
    if (err)
        *err = unit->error;
    qn__watch_unit_free(unit);
    return status;
}

/* A list is one JSON text over many lines. */
static qn_status refuse_list(const rows *r, qn_error *err) {
    qn__fail(err, QN_INPUT, "the rows are a JSON list, and not one row a line");
    qn__at(err, "%.400s", r->w->options.path);
    return qn__remedy(err, QN_INPUT,
                      "write each row as an object in a line of its own, or put the file into a "
                      "folder that is watched");
}

/* Takes the header. 1: the line was it. The number of a row must not depend on the model: one
 * without names leaves a header out, too. */
static int take_header(rows *r, const char *line, size_t size) {
    if (r->kind != LINES_CSV || r->begun)
        return 0;
    r->begun = 1;
    /* The first line of texts is a header, as for quern predict. Further lines need it before them,
     * or the first of them would be one. */
    const int texts = takes_texts(r->w->model);
    if (!texts && !qn__body_is_header(r->w->units.reader, line, size))
        return 0;
    if (!texts && !qn__body_has_header(r->w->units.reader))
        return 1;
    qn__text header = {0};
    qn__text_add(&header, "%.*s%s", (int)size, line, line[size - 1] == '\n' ? "" : "\n");
    r->header = qn__text_take(&header, NULL);
    return r->header != NULL;
}

/* The first line says what rows are; it is read again as one. */
static qn_status find_kind(rows *r, qn_error *err) {
    size_t size;
    for (const char *line; r->kind == LINES_UNKNOWN && (line = next_row(r, &size));) {
        if (is_blank(line, size))
            continue;
        if (line[strspn(line, " \t")] == '[')
            return refuse_list(r, err);
        r->kind = kind_of(r, line, size);
        r->taken -= size;
    }
    return QN_OK;
}

/* Submits whole rows as one unit, as many as there are and as one may have. One with an open quote
 * is the last, or it would take the next ones into its cell. */
static qn_status submit_some(rows *r, int *some, qn_error *err) {
    const char *begin = NULL;
    size_t size, all = 0;
    uint64_t count = 0;
    const uint64_t most = r->kind == LINES_PATHS || r->w->units.texts ? 1 : CHUNK;
    *some = 0;
    const qn_status status = find_kind(r, err);
    if (status != QN_OK)
        return status;
    for (const char *line; (line = next_row(r, &size)); *some = 1) {
        const int whole = !is_blank(line, size) && !take_header(r, line, size);
        if (whole && r->next++ > r->last) {
            begin = begin ? begin : line;
            ++count;
        } else if (whole)
            ++r->w->report.known;
        if (begin)
            all = (size_t)(line + size - begin);
        if (count == most || (count && r->cut))
            break;
    }
    return count ? submit_lines(r, begin, all, r->next - (int64_t)count, count, err) : QN_OK;
}

/* ----------------------------------------------------------------------------------- its answers
 */

/* The rows of a unit that failed one by one, in its place. */
static qn_status split(rows *r, qn__watch_unit *unit, qn__watch_unit ***end, qn_error *err) {
    int64_t number = unit->first;
    const char *stop = unit->lines + strlen(unit->lines);
    int cut;
    for (const char *line = unit->lines, *next; line < stop; line = next) {
        const char *last = row_end(r, line, stop, &cut);
        next = last ? last + 1 : stop;
        if (is_blank(line, (size_t)(next - line)))
            continue;
        qn__watch_unit *one = qn__watch_unit_make(unit->file, number++, err);
        if (one)
            **end = one;
        if (!one || !(one->lines = qn__copy_unquoted(line, (size_t)(next - line), 0, err)))
            return QN_MEMORY;
        *end = &one->next;
        one->status = read_lines(r, one);
        qn__watch_answer(&r->w->units, one);
    }
    return QN_OK;
}

static int must_split(const qn__watch_unit *u) {
    return !u->skip && u->items > 1 && u->status != QN_OK && qn__watch_is_bad_item(u->status);
}

static qn_status store(rows *r, qn_error *err) {
    qn__watch_unit *taken = qn__watch_take(&r->w->units, 1), *all = NULL, **end = &all;
    qn_status status = QN_OK;
    while (taken && status == QN_OK) {
        qn__watch_unit *unit = taken;
        taken = unit->next;
        unit->next = NULL;
        if (must_split(unit)) {
            status = split(r, unit, &end, err);
            qn__watch_unit_free(unit);
            continue;
        }
        *end = unit;
        end = &unit->next;
    }
    if (status == QN_OK && all)
        status = qn__watch_store(r->w, all, err);
    qn__watch_free_all(all);
    qn__watch_free_all(taken);
    return status;
}

/* -------------------------------------------------------------------------------------- the file
 */

static qn_status refuse_file(const rows *r, const char *what, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%.400s", r->w->options.path);
    return qn__remedy(err, QN_INPUT,
                      "rows are told apart by their numbers: name another table for the answers");
}

static qn_status refuse_binary(const rows *r, qn_error *err) {
    qn__fail(err, QN_INPUT, "this is not a text, and so has no rows");
    qn__at(err, "%.400s", r->w->options.path);
    return qn__remedy(err, QN_INPUT,
                      "give CSV or a JSON object a line; quern predict reads other formats");
}

/* A file that only grows keeps the numbers of its rows. */
static qn_status check_growth(const rows *r, qn_error *err) {
    struct stat now, named;
    if (is_stream(r))
        return QN_OK;
    if (fstat(r->file, &now) != 0)
        return qn__fail_errno(err, "read", r->w->options.path);
    if (now.st_size < r->at)
        return refuse_file(r, "the file became shorter", err);
    if (stat(r->w->options.path, &named) == 0 &&
        (named.st_ino != now.st_ino || named.st_dev != now.st_dev))
        return refuse_file(r, "another file took the place of this one", err);
    return QN_OK;
}

/* Drops what is taken, and appends what can be read at once. */
static qn_status read_more(rows *r, size_t *got, qn_error *err) {
    char bytes[READ];
    *got = 0;
    const size_t left = r->left.size - r->taken;
    if (r->taken > 0)
        memmove(r->left.data, r->left.data + r->taken, left);
    r->left.size = left;
    r->taken = 0;
    if (left > LONGEST)
        return refuse_file(r, "a line has more than 256 MiB", err);
    ssize_t size;
    do
        size = read(r->file, bytes, sizeof bytes);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno == EAGAIN ? QN_OK : qn__fail_errno(err, "read", r->w->options.path);
    if (size == 0) {
        r->ended |= is_stream(r) || r->w->options.once;
        return QN_OK;
    }
    if (r->at == 0 && memchr(bytes, 0, (size_t)size))
        return refuse_binary(r, err);
    for (ssize_t k = 0; k < size; ++k) /* rows are texts */
        bytes[k] = bytes[k] ? bytes[k] : ' ';
    *got = (size_t)size;
    r->at += size;
    qn__text_add(&r->left, "%.*s", (int)size, bytes);
    return r->left.failed ? qn__fail_memory(err, r->left.capacity, 1) : QN_OK;
}

/* The table has answers to rows that the file does not have. */
static qn_status check_known(const rows *r, qn_error *err) {
    return r->next <= r->last
               ? refuse_file(r, "the file has fewer rows than the table has answers to", err)
               : QN_OK;
}

static qn_status open_rows(rows *r, qn_error *err) {
    const qn_watch_options *o = &r->w->options;
    qn_status status = qn__watch_last(r->w, o->path, NULL, &r->last, err);
    if (status != QN_OK)
        return status;
    if (strcmp(o->path, "-") == 0) {
        r->next = r->last + 1;
        r->last = -1;
        r->file = STDIN_FILENO;
        return QN_OK;
    }
    r->file = open(o->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (r->file < 0)
        return qn__fail_errno(err, "open", o->path);
    if (o->poll)
        return QN_OK;
    r->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (r->inotify >= 0)
        (void)inotify_add_watch(r->inotify, o->path,
                                IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF | IN_ATTRIB);
    return QN_OK;
}

/* Waits for more to read, an answer or the end: 1. */
static int wait_for(rows *r, size_t got) {
    char events[4096];
    const int space = qn__watch_has_space(&r->w->units);
    const double look = is_stream(r) ? -1 : qn__watch_poll_seconds(r->w);
    if (!space)
        return qn__watch_wait(r->w, -1, -1);
    if (r->ended) /* only answers are missing */
        return qn__watch_wait(r->w, -1, -1);
    const int stop = qn__watch_wait(r->w, is_stream(r) ? r->file : r->inotify, got ? 0 : look);
    if (r->inotify >= 0)
        while (read(r->inotify, events, sizeof events) > 0)
            continue;
    return stop;
}

static qn_status go_on(rows *r, qn_error *err) {
    qn_status status = QN_OK;
    int some = 0;
    for (size_t got = 1; status == QN_OK;) {
        while (status == QN_OK && qn__watch_has_space(&r->w->units)) {
            status = submit_some(r, &some, err);
            if (!some)
                break;
        }
        if (status == QN_OK)
            status = store(r, err);
        if (status != QN_OK || (r->ended && !some && qn__watch_is_idle(&r->w->units)))
            break;
        if (wait_for(r, got + (size_t)some))
            break;
        if (some || r->ended)
            continue;
        status = read_more(r, &got, err);
        if (status == QN_OK && got == 0)
            status = check_growth(r, err);
        if (status == QN_OK && got == 0 && r->left.size == r->taken)
            status = check_known(r, err);
    }
    return status;
}

qn_status qn__watch_rows(qn_watch *w, qn_error *err) {
    rows r = {.w = w, .file = -1, .inotify = -1, .last = -1};
    qn_status status = open_rows(&r, err);
    if (status == QN_OK)
        status = go_on(&r, err);
    while (!qn__watch_is_idle(&w->units)) {
        qn__watch_wait_answer(w);
        if (status == QN_OK)
            status = store(&r, err);
        else
            qn__watch_free_all(qn__watch_take(&w->units, 0));
    }
    qn__text_release(&r.left);
    qn__free(r.header);
    if (r.inotify >= 0)
        close(r.inotify);
    if (r.file > STDERR_FILENO)
        close(r.file);
    return status;
}
