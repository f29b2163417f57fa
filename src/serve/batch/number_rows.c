/* Rows of numbers for a network, read without a file: a tenth of the time that a reader of files
 * takes, which matters where a request is one small row. What is not plainly such rows is left to
 * that reader, which also has the messages. */
#include "serve/batch/body_state.h"

#include "base/memory.h"
#include "data/json/json_token.h"
#include "model/formats/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 64, MOST_WHOLE = 1 << 24 };

int qn__takes_number_rows(const qn_model *m) {
    if (m->kind != &qn__network_kind || !m->table || m->tokens)
        return 0;
    for (uint32_t k = 0; k < m->table->features; ++k) {
        const qn__feature *f = &m->table->feature[k];
        if (!f->name || f->categories || f->text || f->dates || f->exact != QN__EXACT_NONE)
            return 0;
    }
    return 1;
}

/* The values that were read so far, row after row. */
typedef struct number_rows {
    const qn__schema *table;
    float *value;
    uint64_t rows, capacity;
    uint8_t *seen; /* which columns the row has */
} number_rows;

static int grow(number_rows *n) {
    const uint64_t capacity = n->capacity ? 2 * n->capacity : 1;
    const size_t each = n->table->features * sizeof(float);
    float *more = realloc(n->value, (size_t)capacity * each);
    if (!more)
        return 0;
    n->value = more;
    n->capacity = capacity;
    return 1;
}

/* Columns come in their order, nearly always. */
static uint32_t column_of(const qn__schema *table, const qn__token *key, uint32_t next) {
    for (uint32_t i = 0; i < table->features; ++i) {
        const uint32_t k = (next + i) % table->features;
        const char *name = table->feature[k].name;
        if (strncmp(name, key->text, key->size) == 0 && !name[key->size])
            return k;
    }
    return table->features;
}

/* As the reader of JSON lines gives the values of a column that is not wide. */
static int number_of(const qn__token *token, float *out) {
    if (token->kind == QN__TOKEN_WHOLE && llabs(token->whole) <= MOST_WHOLE)
        *out = (float)token->whole;
    else if (token->kind == QN__TOKEN_NUMBER && isfinite((float)token->number))
        *out = (float)token->number;
    else
        return 0;
    return 1;
}

/* A row: all columns, each once, with a number. */
static int read_row(qn__json_scan *scan, number_rows *n) {
    const uint32_t features = n->table->features;
    uint32_t count = 0, next = 0;
    if (n->rows == n->capacity && !grow(n))
        return 0;
    float *value = n->value + n->rows * features;
    memset(n->seen, 0, features);
    ++scan->at; /* the brace */
    while (qn__json_next(scan) == '"') {
        qn__token key, token;
        qn__json_token(scan, &key);
        if (key.kind != QN__TOKEN_TEXT || qn__json_next(scan) != ':')
            return 0;
        ++scan->at;
        const uint32_t k = column_of(n->table, &key, next);
        qn__json_next(scan);
        qn__json_token(scan, &token);
        if (k == features || n->seen[k] || !number_of(&token, &value[k]))
            return 0;
        n->seen[k] = 1;
        next = k + 1;
        ++count;
        if (qn__json_next(scan) != ',')
            break;
        ++scan->at;
        if (qn__json_next(scan) != '"')
            return 0;
    }
    if (count != features || qn__json_next(scan) != '}')
        return 0;
    ++scan->at;
    ++n->rows;
    return 1;
}

/* One row, or a list of rows. */
static int read_rows(qn__json_scan *scan, number_rows *n) {
    const int list = qn__json_next(scan) == '[';
    scan->at += list;
    for (;;) {
        if (qn__json_next(scan) != '{' || !read_row(scan, n))
            return 0;
        if (!list || qn__json_next(scan) != ',')
            break;
        ++scan->at;
    }
    if (list && qn__json_next(scan) != ']')
        return 0;
    scan->at += list;
    qn__json_next(scan);
    return scan->at == scan->end;
}

int qn__number_rows(const qn__body_reader *reader, const void *body, size_t size, qn_data **out) {
    number_rows n = {.table = reader->model->table};
    char *text = malloc(size + MARGIN);
    n.seen = malloc(n.table->features);
    int good = text && n.seen;
    if (good) {
        memcpy(text, body, size);
        memset(text + size, 0, MARGIN);
        qn__json_scan scan = {.at = text, .end = text + size, .line = 1};
        good = read_rows(&scan, &n);
    }
    const uint64_t shape[2] = {n.rows, n.table->features};
    const qn__body_tensor tensor = {.type = "FP32",
                                    .shape = shape,
                                    .lengths = 2,
                                    .values = n.value,
                                    .bytes = (size_t)(n.rows * n.table->features) * sizeof(float)};
    good = good && qn__body_of_tensor(reader, &tensor, out, NULL) == QN_OK;
    free(text);
    free(n.seen);
    free(n.value);
    return good;
}
