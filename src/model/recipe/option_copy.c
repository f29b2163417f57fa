/* Options to recipes and back, where no option has a rule of its own. */
#include "model/recipe/option_rows.h"

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

static qn_status take(const qn__option *o, const void *from, void *to, qn_error *err) {
    switch (o->open.type) {
    case QN_OPTION_FLAG:
        *(uint32_t *)to = *(const int *)from != 0;
        break;
    case QN_OPTION_FLOAT:
        *(float *)to = *(const float *)from;
        break;
    case QN_OPTION_COUNT:
        *(uint32_t *)to = *(const uint32_t *)from;
        break;
    case QN_OPTION_LONG:
        *(uint64_t *)to = *(const uint64_t *)from;
        break;
    case QN_OPTION_NAME:
        return take_name(o, *(const char *const *)from, to, err);
    case QN_OPTION_TEXT: /* each has a form of its own in recipes */
        break;
    }
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
    switch (o->form) {
    case QN__FORM_FLAG:
        *(int *)to = *(const uint32_t *)from != 0;
        break;
    case QN__FORM_FLOAT:
        *(float *)to = *(const float *)from;
        break;
    case QN__FORM_COUNT:
        *(uint32_t *)to = *(const uint32_t *)from;
        break;
    case QN__FORM_LONG:
        *(uint64_t *)to = *(const uint64_t *)from;
        break;
    case QN__FORM_NAME:
        *(const char **)to = qn__table_name(o->table, *(const int *)from);
        break;
    case QN__FORM_TEXT:
        *(const char **)to = *(char *const *)from;
        break;
    case QN__FORM_MAYBE:
    case QN__FORM_DIGEST:
    case QN__FORM_NETWORK:
    case QN__FORM_TABLE:
    case QN__FORM_SHAPE:
        break;
    }
}

void qn__options_give(const qn__recipe *from, qn_train_options *to) {
    for (const qn__option *o = qn__options; o->key; ++o) {
        const int number = o->form == QN__FORM_FLOAT || o->form == QN__FORM_COUNT;
        if (o->open.field && number && !qn__option_taken(o, from))
            set_number(o, o->usual, (char *)to + o->open.offset);
        else if (o->open.field)
            give(o, qn__option_in(o, from), (char *)to + o->open.offset);
    }
}
