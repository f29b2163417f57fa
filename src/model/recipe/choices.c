/* The tables of names for the public API. */
#include <quern/choices.h>

#include "model/recipe/tables.h"
#include <string.h>

static const qn__table *find_table(qn_choice_kind kind) {
    static const qn__table *const tables[] = {
        [QN_CHOICE_NONE] = NULL,
        [QN_CHOICE_ACTIVATION] = &qn__activations,
        [QN_CHOICE_LOSS] = &qn__losses,
        [QN_CHOICE_OPTIMIZER] = &qn__optimizers,
        [QN_CHOICE_INIT] = &qn__initialisations,
        [QN_CHOICE_SCALE] = &qn__scalings,
        [QN_CHOICE_ARITH] = &qn__arithmetics,
        [QN_CHOICE_SCHEDULE] = &qn__schedules,
        [QN_CHOICE_MISSING] = &qn__missing_rules,
        [QN_CHOICE_KEEP] = &qn__keeps,
        [QN_CHOICE_INIT_SCALE] = &qn__init_scales,
    };
    /* A caller built with another version may use kinds that this library does not have. */
    const uint32_t number = (uint32_t)kind;
    return number < sizeof tables / sizeof *tables ? tables[number] : NULL;
}

const char *qn_choice_name(qn_choice_kind kind, uint32_t index) {
    const qn__table *table = find_table(kind);
    return table && index < table->count ? table->row[index].name : NULL;
}

const char *qn_choice_about(qn_choice_kind kind, uint32_t index) {
    const qn__table *table = find_table(kind);
    return table && index < table->count ? table->row[index].about : NULL;
}

const char *qn_choice_near(qn_choice_kind kind, const char *word) {
    const qn__table *table = find_table(kind);
    return table && word ? qn__table_near(table, word) : NULL;
}

int qn_choice_lacks(qn_choice_kind kind, const char *word) {
    const qn__table *table = find_table(kind);
    return table && word ? qn__table_lacks(table, word) : 0;
}

int qn_choice_takes(qn_choice_kind kind, const char *name, const char *member) {
    const qn__table *table = find_table(kind);
    const qn__choice *row = table && name ? qn__table_row(table, name, strlen(name)) : NULL;
    return row && member ? qn__table_takes(table, row->value, member) : 0;
}
