/* What is read as one table: lists of files, patterns, and the columns of folders. The first two
 * lines of an input are the folders of two files, the third is a pattern, the rest is a list. */
#include "fuzz/fuzz.h"

#include <limits.h>
#include <quern/data.h>
#include <quern/files.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 2 };

static const char table[] = "y,x\n1,2\n0,3\n";
static const char *top;
static char folder[FILES][PATH_MAX], file[FILES][PATH_MAX], list[64];

static void remove_files(void) {
    for (int i = 0; i < FILES; i++) {
        unlink(file[i]);
        rmdir(folder[i]);
    }
}

static void remove_all(void) {
    remove_files();
    unlink(list);
}

static void make_top(void) {
    if (top)
        return;
    top = fuzz_folder();
    snprintf(list, sizeof list, "%s/list", top);
    atexit(remove_all);
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *to = fopen(path, "we");
    FUZZ_MUST(to && fwrite(bytes, 1, size, to) == size && fclose(to) == 0);
}

/* Cuts the next line off *at. */
static char *line_of(char **at) {
    char *line = *at;
    *at += strcspn(*at, "\n");
    if (**at)
        *(*at)++ = '\0';
    return line;
}

/* A folder of that name with a table, if there can be one. */
static void make_file(int i, const char *name) {
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        name = "none";
    snprintf(folder[i], sizeof folder[i], "%s/%.200s", top, name);
    snprintf(file[i], sizeof file[i], "%s/t", folder[i]);
    if (mkdir(folder[i], 0700) == 0)
        write_file(file[i], table, sizeof table - 1);
}

/* Nothing outside the folder is read. */
static int leads_outside(const char *text) { return strstr(text, "..") || strstr(text, "//"); }

static int has_absolute(const char *text) {
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (*at == '/')
            return 1;
    }
    return 0;
}

static void check(const char *path) {
    const qn_file files[] = {
        {.size = sizeof(qn_file), .path = path, .name = "--data", .use = QN_FILES_READ},
        {.size = sizeof(qn_file), .path = file[1], .name = "-o", .use = QN_FILE_WRITE}};
    qn_data_options options;
    qn_data *data = NULL;
    qn_error err = {0};
    qn_data_options_init(&options);
    options.threads = 1;
    const qn_status status = qn_data_open_files(&path, 1, &options, &data, &err);
    if (status == QN_OK) {
        FUZZ_MUST(qn_data_items(data) > 0 && qn_data_features(data) > 0);
        qn_data_close(data);
    } else {
        fuzz_check_refusal(status, data, &err);
        FUZZ_MUST(status == QN_INPUT || status == QN_IO || status == QN_MEMORY);
    }
    const qn_status own = qn_files_compare(files, 2, &err);
    FUZZ_MUST(own == QN_OK || own == QN_USAGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = fuzz_text(bytes, size), *at = text, path[PATH_MAX];
    make_top();
    for (int i = 0; i < FILES; i++)
        make_file(i, line_of(&at));
    const char *pattern = line_of(&at);
    snprintf(path, sizeof path, "%s/%.1000s", top, pattern);
    if (!leads_outside(pattern))
        check(path);
    const size_t before = (size_t)(at - text);
    if (before < size && !leads_outside(at) && !has_absolute(at)) {
        write_file(list, bytes + before, size - before);
        snprintf(path, sizeof path, "@%s", list);
        check(path);
    }
    remove_files();
    free(text);
    return 0;
}
