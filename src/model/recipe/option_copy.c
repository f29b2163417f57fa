/* Options to recipes and back, where no option has a rule of its own. */
#include "model/recipe/option_rows.h"
#include <string.h>

static void set_number(const qn__option *o, double value, void *at) {
    switch (o->open.type) {
    case QN_OPTION_FLAG:
        *(int *)at = value != 0;
        break;
    case QN_OPTION_FLOAT:
        *(float *)at = (float)value;
        break;
    case QN_OPTION_COUNT:
        *(uint32_t *)at = (uint32_t)value;
        break;
    case QN_OPTION_LONG:
        *(uint64_t *)at = (uint64_t)value;
        break;
    case QN_OPTION_NAME:
        *(const char **)at = o->first ? o->table->row[0].name : NULL;
        break;
    case QN_OPTION_TEXT:
        break;
    }
}

void qn__options_init(qn_train_options *options) {
    for (const qn__option *o = qn__options; o->key; ++o)
        if (o->open.field)
            set_number(o, o->usual, (char *)options + o->open.offset);
}

static qn_status take_name(const qn__option *o, const char *name, int *to, qn_error *err) {
    *to = o->table->row[0].value;
    return name ? qn__table_find(o->table, name, to, err) : QN_OK;
}

/* A number has one form in options and in recipes. Texts, each with a form of its own in recipes,
 * and names are not copied. */
static void copy_number(const qn__option *o, const void *from, void *to) {
    switch (o->open.type) {
    case QN_OPTION_FLAG:
        *(uint32_t *)to = *(const uint32_t *)from != 0;
        break;
    case QN_OPTION_FLOAT:
    case QN_OPTION_COUNT:
        memcpy(to, from, sizeof(uint32_t));
        break;
    case QN_OPTION_LONG:
        memcpy(to, from, sizeof(uint64_t));
        break;
    case QN_OPTION_NAME:
    case QN_OPTION_TEXT:
        break;
    }
}

static qn_status take(const qn__option *o, const void *from, void *to, qn_error *err) {
    if (o->open.type == QN_OPTION_NAME)
        return take_name(o, *(const char *const *)from, to, err);
    copy_number(o, from, to);
    if (o->latest && *(const uint32_t *)to)
        *(uint32_t *)to = o->latest;
    return QN_OK;
}

qn_status qn__options_take(const qn_train_options *from, qn__recipe *to, qn_error *err) {
    qn_status status = QN_OK;
    for (const qn__option *o = qn__options; o->key && status == QN_OK; ++o)
        if (o->open.field && !o->ruled)
            status = take(o, (const char *)from + o->open.offset, qn__option_to(o, to), err);
    return status;
}

static void give(const qn__option *o, const void *from, void *to) {
    if (o->form == QN__FORM_NAME)
        *(const char **)to = qn__table_name(o->table, *(const int *)from);
    else if (o->form == QN__FORM_TEXT)
        *(const char **)to = *(char *const *)from;
    else
        copy_number(o, from, to);
}

void qn__options_give(const qn__recipe *from, qn_train_options *to) {
    for (const qn__option *o = qn__options; o->key; ++o) {
        const int number = o->form == QN__FORM_FLOAT || o->form == QN__FORM_COUNT;
        if (o->open.field && number && !qn__option_taken(o, from))
            set_number(o, o->usual, (char *)to + o->open.offset);
        else if (o->open.field)
            give(o, qn__option_in(o, from), (char *)to + o->open.offset);
    }
    if (from->scale_numbers)
        to->scale = from->scale_numbers;
}
