#include "recipe_rows.h"
#include "fields.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

option recipe_options[RECIPE_GROUPS][RECIPE_ROWS];

/* With options in place of fields; as long as the program runs. */
static const char *spelled(const char *text) {
    char spelt[640], *copy;
    if (!text)
        return NULL;
    copy = strdup(fields_spell(text, spelt, sizeof spelt));
    if (!copy)
        abort();
    return copy;
}

static option_kind kind_of(qn_option_type type) {
    static const option_kind kinds[] = {
        [QN_OPTION_FLAG] = OPTION_FLAG,     [QN_OPTION_FLOAT] = OPTION_FLOAT,
        [QN_OPTION_COUNT] = OPTION_COUNT32, [QN_OPTION_LONG] = OPTION_COUNT,
        [QN_OPTION_TEXT] = OPTION_TEXT,     [QN_OPTION_NAME] = OPTION_CHOICE};
    return kinds[type];
}

static uint32_t line_of(const qn_option *o) { return o->line > 0 ? o->line : UINT32_MAX; }

/* Puts a row after those of its group that come before it. */
static void add(const qn_option *o, uint32_t lines[RECIPE_ROWS], option *table) {
    size_t at = 0, count = 0;
    while (table[count].name)
        count++;
    while (at < count && lines[at] <= line_of(o))
        at++;
    assert(count + 1 < RECIPE_ROWS);
    memmove(&table[at + 1], &table[at], (count - at) * sizeof *table);
    memmove(&lines[at + 1], &lines[at], (count - at) * sizeof *lines);
    lines[at] = line_of(o);
    table[at] = (option){.name = o->name,
                         .kind = kind_of(o->type),
                         .place = o->offset,
                         .value = o->value,
                         .from = o->from,
                         .low = o->low,
                         .high = o->high,
                         .field = o->field,
                         .only = o->only,
                         .fallback = spelled(o->fallback),
                         .help = spelled(o->help)};
}

void recipe_rows_load(void) {
    static uint32_t lines[RECIPE_GROUPS][RECIPE_ROWS];
    const qn_option *o;
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; i++)
        add(o, lines[o->group], recipe_options[o->group]);
}

const qn_option *recipe_option(const char *name) {
    const qn_option *o;
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; i++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}
