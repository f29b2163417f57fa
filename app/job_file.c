#include "job_file.h"
#include "interrupt.h"
#include "message.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_FILE = 1 << 20 };

const char *const job_field_names[JOB_FIELDS] = {
    [JOB_ENGINE] = "engine",       [JOB_ID] = "id",           [JOB_NAME] = "name",
    [JOB_SPACE] = "namespace",     [JOB_KIND] = "kind",       [JOB_SUBMITTED] = "submitted",
    [JOB_DIRECTORY] = "directory", [JOB_MODEL] = "model",     [JOB_LOG] = "log",
    [JOB_COMMAND] = "command",     [JOB_PROCESS] = "process", [JOB_ARRAY] = "array",
    [JOB_BEGAN] = "began"};

void job_record_free(job_record *record) {
    for (int i = 0; i < JOB_FIELDS; i++) {
        free(record->text[i]);
        record->text[i] = NULL;
    }
}

/* ---------------------------------------------------------------- files */

char *job_read(const char *path, size_t limit) {
    FILE *from = fopen(path, "re");
    char *text = from ? malloc(limit + 1) : NULL;
    size_t n = text ? fread(text, 1, limit + 1, from) : 0;
    int whole = from && !ferror(from) && n <= limit;
    if (from)
        fclose(from);
    if (!text || !whole) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

int job_write(const char *path, const char *text) {
    size_t size = strlen(path) + 16;
    char *beside = malloc(size);
    if (!beside)
        return -1;
    snprintf(beside, size, "%s.XXXXXX", path);
    interrupt_hold(); /* an interruption must not leave part of a file */
    int file = mkstemp(beside);
    FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
    int good = to && fputs(text, to) >= 0 && fflush(to) == 0 && fsync(file) == 0;
    int saved = errno;
    if (to)
        good = fclose(to) == 0 && good;
    else if (file >= 0)
        close(file);
    if (good && rename(beside, path) != 0) {
        saved = errno;
        good = 0;
    }
    if (!good && file >= 0)
        unlink(beside);
    interrupt_release();
    free(beside);
    errno = saved;
    return good ? 0 : -1;
}

/* Creates a folder and its parents. */
static int make_folders(char *path) {
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            int failed = mkdir(path, 0777) != 0 && errno != EEXIST;
            *p = '/';
            if (failed)
                return -1;
        }
    /* command lines may be private */
    return mkdir(path, 0700) != 0 && errno != EEXIST ? -1 : 0;
}

static int no_folder(const char *path, const char *why) {
    char what[4500];
    snprintf(what, sizeof what, "cannot keep what was submitted: %s", why);
    return message_fail(QN_IO, what, path, "let QUERN_JOBS name a folder that can be written");
}

char *job_folder(void) {
    const char *own = getenv("QUERN_JOBS"), *state = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    char path[4096];
    int n;
    if (own && *own)
        n = snprintf(path, sizeof path, "%s", own);
    else if (state && *state == '/')
        n = snprintf(path, sizeof path, "%s/quern/jobs", state);
    else if (home && *home)
        n = snprintf(path, sizeof path, "%s/.local/state/quern/jobs", home);
    else {
        no_folder("", "neither QUERN_JOBS nor HOME is set");
        return NULL;
    }
    if (n < 0 || (size_t)n >= sizeof path || make_folders(path) != 0) {
        no_folder(path, (size_t)n >= sizeof path ? "its name is too long" : strerror(errno));
        return NULL;
    }
    /* jobs run elsewhere and need the absolute path */
    char *whole = realpath(path, NULL);
    if (!whole)
        no_folder(path, strerror(errno));
    return whole;
}

char *job_path(const char *folder, const job_record *record, const char *ending) {
    const char *engine = record->text[JOB_ENGINE], *id = record->text[JOB_ID];
    size_t size = strlen(folder) + strlen(engine) + strlen(id) + strlen(ending) + 3;
    char *path = malloc(size);
    if (!path)
        return NULL;
    int n = snprintf(path, size, "%s/", folder);
    snprintf(path + n, size - (size_t)n, "%s-%s%s", engine, id, ending);
    for (char *p = path + n; *p; p++)
        if (*p == '/')
            *p = '.'; /* NAMESPACE/NAME */
    return path;
}

/* ----------------------------------------------------------------------------- objects of texts */

static void put_text(FILE *to, const char *text) {
    fputc('"', to);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(to, "\\u%04x", *p);
        else
            fputc(*p, to);
    }
    fputc('"', to);
}

int job_remember(const char *folder, const job_record *record) {
    char *text = NULL, *path = job_path(folder, record, ".json");
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    int failed = !to || !path;
    for (int i = 0, count = 0; i < JOB_FIELDS && to; i++)
        if (record->text[i]) {
            fprintf(to, "%s\"%s\": ", count++ == 0 ? "{" : ",\n ", job_field_names[i]);
            put_text(to, record->text[i]);
        }
    if (to) {
        fputs("}\n", to);
        failed = fclose(to) != 0 || failed;
    }
    int code = -1;
    if (failed)
        code = message_fail(QN_MEMORY, "out of memory", "", "");
    else if (job_write(path, text) != 0)
        code = no_folder(path, strerror(errno));
    free(text);
    free(path);
    return code;
}

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t\r\n"); }

/* Parses in place the text at *at, its first quote; *at moves after it. NULL: none. It only has to
 * parse the output of put_text. */
static char *take_text(char **at) {
    char *from = *at, *to, *text;
    if (*from++ != '"')
        return NULL;
    for (text = to = from; *from && *from != '"'; from++) {
        unsigned code;
        char digits[5] = "";
        if (*from != '\\') {
            *to++ = *from;
        } else if (*++from == 'u') {
            snprintf(digits, sizeof digits, "%.4s", from + 1);
            code = (unsigned)strtoul(digits, NULL, 16);
            if (strspn(digits, "0123456789abcdefABCDEF") != 4 || code == 0 || code > 0x7f)
                return NULL;
            *to++ = (char)code;
            from += 4;
        } else if (*from == '"' || *from == '\\' || *from == '/') {
            *to++ = *from;
        } else {
            return NULL;
        }
    }
    if (*from != '"')
        return NULL;
    *at = from + 1;
    *to = '\0';
    return text;
}

/* Fills the record from the text of a file, which it modifies. 1 on success. */
static int read_record(char *text, job_record *record) {
    char *p = text + (skip_blanks(text) - text);
    if (*p++ != '{')
        return 0;
    for (;;) {
        p += skip_blanks(p) - p;
        char *key = take_text(&p);
        p += skip_blanks(p) - p;
        if (!key || *p != ':')
            return 0;
        *p++ = '\0';
        p += skip_blanks(p) - p;
        char *value = take_text(&p);
        if (!value)
            return 0;
        char next = *(p += skip_blanks(p) - p);
        for (int i = 0; i < JOB_FIELDS; i++)
            if (strcmp(key, job_field_names[i]) == 0 && !record->text[i])
                record->text[i] = strdup(value);
        if (next == '}')
            return record->text[JOB_ENGINE] && record->text[JOB_ID];
        if (next != ',')
            return 0;
        p++;
    }
}

static int is_record(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".json") == 0;
}

static int by_time(const void *a, const void *b) {
    const job_record *x = a, *y = b;
    const char *s = x->text[JOB_SUBMITTED], *t = y->text[JOB_SUBMITTED];
    int order = strcmp(s ? s : "", t ? t : "");
    return order ? order : strcmp(x->text[JOB_ID], y->text[JOB_ID]);
}

int job_list(const char *folder, job_record **list, size_t *count) {
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_record, NULL);
    *count = 0;
    *list = n >= 0 ? calloc((size_t)n + 1, sizeof **list) : NULL;
    if (n < 0)
        return no_folder(folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[4400];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        char *text =
            length > 0 && (size_t)length < sizeof path ? job_read(path, LONGEST_FILE) : NULL;
        free(entries[i]);
        if (!*list || !text) {
            free(text);
            continue;
        }
        if (read_record(text, &(*list)[*count]))
            ++*count;
        else
            job_record_free(&(*list)[*count]);
        free(text);
    }
    free(entries);
    if (!*list)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    qsort(*list, *count, sizeof **list, by_time);
    return -1;
}

void job_list_free(job_record *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        job_record_free(&list[i]);
    free(list);
}
