#include "data/cells/row_numbers.h"
#include "data/cells/id_numbers.h"

/* Fewer items may count up by chance. */
enum { ITEMS = 10 };

static double value_at(const qn_data *data, const qn__seen_column *c, uint64_t item) {
    if (c->is_label)
        return data->targets ? (double)data->targets[item] : (double)data->labels[item];
    return qn__data_number(data, item, c->feature);
}

static int counts_up(const qn_data *data, const qn__seen_column *c) {
    const int text = c->is_label ? data->schema && data->schema->target == QN__TARGET_CLASS
                                 : data->schema && data->schema->feature[c->feature].categories > 0;
    if (text || data->items < ITEMS || (c->is_label && !data->labels && !data->targets))
        return 0;
    const double first = value_at(data, c, 0);
    if (first != 0.0 && first != 1.0)
        return 0;
    uint64_t i = 1;
    while (i < data->items &&
           value_at(data, c, i) == (double)(float)(first + (double)i)) /* as a table has it */
        i++;
    return i == data->items;
}

/* Begins a line: the column by its place and its name. */
static void add_column(const qn__seen_column *c, qn__text *text) {
    const int nameless = !c->name || !*c->name;
    qn__text_add(text, "\ncolumn %llu%s%.60s%s%s ", (unsigned long long)c->number,
                 nameless ? "" : " (", nameless ? "" : c->name, nameless ? "" : ")",
                 c->is_label ? ", the label," : "");
}

void qn__note_row_numbers(const qn_data *data, const qn__seen_column *c, qn__text *text) {
    const int nameless = (!c->name || !*c->name) && c->named, counts = counts_up(data, c);
    const int ids = !counts && !c->is_label && qn__looks_like_ids(data, c->feature, c->name);
    if (!counts && !nameless && !ids)
        return;
    add_column(c, text);
    qn__text_add(text, "%s%s%s", nameless ? "has no name" : "",
                 nameless && (counts || ids) ? " and " : "",
                 counts ? "numbers the rows"
                 : ids  ? "looks like an id: its whole numbers are all different"
                        : "");
    qn__text_add(text,
                 counts || ids ? "; leave it out" : "; where it only names the rows, leave it out");
    qn__text_add(text, " with `data.drop` %llu", (unsigned long long)c->number);
}
