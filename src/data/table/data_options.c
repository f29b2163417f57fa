#include "data/table/data_options.h"
#include "base/sized.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include "data/table/grams.h"
#include "data/table/rules.h"
#include "data/table/token_names.h"
#include "image/resize.h"
#include <string.h>

void qn_data_options_init(qn_data_options *options) {
    if (options)
        *options = (qn_data_options){.size = sizeof *options};
}

static int is_one_of(const char *word, const char *first, const char *second, const char *third) {
    return !word || strcmp(word, first) == 0 || strcmp(word, second) == 0 ||
           strcmp(word, third) == 0;
}

/* Images of another size would not fit the model; of the same size, made in another way, they would
 * be predicted worse, and nobody would know why. */
static qn_status check_resize(const qn_data_options *options, qn_error *err) {
    qn__resize given, expected;
    char text[QN__RESIZE_TEXT];
    if (qn__resize_parse(options->resize, &given, err) != QN_OK ||
        qn__resize_parse(options->expected_resize, &expected, err) != QN_OK)
        return QN_USAGE;
    if (!options->resize || !options->expected_resize ||
        memcmp(&given, &expected, sizeof given) == 0)
        return QN_OK;
    qn__resize_text(&expected, text);
    qn__fail(err, QN_USAGE,
             "the model was trained on images that were resized by \"%s\", and \"%s\" "
             "is asked for",
             text, options->resize);
    return qn__remedy(err, QN_USAGE, "leave `data.resize` out: it is known from the model");
}

static qn_status check_dates(const qn_data_options *options, qn_error *err) {
    uint32_t parts;
    const qn_status status =
        options->dates ? qn__date_parts_read(options->dates, &parts, err) : QN_OK;
    return status == QN_OK && options->date_format
               ? qn__date_format_check(options->date_format, err)
               : status;
}

static qn_status check_text_features(const qn_data_options *o, qn_error *err) {
    qn__grams grams[QN__GRAM_KINDS];
    uint32_t count;
    if (qn__grams_read(o->text_features, grams, &count, err) != QN_OK)
        return QN_USAGE;
    if (!o->text_features || (!o->tokens && !o->expected_text))
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s",
             o->tokens ? "tokens of texts stand in the place of other features"
                       : "the model knows the features of its columns of texts");
    return qn__remedy(err, QN_USAGE, "leave `data.text_features` out");
}

/* Lines and rows that are items. */
static qn_status check_item(const qn_data_options *o, qn_error *err) {
    if (!o->item)
        return QN_OK;
    const int row = strcmp(o->item, "row") == 0;
    if (!row && strcmp(o->item, "line") != 0) {
        qn__fail(err, QN_USAGE, "\"%s\" is not an item", o->item);
        return qn__remedy(err, QN_USAGE, "`data.item` is line or row");
    }
    if (!o->tokens || strcmp(o->tokens, QN__TOKENS_IDS) == 0) {
        qn__fail(err, QN_USAGE, "an item that is a %s needs a tokenizer", o->item);
        return qn__remedy(err, QN_USAGE, "name one with `data.tokens`, or leave `data.item` out");
    }
    if (row && !o->text) {
        qn__fail(err, QN_USAGE, "the column whose texts are the items is not named");
        return qn__remedy(err, QN_USAGE, "name it with `data.text`");
    }
    if (o->labels_path || o->label_column || o->features || o->drop || o->weight || o->masks ||
        (!row && (o->text || o->header || o->category || o->query))) {
        qn__fail(err, QN_USAGE, "the items are texts alone, and there are options of %s",
                 row ? "other columns" : "columns");
        return qn__remedy(err, QN_USAGE, row ? "leave them out" : "set `data.item` to row");
    }
    return QN_OK;
}

qn_status qn__data_options_take(const char *function, const qn_data_options *given,
                                qn_data_options *options, qn_error *err) {
    qn_data_options_init(options);
    if (!given)
        return QN_OK;
    const qn_status status =
        qn__sized_take(&(const qn__sized){function, "options", "qn_data_options", sizeof *options},
                       given, options, err);
    if (status != QN_OK)
        return status;
    if (options->threads < 0)
        return qn__fail(err, QN_USAGE, "%d threads cannot read a file", options->threads);
    if (options->unlabelled && options->label_column) {
        qn__fail(err, QN_USAGE, "unlabelled data cannot have the label column \"%s\"",
                 options->label_column);
        return qn__remedy(err, QN_USAGE, "give `data.label_column` or `data.unlabelled`, not both");
    }
    const int next = options->task && strcmp(options->task, "next") == 0;
    if (!next && !is_one_of(options->task, "auto", "classify", "regress")) {
        qn__fail(err, QN_USAGE, "\"%s\" is not a task", options->task);
        return qn__remedy(err, QN_USAGE, "`data.task` is auto, classify, regress or next");
    }
    if (next && (options->labels_path || options->label_column)) {
        qn__fail(err, QN_USAGE, "each token is the label of those before it, and labels are given");
        return qn__remedy(err, QN_USAGE, "leave out the labels, or `data.task` next");
    }
    if (!is_one_of(options->header, "auto", "yes", "no")) {
        qn__fail(err, QN_USAGE, "\"%s\" does not say whether there is a header", options->header);
        return qn__remedy(err, QN_USAGE, "`data.header` is auto, yes or no");
    }
    uint32_t rules;
    if (check_resize(options, err) != QN_OK ||
        qn__rules_parse(options->expected_rules, &rules, err) != QN_OK ||
        check_dates(options, err) != QN_OK || check_text_features(options, err) != QN_OK)
        return QN_USAGE;
    if (qn__tokens_choose(options->tokens, options->expected_tokens, &options->tokens, err) !=
        QN_OK)
        return QN_USAGE;
    if (options->context && !options->tokens) {
        qn__fail(err, QN_USAGE, "a context is that of tokens");
        return qn__remedy(err, QN_USAGE, "say with `data.tokens` how they are made");
    }
    if (check_item(options, err) != QN_OK)
        return QN_USAGE;
    if (options->features && options->drop) {
        qn__fail(err, QN_USAGE, "columns to keep and columns to leave out were both given");
        return qn__remedy(err, QN_USAGE, "give `data.features` or `data.drop`, not both");
    }
    if (options->labels_more_count > 0 && (!options->labels_path || !options->labels_more)) {
        qn__fail(err, QN_USAGE, "further files of labels were given without a first one");
        return qn__remedy(err, QN_USAGE, "give it with `data.labels_path`");
    }
    if (options->masks && (options->unlabelled || options->labels_path || options->label_column)) {
        qn__fail(err, QN_USAGE, "masks are the labels, and other options of labels were given");
        return qn__remedy(err, QN_USAGE,
                          "give `data.masks` without `data.labels_path`, `data.label_column` and "
                          "`data.unlabelled`");
    }
    if (options->ignore && !options->masks) {
        qn__fail(err, QN_USAGE, "a number to ignore needs masks");
        return qn__remedy(err, QN_USAGE, "name their folder with `data.masks`");
    }
    if (options->unlabelled && options->labels_path) {
        qn__fail(err, QN_USAGE, "unlabelled data cannot have a file of labels");
        return qn__remedy(err, QN_USAGE, "give `data.labels_path` or `data.unlabelled`, not both");
    }
    return QN_OK;
}
