#include "model/network/network_refuse.h"

#include "model/network/choice_table.h"
#include "model/network/ready.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Words that are not a layer here; NULL: it is another word. */
static const char *advise_other(const qn__tokens *w) {
    if (qn__tokens_is(w, "flatten"))
        return "leave it out: a dense layer reads all values of an image";
    if (qn__tokens_is(w, "dropout") || qn__tokens_is(w, "droppath"))
        return "write it after the words of a layer: \"dense 500 relu dropout 0.2\"";
    if (qn__table_row(&qn__activations, w->text + w->at, w->size))
        return "write an activation after the words of its layer: \"conv 32 3x3 relu\"";
    if (qn__ready_find(w->text + w->at, w->size))
        return "it is the name of a ready model, which is the whole text: give the name alone, or "
               "its layers";
    return NULL;
}

/* The word up to a parenthesis: "Conv2d" of "Conv2d(1". */
static const char *name_of(const qn__tokens *w, char word[64]) {
    qn__tokens_quote(w, word);
    word[strcspn(word, "(")] = '\0';
    return word;
}

/* The kinds in `row`, but those whose word another kind has. Returns their number. */
static size_t list_kinds(qn__choice row[QN__LAYER_KINDS]) {
    size_t count = 0;
    for (int k = 0; k < QN__LAYER_KINDS; ++k) {
        const qn__layer_ops *ops = qn__layer_ops_of((qn__layer_kind)k);
        size_t same = 0;
        while (same < count && strcmp(row[same].name, ops->word) != 0)
            ++same;
        if (same == count)
            row[count++] = (qn__choice){.name = ops->word, .value = k, .also = ops->also};
    }
    return count;
}

qn_status qn__network_refuse_kind(const qn__tokens *w) {
    qn__choice row[QN__LAYER_KINDS] = {{0}};
    const qn__table kinds = {.count = list_kinds(row), .row = row};
    char word[64], remedy[256];
    const char *other = advise_other(w);
    qn__table_advise(&kinds, name_of(w, word), remedy, sizeof remedy);
    return qn__tokens_invalid(w, other ? "this is not a layer:" : "unknown layer",
                              other ? other : remedy);
}

/* The next of the syntax's words that are written as they stand; NULL at the end. *size: its. */
static const char *next_word(const char *at, size_t *size) {
    for (;; at += *size) {
        at += strcspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        *size = strcspn(at, " []{}|");
        if (*at == '\0')
            return NULL;
        if (islower((unsigned char)*at))
            return at;
    }
}

/* The word of the syntax with which the current word begins or that is similar; "" : none. */
static void find_near(const qn__tokens *w, const char *syntax, char near[32]) {
    char names[16][32], word[64];
    const char *list[17] = {NULL};
    size_t count = 0, size;
    near[0] = '\0';
    for (const char *at = next_word(syntax, &size); at && count < 16;
         at = next_word(at + size, &size), ++count) {
        snprintf(names[count], sizeof names[count], "%.*s", (int)size, at);
        list[count] = names[count];
        if (size > 2 && size < w->size && qn__same_word(names[count], w->text + w->at, size))
            snprintf(near, 32, "%.31s", names[count]);
    }
    const char *similar = *near ? NULL : qn__nearest(qn__tokens_quote(w, word), list);
    if (similar)
        snprintf(near, 32, "%s", similar);
}

/* Whether it is a word of any layer, as it is written. */
static int is_known(const qn__tokens *w) {
    size_t size;
    for (int k = 0; k < QN__LAYER_KINDS; ++k)
        for (const char *at = next_word(qn__layer_ops_of((qn__layer_kind)k)->syntax, &size); at;
             at = next_word(at + size, &size))
            if (size == w->size && strncasecmp(at, w->text + w->at, size) == 0)
                return 1;
    return 0;
}

static qn_status refuse_activation(const qn__tokens *w) {
    char word[64], advice[256], remedy[384];
    qn__table_advise(&qn__activations, qn__tokens_quote(w, word), advice, sizeof advice);
    snprintf(remedy, sizeof remedy,
             "%s; then perhaps dropout or droppath; layers are separated by \";\"", advice);
    return qn__tokens_invalid(w, "unknown activation", remedy);
}

qn_status qn__network_refuse_word(const qn__tokens *w, const qn__layer_ops *ops, int activation) {
    char word[64], what[128], near[32], remedy[448];
    qn__layer_kind kind;
    const int known = is_known(w) || qn__table_row(&qn__activations, w->text + w->at, w->size);
    const int letter = isalpha((unsigned char)w->text[w->at]) != 0;
    qn__tokens_quote(w, word);
    find_near(w, ops->syntax, near);
    if (activation && letter && !known && !*near)
        return refuse_activation(w);
    if (activation && letter && !known && qn__table_near(&qn__activations, word))
        return refuse_activation(w);
    if (known || !*near)
        snprintf(what, sizeof what, "\"%s\" does not belong here", word);
    else
        snprintf(what, sizeof what, "unknown word \"%s\"", word);
    if (qn__layer_find(w, &kind))
        return qn__tokens_fail(w, w->at, what,
                               "write \";\" before it: layers are separated by \";\"");
    snprintf(remedy, sizeof remedy, "%s%s%sa layer is: %s%s; layers are separated by \";\"",
             known || !*near ? "" : "did you mean \"", known ? "" : near,
             known || !*near ? "" : "\"? ", ops->syntax,
             strchr(ops->syntax, '[') ? "; brackets hold what may be left out" : "");
    return qn__tokens_fail(w, w->at, what, remedy);
}
