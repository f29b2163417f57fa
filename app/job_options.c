#include "job_options.h"
#include "manual.h"
#include "message.h"
#include "suggest.h"
#include "toml.h"
#include <inttypes.h>
#include <quern/files.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20, NAMES = 128 };

typedef struct job {
    const command *self;
    const char *path;
    const option *early;
    void *values;
    arguments *given;
    job_options *kept;
    arguments before; /* those of the command line alone */
} job;

__attribute__((format(printf, 4, 5))) static int
refuse(const job *j, const toml_value *v, const char *remedy, const char *format, ...) {
    char what[600], where[600];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(where, sizeof where, "%.500s, line %" PRIu32, j->path, v->line);
    return message_fail(QN_USAGE, what, where, remedy);
}

/* ------------------------------------------------------------------ texts */

static int is_path(const option *o) {
    const completes_to to = manual_completes(o);
    return to == COMPLETE_FILES || to == COMPLETE_FOLDERS;
}

/* "BEFORE=VALUE", or VALUE alone; a path is relative to the file. NULL: out of memory. */
static char *keep(const job *j, const toml_value *v, const option *o, const char *before) {
    const char *value = v->text;
    const char *slash = strrchr(j->path, '/');
    const int folder = is_path(o) && slash && *value != '/' && !strstr(value, "://")
                           ? (int)(slash + 1 - j->path)
                           : 0;
    struct job_option *more = realloc(j->kept->at, (j->kept->count + 1) * sizeof *more);
    if (!more)
        return NULL;
    j->kept->at = more;
    const size_t size = strlen(before) + (size_t)folder + strlen(value) + 2;
    char *text = malloc(size);
    if (!text)
        return NULL;
    snprintf(text, size, "%s%s%.*s%s", before, *before ? "=" : "", folder, j->path, value);
    more[j->kept->count++] = (struct job_option){text, o->name, v->line};
    return text;
}

static const job_options *last;

const char *job_options_place(const char *word, const char *name) {
    static char place[600];
    const size_t size = name ? strlen(name) : 0;
    for (size_t i = 0; last && i < last->count; i++) {
        const struct job_option *o = &last->at[i];
        if (strcmp(o->name, word) != 0 ||
            (name && (strncmp(o->text, name, size) != 0 || o->text[size] != '=')))
            continue;
        snprintf(place, sizeof place, "%.500s, line %" PRIu32, last->path, o->line);
        return place;
    }
    return "";
}

void job_options_free(job_options *kept) {
    for (size_t i = 0; i < kept->count; i++)
        free(kept->at[i].text);
    free(kept->at);
    free(kept->path);
    *kept = (job_options){.count = 0};
    last = NULL;
}

/* [600, 800] as "600x800". */
static void join_lengths(char *text) {
    for (char *p = text; *p; p++)
        if (*p == ' ')
            *p = 'x';
}

/* ------------------------------------------------------------------ options */

static int is_shape(const option *o) { return o->value && strcmp(o->value, "SHAPE") == 0; }

/* A time, which may be a number: of seconds, or of iterations. */
static int is_time(const option *o) {
    return o->value && (strcmp(o->value, "SECONDS") == 0 || strcmp(o->value, "TIME|N") == 0);
}

/* Whether a value of the file suits an option, and what to write instead. */
static int suits(const option *o, toml_kind kind, const char **instead) {
    const int number = kind == TOML_INTEGER || kind == TOML_FLOAT;
    switch (o->kind) {
    case OPTION_FLAG:
        *instead = "true or false";
        return kind == TOML_BOOLEAN;
    case OPTION_COUNT:
        *instead = "a whole number";
        return kind == TOML_INTEGER;
    case OPTION_FLOAT:
        *instead = "a number";
        return number;
    case OPTION_TEXTS:
        *instead = is_path(o) ? "a path in quotation marks" : "a number";
        return is_path(o) ? kind == TOML_TEXT : number || kind == TOML_TEXT;
    default:
        *instead = is_shape(o)  ? "lengths, such as [600, 800]"
                   : is_time(o) ? "a number, or a text in quotation marks"
                                : "a text in quotation marks";
        return kind == TOML_TEXT || (is_time(o) && number) ||
               (is_shape(o) && (kind == TOML_INTEGERS || kind == TOML_INTEGER));
    }
}

static int unknown(const job *j, const toml_value *v, const char *name) {
    const char *names[NAMES], *near;
    char remedy[200];
    option_row row;
    size_t count = 0;
    for (int i = 0; count < NAMES && options_row(j->self->options, i, &row); i++)
        names[count++] = row.option->name;
    near = suggest(name, names, count);
    snprintf(remedy, sizeof remedy, "%s%s%squern %s --help lists the options",
             near ? "did you mean \"" : "", near ? near : "", near ? "\"? " : "", j->self->name);
    return refuse(j, v, remedy, "there is no option \"%.100s\"", name);
}

/* Whether the command line gives this NAME of an option that can be repeated. */
static int is_named(const text_list *list, const char *name) {
    const size_t size = strlen(name);
    for (uint32_t i = 0; i < list->count; i++)
        if (strncmp(list->at[i], name, size) == 0 && list->at[i][size] == '=')
            return 1;
    return 0;
}

/* Stores a text; a message about it names its line. */
static int add(const job *j, const toml_value *v, int index, const char *text) {
    qn_error error = {0};
    if (!text)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    qn_error *before = message_hold(&error);
    const int code = options_add(j->self, index, text, j->values, j->given);
    message_hold(before);
    return code < 0 ? -1 : refuse(j, v, error.remedy, "%s", error.what);
}

static int is_early(const job *j, const option *o) {
    for (const option *e = j->early; e && e->name; e++)
        if (e == o)
            return 1;
    return 0;
}

/* KEY = VALUE before the first table. */
static int take_option(const job *j, const toml_value *v) {
    const char *instead;
    option_row row;
    const int index = options_find(j->self->options, v->key, &row);
    if (index < 0)
        return unknown(j, v, v->key);
    const option *o = row.option;
    if (is_early(j, o))
        return refuse(j, v, "write it on the command line", "--%s is needed before files are read",
                      o->name);
    if (o->kind == OPTION_TEXTS) {
        char remedy[200];
        snprintf(remedy, sizeof remedy, "write [%s], and below it lines such as NAME = VALUE",
                 o->name);
        return refuse(j, v, remedy, "\"%s\" is a table", o->name);
    }
    if (!suits(o, v->kind, &instead)) {
        char remedy[200];
        snprintf(remedy, sizeof remedy, "write %s", instead);
        return refuse(j, v, remedy, "\"%s\" has a value of another kind", o->name);
    }
    if (options_given(j->self, &j->before, o->name) ||
        (v->kind == TOML_BOOLEAN && strcmp(v->text, "false") == 0))
        return -1;
    char *text = keep(j, v, o, "");
    if (text && v->kind == TOML_INTEGERS)
        join_lengths(text);
    return add(j, v, index, text);
}

/* A line of the table of an option that can be repeated. */
static int take_part(const job *j, const toml_value *v) {
    const char *instead;
    option_row row;
    const int index = options_find(j->self->options, v->table, &row);
    if (index < 0 || row.option->kind != OPTION_TEXTS)
        return -1; /* its header was refused */
    if (strchr(v->key, '=') || !*v->key)
        return refuse(j, v, "write a name of the kernel", "a key of [%s] is not a name", v->table);
    if (!suits(row.option, v->kind, &instead)) {
        char remedy[200];
        snprintf(remedy, sizeof remedy, "write %s", instead);
        return refuse(j, v, remedy, "\"%.100s\" of [%s] has a value of another kind", v->key,
                      v->table);
    }
    if (is_named((const text_list *)((char *)j->values + row.base + row.option->place), v->key))
        return -1;
    return add(j, v, index, keep(j, v, row.option, v->key));
}

static int take_table(const job *j, const toml_value *v) {
    option_row row;
    if (options_find(j->self->options, v->key, &row) < 0)
        return unknown(j, v, v->key);
    if (row.option->kind == OPTION_TEXTS)
        return -1;
    char remedy[200];
    snprintf(remedy, sizeof remedy, "write %s = VALUE before the first table", v->key);
    return refuse(j, v, remedy, "\"%s\" is not a table", v->key);
}

/* ------------------------------------------------------------------ the file */

static int take_all(const job *j, const toml_file *file) {
    int code = -1;
    for (size_t i = 0; code < 0 && i < file->count; i++) {
        const toml_value *v = &file->at[i];
        code = v->kind == TOML_TABLE ? take_table(j, v)
               : *v->table           ? take_part(j, v)
                                     : take_option(j, v);
    }
    return code;
}

int job_options_read(const command *self, const char *path, const option *early, void *values,
                     arguments *given, job_options *kept) {
    toml_file file = {.at = NULL};
    qn_error err;
    char *text = NULL;
    size_t size = 0;
    const job j = {self, path, early, values, given, kept, *given};
    if (qn_file_read(path, LONGEST, &text, &size, &err) != QN_OK)
        return message_error(&err);
    const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const qn_status status = toml_read(text + mark, size - mark, path, &file, &err);
    qn_file_bytes_free(text);
    kept->path = strdup(path);
    last = kept->path ? kept : NULL;
    const int code = status == QN_OK ? take_all(&j, &file) : message_error(&err);
    toml_release(&file);
    return code;
}
