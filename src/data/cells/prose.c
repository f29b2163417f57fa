#include "data/cells/prose.h"

#include "base/memory.h"
#include "data/cells/labels.h"
#include "data/table/rules.h"
#include "data/cells/ngrams.h"
#include <math.h>
#include <string.h>

/* A column looks like texts if it has so many different ones, half of its values at least, and so
 * many words in each on average. */
enum { LEAST_TEXTS = 10, LEAST_WORDS = 4 };

int qn__prose_wanted(const qn_data_options *options) {
    return qn__rule_holds(options, QN__RULE_TEXT) && !options->expected_text &&
           !(options->text && strcmp(options->text, "none") == 0);
}

/* Words and pairs of words. */
static const qn__grams pairs = {QN__GRAM_WORDS, 1, 2, 0};

/* Pieces of all different texts of a column. */
static qn_status count_grams(const qn__feature *feature, const qn__grams *which, uint64_t *number,
                             qn_error *err) {
    qn__ngrams space = {0};
    qn_status status = QN_OK;
    *number = 0;
    for (uint32_t i = 0; i < feature->categories && status == QN_OK; ++i) {
        uint64_t own;
        if (qn__ngrams_number(&space, feature->category[i], which, &own, err))
            *number += own;
        else
            status = QN_MEMORY;
    }
    qn__ngrams_release(&space);
    return status;
}

static uint64_t present(const qn_data *data, uint32_t k) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < data->items; ++i)
        count += (uint64_t)!isnan(qn__data_number(data, i, k));
    return count;
}

/* A text of w words has w - 1 pairs. The parts of dates, addresses of the web and identifiers are
 * words, too; but few of them are letters after a space. */
static int looks_like_texts(const qn__feature *feature, uint64_t number, uint64_t values) {
    const uint64_t texts = feature->categories;
    uint64_t spoken = 0;
    for (uint32_t i = 0; i < feature->categories; ++i)
        spoken += qn__ngrams_spoken(feature->category[i]);
    return texts >= LEAST_TEXTS && number >= texts * (2 * LEAST_WORDS - 1) &&
           spoken >= texts * (LEAST_WORDS - 1) && 2 * texts > values;
}

int qn__prose_looks(const qn_data *data, uint32_t k) {
    const qn__feature *feature = &data->schema->feature[k];
    uint64_t number;
    return count_grams(feature, &pairs, &number, NULL) == QN_OK &&
           looks_like_texts(feature, number, present(data, k));
}

/* Twice as many inputs as there are pieces would leave most of them without a collision;
 * more than QN__TEXT_MOST cost more than they gain. */
static uint8_t bits_for(uint64_t number) {
    uint8_t bits = QN__TEXT_LEAST;
    while (bits < QN__TEXT_MOST && (UINT64_C(1) << bits) < 2 * number)
        ++bits;
    return bits;
}

static qn_status refuse(const qn_data *data, uint32_t k, const char *path, qn_error *err) {
    char name[160];
    qn__fail(err, QN_INPUT, "%s has more than %d different texts",
             qn__column_name(data->schema, k, name, sizeof name), QN__TEXTS_MAX);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "leave the column out with `data.drop`; where its words tell something, name "
                      "it with `data.text`");
}

/* What is done with the columns of a table. */
typedef struct finding {
    qn_data *data;
    int finds; /* 1: columns that look like texts hold texts */
    const char *path;
    qn__grams grams[QN__GRAM_KINDS];
    uint32_t count; /* of `grams` */
} finding;

static qn_status choose_inputs(const finding *f, qn__feature *feature, qn_error *err) {
    for (uint32_t i = 0; i < f->count; ++i) {
        uint64_t number;
        if (count_grams(feature, &f->grams[i], &number, err) != QN_OK)
            return QN_MEMORY;
        feature->grams[i] = f->grams[i];
        feature->grams[i].bits = bits_for(number);
    }
    feature->text = f->count;
    f->data->rules |= QN__RULE_TEXT;
    return QN_OK;
}

/* `values`: those that are not missing. */
static qn_status find_column(const finding *f, uint32_t k, uint64_t values, qn_error *err) {
    qn__feature *feature = &f->data->schema->feature[k];
    uint64_t number = 0;
    feature->text = 0;
    int texts = feature->said == QN__SAID_TEXT && feature->categories > 0;
    if (f->finds && feature->said == QN__SAID_NOTHING) {
        if (count_grams(feature, &pairs, &number, err) != QN_OK)
            return QN_MEMORY;
        texts = looks_like_texts(feature, number, values);
    }
    if (texts)
        return choose_inputs(f, feature, err);
    return feature->categories <= QN__TEXTS_MAX ? QN_OK : refuse(f->data, k, f->path, err);
}

qn_status qn__prose_find(qn_data *data, int finds, const char *features, const char *path,
                         qn_error *err) {
    finding f = {.data = data, .finds = finds, .path = path};
    uint32_t texts = 0;
    qn_status status = qn__grams_read(features, f.grams, &f.count, err);
    for (uint32_t k = 0; data->schema && k < data->features && status == QN_OK; ++k) {
        if (data->schema->feature[k].categories)
            status = find_column(&f, k, present(data, k), err);
        texts += data->schema->feature[k].text > 0;
        texts += data->listed && data->listed->feature == k + 1;
    }
    if (status != QN_OK || !features || texts > 0 || data->part)
        return status;
    return qn__prose_refuse_none(path, err);
}

qn_status qn__prose_refuse_none(const char *path, qn_error *err) {
    qn__fail(err, QN_INPUT, "columns of texts have features, and none was found");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "name a column of texts with `data.text`, or leave `data.text_features` out");
}

qn_status qn__prose_find_column(qn_data *data, uint32_t k, uint64_t values, int finds,
                                const char *features, const char *path, qn_error *err) {
    finding f = {.data = data, .finds = finds, .path = path};
    const qn_status status = qn__grams_read(features, f.grams, &f.count, err);
    return status == QN_OK ? find_column(&f, k, values, err) : status;
}
