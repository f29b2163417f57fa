#include "data/tokens/steps/splitter.h"

#include "data/tokens/unicode/character_class.h"
#include <string.h>

static qn_status add(qn__splitter *splitter, qn__split_kept kept, qn__split_step **step,
                     qn_error *err) {
    if (splitter->count == QN__SPLIT_STEPS)
        return qn__fail(err, QN_FORMAT, "the pre-tokeniser has more than %d steps",
                        QN__SPLIT_STEPS);
    splitter->classes = qn__character_classes();
    *step = &splitter->step[splitter->count++];
    **step = (qn__split_step){.kept = kept};
    return QN_OK;
}

qn_status qn__splitter_add(qn__splitter *splitter, const char *pattern, int is_string,
                           qn__split_kept kept, qn_error *err) {
    qn__split_step *step = NULL;
    const qn_status status = add(splitter, kept, &step, err);
    if (status != QN_OK)
        return status;
    step->scanner = is_string ? NULL : qn__scanner_find(pattern);
    return qn__expression_make(&step->expression, pattern, is_string, step->scanner != NULL,
                               "the pre-tokeniser", err);
}

qn_status qn__splitter_add_class(qn__splitter *splitter, int (*matches)(uint32_t c),
                                 qn__split_kept kept, qn_error *err) {
    qn__split_step *step = NULL;
    const qn_status status = add(splitter, kept, &step, err);
    if (status == QN_OK)
        step->matches = matches;
    return status;
}

qn_status qn__splitter_add_metaspace(qn__splitter *splitter, const char *mark,
                                     qn__split_prefix prefix, int cuts, qn_error *err) {
    qn__split_step *step = NULL;
    const qn_status status = add(splitter, QN__SPLIT_NEXT, &step, err);
    if (status != QN_OK)
        return status;
    step->is_metaspace = 1;
    step->prefix = prefix;
    step->cuts = cuts;
    return qn__expression_make(&step->expression, mark, 1, 1, "the pre-tokeniser", err);
}

/* A space between letters is where a scanner, a metaspace, and white space cut. */
static int cuts_at_spaces(const qn__split_step *step) {
    return step->scanner || (step->is_metaspace && step->cuts) ||
           (step->matches && step->matches(0x20) && step->kept == QN__SPLIT_BETWEEN);
}

size_t qn__splitter_cut(const qn__splitter *splitter, const uint8_t *text, size_t size, size_t at) {
    int known = splitter->count > 0 && cuts_at_spaces(&splitter->step[0]);
    for (size_t k = 0; k < splitter->count; k++)
        known &= splitter->step[k].expression.code == NULL;
    return known ? qn__scanner_cut(text, size, at) : size;
}

void qn__splitter_release(qn__splitter *splitter) {
    for (size_t k = 0; k < splitter->count; k++)
        qn__expression_release(&splitter->step[k].expression);
    splitter->count = 0;
}

qn_status qn__split_worker_make(const qn__splitter *splitter, qn__split_worker *worker,
                                qn_error *err) {
    qn_status status = QN_OK;
    for (size_t k = 0; status == QN_OK && k < splitter->count; k++)
        status = qn__expression_worker(&splitter->step[k].expression, &worker->match[k], err);
    return status;
}

void qn__split_worker_release(qn__split_worker *worker) {
    for (size_t k = 0; k < QN__SPLIT_STEPS; k++) {
        qn__expression_worker_release(worker->match[k]);
        qn__byte_buffer_release(&worker->marked[k]);
    }
}

/* A step on its way through a text. */
typedef struct cutting {
    const qn__splitter *splitter;
    qn__split_worker *worker;
    size_t step;
    const uint8_t *text;
    const qn__split_taker *taker;
    qn_error *err;
    size_t begin, end; /* a part that may grow */
    int waits;         /* there is one */
    int is_match;      /* it is one */
} cutting;

static qn_status split_from(const qn__splitter *splitter, qn__split_worker *worker, size_t k,
                            const uint8_t *text, size_t size, const qn__split_taker *taker,
                            qn_error *err);

/* A part that the step has cut goes to the next step. */
static qn_status hand_on(const cutting *c, size_t begin, size_t end) {
    if (begin == end)
        return QN_OK;
    return c->step + 1 < c->splitter->count
               ? split_from(c->splitter, c->worker, c->step + 1, c->text + begin, end - begin,
                            c->taker, c->err)
               : c->taker->word(c->taker->user, c->text + begin, end - begin, c->err);
}

static qn_status hand_on_waiting(cutting *c) {
    const int waits = c->waits;
    c->waits = 0;
    return waits ? hand_on(c, c->begin, c->end) : QN_OK;
}

static qn_status keep(cutting *c, size_t begin, size_t end, int is_match) {
    const qn_status status = hand_on_waiting(c);
    c->begin = begin;
    c->end = end;
    c->is_match = is_match;
    c->waits = 1;
    return status;
}

/* A match or what is between two. */
static qn_status put(cutting *c, size_t begin, size_t end, int is_match) {
    const qn__split_kept kept = c->splitter->step[c->step].kept;
    if (begin == end)
        return QN_OK;
    if (kept == QN__SPLIT_ALL || (kept == QN__SPLIT_MATCHES && is_match) ||
        (kept == QN__SPLIT_BETWEEN && !is_match))
        return hand_on(c, begin, end);
    if (kept == QN__SPLIT_MATCHES || kept == QN__SPLIT_BETWEEN)
        return QN_OK;
    if (kept == QN__SPLIT_TOGETHER) {
        if (!c->waits || c->is_match != is_match)
            return keep(c, begin, end, is_match);
        c->end = end;
        return QN_OK;
    }
    /* A match waits for what is after it, or the other way round. */
    if (is_match == (kept == QN__SPLIT_NEXT))
        return keep(c, begin, end, is_match);
    if (!c->waits)
        return hand_on(c, begin, end);
    c->end = end;
    return hand_on_waiting(c);
}

static size_t next_character(const uint8_t *text, size_t size, size_t at) {
    size_t length = 1;
    if (at < size)
        (void)qn__code_point(text + at, &length);
    return at + length;
}

static void match_class(const qn__split_step *step, const uint8_t *text, size_t size, size_t from,
                        size_t place[2], int *found) {
    size_t length = 1;
    while (from < size && !step->matches(qn__code_point(text + from, &length)))
        from += length;
    *found = from < size;
    place[0] = from;
    place[1] = from + length;
}

/* By matches that may leave gaps. An empty match right after a match does not count; any other one
 * cuts where it stands. */
static qn_status split_by_matches(cutting *c, size_t size) {
    const qn__split_step *step = &c->splitter->step[c->step];
    size_t done = 0, from = 0, place[2];
    int found;
    qn_status status = QN_OK;
    while (status == QN_OK && from <= size) {
        if (step->matches)
            match_class(step, c->text, size, from, place, &found);
        else
            status = qn__expression_match(&step->expression, c->worker->match[c->step], c->text,
                                          size, from, place, &found, c->err);
        if (status != QN_OK || !found)
            break;
        from = place[0] == place[1] ? next_character(c->text, size, place[1]) : place[1];
        if (place[0] == place[1] && place[0] == done)
            continue;
        status = put(c, done, place[0], 0);
        if (status == QN_OK)
            status = put(c, place[0], place[1], 1);
        done = place[1];
    }
    if (status == QN_OK)
        status = put(c, done, size, 0);
    return status == QN_OK ? hand_on_waiting(c) : status;
}

static qn_status split_by_scanner(cutting *c, size_t size) {
    const qn__scanner *scanner = c->splitter->step[c->step].scanner;
    qn_status status = QN_OK;
    for (size_t at = 0, end; status == QN_OK && at < size; at = end) {
        end = qn__scanner_end(scanner, c->splitter->classes, c->text, size, at);
        status = put(c, at, end, 1);
    }
    return status == QN_OK ? hand_on_waiting(c) : status;
}

/* The text with its mark before it, if it gets one, and in the place of spaces. */
static qn_status mark(const qn__split_step *step, const uint8_t *text, size_t size, int first,
                      qn__byte_buffer *marked, qn_error *err) {
    const char *own = step->expression.pattern;
    const size_t length = strlen(own);
    const int has = text[0] == ' ' || (size >= length && memcmp(text, own, length) == 0);
    const int prefix =
        !has && (step->prefix == QN__PREFIX_ALWAYS || (step->prefix == QN__PREFIX_FIRST && first));
    marked->size = 0;
    qn_status status = prefix ? qn__byte_buffer_add(marked, own, length, err) : QN_OK;
    for (size_t at = 0, end; status == QN_OK && at < size; at = end) {
        const int space = text[at] == ' ';
        for (end = at + 1; !space && end < size && text[end] != ' '; end++) {
        }
        status = space ? qn__byte_buffer_add(marked, own, length, err)
                       : qn__byte_buffer_add(marked, text + at, end - at, err);
    }
    return status;
}

static qn_status split_by_marks(cutting *c, size_t size) {
    const qn__split_step *step = &c->splitter->step[c->step];
    qn__byte_buffer *marked = &c->worker->marked[c->step];
    const qn_status status = mark(step, c->text, size, c->text == c->worker->begin, marked, c->err);
    if (status != QN_OK)
        return status;
    c->text = marked->bytes;
    return step->cuts ? split_by_matches(c, marked->size) : hand_on(c, 0, marked->size);
}

static qn_status split_from(const qn__splitter *splitter, qn__split_worker *worker, size_t k,
                            const uint8_t *text, size_t size, const qn__split_taker *taker,
                            qn_error *err) {
    const qn__split_step *step = &splitter->step[k];
    cutting c = {.splitter = splitter,
                 .worker = worker,
                 .step = k,
                 .text = text,
                 .taker = taker,
                 .err = err};
    if (step->scanner)
        return split_by_scanner(&c, size);
    return step->is_metaspace ? split_by_marks(&c, size) : split_by_matches(&c, size);
}

qn_status qn__split(const qn__splitter *splitter, qn__split_worker *worker, const uint8_t *text,
                    size_t size, const qn__split_taker *taker, qn_error *err) {
    if (!size)
        return QN_OK;
    return splitter->count ? split_from(splitter, worker, 0, text, size, taker, err)
                           : taker->word(taker->user, text, size, err);
}
