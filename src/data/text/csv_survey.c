/* Surveys of CSV columns. */
#include "data/text/csv_survey.h"
#include "base/memory.h"
#include "data/cells/commas.h"
#include "data/cells/labels.h"
#include "data/cells/prose.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include "data/table/rules.h"
#include "data/table/wide.h"
#include <string.h>

/* What one thread saw of a column. */
typedef struct facts {
    uint64_t numbers, texts, nones; /* cells of these contents */
    uint64_t dates, zones;          /* those of them that are dates, and name a zone */
    uint64_t marks;                 /* texts that are missing by QN__RULE_NONE: no `texts` */
    uint64_t commas, comma_texts;   /* cells with a decimal comma; texts of that notation */
    uint8_t missing;                /* there are missing values */
    uint8_t odd;                    /* a number that is not a byte: digits alone, at most 255 */
    uint8_t fraction;               /* a number that is not whole */
    uint8_t infinite;
    uint8_t time, hour; /* a date names a time, and one that is not midnight */
    /* Of cells in the notation with a decimal comma (data/cells/commas.h). */
    uint8_t clear, grouped, both; /* the comma is not one of thousands; points alone; both marks */
    uint8_t pointed;              /* a number that is none of this notation */
    uint8_t comma_fraction;       /* one that is not whole, read so */
} facts;

struct qn__csv_survey {
    const qn__csv_header *header;
    int threads;
    facts *facts; /* threads x columns */
    qn__row_shape shape;
    qn__special *special;
    qn_data_type type;
    int missing;
    uint32_t rules;     /* that changed something */
    qn__text_set *sets; /* (threads + 1) x set_count: what each thread has, then all */
    uint32_t set_count;
    qn_status *status; /* of each thread's collection */
};

qn__csv_survey *qn__csv_survey_create(const qn__csv_header *header, int threads, qn_error *err) {
    qn__csv_survey *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return NULL;
    s->header = header;
    s->threads = threads;
    s->shape = header->table.shape;
    s->facts = qn__alloc((uint64_t)threads, header->table.shape.columns * sizeof *s->facts, err);
    s->status = qn__alloc((uint64_t)threads, sizeof *s->status, err);
    if (s->facts && s->status)
        return s;
    qn__csv_survey_free(s);
    return NULL;
}

void qn__csv_survey_free(qn__csv_survey *survey) {
    if (!survey)
        return;
    for (size_t i = 0; survey->sets && i < (size_t)(survey->threads + 1) * survey->set_count; ++i)
        qn__text_set_release(&survey->sets[i]);
    qn__free(survey->sets);
    qn__free(survey->special);
    qn__free(survey->facts);
    qn__free(survey->status);
    qn__free(survey);
}

/* ------------------------------------------------------------------ counting */

static int is_byte(const qn__cell *cell) {
    unsigned sum = 0;
    for (size_t i = 0; i < cell->size && sum <= 255; i++) {
        if (cell->text[i] < '0' || cell->text[i] > '9')
            return 0;
        sum = sum * 10 + (unsigned)(cell->text[i] - '0');
    }
    return sum <= 255;
}

static int is_whole(const qn__cell *cell) {
    qn__decimal number;
    int32_t label;
    return qn__cell_number(cell, &number) &&
           qn__decimal_to_label(&number, &label) != QN__ROW_LABEL_BROKEN;
}

static void note_date(facts *f, const qn__cell *cell, const char *format) {
    qn__moment moment;
    if (!qn__cell_moment(cell, format, &moment))
        return;
    f->dates++;
    f->zones += moment.has_zone != 0;
    f->time |= moment.has_time != 0;
    f->hour |= moment.at % QN__DAY_MICROSECONDS != 0;
}

/* What a cell is in the notation with a decimal comma. */
static void note_comma(facts *f, const qn__cell *cell, qn__content content, int is_label) {
    char number[QN__COMMA_BYTES];
    qn__cell read = {.text = number};
    const int form = qn__comma_read(cell, number, &read.size);
    if (form < 0) {
        f->pointed |= content == QN__CONTENT_NUMBER;
        return;
    }
    f->commas += (form & QN__COMMA_DECIMAL) != 0;
    f->comma_texts += content == QN__CONTENT_TEXT;
    f->clear |= (form & QN__COMMA_DECIMAL) && !(form & QN__COMMA_THOUSANDS);
    f->grouped |= form == QN__COMMA_GROUPED;
    f->both |= (form & QN__COMMA_DECIMAL) && (form & QN__COMMA_GROUPED);
    f->comma_fraction |= is_label && !is_whole(&read);
}

static void note_cell(facts *f, const qn__row_shape *shape, const qn__cell *cell, int is_label) {
    if (is_byte(cell) && cell->size > 0) {
        f->numbers++;
        return;
    }
    const qn__content content = qn__cell_content(cell);
    if (content == QN__CONTENT_TEXT && shape->marks && !is_label && qn__cell_is_mark(cell)) {
        f->marks++;
        return;
    }
    if (shape->commas && (content == QN__CONTENT_TEXT || content == QN__CONTENT_NUMBER))
        note_comma(f, cell, content, is_label);
    if (shape->dates && (content == QN__CONTENT_TEXT || shape->date_format))
        note_date(f, cell, shape->date_format);
    switch (content) {
    case QN__CONTENT_NUMBER:
        f->numbers++;
        f->odd = 1;
        f->fraction |= is_label && !is_whole(cell);
        break;
    case QN__CONTENT_GAP:
        f->missing = 1;
        break;
    case QN__CONTENT_NONE:
        f->nones++;
        break;
    case QN__CONTENT_TEXT:
        f->texts++;
        break;
    case QN__CONTENT_INFINITE:
        f->infinite = 1;
        break;
    }
}

const char *qn__csv_survey_count(qn__csv_survey *survey, int thread, const char *at,
                                 const char *end) {
    const qn__row_shape *shape = &survey->header->table.shape;
    facts *own = survey->facts + (size_t)thread * shape->columns;
    const char *line_end = qn__row_end(shape, at, end);
    for (uint64_t column = 0; column < shape->columns; column++) {
        qn__cell cell;
        at = qn__cell_read(at, line_end, shape->separator, &cell);
        note_cell(&own[column], shape, &cell, column == shape->label);
        if (at++ == line_end)
            break;
    }
    return line_end + (line_end < end);
}

static facts sum_facts(const qn__csv_survey *s, uint64_t column) {
    facts sum = {0};
    for (int i = 0; i < s->threads; i++) {
        const facts *f = &s->facts[(size_t)i * s->shape.columns + column];
        sum.numbers += f->numbers;
        sum.texts += f->texts;
        sum.nones += f->nones;
        sum.missing |= f->missing;
        sum.odd |= f->odd;
        sum.fraction |= f->fraction;
        sum.dates += f->dates;
        sum.zones += f->zones;
        sum.marks += f->marks;
        sum.commas += f->commas;
        sum.comma_texts += f->comma_texts;
        sum.clear |= f->clear;
        sum.grouped |= f->grouped;
        sum.both |= f->both;
        sum.pointed |= f->pointed;
        sum.comma_fraction |= f->comma_fraction;
        sum.infinite |= f->infinite;
        sum.time |= f->time;
        sum.hour |= f->hour;
    }
    return sum;
}

/* ------------------------------------------------------------------ deciding */

/* Whether the numbers of a column have a decimal comma: each number and text is of that notation.
 * For a model the column's own kind is known, so that 1,500 and 1.234 are in no doubt. */
static int has_commas(const facts *f, const qn__row_shape *shape) {
    return f->commas > 0 && f->comma_texts == f->texts && !f->pointed && !f->infinite &&
           (f->clear || shape->known) && (!f->grouped || f->both || shape->known);
}

/* A label with decimal commas holds quantities, unless somebody says that it holds classes. */
static int is_comma_label(const facts *f, const qn__row_shape *shape, const char *task) {
    return has_commas(f, shape) && f->nones == 0 && !(task && strcmp(task, "classify") == 0);
}

static qn__column_kind kind_of_label(const facts *f, const char *task) {
    const uint64_t texts = f->texts + f->nones;
    if (task && strcmp(task, "regress") == 0)
        return QN__COLUMN_REAL;
    if (task && strcmp(task, "classify") == 0)
        return texts > 0 || f->fraction ? QN__COLUMN_CLASS : QN__COLUMN_INDEX;
    if (texts > f->numbers)
        return QN__COLUMN_CLASS;
    return f->fraction ? QN__COLUMN_REAL : QN__COLUMN_INDEX;
}

/* Every cell that is not missing is a date, and all name a zone or none does. */
static int holds_dates(const facts *f, uint64_t nones) {
    return f->dates > 0 && f->dates == f->numbers + f->texts + nones && !f->infinite &&
           (f->zones == 0 || f->zones == f->dates);
}

/* A column of features, which may be known to hold categories; 0 when it is a plain one. */
static int kind_of_feature(const facts *f, const qn__row_shape *shape, int known, qn__special *to) {
    const uint64_t nones = shape->marks ? 0 : f->nones;
    to->marks = shape->marks;
    to->commas = !known && has_commas(f, shape);
    if (!known && holds_dates(f, nones)) {
        to->kind = QN__COLUMN_DATE;
        return 1;
    }
    const int category =
        known ? f->numbers + f->texts + nones > 0 : f->texts > f->numbers && !to->commas;
    to->kind = category ? QN__COLUMN_CATEGORY : QN__COLUMN_MISSING;
    return category || f->missing || f->nones || f->marks || to->commas;
}

/* The rules that made the column what it is. A none among numbers was missing before. */
static uint32_t rules_of(const facts *f, int known, const qn__special *to) {
    const int marks = f->marks > 0 || (f->nones > 0 && (known || to->kind != QN__COLUMN_MISSING));
    return (to->marks && marks ? (uint32_t)QN__RULE_NONE : 0u) |
           (to->commas ? (uint32_t)QN__RULE_COMMAS : 0u);
}

static int has_missing(const facts *f, const qn__special *to) {
    return f->missing || f->marks || (f->nones && (to->marks || to->kind == QN__COLUMN_MISSING));
}

static void decide_label(qn__csv_survey *s, const facts *f, const char *task, qn__special *to) {
    to->kind = kind_of_label(f, task);
    to->commas = is_comma_label(f, &s->shape, task);
    if (!to->commas)
        return;
    s->rules |= QN__RULE_COMMAS;
    if (to->kind != QN__COLUMN_REAL)
        to->kind = f->comma_fraction ? QN__COLUMN_REAL : QN__COLUMN_INDEX;
}

static qn_status describe_dates(const facts *f, const char *parts, qn__special *to, qn_error *err) {
    to->time = f->time;
    to->zone = f->zones > 0;
    to->dates = qn__date_parts_usual(f->hour);
    return parts ? qn__date_parts_read(parts, &to->dates, err) : QN_OK;
}

static int is_feature(qn__column_kind kind) {
    return kind == QN__COLUMN_MISSING || kind == QN__COLUMN_CATEGORY || kind == QN__COLUMN_DATE;
}

/* The number of the feature that a special column is. */
static uint32_t feature_of(const qn__csv_survey *s, const qn__special *of) {
    uint64_t others = 0;
    for (const qn__special *at = s->special; at < of; at++)
        others += !is_feature(at->kind);
    return (uint32_t)(of->column - others);
}

/* Whether a category's texts become tokens. */
static int is_listed(const qn__csv_survey *s, const qn__special *at, qn__text_list *listed) {
    return at->kind == QN__COLUMN_CATEGORY && qn__text_list_takes(listed, feature_of(s, at));
}

static int has_set(const qn__special *at) {
    return (at->kind == QN__COLUMN_CATEGORY && !at->listed) || at->kind == QN__COLUMN_CLASS;
}

/* The sets of a category have one depot: what threads have found is not copied again. */
static qn_status make_depots(const qn__csv_survey *s, qn_error *err) {
    for (const qn__special *at = s->special; at->column != UINT64_MAX; at++) {
        if (!at->texts || at->kind != QN__COLUMN_CATEGORY)
            continue;
        at->texts->depot = qn__depot_create(err);
        if (!at->texts->depot)
            return QN_MEMORY;
        for (int thread = 0; thread < s->threads; thread++)
            at->texts[-(ptrdiff_t)((size_t)(s->threads - thread) * s->set_count)].depot =
                qn__depot_share(at->texts->depot);
    }
    return QN_OK;
}

qn_status qn__csv_survey_decide(qn__csv_survey *s, const qn_data_options *options,
                                qn__text_list *listed, qn_error *err) {
    const qn__special *known = s->header->table.special;
    s->special = qn__alloc(s->shape.columns + 1, sizeof *s->special, err);
    if (!s->special)
        return QN_MEMORY;
    qn__special *to = s->special;
    s->type = QN_U8;
    for (uint64_t column = 0; column < s->shape.columns; column++) {
        const facts f = sum_facts(s, column);
        *to = (qn__special){.column = column};
        if (column == s->shape.label) {
            decide_label(s, &f, options->task, to++);
        } else if (column == s->shape.weight) {
            (to++)->kind = QN__COLUMN_WEIGHT;
        } else if (column == known->column) {
            (to++)->kind = QN__COLUMN_SKIP;
        } else {
            const uint8_t *said = s->header->table.categories;
            const uint8_t category = said ? said[column] : 0;
            const int special = kind_of_feature(&f, &s->shape, category, to);
            s->missing |= has_missing(&f, to);
            s->rules |= rules_of(&f, category, to);
            to->listed = special && category == QN__SAID_TEXT && is_listed(s, to, listed);
            if (special && to->kind == QN__COLUMN_DATE &&
                describe_dates(&f, options->dates, to, err) != QN_OK)
                return QN_USAGE;
            if (special || f.odd)
                s->type = QN_F32;
            to += special;
        }
        known += column == known->column;
    }
    to->column = UINT64_MAX;
    s->shape.special = s->special;
    for (const qn__special *at = s->special; at < to; at++)
        s->set_count += (uint32_t)has_set(at);
    s->sets = qn__alloc((uint64_t)(s->threads + 1) * s->set_count, sizeof *s->sets, err);
    if (!s->sets)
        return QN_MEMORY;
    qn__text_set *set = s->sets + (size_t)s->threads * s->set_count;
    for (qn__special *at = s->special; at < to; at++)
        if (has_set(at))
            at->texts = set++;
    return make_depots(s, err);
}

/* ------------------------------------------------------------------ exact values */

qn_status qn__csv_survey_keep_exact(qn__csv_survey *s, qn_data *data, qn_error *err) {
    qn__exact *exact = qn__alloc(data->features, sizeof *exact, err);
    if (!exact)
        return QN_MEMORY;
    for (qn__special *at = s->special; at->column != UINT64_MAX; at++)
        if (at->kind == QN__COLUMN_DATE && at->time)
            exact[feature_of(s, at)] = QN__EXACT_MOMENT;
    const qn_status status = qn__wide_make(data, exact, err);
    for (qn__special *at = s->special; status == QN_OK && at->column != UINT64_MAX; at++)
        if (at->kind == QN__COLUMN_DATE && at->time)
            at->exact = (qn__wide_value *)(uintptr_t)qn__wide_column(data, feature_of(s, at));
    qn__free(exact);
    return status;
}

/* ------------------------------------------------------------------ collecting */

const qn__special *qn__csv_survey_listed(const qn__csv_survey *survey) {
    const qn__special *at = survey->special;
    while (at->column != UINT64_MAX && !at->listed)
        at++;
    return at->listed ? at : NULL;
}

int qn__csv_survey_has_texts(const qn__csv_survey *survey) { return survey->set_count > 0; }

/* Whether a category holds texts is decided when all are known. */
static uint32_t most_texts(const qn__special *special) {
    return special->kind == QN__COLUMN_CATEGORY ? QN__PROSE_MAX : QN__TEXTS_MAX;
}

static qn_status collect_cell(qn__text_set *set, const qn__special *special, const qn__cell *cell) {
    char text[40];
    qn__cell name = *cell;
    if (cell->broken || set->count > most_texts(special) || !qn__cell_is_utf8(cell))
        return QN_OK;
    const qn__content content = qn__cell_content(cell);
    if (content == QN__CONTENT_GAP || (special->marks && qn__cell_is_mark(cell)) ||
        (special->kind == QN__COLUMN_CLASS && content == QN__CONTENT_NUMBER &&
         !qn__class_number(cell, text, &name)))
        return QN_OK;
    return qn__text_set_add(set, &name, NULL);
}

const char *qn__csv_survey_collect(qn__csv_survey *survey, int thread, const char *at,
                                   const char *end) {
    const qn__row_shape *shape = &survey->shape;
    const qn__special *special = shape->special;
    qn__text_set *set = survey->sets + (size_t)thread * survey->set_count;
    const char *line_end = qn__row_end(shape, at, end);
    for (uint64_t column = 0; special->column < shape->columns; column++) {
        qn__cell cell;
        at = qn__cell_read(at, line_end, shape->separator, &cell);
        if (special->column == column) {
            if (special->texts && collect_cell(set++, special, &cell) != QN_OK)
                survey->status[thread] = QN_MEMORY;
            special++;
        }
        if (at++ == line_end)
            break;
    }
    return line_end + (line_end < end);
}

static qn_status refuse_texts(const qn__csv_survey *s, const qn__special *special, qn_error *err) {
    qn__fail(err, QN_INPUT, "the column has more than %u different texts",
             (unsigned)most_texts(special));
    qn__columns_at(&s->header->table, special->column, err);
    if (special->kind == QN__COLUMN_CATEGORY)
        return qn__remedy(err, QN_INPUT, "leave the column out with `data.drop`");
    return qn__remedy(err, QN_INPUT,
                      "name the column of the classes with `data.label_column`; where there are no "
                      "labels, set `data.unlabelled`");
}

/* What all threads have, sorted. */
static qn_status merge(qn__csv_survey *s, const qn__special *special, qn_error *err) {
    const size_t at = (size_t)(special->texts - s->sets) - (size_t)s->threads * s->set_count;
    for (int thread = 0; thread < s->threads; thread++) {
        const qn__text_set *own = &s->sets[(size_t)thread * s->set_count + at];
        if (own->depot && qn__text_set_join(special->texts, own, err) != QN_OK)
            return QN_MEMORY;
        for (uint32_t i = 0; i < own->count && !own->depot; i++) {
            const qn__cell cell = {.text = own->text[i], .size = strlen(own->text[i])};
            if (qn__text_set_add(special->texts, &cell, err) != QN_OK)
                return QN_MEMORY;
        }
    }
    if (special->texts->count > most_texts(special))
        return refuse_texts(s, special, err);
    return qn__text_set_sort(special->texts, special->kind == QN__COLUMN_CLASS, err);
}

qn_status qn__csv_survey_sort(qn__csv_survey *s, qn_error *err) {
    for (int thread = 0; thread < s->threads; thread++)
        if (s->status[thread] != QN_OK)
            return qn__fail_memory(err, s->set_count, sizeof *s->sets);
    qn_status status = QN_OK;
    for (const qn__special *at = s->special; at->column != UINT64_MAX && status == QN_OK; at++)
        if (at->texts)
            status = merge(s, at, err);
    return status;
}

const qn__row_shape *qn__csv_survey_shape(const qn__csv_survey *survey) { return &survey->shape; }

qn_data_type qn__csv_survey_type(const qn__csv_survey *survey) { return survey->type; }

uint32_t qn__csv_survey_rules(const qn__csv_survey *survey) { return survey->rules; }

int qn__csv_survey_has_missing(const qn__csv_survey *survey) { return survey->missing; }
