/* quern data split: a data file cut into parts. */

#include "command.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include "sources.h"
#include "written.h"
#include <quern/convert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 16, NAME_CAPACITY = 64, PATH_CAPACITY = 4096 };
/* Shares have nine digits after the point. */
#define WHOLE UINT64_C(1000000000)

typedef struct part {
    char name[NAME_CAPACITY], out[PATH_CAPACITY], labels[PATH_CAPACITY];
} part;

typedef struct parts {
    uint32_t count;
    uint64_t share[MOST_PARTS];
    part part[MOST_PARTS];
} parts;

typedef struct split_flags {
    source_flags from;
    written_flags to;
    const char *parts;
    uint64_t seed, threads;
    int stratify, quiet, json;
} split_flags;

#define AT(member) .place = offsetof(split_flags, member)

static const option split_options[] = {
    {.heading = "Options",
     ROW_TEXT("parts", parts, "LIST",
              "names and shares of the parts, as train=0.8,test=0.2; the shares have the sum 1; "
              "required")},
    {.more = written_options, AT(to)},
    {ROW_SEED(seed, "seed; another one puts other items into a part")},
    {ROW_FLAG("stratify", stratify,
              "cut each class by itself, so that all parts have about the same share of it")},
    {ROW_READERS(threads)},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "print one JSON object for each part instead")},
    SOURCE_FILE_OPTIONS(offsetof(split_flags, from)),
    {.name = NULL}};

/* ------------------------------------------------------------------ --parts */

/* A decimal number from 0 to 1 as a whole number of billionths; 0: it is none. */
static uint64_t read_share(const char *text, size_t size) {
    uint64_t value = 0;
    int decimals = -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || decimals == 9 || value > WHOLE)
            return 0;
        value = 10 * value + (uint64_t)(text[i] - '0');
        decimals += decimals >= 0;
    }
    for (int i = decimals < 0 ? 0 : decimals; i < 9; i++)
        value *= 10;
    return value <= WHOLE ? value : 0;
}

static int is_known(const parts *all, const char *name) {
    for (uint32_t i = 0; i < all->count; i++)
        if (strcmp(all->part[i].name, name) == 0)
            return 1;
    return 0;
}

static int read_part(const char *from, size_t size, parts *all) {
    static const char remedy[] = "write names and shares, as --parts train=0.8,test=0.2";
    const char *equals = memchr(from, '=', size);
    const size_t length = equals ? (size_t)(equals - from) : 0;
    const int word = (int)(size < 60 ? size : 60);
    if (length > 0 && memchr(from, '/', length))
        return message_usage("choose a name without it; a folder stands in -o, as -o parts/%.csv",
                             "--parts: \"%.*s\": the name of a part has a /", word, from);
    if (length == 0 || length >= NAME_CAPACITY)
        return message_usage(remedy, "--parts: \"%.*s\" is not a name and share", word, from);
    if (all->count == MOST_PARTS)
        return message_usage("cut into fewer", "--parts: there are more than %d parts", MOST_PARTS);
    part *p = &all->part[all->count];
    snprintf(p->name, sizeof p->name, "%.*s", (int)length, from);
    const uint64_t share = read_share(equals + 1, size - length - 1);
    if (share == 0)
        return message_usage("a share is a number above 0 and up to 1, with at most 9 digits "
                             "after the point",
                             "--parts: \"%.*s\" has no share", word, from);
    if (is_known(all, p->name))
        return message_usage("give each part its own name", "--parts: \"%s\" stands there twice",
                             p->name);
    all->share[all->count++] = share;
    return -1;
}

static int read_parts(const char *text, parts *all) {
    uint64_t sum = 0;
    int code = -1;
    for (const char *at = text; code < 0;) {
        const size_t size = strcspn(at, ",");
        code = read_part(at, size, all);
        if (code < 0)
            sum += all->share[all->count - 1];
        if (at[size] == '\0')
            break;
        at += size + 1;
    }
    if (code >= 0)
        return code;
    if (sum != WHOLE)
        return message_usage("the parts together are the whole: 1/3 is written as 0.333333333, "
                             "0.333333333 and 0.333333334",
                             "--parts: the shares have the sum %.9g, not 1", (double)sum / 1e9);
    return -1;
}

/* Puts the name of a part in the place of %. */
static int fill_in(const char *pattern, const char *given, const char *name,
                   char path[PATH_CAPACITY]) {
    const char *gap = strchr(pattern, '%');
    if (!gap)
        return message_usage("write % where the name of the part belongs, as -o heart-%.csv",
                             "%s has no %% for the names of the parts", given);
    if (strchr(gap + 1, '%'))
        return message_usage("write it once, as -o heart-%.csv", "%s has more than one %%", given);
    if (strlen(pattern) + strlen(name) > PATH_CAPACITY)
        return message_usage("give a shorter one", "the path of %s is too long", given);
    memcpy(path, pattern, (size_t)(gap - pattern));
    strcpy(path + (gap - pattern), name);
    strcat(path, gap + 1);
    return -1;
}

static int check_flags(const split_flags *f, parts *all) {
    if (!f->parts)
        return message_usage("add --parts train=0.8,test=0.2", "--parts LIST is required");
    if (f->json && f->quiet)
        return message_usage("leave one of them out", "--quiet does nothing with --json");
    int code = read_parts(f->parts, all);
    if (code < 0)
        code = written_check(&f->to);
    if (code < 0 && written_is_stream(&f->to))
        code =
            message_usage("name files, as -o heart-%.csv", "-o - has no space for several parts");
    for (uint32_t i = 0; i < all->count && code < 0; i++) {
        code = fill_in(f->to.out, "-o", all->part[i].name, all->part[i].out);
        if (code < 0 && f->to.labels)
            code = fill_in(f->to.labels, "--output-labels", all->part[i].name, all->part[i].labels);
    }
    return code;
}

/* ------------------------------------------------------------------ the command */

static int check_files(const split_flags *f, const parts *all) {
    paths files = {.count = 0};
    paths_add_files(&files, "FILE", "--labels", source_data(&f->from));
    for (uint32_t i = 0; i < all->count; i++) {
        paths_add(&files, QN_FILE_WRITE, "-o", all->part[i].out);
        paths_add(&files, QN_FILE_WRITE, "--output-labels",
                  f->to.labels ? all->part[i].labels : NULL);
    }
    return paths_check(&files, 1);
}

static int write_files(const split_flags *f, const parts *all, qn_data *const *made) {
    const char *out[MOST_PARTS], *labels[MOST_PARTS];
    const qn_data *data[MOST_PARTS];
    qn_error err;
    for (uint32_t i = 0; i < all->count; i++) {
        data[i] = made[i];
        out[i] = all->part[i].out;
        labels[i] = f->to.labels ? all->part[i].labels : NULL;
    }
    if (qn_data_write_parts(data, all->count, f->to.format, out, labels, &err) != QN_OK)
        return message_error(&err);
    for (uint32_t i = 0; i < all->count; i++) {
        const written_flags to = {out[i], f->to.format, labels[i]};
        written_tell(data[i], &to, all->part[i].name, f->quiet, f->json);
    }
    return -1;
}

static int write_all(const split_flags *f, const parts *all, const qn_data *data) {
    qn_data *made[MOST_PARTS] = {NULL};
    qn_error err;
    if (qn_data_split(data, all->share, all->count, f->seed, f->stratify, made, &err) != QN_OK)
        return message_error(&err);
    const int code = write_files(f, all, made);
    for (uint32_t i = 0; i < all->count; i++)
        qn_data_close(made[i]);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    split_flags f = {.seed = 1, .from = {.keep_doubles = 1}};
    arguments given;
    qn_data *data = NULL;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    parts *all = calloc(1, sizeof *all);
    if (!all)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    source_take_operands(&f.from, &given);
    code = check_flags(&f, all);
    if (code < 0)
        code = check_files(&f, all);
    if (code < 0)
        code = source_open(source_data(&f.from), &f.from, f.threads, NULL, &data);
    if (code < 0)
        code = write_all(&f, all, data);
    qn_data_close(data);
    free(all);
    return code < 0 ? EXIT_DONE : code;
}

const command data_split_command = {
    .name = "data split",
    .summary = "cut a data file into parts, such as training and test",
    .usage = "quern data split FILE... --parts train=0.8,test=0.2 -o NAME-%.csv",
    .about = "Each item goes to one part, and a part keeps the order of the file. The items of a "
             "part depend on the seed, the number of items and the shares alone: the same file "
             "gives the same parts on every machine. % in the name of -o becomes the name of the "
             "part. All parts are complete before the first is put in place: a failed "
             "command writes none.",
    .operand = "FILE",
    .most_operands = MOST_FILES + 1,
    .options = split_options,
    .examples = "quern data split t.csv --parts train=0.8,test=0.2 --stratify -o t-%.csv\n"
                "quern data split t.npz --parts a=0.5,b=0.5 --seed 7 -o half-%.npz",
    .run = run};
