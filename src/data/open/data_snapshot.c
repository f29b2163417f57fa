/* The snapshot: a head, the values with their margin, the labels or targets with theirs, the
 * weights with theirs, the exact values of wide columns with theirs, the words of texts with
 * theirs, the windows of texts, and five texts that end in NUL: the schema as JSON, the note, the
 * name of the weights, the tokenizer, and a digit for each column of a schema: whether it holds
 * bytes. After them stand the names of all items, where they have some, and the sizes of images
 * before they were resized. Each part begins at a multiple of 64 bytes. Numbers are little-endian,
 * as everywhere in memory here (digest.c). */
#include "data/open/data_snapshot.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/commas.h"
#include "data/cells/readers.h"
#include "data/table/wide.h"
#include <float.h>
#include <string.h>

#define MAGIC "quern data table\n"
enum { ALIGNMENT = 64 };

typedef struct head {
    char magic[24];
    uint32_t type, features, rows, columns;
    uint64_t items;
    uint32_t context, windows; /* windows: 1: each item has its window of a text; 0: none has */
    uint32_t labelled;         /* 0: no labels; 1: labels; 2: targets; 3: several targets an item */
    uint32_t doubt, missing, comma;
    uint32_t weighted; /* 0: no weights; 1: weights; 2: weights with a name */
    uint32_t channels;
    qn__resize resize;
    uint32_t rules;
    uint32_t each, mask_rows, mask_columns; /* of several targets; else 0 */
    uint64_t label_values;
    uint64_t wide;  /* columns, which the schema names */
    uint64_t text;  /* bytes of the texts, names and sizes of items included */
    uint64_t names; /* bytes of the names of items; 0: there are none */
    uint64_t sizes; /* bytes of the sizes of items; 0: there are none */
    uint64_t words; /* numbers of an item about its words; 0: there are none */
    char format[16];
    char digest[72];
    char date_format[QN__DATE_FORMAT];
    char tokens[QN__TOKENS_TEXT];
} head;

/* Offsets of the parts. */
typedef struct places {
    uint64_t values, labels, weights, wide, words, window, text, bytes;
} places;

static int add(uint64_t *sum, uint64_t more) { return !__builtin_add_overflow(*sum, more, sum); }

uint64_t qn__data_snapshot_values(void) {
    return (sizeof(head) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes of an item's labels. */
static uint64_t label_bytes(const head *h) {
    return h->labelled == 3 ? h->each : h->labelled ? sizeof(int32_t) : 0;
}

/* 0 if the sizes cannot be addressed. */
static int place(const head *h, places *p) {
    const uint64_t size = qn__element_of(h->type)->size, stride = h->features * size;
    const uint64_t step = h->context ? h->context * size : stride;
    uint64_t values, labels, weights, wide, words, window;
    if (__builtin_mul_overflow(step, h->items - 1, &values) || !add(&values, stride) ||
        __builtin_mul_overflow(label_bytes(h), h->items, &labels) ||
        __builtin_mul_overflow(h->weighted ? sizeof(float) : 0, h->items, &weights) ||
        __builtin_mul_overflow(h->wide, sizeof(qn__wide_value), &wide) ||
        __builtin_mul_overflow(wide, h->items, &wide) ||
        __builtin_mul_overflow(h->words, sizeof(uint32_t), &words) ||
        __builtin_mul_overflow(words, h->items, &words) ||
        __builtin_mul_overflow(h->windows ? sizeof(qn__text_window) : 0, h->items, &window))
        return 0;
    const uint64_t margin = QN__DATA_MARGIN + ALIGNMENT - 1, mask = ~(uint64_t)(ALIGNMENT - 1);
    p->values = qn__data_snapshot_values();
    p->labels = p->values;
    if (!add(&p->labels, values) || !add(&p->labels, margin))
        return 0;
    p->labels &= mask;
    p->weights = p->labels;
    if (!add(&p->weights, labels) || !add(&p->weights, margin))
        return 0;
    p->weights &= mask;
    p->wide = p->weights;
    if (h->weighted && (!add(&p->wide, weights) || !add(&p->wide, margin)))
        return 0;
    p->wide &= mask;
    p->words = p->wide;
    if (h->wide && (!add(&p->words, wide) || !add(&p->words, margin)))
        return 0;
    p->words &= mask;
    p->window = p->words;
    if (h->words && (!add(&p->window, words) || !add(&p->window, margin)))
        return 0;
    p->window &= mask;
    p->text = p->window;
    if (h->windows && (!add(&p->text, window) || !add(&p->text, margin)))
        return 0;
    p->text &= mask;
    p->bytes = p->text;
    if (!add(&p->bytes, h->text) || !add(&p->bytes, margin) || p->bytes > SIZE_MAX / 2)
        return 0;
    p->bytes &= mask;
    return 1;
}

/* What a recipe does not have of a column, a character of these. */
static const char marks[] = "01dtz";

static char mark_of(const qn__feature *feature) {
    if (feature->dates)
        return feature->zone ? 'z' : feature->time ? 't' : 'd';
    return feature->bytes ? '1' : '0';
}

/* The texts of the snapshot; released by the caller. */
static qn__text texts_of(const qn_data *table) {
    qn__text text = {0};
    qn__schema_add_json(table->schema, &text);
    qn__text_add(&text, "%c%s%c", '\0', table->note ? table->note : "", '\0');
    qn__text_add(&text, "%s%c", table->weight_name ? table->weight_name : "", '\0');
    qn__text_add(&text, "%s%c", table->tokenizer ? table->tokenizer : "", '\0');
    for (uint32_t k = 0; table->schema && k < table->features; k++)
        qn__text_add(&text, "%c", mark_of(&table->schema->feature[k]));
    qn__text_add(&text, "%c", '\0');
    for (uint64_t i = 0; table->names && i < table->items; i++)
        qn__text_add(&text, "%s%c", table->names->text + table->names->at[i], '\0');
    qn__item_sizes_add(table->names, table->items, &text);
    return text;
}

static head head_of(const qn_data *table, const qn__text *text) {
    head h = {.magic = MAGIC,
              .type = (uint32_t)table->type,
              .features = table->features,
              .channels = table->channels,
              .resize = table->resize,
              .rules = table->rules,
              .rows = table->rows,
              .columns = table->columns,
              .items = table->items,
              .context = table->context,
              .windows = table->window != NULL,
              .labelled = table->several   ? 3
                          : table->targets ? 2
                                           : table->labels != NULL,
              .each = table->several ? table->several->each : 0,
              .mask_rows = table->several ? table->several->height : 0,
              .mask_columns = table->several ? table->several->width : 0,
              .doubt = (uint32_t)table->doubt,
              .comma = table->comma,
              .missing = table->missing != 0,
              .weighted = table->weights ? 1 + (table->weight_name != NULL) : 0,
              .label_values = table->label_values,
              .wide = table->wide ? table->wide->columns : 0,
              .text = text->size,
              .words = table->words ? table->words->each : 0,
              .names = table->names ? table->names->size : 0,
              .sizes = table->names && table->names->seen ? QN__ITEM_SIZE_TEXT * table->items : 0};
    strncpy(h.format, table->format, sizeof h.format - 1);
    memcpy(h.digest, qn_data_digest(table), sizeof table->digest);
    memcpy(h.date_format, table->date_format, sizeof h.date_format);
    memcpy(h.tokens, table->tokens, sizeof h.tokens);
    return h;
}

uint64_t qn__data_snapshot_bytes(const qn_data *table) {
    qn__text text = texts_of(table);
    const head h = head_of(table, &text);
    places p;
    const uint64_t bytes = !text.failed && place(&h, &p) ? p.bytes : 0;
    qn__text_release(&text);
    return bytes;
}

void qn__data_snapshot_write(const qn_data *table, void *snapshot) {
    qn__text text = texts_of(table);
    const head h = head_of(table, &text);
    uint8_t *to = snapshot;
    places p;
    if (!text.failed && place(&h, &p)) {
        memcpy(to, &h, sizeof h);
        if (to + p.values != table->values)
            memcpy(to + p.values, table->values, qn__data_bytes_of(table, table->items));
        if (table->several)
            memcpy(to + p.labels, table->several->target,
                   (size_t)table->items * table->several->each);
        else if (table->targets)
            memcpy(to + p.labels, table->targets, (size_t)table->items * sizeof *table->targets);
        else if (table->labels)
            memcpy(to + p.labels, table->labels, (size_t)table->items * sizeof *table->labels);
        if (table->weights)
            memcpy(to + p.weights, table->weights, (size_t)table->items * sizeof *table->weights);
        if (table->wide)
            memcpy(to + p.wide, table->wide->value, (size_t)qn__wide_bytes(table->wide));
        if (table->words)
            memcpy(to + p.words, table->words->gap,
                   (size_t)table->items * table->words->each * sizeof *table->words->gap);
        if (table->window)
            memcpy(to + p.window, table->window, (size_t)table->items * sizeof *table->window);
        memcpy(to + p.text, text.data, text.size);
    }
    qn__text_release(&text);
}

static int is_digest(const char *text) {
    return strspn(text, "0123456789abcdef") == 64 && text[64] == '\0';
}

static int has_pixels(const head *h) {
    uint64_t area;
    return !__builtin_mul_overflow((uint64_t)h->rows * h->columns, (uint64_t)h->channels, &area) &&
           area == h->features;
}

/* The sizes of several targets. */
static int is_several(const head *h) {
    const uint64_t pixels = (uint64_t)h->mask_rows * h->mask_columns;
    return h->labelled == 3 ? h->each > 0 && (h->mask_rows == 0) == (h->mask_columns == 0) &&
                                  (h->mask_rows == 0 || pixels == h->each)
                            : h->each == 0 && pixels == 0;
}

/* Reads and checks the header, and terminates its texts; 0 if it does not match `bytes`. It is
 * copied first, because another process may still write to it. */
static int read_head(const void *snapshot, uint64_t bytes, head *h, places *p) {
    if (bytes < sizeof *h)
        return 0;
    memcpy(h, snapshot, sizeof *h);
    h->format[sizeof h->format - 1] = h->digest[sizeof h->digest - 1] = '\0';
    h->date_format[sizeof h->date_format - 1] = h->tokens[sizeof h->tokens - 1] = '\0';
    return memcmp(h->magic, MAGIC, sizeof MAGIC) == 0 && qn__element_is_type(h->type) &&
           h->items > 0 && h->items <= QN__ITEMS_MAX && h->features > 0 && h->labelled <= 3 &&
           is_several(h) && (h->words == 0 || h->words == (uint64_t)h->features + 1) &&
           h->weighted <= 2 && h->windows <= 1 && h->wide <= h->features &&
           h->doubt <= QN__DOUBT_COMMA && h->names <= h->text && h->sizes <= h->text - h->names &&
           (h->names > 0 || h->sizes == 0) && (h->rows == 0) == (h->columns == 0) &&
           (h->rows == 0) == (h->channels == 0) && (h->rows == 0 || has_pixels(h)) &&
           qn__format_name(h->format) && is_digest(h->digest) &&
           (h->context == 0 || (h->context == h->features - 1 && h->tokens[0] != '\0')) &&
           (h->tokens[0] != '\0') == qn__element_is_token(h->type) &&
           (h->tokens[0] == '\0' || qn__tokens_are_known(h->tokens)) &&
           (h->date_format[0] == '\0' || qn__date_format_check(h->date_format, NULL) == QN_OK) &&
           place(h, p) && p->bytes == bytes;
}

static qn_status refuse(qn_error *err, const char *what) {
    qn__fail(err, QN_FORMAT, "%s", what);
    return qn__remedy(err, QN_FORMAT,
                      "another process that shares the data, or the memory of this machine, is at "
                      "fault: start the run again");
}

/* Classes from the labels; 0 if a label is negative. */
static int count_classes(qn_data *data) {
    int32_t greatest = -1;
    if (data->several)
        greatest = (int32_t)qn__several_classes(data->several, data->items) - 1;
    for (uint64_t i = 0; data->labels && i < data->items; i++) {
        if (data->labels[i] < 0)
            return 0;
        greatest = data->labels[i] > greatest ? data->labels[i] : greatest;
    }
    data->classes = (uint32_t)greatest + 1;
    return 1;
}

/* The schema must fit the table, and the classes the labels. */
static int is_fitting(const qn_data *data) {
    const qn__schema *schema = data->schema;
    if (!schema)
        return !data->targets && data->comma == 0;
    if (data->comma > schema->features ||
        (data->comma > 0 && !qn__comma_example(&schema->feature[data->comma - 1])))
        return 0;
    return schema->features == data->features && schema->target == qn__data_target(data) &&
           (schema->target != QN__TARGET_CLASS || data->classes <= schema->classes);
}

/* After the NUL at `end`, of `*left` bytes, a text that ends in NUL too: its first byte, with *end
 * and *left those after it. NULL: there is none. */
static const char *next_text(const char **end, size_t *left) {
    const char *text = *end + 1, *nul = *left ? memchr(text, '\0', *left) : NULL;
    if (!nul)
        return NULL;
    *left -= (size_t)(nul + 1 - text);
    *end = nul;
    return text;
}

static qn_status copy_text(const char *text, char **to, qn_error *err) {
    *to = qn__copy_text(text, err);
    return *to ? QN_OK : QN_MEMORY;
}

/* The marks of all columns. */
static int take_marks(const char *mark, qn_data *data) {
    const uint32_t features = data->schema ? data->schema->features : 0;
    if (strlen(mark) != features || strspn(mark, marks) != features)
        return 0;
    for (uint32_t k = 0; k < features; k++) {
        qn__feature *feature = &data->schema->feature[k];
        feature->bytes = mark[k] == '1';
        feature->zone = mark[k] == 'z';
        feature->time = mark[k] == 't' || feature->zone;
        feature->exact = feature->time ? QN__EXACT_MOMENT : feature->exact;
        if ((feature->dates != 0) != (mark[k] > '1') || (feature->dates && data->type != QN_F32))
            return 0;
    }
    return 1;
}

/* Reads the texts, `size` bytes: the schema, the note, and the name of the weights where there is
 * one (`named`). */
static qn_status read_texts(const char *text, size_t size, int named, qn_data *data,
                            qn_error *err) {
    const char *end = size ? memchr(text, '\0', size) : NULL, *after = end;
    size_t left = end ? size - (size_t)(end + 1 - text) : 0;
    const char *note = end ? next_text(&after, &left) : NULL;
    const char *name = note ? next_text(&after, &left) : NULL;
    const char *tokenizer = name ? next_text(&after, &left) : NULL;
    const char *bytes = tokenizer ? next_text(&after, &left) : NULL;
    if (!bytes || left != 0)
        return refuse(err, "what was shared with the data is not text");
    qn__json *document;
    qn_status status = qn__json_parse(text, (size_t)(end - text), &document, err);
    if (status == QN_OK) {
        status = qn__schema_from_json(qn__json_root(document), &data->schema, err);
        qn__json_free(document);
    }
    if (status == QN_OK && *note)
        status = copy_text(note, &data->note, err);
    if (status == QN_OK && *tokenizer)
        status = copy_text(tokenizer, &data->tokenizer, err);
    if (status == QN_OK && named)
        status = copy_text(name, &data->weight_name, err);
    if (status == QN_OK && !(take_marks(bytes, data) && is_fitting(data)))
        status = refuse(err, "the names of the shared data do not fit it");
    return status;
}

/* 1 when all weights are finite and none is below 0. */
static int are_weights(const qn_data *data) {
    for (uint64_t i = 0; data->weights && i < data->items; i++)
        if (!(data->weights[i] >= 0.0f && data->weights[i] <= FLT_MAX))
            return 0;
    return 1;
}

/* What the head alone tells. */
static void take_head(qn_data *data, const head *h) {
    data->type = (qn_data_type)h->type;
    data->items = h->items;
    data->context = h->context;
    data->features = h->features;
    data->channels = h->channels;
    data->resize = h->resize;
    data->rules = h->rules;
    data->rows = h->rows;
    data->columns = h->columns;
    data->format = qn__format_name(h->format);
    data->doubt = (qn__doubt)h->doubt;
    data->comma = h->comma;
    data->missing = h->missing != 0;
    data->label_values = h->label_values;
    data->mapped = 1;
    memcpy(data->digest, h->digest, sizeof data->digest);
    memcpy(data->date_format, h->date_format, sizeof data->date_format);
    memcpy(data->tokens, h->tokens, sizeof data->tokens);
}

/* The wide columns of the schema, whose values are in the snapshot. */
static qn_status take_wide(const void *values, uint64_t columns, qn_data *data, qn_error *err) {
    uint64_t found = 0;
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        found += data->schema->feature[k].exact != QN__EXACT_NONE;
    if (found != columns || (columns > 0 && data->type != QN_F32))
        return refuse(err, "the exact values of the shared data do not fit it");
    if (columns == 0)
        return QN_OK;
    data->wide = qn__wide_create((uint32_t)columns, data->items, values, err);
    for (uint32_t k = 0, j = 0; data->wide && j < columns; k++)
        if (data->schema->feature[k].exact != QN__EXACT_NONE)
            data->wide->feature[j++] = k;
    return data->wide ? QN_OK : QN_MEMORY;
}

/* Targets that are in the snapshot. */
static qn_status take_several(const uint8_t *targets, const head *h, qn_data *data, qn_error *err) {
    if (h->labelled != 3)
        return QN_OK;
    data->several = qn__alloc(1, sizeof *data->several, err);
    if (!data->several)
        return QN_MEMORY;
    /* Nobody writes to them, as to labels. */
    *data->several = (qn__several){.each = h->each,
                                   .height = h->mask_rows,
                                   .width = h->mask_columns,
                                   .target = (uint8_t *)(uintptr_t)targets,
                                   .mapped = 1};
    return qn__several_check(data->several, h->items, err) == QN_OK
               ? QN_OK
               : refuse(err, "a label of the shared data is neither 0 nor 1");
}

/* Each window is the next one of its text, or the first of the next text. */
static int are_windows(const qn_data *data) {
    qn__text_window before = {UINT64_MAX, 0};
    for (uint64_t i = 0; data->window && i < data->items; i++) {
        const qn__text_window own = data->window[i];
        const int next = own.number == 0 && own.text == before.text + 1;
        if (!next && (i == 0 || own.text != before.text || own.number != before.number + 1))
            return 0;
        before = own;
    }
    return 1;
}

/* The names, and the sizes after them. */
static qn_status take_names(const char *text, const head *h, qn_data *data, qn_error *err) {
    qn_status status = qn__item_names_take(text, h->names, data->items, &data->names, err);
    if (status == QN_OK && h->sizes)
        status = qn__item_sizes_take(text + h->names, h->sizes, data->items, data->names, err);
    return status == QN_FORMAT ? refuse(err, "the names of the shared items do not fit them")
                               : status;
}

static qn_status take_words(const uint8_t *numbers, const head *h, qn_data *data, qn_error *err) {
    data->words = qn__alloc(1, sizeof *data->words, err);
    if (!data->words)
        return QN_MEMORY;
    *data->words = (qn__text_words){
        .each = (uint32_t)h->words, .gap = (uint32_t *)(uintptr_t)numbers, .mapped = 1};
    return QN_OK;
}

uint64_t qn__data_snapshot_texts(const void *snapshot, uint64_t bytes) {
    head h;
    places p;
    return read_head(snapshot, bytes, &h, &p) ? h.text : 0;
}

qn_status qn__data_snapshot_map(const void *snapshot, uint64_t bytes, qn_data **out,
                                qn_error *err) {
    const uint8_t *from = snapshot;
    head h;
    places p;
    *out = NULL;
    if (!read_head(snapshot, bytes, &h, &p))
        return refuse(err, "what was shared is not a data set");
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    take_head(data, &h);
    data->values = from + p.values;
    /* Nobody writes to labels; the pointers are not const for those who allocate them. */
    data->labels = h.labelled == 1 ? (int32_t *)(uintptr_t)(from + p.labels) : NULL;
    data->targets = h.labelled == 2 ? (float *)(uintptr_t)(from + p.labels) : NULL;
    data->weights = h.weighted ? (float *)(uintptr_t)(from + p.weights) : NULL;
    qn_status status = take_several(from + p.labels, &h, data, err);
    if (status == QN_OK && !are_weights(data))
        status = refuse(err, "a weight of the shared data is negative or not finite");
    else if (status == QN_OK && !count_classes(data))
        status = refuse(err, "a label of the shared data is negative");
    data->window = h.windows ? (qn__text_window *)(uintptr_t)(from + p.window) : NULL;
    if (status == QN_OK && !are_windows(data))
        status = refuse(err, "the windows of the shared texts are not in their order");
    const char *text = (const char *)from + p.text;
    if (status == QN_OK)
        status = read_texts(text, (size_t)(h.text - h.names - h.sizes), h.weighted == 2, data, err);
    if (status == QN_OK)
        status = take_wide(from + p.wide, h.wide, data, err);
    if (status == QN_OK && h.words)
        status = take_words(from + p.words, &h, data, err);
    if (status == QN_OK && h.names)
        status = take_names(text + h.text - h.names - h.sizes, &h, data, err);
    if (status != QN_OK)
        qn_data_close(data);
    else
        *out = data;
    return status;
}
