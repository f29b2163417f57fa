/* The data sets of a command: files that its options name, or the built-in digits. */
#ifndef APP_SOURCES_H
#define APP_SOURCES_H

#include "options.h"
#include <quern/cluster.h>
#include <quern/data.h>
#include <quern/model.h>
#include <quern/parts.h>

/* The built-in data: items 0.. of this seed for training, the next ones for testing. */
enum { EMBEDDED_SEED = 1, EMBEDDED_TRAIN = 20000, EMBEDDED_TEST = 4000 };

/* Values of the options; every text may be NULL. */
typedef struct source_flags {
    const char *data, *labels;
    const char *parts;   /* files of which each rank reads some; in place of `data` */
    file_list data_more; /* further files of the same table, as the two below */
    const char *label;   /* CSV: the column of labels, in every file */
    const char *weight;  /* of weights: CSV: the column, NPZ: the array; of training data */
    const char *test, *test_labels;
    const char *valid, *valid_labels; /* `valid`: a file or a fraction */
    file_list parts_more, test_more, valid_more, labels_more, test_labels_more, valid_labels_more;
    /* CSV: of every file, as in qn_data_options */
    const char *task, *header, *features, *drop, *category, *text, *text_features;
    const char *dates, *date_format;
    uint32_t outputs;           /* of the network, where they are known; else 0 */
    int unlabelled;             /* CSV: no column of labels (predict, data info) */
    int skip_broken;            /* images, as in qn_data_options */
    const char *resize, *shape; /* the same */
    const char *masks, *ignore; /* the same, of `data` */
    int no_cache;               /* the same */
    uint32_t expected_features; /* no option: the same of qn_data_options */
    int keep_doubles;           /* no option: the same */
    uint64_t part_cache;        /* MiB of qn_parts_table; 0: its default */
    uint64_t data_copies;       /* of qn_parts_copies; 0: its default */
    const char *query, *test_query, *valid_query; /* databases: the rows to read */
    const char *categories;         /* no option: qn_data_options.expected_categories */
    const char *texts;              /* no option: qn_data_options.expected_text */
    const char *expected_weight;    /* no option: the same of qn_data_options */
    const char *expected_resize;    /* no option: the same */
    const char *expected_rules;     /* no option: the same */
    const char *tokens;             /* as in qn_data_options */
    const char *expected_tokens;    /* no option: the same */
    const char *expected_tokenizer; /* no option: the same */
    uint32_t context;               /* as in qn_data_options */
    const char *item;               /* the same */
    uint32_t expected_context;      /* no option: the same */
} source_flags;

/* Rows for the tables of several commands; they fill a source_flags. */
extern const option source_label_options[];      /* --labels, --label, --query */
extern const option source_parts_options[];      /* --data-parts */
extern const option source_part_cache_options[]; /* --part-cache, --data-copies */
extern const option source_weight_options[];     /* --weight */
extern const option source_task_options[];       /* --task */
extern const option source_column_options[];     /* --header, --features, --drop,
                                                     --category, --text */
extern const option source_token_options[];      /* --tokens */
extern const option source_item_options[];       /* --item */
extern const option source_unlabelled_options[]; /* --unlabelled */
extern const option source_image_options[];      /* --shape, --resize, --skip-broken,
                                                     --no-cache */
extern const option source_test_options[];       /* --test, --test-labels, --test-query */

/* Rows of a table: all that describes one file of data; `at` is the place of its source_flags. */
#define SOURCE_FILE_OPTIONS(at)                                                                    \
    {.heading = "Data", .more = source_label_options, .place = (at)},                              \
        {.more = source_weight_options, .place = (at)},                                            \
        {.more = source_task_options, .place = (at)},                                              \
        {.more = source_column_options, .place = (at)},                                            \
        {.more = source_token_options, .place = (at)},                                             \
        {.more = source_image_options, .place = (at)}, {                                           \
        .more = source_unlabelled_options, .place = (at)                                           \
    }

typedef struct sources {
    qn_data *train, *valid, *test; /* NULL if there is none */
    float valid_fraction;          /* 0 unless --valid was one */
    int embedded;                  /* the built-in digits are used */
} sources;

/* 1 when the path is "-", the standard input. */
int source_is_stream(const char *path);

/* Whether a command has its FILE or --data-parts, and not both. Returns -1, or an exit code after a
 * message. */
int sources_check_operand(const source_flags *flags);

/* Makes --data-parts the data, which source_open then opens as one table. Returns -1, or an exit
 * code after a message. */
int sources_take_parts(source_flags *flags);

/* Checks that are possible before a file is opened: options that need one another. Returns -1, or
 * an exit code after a message. */
int sources_check(const source_flags *flags);

/* The number of items, of `items`, that --valid FRACTION sets aside. */
uint64_t sources_set_aside(const source_flags *flags, uint64_t items);

/* Among ranks all have to open the same sets, for the same command (`what`): fills SOURCES_AGREED
 * items. */
enum { SOURCES_AGREED = 5 };
void sources_agreed(const source_flags *flags, const char *what, qn_agreement *items);

/* Opens all files of the flags, with `threads` cores (0: all), after sources_check. Among ranks it
 * is collective; errors held so far (ranks.h) are released. Returns -1, or an exit code after a
 * message; then no file is open. `label`: the name of the label column of a model, or NULL; other
 * sets expect that of the training data. */
int sources_open(const source_flags *flags, uint64_t threads, const char *label, sources *out);

/* The same for a training that starts from a model, or NULL: its label and its categories are
 * taken, and images are resized as it says, with a note, unless --resize says otherwise. */
int sources_open_to_start(const source_flags *flags, uint64_t threads, const qn_model *start,
                          sources *out);
void sources_close(sources *from);

/* The files of one data set, and those of its labels. */
typedef struct source_files {
    const char *path, *labels;
    const file_list *more, *labels_more;
} source_files;

/* Those of --data, --data-parts, --test and --valid. */
source_files source_data(const source_flags *flags);
source_files source_parts(const source_flags *flags);
source_files source_test(const source_flags *flags);
source_files source_valid(const source_flags *flags);
/* Sets the data of `flags` to the operands of the command. */
void source_take_operands(source_flags *flags, const arguments *given);

/* Collective: opens a data set. `label`: the name that the label column has in other data, or NULL.
 * Returns -1 or an exit code after a message. */
int source_open(source_files files, const source_flags *flags, uint64_t threads, const char *label,
                qn_data **out);

/* Collective: opens --data-parts; `label` as above. Returns -1 or an exit code after a message. */
int source_open_parts(const source_flags *flags, uint64_t threads, const char *label,
                      qn_parts **out);

/* The columns that hold categories in training data or in a model, as a list of names and places
 * for `source_flags.categories`; NULL where none does. For free(). */
char *source_categories_of_data(const qn_data *data);
char *source_categories_of_model(const qn_model *model);
/* The same of texts, for `source_flags.texts`. */
char *source_texts_of_data(const qn_data *data);
char *source_texts_of_model(const qn_model *model);

/* Completes shape and number of features of items for a command without data. A given shape decides
 * the number of features; without a shape the items are like the built-in digits. `has_data`: 1
 * when there is data, which decides both; `has_features`: 1 when the number was given. Returns -1,
 * or the exit code after a message. */
int source_shape(const char **shape, uint64_t *features, int has_data, int has_features);

#endif
