/* quern data info: describes a data file. */

#include "columns.h"
#include "command.h"
#include "data_schema.h"
#include "data_summary.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "ranks.h"
#include "shared_rows.h"
#include "sources.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct info_flags {
    source_flags from;
    ranks_flags ranks;
    uint64_t show;
    const char *sheet;
    qn_sheet_options drawn;
    int json, schema;
} info_flags;

#define AT(member) .place = offsetof(info_flags, member)

static const option info_options[] = {
    {.heading = "Options", .more = source_label_options, AT(from)},
    {.more = source_parts_options, AT(from)},
    {.more = source_weight_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_unlabelled_options, AT(from)},
    {ROW_COUNT("show", show, 0, 1000, "draw the first N items, if they are images"),
     .fallback = "0"},
    {ROW_TEXT("sheet", sheet, "FILE.png",
              "write a contact sheet: the first images of each class in a row, masks beside them")},
    {ROW_TEXT("augment", drawn.augment, "TEXT",
              "with --sheet: a row is the first image of a class, and how training with this "
              "--augment sees it in 15 epochs")},
    {ROW_FLOAT("mixup", drawn.mixup, "with --sheet: the same with this --mixup")},
    {ROW_FLOAT("cutmix", drawn.cutmix, "with --sheet: the same with this --cutmix")},
    {ROW_FLAG("schema", schema,
              "print what Parquet files say about their columns, without reading their rows")},
    {ROW_JSON(json, "print one JSON object instead")},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

/* In JSON, and for people. */
static const char *const types[][2] = {[QN_U8] = {"u8", "bytes"},
                                       [QN_F32] = {"f32", "32-bit floats"},
                                       [QN_TOKENS16] = {"t16", "numbers of 16 bits"},
                                       [QN_TOKENS32] = {"t32", "numbers of 32 bits"}};

enum { MOST_PRINTED = 40 };

static const char *const targets[] = {[QN_TARGET_NONE] = "none",
                                      [QN_TARGET_INDEX] = "index",
                                      [QN_TARGET_CLASS] = "class",
                                      [QN_TARGET_REAL] = "real",
                                      [QN_TARGET_SEVERAL] = "several"};

static void print_json(const char *path, const qn_data *data, const data_summary *s) {
    json_begin("data");
    json_text("file", path);
    json_text("format", qn_data_format(data));
    json_text("type", types[qn_data_type_of(data)][0]);
    if (qn_data_tokens(data)) {
        json_text("tokens", qn_data_tokens(data));
        json_count("vocabulary", (uint64_t)s->greatest + 1);
        json_count("padding", s->padding);
        json_count("context", qn_data_context(data));
    }
    json_count("items", qn_data_items(data));
    json_count("features", qn_data_features(data));
    json_count("classes", s->classes);
    if (qn_data_target(data) == QN_TARGET_SEVERAL)
        json_count("ignored", s->ignored);
    json_text("target", targets[qn_data_target(data)]);
    json_text("label", qn_data_label_name(data));
    if (qn_data_weights(data))
        json_text("weight", qn_data_weight_name(data));
    json_open("class_names", '[');
    for (uint32_t i = 0; i < s->classes && qn_data_class_name(data, i); i++)
        json_text(NULL, qn_data_class_name(data, i));
    json_close(']');
    json_open("counts", '[');
    for (uint32_t i = 0; s->counts && i < s->classes; i++)
        json_count(NULL, s->counts[i]);
    json_close(']');
    json_number("min", s->least);
    json_number("max", s->greatest);
    json_count("rows", s->rows);
    json_count("columns", s->columns);
    json_count("channels", qn_data_image_channels(data));
    if (s->column && s->rows == 0)
        columns_print_json(data, s->column);
    char rules[QN_RULES_TEXT];
    qn_data_rules(data, rules, sizeof rules);
    json_text("rules", rules);
    json_message("note", qn_data_note(data));
    json_text("digest", qn_data_digest(data));
    json_end();
}

/* A line that ends with a name of the data. */
static void print_name(const char *name) {
    columns_print_name(name, (int)strlen(name));
    putchar('\n');
}

/* Classes with names: one a line. */
static void print_classes(const qn_data *data, const data_summary *s) {
    for (uint32_t i = 0; s->counts && i < s->classes && i < MOST_PRINTED; i++) {
        printf("    %10" PRIu64 "  ", s->counts[i]);
        print_name(qn_data_class_name(data, i));
    }
}

/* Classes that are numbers: five in a line. */
static void print_counts(const data_summary *s) {
    for (uint32_t i = 0; s->counts && i < s->classes && i < MOST_PRINTED; i++)
        printf("%s%5" PRIu32 ": %6" PRIu64,
               i % 5 > 0 ? " "
               : i > 0   ? "\n    "
                         : "    ",
               i, s->counts[i]);
    if (s->counts)
        putchar('\n');
}

static void print_targets(const data_summary *s) {
    char from[32], to[32];
    printf("targets   real numbers from %s to %s\n", format_quantity(s->targets.least, from),
           format_quantity(s->targets.greatest, to));
}

static void print_several(const qn_data *data, const data_summary *s) {
    qn_several several = {.size = sizeof several};
    qn_error err;
    if (qn_data_several(data, &several, &err) != QN_OK)
        return;
    if (several.rows > 0)
        printf("masks     %" PRIu32 "x%" PRIu32 " pixels, %" PRIu32 " classes; pixels of each:\n",
               several.rows, several.columns, s->classes);
    else
        printf("labels    %" PRIu32 " of each item; items that have each:\n", several.each);
    const int named = qn_data_class_name(data, 0) != NULL;
    if (named)
        print_classes(data, s);
    else
        print_counts(s);
    if (s->counts && s->classes > MOST_PRINTED)
        printf("          and %" PRIu32 " more\n", s->classes - MOST_PRINTED);
    if (s->ignored > 0)
        printf("          %" PRIu64 " %s not count\n", s->ignored,
               named ? "values are missing: they do" : "targets are 255: they do");
}

static void print_label(const qn_data *data, const data_summary *s) {
    if (qn_data_label_name(data)) {
        printf("label     ");
        print_name(qn_data_label_name(data));
    }
    if (qn_data_target(data) == QN_TARGET_REAL) {
        print_targets(s);
        return;
    }
    if (qn_data_target(data) == QN_TARGET_SEVERAL) {
        print_several(data, s);
        return;
    }
    if (qn_data_target(data) == QN_TARGET_NONE) {
        printf("classes   none: there are no labels\n");
        return;
    }
    printf("classes   %" PRIu32 "\n", s->classes);
    if (qn_data_target(data) == QN_TARGET_CLASS)
        print_classes(data, s);
    else
        print_counts(s);
    if (s->counts && s->classes > MOST_PRINTED)
        printf("          and %" PRIu32 " more\n", s->classes - MOST_PRINTED);
}

static void print_weights(const qn_data *data, const data_summary *s) {
    const char *name = qn_data_weight_name(data);
    if (qn_data_weights(data))
        printf("weights   %s%sfrom %g to %g\n", name ? name : "", name ? ", " : "",
               s->weights.least, s->weights.greatest);
}

static void print_size(const qn_data *data, const data_summary *s) {
    if (qn_data_image_channels(data) > 1)
        printf(" (%" PRIu32 "x%" PRIu32 "x%" PRIu32 ")", qn_data_image_channels(data), s->rows,
               s->columns);
    else
        printf(" (%" PRIu32 "x%" PRIu32 ")", s->rows, s->columns);
}

/* Numbers of days and of texts mean nothing to a person. */
static int has_range(const qn_data *data, uint32_t k) {
    return qn_data_dates(data, k, NULL, 0) == QN_DATE_NONE && qn_data_text_inputs(data, k) == 0;
}

static int has_only_texts(const qn_data *data) {
    for (uint32_t k = 0; k < qn_data_features(data); k++)
        if (qn_data_text_inputs(data, k) == 0)
            return 0;
    return 1;
}

static void print_range(const qn_data *data, const data_summary *s) {
    double least = s->least, greatest = s->greatest;
    char from[32], to[32];
    if (s->column) {
        least = HUGE_VAL;
        greatest = -HUGE_VAL;
    }
    for (uint32_t k = 0; s->column && k < qn_data_features(data); k++) {
        const column *c = &s->column[k];
        if (!has_range(data, k) || c->missing == qn_data_items(data))
            continue;
        least = c->least < least ? c->least : least;
        greatest = c->greatest > greatest ? c->greatest : greatest;
    }
    if (least <= greatest)
        printf(", from %s to %s", format_quantity(least, from), format_quantity(greatest, to));
    putchar('\n');
}

static void print_tokens(const qn_data *data, const data_summary *s) {
    char number[32];
    const uint32_t context = qn_data_context(data);
    const uint64_t all =
        context ? qn_data_items(data) * context + 1 : qn_data_items(data) * qn_data_features(data);
    printf("tokens    %s, %s\n", format_count(all, number), types[qn_data_type_of(data)][1]);
    if (context > 0)
        printf("context   %" PRIu32 ": an item is so many tokens and the one after them\n",
               context);
    else
        printf("positions %" PRIu32 " of each item\n", qn_data_features(data));
    printf("numbers   from %.0f to %.0f: a vocabulary of %s or more\n", s->least, s->greatest,
           format_count((uint64_t)s->greatest + 1, number));
    if (s->padding > 0)
        printf("          %s are the greatest of their type: not tokens\n",
               format_count(s->padding, number));
}

static void print_text(const char *path, const qn_data *data, const data_summary *s) {
    char number[32];
    printf("file      %s (%s)\n", path, qn_data_format(data));
    printf("items     %s\n", format_count(qn_data_items(data), number));
    if (qn_data_tokens(data)) {
        print_tokens(data, s);
    } else {
        printf("features  %" PRIu32, qn_data_features(data));
        if (s->rows > 0)
            print_size(data, s);
        printf(", %s", has_only_texts(data) ? "texts" : types[qn_data_type_of(data)][1]);
        print_range(data, s);
    }
    print_label(data, s);
    print_weights(data, s);
    if (s->column && s->rows == 0)
        columns_print(data, s->column, MOST_PRINTED);
    printf("digest    %s\n", qn_data_digest(data));
}

/* One character per pixel and two rows of pixels per line, because characters are tall. */
static void draw_item(const qn_data *data, const data_summary *s, uint64_t item) {
    static const char shades[] = " .:-=+*#%@";
    double span = s->greatest > s->least ? s->greatest - s->least : 1;
    printf("\nitem %" PRIu64, item);
    if (qn_data_labels(data))
        printf(", label %" PRId32, qn_data_labels(data)[item]);
    putchar('\n');
    for (uint32_t r = 0; r < s->rows; r += 2) {
        char line[1025];
        uint32_t c = 0;
        for (; c < s->columns && c < 1024; c++) {
            const uint32_t at = r * s->columns + c;
            double v = columns_value(data, item, at);
            if (r + 1 < s->rows)
                v = 0.5 * (v + columns_value(data, item, at + s->columns));
            line[c] = shades[(int)(9.999 * (v - s->least) / span)];
        }
        while (c > 0 && line[c - 1] == ' ')
            c--;
        printf("%.*s\n", (int)c, line);
    }
}

static int show(const qn_data *data, const data_summary *s, uint64_t count) {
    if (count > 0 && s->rows == 0)
        return message_usage("leave --show out", "these items are not images, so they cannot be "
                                                 "drawn");
    for (uint64_t i = 0; i < count && i < qn_data_items(data); i++)
        draw_item(data, s, i);
    return EXIT_DONE;
}

static int write_sheet(const qn_data *data, const info_flags *f) {
    qn_error err;
    return qn_data_write_sheet(data, &f->drawn, f->sheet, &err) == QN_OK ? -1 : message_error(&err);
}

/* Options that say what a sheet shows. */
static int check_drawn(const command *self, const info_flags *f, const arguments *given) {
    static const char *const names[] = {"augment", "mixup", "cutmix"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!f->sheet && options_given(self, given, names[i]))
            return message_usage("name the file of the sheet, as --sheet sheet.png",
                                 "--%s does nothing without --sheet", names[i]);
    return -1;
}

/* Rows are not read with --schema, so other options have nothing to work on. */
static int run_schema(const command *self, const arguments *given, int json) {
    int others = -options_given(self, given, "schema") - options_given(self, given, "json");
    for (size_t i = 0; i < sizeof given->given.word / sizeof *given->given.word; i++)
        others += __builtin_popcountll(given->given.word[i]);
    if (others > 0)
        return message_usage("leave the others out", "--schema goes with --json alone");
    return data_schema_print(given->operand, (size_t)given->operands, json);
}

/* What the writing rank prints. */
typedef struct printing {
    const info_flags *f;
    const char *path;
    const qn_data *data;
    const data_summary *summary;
} printing;

static int print_all(void *user) {
    const printing *p = user;
    const int code = p->f->sheet ? write_sheet(p->data, p->f) : -1;
    if (code >= 0)
        return code;
    if (p->f->json)
        print_json(p->path, p->data, p->summary);
    else
        print_text(p->path, p->data, p->summary);
    return p->f->json ? EXIT_DONE : show(p->data, p->summary, p->f->show);
}

static int check_flags(const command *self, info_flags *f, const arguments *given) {
    if (f->json && options_given(self, given, "show"))
        return message_usage("leave one of them out", "--show does nothing with --json");
    int code = check_drawn(self, f, given);
    if (code < 0)
        code = sources_check_operand(&f->from);
    if (code < 0)
        code = sources_take_parts(&f->from);
    if (code >= 0)
        return code;
    paths files = {.count = 0};
    paths_add_files(&files, "FILE", "--labels", source_data(&f->from));
    paths_add(&files, QN_FILE_WRITE, "--sheet", f->sheet);
    paths_add(&files, QN_FILE_READ, "--key-file", ranks_key_path(&f->ranks));
    return paths_check(&files, ranks_is_writer());
}

static int describe(const info_flags *f) {
    qn_data *data = NULL;
    data_summary s = {0};
    qn_error err = {0};
    int code = source_open(source_data(&f->from), &f->from, 0, NULL, &data);
    if (code < 0)
        code = data_summary_make(data, &s);
    printing p = {f, f->from.data, data, &s};
    if (code < 0)
        code = ranks_conclude(&err, print_all, &p);
    data_summary_release(&s);
    qn_data_close(data);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    info_flags f = {0};
    qn_sheet_options_init(&f.drawn);
    arguments given = {0};
    qn_agreement same[SOURCES_AGREED];
    int code = ranks_join(argc - 3, argv + 3, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code < 0) {
        message_setup(self->name, 0, f.json);
        source_take_operands(&f.from, &given);
        code = f.schema ? -1 : check_flags(self, &f, &given);
    }
    sources_agreed(&f.from, self->name, same);
    code = ranks_agree(code, same, SOURCES_AGREED, !f.schema);
    if (code < 0 && f.schema)
        code = ranks_is_writer() ? run_schema(self, &given, f.json) : EXIT_DONE;
    else if (code < 0)
        code = describe(&f);
    return ranks_leave(code);
}

const command data_info_command = {
    .name = "data info",
    .summary = "describe a file or folder of data",
    .usage = "quern data info (FILE... | --data-parts LIST) [options]",
    .about =
        "Reads tables and images in the formats below; the content of a file decides which it "
        "has. Files may be compressed with gzip, zstd, bzip2, xz or ZIP. - is the standard "
        "input. Several files, a folder of them, a pattern (\"part-*.csv\") or a list (@FILE) are "
        "one table. An address such as s3://bucket/t.csv or https://host/t.csv is taken as a path. "
        "Prints the number of items and "
        "features, what "
        "each column holds, the classes, the range and the digest. The digest covers the "
        "content, not the format; "
        "the recipe in a model file names it. Among ranks one prints.",
    .formats = QN_CHOICE_READ,
    .operand = "FILE",
    .optional = 1,
    .most_operands = MOST_FILES + 1,
    .options = info_options,
    .examples = "quern data info train.csv\n"
                "quern data info images.idx.gz --labels labels.idx.gz --show 3\n"
                "quern data info 's3://bucket/sales/*.parquet' --schema\n"
                "quern data info photos --skip-broken --sheet sheet.png\n"
                "quern data info photos --sheet s.png --augment \"flip; rotate 15\" --cutmix 1",
    .run = run};
