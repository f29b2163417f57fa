/* The rows of a table of options, and what a help says of each. */
#include "fields.h"
#include "options.h"
#include <quern/defaults.h>
#include <stdio.h>
#include <string.h>

int options_word(const option *o, uint32_t index, option_word *word) {
    if (o->from != QN_CHOICE_NONE)
        *word = (option_word){qn_choice_name(o->from, index), qn_choice_about(o->from, index)};
    else if (o->words)
        for (uint32_t i = 0; i <= index; i++) {
            *word = o->words[i];
            if (!word->name)
                return 0;
        }
    else
        *word = (option_word){NULL, NULL};
    return word->name != NULL;
}

const char *options_user(const option *o, uint32_t index) {
    const char *name, *member = o->field ? strchr(o->field, '.') : NULL;
    for (uint32_t i = 0; member && (name = qn_choice_name(o->only, i)) != NULL; i++)
        if (qn_choice_takes(o->only, name, member + 1) && index-- == 0)
            return name;
    return NULL;
}

const char *options_about(const option *o, char *text, size_t size) {
    const char *name;
    size_t used = 0;
    for (uint32_t i = 0; used < size && (name = options_user(o, i)) != NULL; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", name);
    if (used < size)
        snprintf(text + used, size - used, "%s%s", used ? ": " : "", o->help);
    return text;
}

const char *options_fallback(const option *o, char *text, size_t size) {
    char fields[FALLBACK_CAPACITY];
    text[0] = '\0';
    if (o->fallback)
        snprintf(text, size, "%s", o->fallback);
    else if (qn_default_text(o->field, fields, sizeof fields)) {
        for (char *p = fields; (p = strstr(p, "` ")) != NULL;)
            p[1] = '\t'; /* no line break between an option and its value */
        fields_spell(fields, text, size);
    }
    return text;
}

int options_row(const option *table, int index, option_row *row) {
    for (const option *o = table; o->name || o->more; o++) {
        if (!o->more && index-- == 0) {
            *row = (option_row){.option = o, .heading = o->heading};
            return 1;
        }
        for (const option *m = o->more; m && m->name; m++)
            if (index-- == 0) {
                *row = (option_row){.option = m,
                                    .base = o->place,
                                    .heading = m == o->more ? o->heading : m->heading};
                return 1;
            }
    }
    return 0;
}
