#include "sources.h"
#include "message.h"
#include <stdio.h>

#define AT(member) .place = offsetof(source_flags, member)

const option source_label_options[] = {
    {.name = "labels",
     .kind = OPTION_TEXT,
     AT(labels),
     .value = "FILE",
     .help = "IDX: the file of labels"},
    {.name = "label",
     .kind = OPTION_TEXT,
     AT(label),
     .value = "COLUMN",
     .help = "CSV: the column of labels, a name of the header, a number from 1, or last",
     .fallback = "the first"},
    {.name = NULL}};

const option source_unlabelled_options[] = {{.name = "unlabelled",
                                             .kind = OPTION_FLAG,
                                             AT(unlabelled),
                                             .help = "CSV: there is no column of labels"},
                                            {.name = NULL}};

const option source_test_options[] = {
    {.name = "test",
     .kind = OPTION_TEXT,
     AT(test),
     .value = "FILE",
     .help = "a test set, scored after each epoch; it never influences the model"},
    {.name = "test-labels",
     .kind = OPTION_TEXT,
     AT(test_labels),
     .value = "FILE",
     .help = "IDX: the test set's labels"},
    {.name = NULL}};

int source_open(const char *path, const char *labels, const source_flags *flags, uint64_t threads,
                qn_data **out) {
    qn_data_options options;
    qn_error err;
    qn_data_options_init(&options);
    options.labels_path = labels;
    options.label_column = flags->label;
    options.unlabelled = flags->unlabelled;
    options.threads = (int)threads;
    *out = NULL;
    if (qn_data_open(path, &options, out, &err) == QN_OK)
        return -1;
    if (!*err.where) /* whatever went wrong (memory, say), it was over this file */
        snprintf(err.where, sizeof err.where, "%s", path);
    return message_error(&err);
}

/* Training and testing need to know what is right. */
static int need_labels(const qn_data *data, const char *path, const char *option_name) {
    char remedy[96];
    if (qn_data_labels(data))
        return -1;
    snprintf(remedy, sizeof remedy, "add --%s FILE, the file that holds them", option_name);
    return message_fail(QN_INPUT, "the data has no labels", path, remedy);
}

static int labelled(const char *path, const char *labels, const char *option_name,
                    const source_flags *flags, uint64_t threads, qn_data **out) {
    int code = source_open(path, labels, flags, threads, out);
    return code >= 0 ? code : need_labels(*out, path, option_name);
}

static int draw_embedded(sources *out) {
    qn_error err;
    out->embedded = 1;
    if (qn_data_synth_digits(EMBEDDED_SEED, 0, EMBEDDED_TRAIN, &out->train, &err) != QN_OK ||
        qn_data_synth_digits(EMBEDDED_SEED, EMBEDDED_TRAIN, EMBEDDED_TEST, &out->test, &err) !=
            QN_OK)
        return message_error(&err);
    return -1;
}

/* A file that is named beside one that is not would be forgotten silently. */
static int check_pairs(const source_flags *flags) {
    static const char remedy[] = "name the file of the items too";
    if (flags->labels && !flags->data)
        return message_usage(remedy, "--labels stands without --data");
    if (flags->test_labels && !flags->test)
        return message_usage(remedy, "--test-labels stands without --test");
    if (flags->valid_labels && !flags->valid)
        return message_usage(remedy, "--valid-labels stands without --valid");
    if (flags->label && !flags->data)
        return message_usage("it names a column of a CSV file", "--label stands without --data");
    if (flags->test && !flags->data)
        return message_usage("name the training data too, or leave --test out: the built-in digits "
                             "come with a test set",
                             "--test stands without --data");
    return -1;
}

static int open_valid(const source_flags *flags, uint64_t threads, sources *out) {
    float fraction;
    if (!flags->valid)
        return -1;
    if (!read_float(flags->valid, &fraction))
        return labelled(flags->valid, flags->valid_labels, "valid-labels", flags, threads,
                        &out->valid);
    if (!(fraction > 0 && fraction < 1))
        return message_usage("a fraction lies between 0 and 1; a file whose name is a number is "
                             "written ./NAME",
                             "--valid cannot be \"%s\"", flags->valid);
    if (flags->valid_labels)
        return message_usage("leave --valid-labels out, or name a file with --valid",
                             "--valid is a fraction, so there is no file for --valid-labels");
    out->valid_fraction = fraction;
    return -1;
}

static int open_all(const source_flags *flags, uint64_t threads, sources *out) {
    int code = check_pairs(flags);
    if (code < 0 && flags->data)
        code = labelled(flags->data, flags->labels, "labels", flags, threads, &out->train);
    else if (code < 0)
        code = draw_embedded(out);
    if (code < 0 && flags->test)
        code = labelled(flags->test, flags->test_labels, "test-labels", flags, threads, &out->test);
    return code < 0 ? open_valid(flags, threads, out) : code;
}

int sources_open(const source_flags *flags, uint64_t threads, sources *out) {
    *out = (sources){0};
    int code = open_all(flags, threads, out);
    if (code >= 0)
        sources_close(out);
    return code;
}

void sources_close(sources *from) {
    qn_data_close(from->train);
    qn_data_close(from->valid);
    qn_data_close(from->test);
    *from = (sources){0};
}
