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

/* Words and pairs of words of all different texts of a column. */
static qn_status count_words(const qn__feature *feature, uint64_t *number, qn_error *err) {
    qn__ngrams space = {0};
    qn_status status = QN_OK;
    *number = 0;
    for (uint32_t i = 0; i < feature->categories && status == QN_OK; ++i) {
        uint64_t own;
        if (qn__ngrams_number(&space, feature->category[i], &own, err))
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
static int looks_like_texts(const qn_data *data, uint32_t k, uint64_t number) {
    const qn__feature *feature = &data->schema->feature[k];
    const uint64_t texts = feature->categories;
    uint64_t spoken = 0;
    for (uint32_t i = 0; i < feature->categories; ++i)
        spoken += qn__ngrams_spoken(feature->category[i]);
    return texts >= LEAST_TEXTS && number >= texts * (2 * LEAST_WORDS - 1) &&
           spoken >= texts * (LEAST_WORDS - 1) && 2 * texts > present(data, k);
}

int qn__prose_looks(const qn_data *data, uint32_t k) {
    uint64_t number;
    return count_words(&data->schema->feature[k], &number, NULL) == QN_OK &&
           looks_like_texts(data, k, number);
}

/* Twice as many inputs as there are words and pairs would leave most of them without a collision;
 * more than QN__TEXT_MOST cost more than they gain. */
static uint32_t bits_for(uint64_t number) {
    uint32_t bits = QN__TEXT_LEAST;
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

static qn_status find_column(qn_data *data, uint32_t k, int finds, const char *path,
                             qn_error *err) {
    qn__feature *feature = &data->schema->feature[k];
    uint64_t number = 0;
    feature->text = 0;
    if (feature->said == QN__SAID_TEXT || (finds && feature->said == QN__SAID_NOTHING)) {
        if (count_words(feature, &number, err) != QN_OK)
            return QN_MEMORY;
        if (feature->said == QN__SAID_TEXT || looks_like_texts(data, k, number))
            feature->text = bits_for(number);
    }
    if (feature->text)
        data->rules |= QN__RULE_TEXT;
    return feature->text || feature->categories <= QN__TEXTS_MAX ? QN_OK
                                                                 : refuse(data, k, path, err);
}

qn_status qn__prose_find(qn_data *data, int finds, const char *path, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t k = 0; data->schema && k < data->features && status == QN_OK; ++k)
        if (data->schema->feature[k].categories)
            status = find_column(data, k, finds, path, err);
    return status;
}
