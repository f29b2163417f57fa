/* The tables of names for the public API. */
#include <quern/choices.h>

#include "data/open/format_names.h"
#include "device/device.h"
#include "model/recipe/tables.h"
#include <string.h>

/* A table of names that other tables have: those of devices and formats. */
typedef struct other_names {
    qn__choice row[32];
    qn__table table;
} other_names;

static qn__choice other_name(qn_choice_kind kind, uint32_t i) {
    if (kind == QN_CHOICE_READ || kind == QN_CHOICE_WRITE) {
        const qn__format_word word =
            kind == QN_CHOICE_READ ? qn__format_read(i) : qn__format_written(i);
        return (qn__choice){.name = word.name, .about = word.about};
    }
    const qn__device_word word = kind == QN_CHOICE_DEVICE
                                     ? qn__device_kind(i)
                                     : qn__device_instructions(kind == QN_CHOICE_ISA, i);
    return (qn__choice){.name = word.name, .about = word.about};
}

static const qn__table *find_others(qn_choice_kind kind, other_names *d) {
    uint32_t count = 0;
    for (; count < sizeof d->row / sizeof *d->row; ++count) {
        d->row[count] = other_name(kind, count);
        if (!d->row[count].name)
            break;
    }
    d->table = (qn__table){.count = count, .row = d->row};
    return &d->table;
}

/* The table of a kind; `d` holds one that is not static. */
static const qn__table *find_table(qn_choice_kind kind, other_names *d) {
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
        [QN_CHOICE_DECAY] = &qn__decays,
        [QN_CHOICE_ATTENTION_ARITH] = &qn__attention_ariths,
    };
    /* A caller built with another version may use kinds that this library does not have. */
    const uint32_t number = (uint32_t)kind;
    if (number >= QN_CHOICE_DEVICE && number <= QN_CHOICE_WRITE)
        return find_others(kind, d);
    return number < sizeof tables / sizeof *tables ? tables[number] : NULL;
}

const char *qn_choice_name(qn_choice_kind kind, uint32_t index) {
    other_names own;
    const qn__table *table = find_table(kind, &own);
    return table && index < table->count ? table->row[index].name : NULL;
}

const char *qn_choice_about(qn_choice_kind kind, uint32_t index) {
    other_names own;
    const qn__table *table = find_table(kind, &own);
    return table && index < table->count ? table->row[index].about : NULL;
}

const char *qn_choice_near(qn_choice_kind kind, const char *word) {
    other_names own;
    const qn__table *table = find_table(kind, &own);
    return table && word ? qn__table_near(table, word) : NULL;
}

int qn_choice_lacks(qn_choice_kind kind, const char *word) {
    other_names own;
    const qn__table *table = find_table(kind, &own);
    return table && word ? qn__table_lacks(table, word) : 0;
}

int qn_choice_takes(qn_choice_kind kind, const char *name, const char *member) {
    other_names own;
    const qn__table *table = find_table(kind, &own);
    const qn__choice *row = table && name ? qn__table_row(table, name, strlen(name)) : NULL;
    return row && member ? qn__table_takes(table, row->value, member) : 0;
}
