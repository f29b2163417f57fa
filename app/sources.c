#include "sources.h"
#include "message.h"
#include "progress.h"
#include "ranks.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) .place = offsetof(source_flags, member)
#define AGAIN(member) .again = offsetof(source_flags, member)

const option source_label_options[] = {
    {ROW_FILES("labels", labels, "FILE",
               "IDX, NPY: file of the labels; of several files, one for each, in the same order")},
    {ROW_TEXT(
         "label", label, "COLUMN",
         "tables: column of the labels: its name, a number from 1, or last; a list such as a,b "
         "or 3-7: labels 0 and 1 of each item"),
     .fallback = "the first"},
    {ROW_TEXT(
         "query", query, "SQL",
         "SQLite, PostgreSQL: the rows to read: one SELECT with ORDER BY columns that tell all "
         "rows apart"),
     .fallback = "SQLite: the only table, by its rowid"},
    {.name = NULL}};

const option source_parts_options[] = {
    {ROW_FILES("data-parts", parts, "LIST",
               "files of one table, of which each rank reads some; ranks that name other files "
               "read all that they name")},
    {.name = NULL}};

const option source_part_cache_options[] = {
    {.name = "part-cache",
     .kind = OPTION_COUNT,
     AT(part_cache),
     .value = "MIB",
     .low = 1,
     .high = 1u << 30,
     .help = "with --data-parts: memory of a rank for values of other ranks",
     .fallback = "a quarter of what is available"},
    {.name = "data-copies",
     .kind = OPTION_COUNT,
     AT(data_copies),
     .value = "N",
     .low = 1,
     .high = 1u << 16,
     .help = "with --data-parts: ranks that have each part, so that N - 1 may end with their files",
     .fallback = "1"},
    {.name = NULL}};

const option source_weight_options[] = {
    {ROW_TEXT("weight", weight, "COLUMN",
              "tables: column of the weights of the training items, named as for --label; NPZ: the "
              "array; a weight says how much an item counts in losses"),
     .fallback = "none: all count equally"},
    {.name = NULL}};

static const option_word tasks[] = {
    {"auto", "whole numbers and texts are classes, other numbers are real labels"},
    {"classify", "each different label is a class"},
    {"regress", "labels are real numbers to predict"},
    {"next", "there are none: after each token of an item comes the next one"},
    {NULL, NULL}};
static const option_word headers[] = {{"auto", "by the lines below the first"},
                                      {"yes", "the first line holds names"},
                                      {"no", "the first line is an item"},
                                      {NULL, NULL}};

const option source_task_options[] = {
    {ROW_CHOICE("task", task, "WORD", "what the labels are"), .words = tasks, .fallback = "auto"},
    {.name = NULL}};

const option source_column_options[] = {
    {ROW_CHOICE("header", header, "WORD", "CSV: whether there is a header"), .words = headers,
     .fallback = "auto"},
    {ROW_TEXT("features", features, "LIST",
              "tables: read only these columns and the label: names, numbers from 1 or ranges such "
              "as 3-7, separated by commas"),
     .fallback = "all"},
    {ROW_TEXT("drop", drop, "LIST", "tables: leave these columns out"), .fallback = "none"},
    {ROW_TEXT(
         "category", category, "LIST",
         "tables: columns that hold categories although their cells are numbers, such as postal "
         "codes"),
     .fallback = "columns with more texts than numbers"},
    {ROW_TEXT("text", text, "LIST",
              "tables: columns of texts, such as reviews, whose words a network gets; none: no "
              "column"),
     .fallback = "columns of different texts of several words"},
    {ROW_TEXT("text-features", text_features, "LIST",
              "tables: what a network gets of columns of texts: words:1..2, chars:3..5 (within "
              "words), chars-across:3..5, or several"),
     .fallback = "words:1..2"},
    {ROW_TEXT("dates", dates, "LIST",
              "tables: what a network gets of dates: year, quarter, month, day, weekday, yearday, "
              "hour, minute, second, days since 1970"),
     .fallback = "year,month,weekday,days, and hour where there are times"},
    {ROW_TEXT("date-format", date_format, "FORMAT",
              "CSV: how dates are written, such as %d.%m.%Y or \"%m/%d/%Y %H:%M\""),
     .fallback = "ISO 8601: 2026-11-28, 2026-11-28T13:30:00"},
    {.name = NULL}};

const option source_token_options[] = {
    {ROW_TEXT(
         "tokens", tokens, "HOW",
         "texts, or the column of texts of a table: how they become tokens: bytes, chars, words, "
         "words:20000, bpe:8000, bpe:FILE, wordpiece:FILE, unigram:FILE or file:FILE; NPY, NPZ, "
         "BIN: ids: the whole numbers are tokens"),
     .fallback = "as the model says; without one, files hold other values"},
    {ROW_COUNT32(
         "context", context, 1, 1u << 24,
         "one row of tokens: an item has N of them and the next one, and begins N after the "
         "item before; a column of texts: an item has N tokens"),
     .fallback = "as the model says"},
    {.name = NULL}};

const option source_item_options[] = {
    {ROW_TEXT("item", item, "WHAT",
              "of a model of next tokens: what is an item: a line of the texts (line), or a row of "
              "the column --text (row)"),
     .fallback = "as many tokens as the model reads"},
    {.name = NULL}};

const option source_unlabelled_options[] = {
    {ROW_FLAG("unlabelled", unlabelled,
              "tables: no column is a label; images: folders are not classes")},
    {.name = NULL}};

const option source_test_options[] = {
    {ROW_FILES("test", test, "FILE",
               "test set, evaluated after each epoch; it never changes the model")},
    {ROW_FILES("test-labels", test_labels, "FILE", "IDX, NPY: labels of the test set")},
    {ROW_TEXT("test-query", test_query, "SQL", "SQLite, PostgreSQL: the rows of the test set")},
    {.name = NULL}};

const option source_image_options[] = {
    {ROW_TEXT(
         "shape", shape, "SHAPE",
         "CSV, IDX, NPY: the image that an item is: 28x28, or 3x32x32 with its channels first"),
     .fallback = "as the file says"},
    {ROW_TEXT(
         "resize", resize, "HOW",
         "images: scale all to HEIGHTxWIDTH, such as 32x32; or \"short 36 crop 32\", which keeps "
         "proportions and takes the middle; \"bilinear\" or \"bicubic\" after it is a filter of "
         "Pillow"),
     .fallback = "as they are"},
    {ROW_TEXT("masks", masks, "FOLDER",
              "images: the class of each pixel: a PNG file for each image, with its name, in grey "
              "or with a palette; masks of other sets: --valid-labels, --test-labels"),
     .fallback = "none"},
    {ROW_TEXT("ignore", ignore, "N", "masks: pixels of this number do not count"),
     .fallback = "255"},
    {ROW_FLAG("skip-broken", skip_broken,
              "images: leave out files that cannot be read, and say which")},
    {ROW_FLAG("no-cache", no_cache,
              "do not keep decoded images and tables of large text files in the cache folder, nor "
              "use those there")},
    {.name = NULL}};

/* What a rank opens, if it is the one that reads. */
typedef struct request {
    const char *path[MOST_FILES + 1];
    size_t paths;
    qn_data_options options;
    uint64_t first, items; /* of the built-in digits */
} request;

static qn_status draw_digits(void *user, qn_data **out, qn_error *err) {
    const request *r = user;
    return qn_data_synth_digits(EMBEDDED_SEED, r->first, r->items, out, err);
}

static void draw_decoded(void *user, uint64_t done, uint64_t all) {
    progress_count(user, "decoding", done, all);
}

static void note(const char *name, const qn_data *data) {
    if (qn_data_note(data) && ranks_is_writer())
        message_note("note: %s: %s", name, qn_data_note(data));
}

/* Opened once on each machine, or by the first rank for all. */
static int share(request *r, qn_data **out) {
    qn_error err;
    progress bar;
    *out = NULL;
    progress_init(&bar, message_is_quiet() || !ranks_is_writer());
    r->options.decoded = draw_decoded;
    r->options.decoded_user = &bar;
    const int from_first = ranks_data_from_first();
    const qn_status status =
        r->paths == 0 ? qn_data_share(ranks_cluster(), from_first, draw_digits, r, out, &err)
                      : qn_data_share_files(ranks_cluster(), from_first, r->path, r->paths,
                                            &r->options, out, &err);
    progress_clear(&bar);
    if (status != QN_OK)
        return ranks_failed(&err);
    note(r->path[0], *out);
    return -1;
}

source_files source_data(const source_flags *flags) {
    return (source_files){flags->data, flags->labels, &flags->data_more, &flags->labels_more};
}

source_files source_parts(const source_flags *flags) {
    return (source_files){flags->parts, flags->labels, &flags->parts_more, &flags->labels_more};
}

source_files source_test(const source_flags *flags) {
    return (source_files){flags->test, flags->test_labels, &flags->test_more,
                          &flags->test_labels_more};
}

source_files source_valid(const source_flags *flags) {
    return (source_files){flags->valid, flags->valid_labels, &flags->valid_more,
                          &flags->valid_labels_more};
}

void source_take_operands(source_flags *flags, const arguments *given) {
    flags->data = given->operand[0];
    flags->data_more.count = given->operands > 0 ? (uint32_t)given->operands - 1 : 0;
    for (int i = 1; i < given->operands; i++)
        flags->data_more.at[i - 1] = given->operand[i];
}

static request request_of(source_files files, const source_flags *flags, uint64_t threads,
                          const char *label) {
    request r = {.path = {files.path}, .paths = 1 + files.more->count};
    for (uint32_t i = 0; i < files.more->count; i++)
        r.path[i + 1] = files.more->at[i];
    qn_data_options_init(&r.options);
    const int masks = flags->masks != NULL; /* of other sets they take the place of labels */
    r.options.masks = !masks ? NULL : files.path == flags->data ? flags->masks : files.labels;
    r.options.ignore = r.options.masks || !masks ? flags->ignore : NULL;
    r.options.labels_path = masks && files.labels != flags->labels ? NULL : files.labels;
    r.options.labels_more = files.labels_more->at;
    r.options.labels_more_count = files.labels_more->count;
    r.options.label_column = flags->label;
    r.options.unlabelled = flags->unlabelled;
    r.options.task = flags->task;
    r.options.header = flags->header;
    r.options.features = flags->features;
    r.options.drop = flags->drop;
    r.options.classes = flags->outputs;
    r.options.threads = (int)threads;
    r.options.expected_label = label;
    r.options.category = flags->category;
    r.options.text = flags->text;
    r.options.text_features = flags->text_features;
    r.options.expected_text = flags->texts;
    r.options.dates = flags->dates;
    r.options.date_format = flags->date_format;
    r.options.expected_categories = flags->categories;
    r.options.weight = flags->expected_weight ? NULL : flags->weight;
    r.options.expected_weight = flags->expected_weight;
    r.options.skip_broken = flags->skip_broken;
    r.options.resize = flags->resize;
    r.options.expected_resize = flags->expected_resize;
    r.options.expected_rules = flags->expected_rules;
    r.options.tokens = flags->tokens;
    r.options.expected_tokens = flags->expected_tokens;
    r.options.expected_tokenizer = flags->expected_tokenizer;
    r.options.context = flags->context;
    r.options.item = flags->item;
    r.options.expected_context = flags->expected_context;
    r.options.no_cache = flags->no_cache;
    r.options.keep_doubles = flags->keep_doubles;
    r.options.expected_features = flags->expected_features;
    r.options.shape = flags->shape;
    r.options.query = flags->query;
    return r;
}

static int open_parts(const source_flags *flags, uint64_t threads, const char *label,
                      qn_parts **out) {
    const request r = request_of(source_parts(flags), flags, threads, label);
    qn_error err;
    *out = NULL;
    const qn_status status = qn_parts_open(ranks_cluster(), r.path, r.paths, &r.options, out, &err);
    return status == QN_OK ? -1 : ranks_failed(&err);
}

int source_open_parts(const source_flags *flags, uint64_t threads, const char *label,
                      qn_parts **out) {
    const int code = open_parts(flags, threads, label, out);
    if (code < 0)
        note(flags->parts, qn_parts_own(*out));
    return code;
}

/* The whole table on each rank. */
static int open_table_of_parts(const source_flags *flags, uint64_t threads, const char *label,
                               qn_data **out) {
    qn_parts *parts;
    qn_error err;
    const int code = open_parts(flags, threads, label, &parts);
    if (code >= 0)
        return code;
    const uint32_t copies = flags->data_copies > 0 ? (uint32_t)flags->data_copies : 1;
    if (qn_parts_copies(parts, copies, &err) != QN_OK) {
        qn_parts_close(parts);
        return ranks_failed(&err);
    }
    if (qn_parts_table(parts, flags->part_cache << 20, out, &err) != QN_OK)
        return ranks_failed(&err);
    note(flags->parts, *out);
    return -1;
}

int source_open(source_files files, const source_flags *flags, uint64_t threads, const char *label,
                qn_data **out) {
    if (flags->parts && files.path == flags->parts)
        return open_table_of_parts(flags, threads, label, out);
    request r = request_of(files, flags, threads, label);
    return share(&r, out);
}

/* Makes a list longer by `more` bytes; without memory it stays as it is, and the result is 0. */
static int reserve(char **list, size_t more) {
    const size_t used = *list ? strlen(*list) : 0;
    char *longer = realloc(*list, used + more + 1);
    if (!longer)
        return 0;
    longer[used] = '\0';
    *list = longer;
    return 1;
}

/* Appends a name in quotes. Without memory the list ends. */
static void add_name(char **list, const char *name) {
    if (!reserve(list, 2 * strlen(name) + 3))
        return;
    char *to = *list + strlen(*list);
    if (to > *list)
        *to++ = ',';
    *to++ = '"';
    for (; *name; name++) {
        *to++ = *name;
        if (*name == '"')
            *to++ = '"';
    }
    memcpy(to, "\"", 2);
}

static void add_place(char **list, uint32_t place) {
    char number[16];
    if (!reserve(list, sizeof number))
        return;
    snprintf(number, sizeof number, "%s%" PRIu32, **list ? "," : "", place);
    strcat(*list, number);
}

/* Columns of training data or of a model. */
typedef struct columns_of {
    uint32_t count;
    uint32_t (*has)(const void *from, uint32_t k);
    const char *(*name)(const void *from, uint32_t k);
    const void *from;
} columns_of;

/* Names where any column has one, and places among the features, for files without names. */
static char *list_columns(const columns_of *c) {
    char *list = NULL;
    int named = 0;
    for (uint32_t k = 0; k < c->count; k++)
        named |= c->name(c->from, k) != NULL;
    for (uint32_t k = 0; k < c->count; k++) {
        const char *name = c->name(c->from, k);
        if (c->has(c->from, k) == 0)
            continue;
        if (named)
            add_name(&list, name ? name : "");
        add_place(&list, k + 1);
    }
    return list;
}

static uint32_t categories_of_data(const void *data, uint32_t k) {
    return qn_data_categories(data, k);
}

static const char *name_in_data(const void *data, uint32_t k) {
    return qn_data_feature_name(data, k);
}

/* A column of texts is read as one of categories. */
static uint32_t categories_of_model(const void *model, uint32_t k) {
    return qn_model_categories(model, k) + qn_model_text_inputs(model, k);
}

static uint32_t texts_of_data(const void *data, uint32_t k) { return qn_data_text_inputs(data, k); }

static uint32_t texts_of_model(const void *model, uint32_t k) {
    return qn_model_text_inputs(model, k);
}

static const char *name_in_model(const void *model, uint32_t k) {
    return qn_model_feature_name(model, k);
}

char *source_categories_of_data(const qn_data *data) {
    return list_columns(
        &(columns_of){qn_data_features(data), categories_of_data, name_in_data, data});
}

char *source_texts_of_data(const qn_data *data) {
    return list_columns(&(columns_of){qn_data_features(data), texts_of_data, name_in_data, data});
}

char *source_categories_of_model(const qn_model *model) {
    return list_columns(&(columns_of){qn_model_inputs(model), /* not fewer than columns */
                                      categories_of_model, name_in_model, model});
}

char *source_texts_of_model(const qn_model *model) {
    return list_columns(
        &(columns_of){qn_model_inputs(model), texts_of_model, name_in_model, model});
}

/* Training and testing need labels. */
static int need_labels(const qn_data *data, const char *task, const char *path,
                       const char *option_name) {
    char remedy[96];
    const int next = (task && strcmp(task, "next") == 0) || qn_data_context(data) > 0;
    if (qn_data_target(data) != QN_TARGET_NONE || next)
        return -1;
    const char *format = qn_data_format(data);
    const int arrays = strncmp(format, "idx", 3) == 0 || strncmp(format, "np", 2) == 0;
    if (!arrays && strncmp(format, "images", 6) != 0)
        return message_fail(QN_INPUT, "no column has the name of the label", path,
                            "name the label in the header as in the training data, or name its "
                            "column with --label");
    if (!arrays)
        return message_fail(QN_INPUT, "the data has no labels", path,
                            "put the images of each class into a folder of its name");
    snprintf(remedy, sizeof remedy, "add --%s FILE, the file that holds them", option_name);
    return message_fail(QN_INPUT, "the data has no labels", path, remedy);
}

static int draw_embedded(sources *out) {
    request train = {.items = EMBEDDED_TRAIN};
    request test = {.first = EMBEDDED_TRAIN, .items = EMBEDDED_TEST};
    out->embedded = 1;
    int code = share(&train, &out->train);
    return code < 0 ? share(&test, &out->test) : code;
}

/* The built-in digits are read from no file. */
static int check_reading(const source_flags *flags) {
    const struct {
        const char *name;
        int given;
    } reading[] = {{"task", flags->task != NULL},
                   {"header", flags->header != NULL},
                   {"features", flags->features != NULL},
                   {"drop", flags->drop != NULL},
                   {"category", flags->category != NULL},
                   {"text", flags->text != NULL},
                   {"text-features", flags->text_features != NULL},
                   {"resize", flags->resize != NULL},
                   {"masks", flags->masks != NULL},
                   {"ignore", flags->ignore != NULL},
                   {"skip-broken", flags->skip_broken},
                   {"no-cache", flags->no_cache}};
    for (size_t i = 0; i < sizeof reading / sizeof *reading && !flags->data; i++)
        if (reading[i].given)
            return message_usage("it is about how a file is read: name one, or leave it out",
                                 "--%s needs --data", reading[i].name);
    return -1;
}

int source_is_stream(const char *path) { return path && strcmp(path, "-") == 0; }

/* The standard input can be read once, and it belongs to one process. */
static int check_streams(const source_flags *flags) {
    const char *const paths[] = {flags->data,        flags->labels, flags->test,
                                 flags->test_labels, flags->valid,  flags->valid_labels};
    int streams = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        streams += source_is_stream(paths[i]);
    if (streams > 1)
        return message_usage("name files for the others",
                             "- is the standard input, and stands there %d times", streams);
    if (streams > 0 && ranks_cluster())
        return message_usage("name a file that the ranks can open",
                             "- is the standard input, which ranks do not share");
    return -1;
}

/* A labels file without its data file would be ignored silently. */
static int check_pairs(const source_flags *flags) {
    static const char remedy[] = "name the file of the items too";
    if (flags->labels && !flags->data)
        return message_usage(remedy, "--labels needs --data");
    if (flags->test_labels && !flags->test)
        return message_usage(remedy, "--test-labels needs --test");
    if (flags->valid_labels && !flags->valid)
        return message_usage(remedy, "--valid-labels needs --valid");
    if (flags->query && !flags->data)
        return message_usage(remedy, "--query needs --data");
    if (flags->test_query && !flags->test)
        return message_usage(remedy, "--test-query needs --test");
    if (flags->valid_query && !flags->valid)
        return message_usage(remedy, "--valid-query needs --valid");
    if (flags->weight && !flags->data)
        return message_usage("it names a column of a CSV file or an array of an NPZ file",
                             "--weight needs --data");
    if (flags->label && !flags->data)
        return message_usage("it names a column of a CSV file", "--label needs --data");
    if (flags->test && !flags->data)
        return message_usage("name the training data too, or leave --test out: the built-in digits "
                             "come with a test set",
                             "--test needs --data");
    return check_reading(flags);
}

/* The value of --valid: a fraction (returned), or a file's name (0). */
static float valid_fraction(const source_flags *flags) {
    float fraction = 0;
    return flags->valid && read_float(flags->valid, &fraction) ? fraction : 0;
}

uint64_t sources_set_aside(const source_flags *flags, uint64_t items) {
    return (uint64_t)((double)valid_fraction(flags) * (double)items + 0.5);
}

static int is_number(const char *text) {
    float number;
    return read_float(text, &number);
}

/* A password in an address, which the library refuses too: `quern submit` would keep it in a file.
 * The address is not repeated. */
static int check_password(const char *name, const char *path) {
    const char *from = path ? strstr(path, "://") : NULL;
    const char *at = from ? strrchr(from, '@') : NULL, *options = from ? strchr(from, '?') : NULL;
    if (!from || strncmp(path, "postgres", 8) != 0)
        return -1;
    const char *colon = strchr(from + 3, ':');
    if (at && options && options < at && memchr(options, '=', (size_t)(at - options)))
        at = NULL; /* it stands in an option */
    if (!(at && colon && colon < at) && !(options && strstr(options, "password=")))
        return -1;
    return message_usage("leave it out of the address, and give it in the file ~/.pgpass or the "
                         "environment variable PGPASSWORD",
                         "the address of --%s holds a password, which other users could read",
                         name);
}

int sources_check_operand(const source_flags *flags) {
    if (flags->data && flags->parts)
        return message_usage("leave one of them out", "--data-parts takes the place of FILE");
    if (!flags->data && !flags->parts)
        return message_usage("name a file; of data that no rank reads whole: --data-parts LIST",
                             "FILE is missing");
    return -1;
}

int sources_take_parts(source_flags *flags) {
    if (!flags->parts)
        return flags->part_cache == 0 && flags->data_copies == 0
                   ? -1
                   : message_usage("name the parts, or leave it out", "--%s needs --data-parts",
                                   flags->part_cache ? "part-cache" : "data-copies");
    if (flags->data)
        return message_usage("leave one of them out", "--data contradicts --data-parts");
    if (ranks_data_from_first())
        return message_usage("leave one of them out", "--data-from-rank0 contradicts --data-parts");
    flags->data = flags->parts;
    flags->data_more = flags->parts_more;
    return -1;
}

int sources_check(const source_flags *flags) {
    int code = check_password("data", flags->data);
    if (code < 0)
        code = check_password("test", flags->test);
    if (code < 0)
        code = check_password("valid", flags->valid);
    if (code < 0)
        code = check_pairs(flags);
    if (code < 0)
        code = check_streams(flags);
    if (code >= 0 || !flags->valid || !is_number(flags->valid))
        return code;
    float fraction = valid_fraction(flags);
    if (!(fraction > 0 && fraction < 1))
        return message_usage("a fraction lies between 0 and 1; a file whose name is a number is "
                             "written ./NAME",
                             "--valid cannot be \"%s\"", flags->valid);
    if (flags->valid_query)
        return message_usage("leave --valid-query out, or name a database with --valid",
                             "--valid is a fraction, so there is no database for --valid-query");
    if (flags->valid_more.count > 0)
        return message_usage("give the fraction alone, or files alone",
                             "--valid is a fraction, so it cannot name files too");
    if (flags->valid_labels)
        return message_usage("leave --valid-labels out, or name a file with --valid",
                             "--valid is a fraction, so there is no file for --valid-labels");
    return -1;
}

void sources_agreed(const source_flags *flags, const char *what, qn_agreement *items) {
    static const char remedy[] = "start all ranks with the same options";
    const size_t size = sizeof(qn_agreement);
    const char *valid = !flags->valid ? "none" : is_number(flags->valid) ? "a fraction" : "a file";
    items[0] = (qn_agreement){size, "the command", what, remedy};
    const char *data = flags->parts ? "in parts" : flags->data ? "a file" : "none";
    items[1] = (qn_agreement){size, "--data", data, remedy};
    items[2] = (qn_agreement){size, "--test", flags->test ? "a file" : "none", remedy};
    items[3] = (qn_agreement){size, "--valid", valid, remedy};
    items[4] = (qn_agreement){size, "--data-from-rank0",
                              ranks_data_from_first() ? "given" : "not given", remedy};
}

static int open_all(const source_flags *f, uint64_t threads, const char *label, sources *out) {
    int code =
        f->data ? source_open(source_data(f), f, threads, label, &out->train) : draw_embedded(out);
    if (code < 0 && qn_data_label_name(out->train))
        label = qn_data_label_name(out->train);
    /* Labels of the other sets are of the same kind, whatever numbers they are. */
    source_flags others = *f;
    if (code < 0 && !f->task)
        others.task = qn_data_target(out->train) == QN_TARGET_REAL ? "regress" : "classify";
    others.expected_weight = f->weight && code < 0 && qn_data_weight_name(out->train)
                                 ? qn_data_weight_name(out->train)
                                 : f->weight;
    char *categories = code < 0 ? source_categories_of_data(out->train) : NULL;
    others.categories = categories;
    char *texts = code < 0 ? source_texts_of_data(out->train) : NULL;
    others.texts = texts;
    others.text = texts ? NULL : others.text;
    others.text_features = NULL; /* those of the training data */
    others.expected_features = code < 0 ? qn_data_features(out->train) : 0;
    char rules[QN_RULES_TEXT];
    qn_data_rules(out->train, rules, sizeof rules);
    if (code < 0 && f->data)
        others.expected_rules = rules;
    if (code < 0 && f->data)
        others.expected_tokens = qn_data_tokens(out->train);
    others.expected_context = code < 0 ? qn_data_context(out->train) : 0;
    others.expected_tokenizer = code < 0 ? qn_data_tokenizer(out->train) : NULL;
    others.query = f->test_query;
    if (code < 0 && f->test)
        code = source_open(source_test(f), &others, threads, label, &out->test);
    out->valid_fraction = valid_fraction(f);
    others.query = f->valid_query;
    if (code < 0 && f->valid && !is_number(f->valid))
        code = source_open(source_valid(f), &others, threads, label, &out->valid);
    free(categories);
    free(texts);
    return code;
}

static int check_labels(const source_flags *f, const sources *from) {
    int code = f->data ? need_labels(from->train, f->task, f->data, "labels") : -1;
    if (code < 0 && f->test)
        code = need_labels(from->test, f->task, f->test, "test-labels");
    if (code < 0 && from->valid)
        code = need_labels(from->valid, f->task, f->valid, "valid-labels");
    return code;
}

int sources_open(const source_flags *flags, uint64_t threads, const char *label, sources *out) {
    *out = (sources){0};
    int code = open_all(flags, threads, label, out);
    if (code < 0) /* each rank checks what its own machine has read */
        code = ranks_agree(check_labels(flags, out), NULL, 0, 0);
    if (code >= 0)
        sources_close(out);
    return code;
}

int sources_open_to_start(const source_flags *flags, uint64_t threads, const qn_model *start,
                          sources *out) {
    source_flags own = *flags;
    char *categories = start ? source_categories_of_model(start) : NULL;
    own.categories = categories;
    char *texts = start ? source_texts_of_model(start) : NULL;
    own.texts = texts;
    own.expected_resize = flags->resize ? NULL : qn_model_resize(start);
    own.expected_features = start ? qn_model_inputs(start) : 0;
    own.expected_tokens = start ? qn_model_tokens(start) : NULL;
    own.expected_tokenizer = start ? qn_model_tokenizer(start) : NULL;
    own.expected_context = start ? qn_model_context(start) : 0;
    const int labelled = flags->labels || flags->label || flags->masks;
    if (start && qn_model_predicts(start) == QN_PREDICTS_NEXT && !flags->task && !labelled)
        own.task = "next";
    const int code = sources_open(&own, threads, qn_model_label_name(start), out);
    free(categories);
    free(texts);
    if (code < 0 && own.expected_resize && ranks_is_writer() &&
        qn_data_image_channels(out->train) > 0)
        message_note(
            "note: images are resized as those of the model to start from: --resize \"%s\"",
            own.expected_resize);
    return code;
}

void sources_close(sources *from) {
    qn_data_close(from->train);
    qn_data_close(from->valid);
    qn_data_close(from->test);
    *from = (sources){0};
}

int source_shape(const char **shape, uint64_t *features, int has_data, int has_features) {
    uint64_t product = 1;
    if (*shape && has_features)
        return message_usage("leave one of them out", "--shape and --features exclude each other");
    if (has_data || has_features)
        return -1;
    if (!*shape)
        *shape = "28x28";
    for (const char *at = *shape; at && product <= 1u << 24; at = strchr(at, 'x')) {
        at += *at == 'x';
        product *= strtoull(at, NULL, 10);
    }
    *features = product;
    return -1;
}
