#include "predict/tag_lines.h"

static void add_separator(qn__text *text) {
    if (text->size)
        qn__text_add(text, " ");
}

static void add_tag(const qn__schema *names, uint8_t tag, qn__text *text) {
    add_separator(text);
    if (tag == QN__NO_TARGET)
        qn__text_add(text, "-100");
    else if (names && tag < names->classes)
        qn__text_add(text, "%s", names->class_name[tag]);
    else
        qn__text_add(text, "%u", tag);
}

static void add_words(const uint32_t *gap, uint32_t positions, const uint8_t *tags,
                      const qn__schema *names, qn__text *text) {
    for (uint32_t t = 0; t <= positions; t++) {
        const int last = t == positions;
        for (uint32_t k = last ? 0 : 1; k < gap[t]; k++)
            add_tag(names, QN__NO_TARGET, text);
        if (!last && gap[t])
            add_tag(names, tags[t], text);
    }
}

/* The positions up to the last token: 25.37. */
static uint32_t length_of(const qn__tag_lines *l, uint64_t item) {
    const void *values = qn__data_item(l->data, item);
    uint32_t length = l->positions < l->data->features ? l->positions : l->data->features;
    while (length > 0 && qn__element_number(l->data->type, values, length - 1) >= (double)l->rows)
        length--;
    return length;
}

static char *line_of(const qn__tag_lines *l, uint64_t item, const uint8_t *tags,
                     const qn__schema *names, qn_error *err) {
    qn__text text = {0};
    const uint64_t row = l->data->index ? l->data->index[item] : item;
    const qn__text_words *words = l->data->words;
    qn__text_add(&text, "%s", "");
    if (words && words->each == l->positions + 1)
        add_words(qn__text_words_of(words, row), l->positions, tags, names, &text);
    else
        for (uint32_t t = 0, length = length_of(l, item); t < length; t++)
            add_tag(names, tags[t], &text);
    return qn__text_take(&text, err);
}

char *qn__tag_line(const qn__tag_lines *lines, uint64_t item, qn_error *err) {
    return line_of(lines, item, lines->answers + (size_t)item * lines->positions, lines->table,
                   err);
}

char *qn__tag_line_of_labels(const qn__tag_lines *lines, uint64_t item, qn_error *err) {
    return line_of(lines, item, qn__several_of(lines->data, item), lines->data->schema, err);
}
