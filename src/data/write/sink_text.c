/* Values, names and lines as text, for all sinks. */
#include "data/write/sink_kinds.h"
#include <inttypes.h>
#include <string.h>

void qn__sink_add_value(qn__text *text, const qn__sink_cell *cell) {
    char number[40];
    switch (cell->type) {
    case QN__SINK_MISSING:
        break;
    case QN__SINK_INTEGER:
        qn__text_add(text, "%" PRId64, cell->of.whole);
        break;
    case QN__SINK_SINGLE:
        qn__float_plain((float)cell->of.number, number);
        qn__text_add(text, "%s", number);
        break;
    case QN__SINK_REAL:
        qn__text_add(text, "%.17g", cell->of.number);
        break;
    case QN__SINK_TEXT:
        qn__text_add(text, "%s", cell->of.text);
        break;
    }
}

void qn__sink_add_name(qn__text *text, const char *name) {
    qn__text_add(text, "\"");
    for (; *name; name++)
        qn__text_add(text, "%s%c", *name == '"' ? "\"" : "", *name);
    qn__text_add(text, "\"");
}

void qn__sink_add_names(qn__text *text, const qn__sink *sink) {
    if (sink->run)
        qn__sink_add_name(text, "run");
    for (uint32_t k = 0; k < sink->table.columns; k++) {
        qn__text_add(text, "%s", k || sink->run ? ", " : "");
        qn__sink_add_name(text, sink->table.column[k].name);
    }
}

/* ------------------------------------------------------------------ lines */

static int is_blank(char c) { return c == ' ' || c == '\t'; }

/* A text, in quotes where a reader of CSV could take it for something else. */
static void add_text(qn__text *text, const char *cell, int quoted) {
    const size_t size = strlen(cell);
    const int edged = size > 0 && (is_blank(cell[0]) || is_blank(cell[size - 1]));
    if (!quoted && !edged && size > 0 && !strpbrk(cell, ",;\t\"\r\n")) {
        qn__text_add(text, "%s", cell);
        return;
    }
    qn__text_add(text, "\"");
    for (const char *quote; (quote = strchr(cell, '"')); cell = quote + 1)
        qn__text_add(text, "%.*s\"\"", (int)(quote - cell), cell);
    qn__text_add(text, "%s\"", cell);
}

void qn__sink_add_header(qn__text *text, const qn__sink_table *table) {
    for (uint32_t k = 0; k < table->columns; k++) {
        qn__text_add(text, "%s", k ? "," : "");
        add_text(text, table->column[k].name, 0);
    }
    qn__text_add(text, "\n");
}

void qn__sink_add_line(qn__text *text, const qn__sink_table *table, const qn__sink_cell *cells) {
    for (uint32_t k = 0; k < table->columns; k++) {
        qn__text_add(text, "%s", k ? "," : "");
        if (cells[k].type == QN__SINK_TEXT)
            add_text(text, cells[k].of.text, table->column[k].quoted);
        else
            qn__sink_add_value(text, &cells[k]);
    }
    qn__text_add(text, "\n");
}
