/* Surveys of CSV columns. */
#include "data/csv_survey.h"
#include "base/memory.h"
#include "data/labels.h"
#include <string.h>

/* What one thread saw of a column. */
typedef struct facts {
    uint64_t numbers, texts, nones; /* cells of these contents */
    uint8_t gap;                    /* there are missing values */
    uint8_t odd;                    /* a number that is not a byte: digits alone, at most 255 */
    uint8_t fraction;               /* a number that is not whole */
} facts;

struct qn__csv_survey {
    const qn__csv_header *header;
    int threads;
    facts *facts; /* threads x columns */
    qn__csv_shape shape;
    qn__special *special;
    qn_data_type type;
    int gaps;
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
    s->shape = header->shape;
    s->facts = qn__alloc((uint64_t)threads, header->shape.columns * sizeof *s->facts, err);
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

static void note_cell(facts *f, const qn__cell *cell, int is_label) {
    if (is_byte(cell) && cell->size > 0) {
        f->numbers++;
        return;
    }
    switch (qn__cell_content(cell)) {
    case QN__CONTENT_NUMBER:
        f->numbers++;
        f->odd = 1;
        f->fraction |= is_label && !is_whole(cell);
        break;
    case QN__CONTENT_GAP:
        f->gap = 1;
        break;
    case QN__CONTENT_NONE:
        f->nones++;
        break;
    case QN__CONTENT_TEXT:
        f->texts++;
        break;
    case QN__CONTENT_INFINITE:
        break;
    }
}

const char *qn__csv_survey_count(qn__csv_survey *survey, int thread, const char *at,
                                 const char *end) {
    const qn__csv_shape *shape = &survey->header->shape;
    facts *own = survey->facts + (size_t)thread * shape->columns;
    const char *line_end = qn__line_end(at, end);
    for (uint64_t column = 0; column < shape->columns; column++) {
        qn__cell cell;
        at = qn__cell_read(at, line_end, shape->separator, 0, &cell);
        note_cell(&own[column], &cell, column == shape->label);
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
        sum.gap |= f->gap;
        sum.odd |= f->odd;
        sum.fraction |= f->fraction;
    }
    return sum;
}

/* ------------------------------------------------------------------ deciding */

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

/* A column of features, which may be known to hold categories; 0 when it is a plain one. */
static int kind_of_feature(const facts *f, int known, qn__column_kind *kind) {
    const int category = known ? f->numbers + f->texts + f->nones > 0 : f->texts > f->numbers;
    *kind = category ? QN__COLUMN_CATEGORY : QN__COLUMN_GAPS;
    return *kind == QN__COLUMN_CATEGORY || f->gap || f->nones;
}

qn_status qn__csv_survey_decide(qn__csv_survey *s, const qn_data_options *options, qn_error *err) {
    const qn__special *known = s->header->special;
    s->special = qn__alloc(s->shape.columns + 1, sizeof *s->special, err);
    if (!s->special)
        return QN_MEMORY;
    qn__special *to = s->special;
    s->type = QN_U8;
    for (uint64_t column = 0; column < s->shape.columns; column++) {
        const facts f = sum_facts(s, column);
        to->column = column;
        if (column == s->shape.label) {
            (to++)->kind = kind_of_label(&f, options->task);
        } else if (column == s->shape.weight) {
            (to++)->kind = QN__COLUMN_WEIGHT;
        } else if (column == known->column) {
            (to++)->kind = QN__COLUMN_SKIP;
        } else {
            const int category = s->header->categories && s->header->categories[column];
            const int special = kind_of_feature(&f, category, &to->kind);
            s->gaps |= f.gap || (special && to->kind == QN__COLUMN_GAPS);
            if (special || f.odd)
                s->type = QN_F32;
            to += special;
        }
        known += column == known->column;
    }
    to->column = UINT64_MAX;
    s->shape.special = s->special;
    for (const qn__special *at = s->special; at < to; at++)
        s->set_count += at->kind == QN__COLUMN_CATEGORY || at->kind == QN__COLUMN_CLASS;
    s->sets = qn__alloc((uint64_t)(s->threads + 1) * s->set_count, sizeof *s->sets, err);
    if (!s->sets)
        return QN_MEMORY;
    qn__text_set *set = s->sets + (size_t)s->threads * s->set_count;
    for (qn__special *at = s->special; at < to; at++)
        if (at->kind == QN__COLUMN_CATEGORY || at->kind == QN__COLUMN_CLASS)
            at->texts = set++;
    return QN_OK;
}

/* ------------------------------------------------------------------ collecting */

int qn__csv_survey_has_texts(const qn__csv_survey *survey) { return survey->set_count > 0; }

static qn_status collect_cell(qn__text_set *set, const qn__special *special, const qn__cell *cell) {
    char text[40];
    qn__cell name = *cell;
    if (cell->broken || set->count > QN__TEXTS_MAX || !qn__cell_is_utf8(cell))
        return QN_OK;
    const qn__content content = qn__cell_content(cell);
    if (content == QN__CONTENT_GAP ||
        (special->kind == QN__COLUMN_CLASS && content == QN__CONTENT_NUMBER &&
         !qn__class_number(cell, text, &name)))
        return QN_OK;
    return qn__text_set_add(set, &name, NULL);
}

const char *qn__csv_survey_collect(qn__csv_survey *survey, int thread, const char *at,
                                   const char *end) {
    const qn__csv_shape *shape = &survey->shape;
    const qn__special *special = shape->special;
    qn__text_set *set = survey->sets + (size_t)thread * survey->set_count;
    const char *line_end = qn__line_end(at, end);
    for (uint64_t column = 0; special->column < shape->columns; column++) {
        qn__cell cell;
        at = qn__cell_read(at, line_end, shape->separator, 0, &cell);
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
    qn__fail(err, QN_INPUT, "the column has more than %d different texts", QN__TEXTS_MAX);
    qn__csv_at_column(s->header, special->column, err);
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
        for (uint32_t i = 0; i < own->count; i++) {
            const qn__cell cell = {.text = own->text[i], .size = strlen(own->text[i])};
            if (qn__text_set_add(special->texts, &cell, err) != QN_OK)
                return QN_MEMORY;
        }
    }
    if (special->texts->count > QN__TEXTS_MAX)
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

const qn__csv_shape *qn__csv_survey_shape(const qn__csv_survey *survey) { return &survey->shape; }

qn_data_type qn__csv_survey_type(const qn__csv_survey *survey) { return survey->type; }

int qn__csv_survey_has_gaps(const qn__csv_survey *survey) { return survey->gaps; }
