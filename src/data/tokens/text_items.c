#include "data/tokens/text_items.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/prose.h"
#include "data/table/kept.h"
#include "data/table/missing.h"
#include "data/table/rules.h"
#include "data/table/table_space.h"
#include "data/table/wide.h"
#include "data/tokens/data_tokenizer.h"
#include "data/tokens/tag_words.h"
#include "data/tokens/tokenizer.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Names of columns in a message, at most. */
enum { NAMED = 5 };

/* A table on its way. */
typedef struct making {
    qn_data *data;
    const qn_data_options *options;
    const char *path;
    uint32_t column;      /* of the texts */
    uint32_t context;     /* tokens of an item; 0: only the longest text is looked for */
    qn__token_text *text; /* of each item; bytes NULL: it has none */
    qn__token_text *own;  /* the same, unless the table has them */
    qn_tokenizer *tokenizer;
    qn_data made;           /* has the tokens: items x context */
    uint64_t cut, missing;  /* items */
    uint64_t longest, most; /* tokens of a text, and its item */
    int by_words;           /* 1: each word is encoded by itself */
    qn__tags tags;          /* of the words; none: the labels are others */
    qn__text_words *words;  /* with `by_words` */
    qn__several *targets;   /* of the positions, where words have tags */
    uint8_t *spaced;        /* a space and a word, of `spaced_size` bytes */
    size_t spaced_size;
} making;

static qn_status refuse(const making *m, const char *remedy, qn_error *err) {
    qn__at(err, "%s", m->path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Whether no item has anything in a column. */
static int is_empty(const making *m, uint32_t k) {
    for (uint64_t i = 0; i < m->data->items; i++)
        if (!isnan(qn__data_number(m->data, i, k)))
            return 0;
    return 1;
}

/* How surely a column is the one that is meant: 0: it has no texts. All texts of a file may be
 * empty: of one review, that one is. */
static int sureness(const making *m, uint32_t k) {
    const qn__feature *f = &m->data->schema->feature[k];
    if (f->said == QN__SAID_TEXT)
        return 3;
    if (f->categories == 0)
        return m->data->features == 1 && is_empty(m, k);
    return f->text > 0 || qn__prose_looks(m->data, k) ? 2 : 1;
}

/* The names of the columns whose mark is `mark`, for a message. */
static char *names_of(const making *m, const uint8_t *marks, uint8_t mark, qn_error *err) {
    qn__text text = {0};
    uint32_t count = 0;
    char name[160];
    for (uint32_t k = 0; k < m->data->features; k++) {
        if (marks[k] != mark)
            continue;
        if (count++ < NAMED)
            qn__text_add(&text, "%s%s", count > 1 ? ", " : "",
                         qn__column_name(m->data->schema, k, name, sizeof name));
    }
    if (count > NAMED)
        qn__text_add(&text, " and %u more", (unsigned)(count - NAMED));
    return qn__text_take(&text, err);
}

static qn_status refuse_several(const making *m, const uint8_t *marks, uint8_t mark,
                                qn_error *err) {
    char *names = names_of(m, marks, mark, err);
    if (!names)
        return QN_MEMORY;
    qn__fail(err, QN_INPUT,
             "the tokens are those of one column of texts, and there are several: %s", names);
    qn__free(names);
    return refuse(m, "name one of them with `data.text`", err);
}

/* Other columns are not read. */
static qn_status note_others(const making *m, uint8_t *marks, qn_error *err) {
    if (m->data->features == 1)
        return QN_OK;
    char name[160], note[480];
    memset(marks, 0, m->data->features);
    marks[m->column] = 1;
    char *names = names_of(m, marks, 0, err);
    if (!names)
        return QN_MEMORY;
    snprintf(note, sizeof note, "tokens are made of %s alone; left out: %.260s",
             qn__column_name(m->data->schema, m->column, name, sizeof name), names);
    qn__free(names);
    return qn__data_add_note(m->data, note, err);
}

static qn_status choose_column(making *m, qn_error *err) {
    const uint32_t features = m->data->features;
    uint8_t *marks = qn__alloc(features, 1, err), best = 0;
    uint32_t count = 0;
    if (!marks)
        return QN_MEMORY;
    for (uint32_t k = 0; m->data->schema && k < features; k++) {
        marks[k] = (uint8_t)sureness(m, k);
        if (marks[k] > best) {
            best = marks[k];
            m->column = k;
            count = 0;
        }
        count += best > 0 && marks[k] == best;
    }
    qn_status status;
    if (best == 0) {
        qn__fail(err, QN_INPUT, "the table has no column of texts that could become tokens");
        status = refuse(m, "leave `data.tokens` out, or name the column with `data.text`", err);
    } else if (count > 1) {
        status = refuse_several(m, marks, best, err);
    } else {
        status = note_others(m, marks, err);
    }
    qn__free(marks);
    return status;
}

/* The text of each item. */
static qn_status gather(making *m, qn_error *err) {
    const qn__feature *f = &m->data->schema->feature[m->column];
    qn__text_list *list = m->data->listed;
    if (list && list->feature == m->column + 1) {
        m->text = qn__text_list_end(list);
        m->missing = list->missing;
        return QN_OK;
    }
    m->text = m->own = qn__alloc(m->data->items, sizeof *m->text, err);
    if (!m->text)
        return QN_MEMORY;
    for (uint64_t i = 0; i < m->data->items; i++) {
        const double value = qn__data_number(m->data, i, m->column);
        if (isnan(value)) {
            m->missing++;
            continue;
        }
        const char *text = f->category[(size_t)value];
        m->text[i] = (qn__token_text){(const uint8_t *)text, strlen(text)};
    }
    return QN_OK;
}

/* A word after another one, with the space between them. NULL: out of memory. */
static const uint8_t *after_space(making *m, qn__token_text word, qn_error *err) {
    if (word.size + 1 > m->spaced_size) {
        qn__free(m->spaced);
        m->spaced_size = 2 * word.size + 64;
        m->spaced = qn__alloc(m->spaced_size, 1, err);
        if (!m->spaced)
            return NULL;
    }
    m->spaced[0] = ' ';
    memcpy(m->spaced + 1, word.bytes, word.size);
    return m->spaced;
}

/* Tokenizers for which a space is part of a text get the one before a word with it. */
static qn_status encode_word(making *m, qn__token_text word, int first, qn__token_ids *ids,
                             qn_error *err) {
    if (first || !m->tokenizer->kind->keeps_bytes)
        return qn__token_encode(m->tokenizer, word.bytes, word.size, 1, ids, err);
    const uint8_t *spaced = after_space(m, word, err);
    return spaced ? qn__token_encode(m->tokenizer, spaced, word.size + 1, 1, ids, err) : QN_MEMORY;
}

/* The first token of a word stands for it. */
static qn_status encode_words(making *m, uint64_t i, qn__token_ids *ids, qn_error *err) {
    const uint32_t after = m->tokenizer->frame.after;
    uint32_t *gap = m->words ? qn__text_words_of(m->words, i) : NULL, words = 0;
    qn__token_text rest = m->text[i], word, tags = {0}, tag;
    qn_status status = QN_OK;
    if (m->targets)
        tags = qn__tags_of(m->data, i);
    for (int first = 1; status == QN_OK && qn__word_next(&rest, &word); first = 0) {
        const size_t at = ids->count;
        status = encode_word(m, word, first, ids, err);
        const int tagged = m->targets && qn__word_next(&tags, &tag);
        words++;
        if (!gap || ids->count == at || at + after >= m->context)
            continue;
        gap[at] = words;
        words = 0;
        if (tagged)
            m->targets->target[(size_t)i * m->context + at] = qn__tag_number(&m->tags, &tag);
    }
    if (gap)
        gap[m->context] = words;
    return status;
}

/* The tokens of a text with its frame, for which the end of a long text is cut. */
static qn_status encode_text(making *m, uint64_t i, qn__token_ids *ids, qn_error *err) {
    const qn__token_frame *frame = &m->tokenizer->frame;
    ids->count = 0;
    if (!m->text[i].bytes)
        return QN_OK;
    qn_status status = qn__token_frame_add(frame, 0, ids, err);
    if (status == QN_OK && m->by_words)
        status = encode_words(m, i, ids, err);
    else if (status == QN_OK)
        status = qn__token_encode(m->tokenizer, m->text[i].bytes, m->text[i].size, 1, ids, err);
    const uint64_t all = ids->count + frame->after;
    if (all > m->longest) {
        m->longest = all;
        m->most = i;
    }
    if (m->context && all > m->context) {
        m->cut++;
        ids->count = m->context - frame->after;
    }
    return status == QN_OK ? qn__token_frame_add(frame, 1, ids, err) : status;
}

static qn_status encode(making *m, qn_error *err) {
    qn__token_ids ids = {0};
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < m->data->items && status == QN_OK; i++) {
        status = encode_text(m, i, &ids, err);
        if (status == QN_OK && m->context)
            qn__token_ids_put(&ids, m->data->type, qn__table_space_values(&m->made), i, m->context);
        if (status == QN_OK && m->context)
            qn__table_space_wrote(&m->made, i + 1);
    }
    qn__token_ids_release(&ids);
    return status;
}

/* The power of two that holds the longest text. */
static qn_status refuse_context(making *m, qn_error *err) {
    const qn_status status = encode(m, err);
    char name[160];
    uint64_t enough = 16;
    if (status != QN_OK)
        return status;
    while (enough < m->longest)
        enough *= 2;
    qn__fail(err, QN_INPUT,
             "%s has texts of up to %" PRIu64 " tokens, and the options do not say how many an "
             "item has",
             qn__column_name(m->data->schema, m->column, name, sizeof name), m->longest);
    qn__at(err, "%s", m->path);
    return qn__remedy(err, QN_INPUT,
                      "add `data.context` %" PRIu64
                      "; shorter texts are filled up, longer ones are "
                      "cut",
                      enough);
}

static qn_status note_counts(const making *m, qn_error *err) {
    char note[200];
    qn_status status = QN_OK;
    if (m->cut > 0) {
        snprintf(note, sizeof note,
                 "%" PRIu64 " of %" PRIu64 " texts are cut to %" PRIu32
                 " tokens: the longest has %" PRIu64 ", item %" PRIu64 " (from 0)",
                 m->cut, m->data->items, m->context, m->longest, m->most);
        status = qn__data_add_note(m->data, note, err);
    }
    if (m->missing > 0 && status == QN_OK) {
        snprintf(note, sizeof note, "%" PRIu64 " of %" PRIu64 " items have no text, so no tokens",
                 m->missing, m->data->items);
        status = qn__data_add_note(m->data, note, err);
    }
    return status;
}

/* The tokens take the place of the columns. */
static qn_status replace(making *m, qn_error *err) {
    qn_data *data = m->data;
    qn__schema *schema = qn__schema_join(data->schema, NULL, NULL, m->context, err);
    if (!schema)
        return QN_MEMORY;
    qn__schema_free(data->schema);
    data->schema = schema;
    if (data->release)
        data->release(data->memory);
    data->release = m->made.release;
    data->memory = m->made.memory;
    data->values = m->made.values;
    data->in_file = m->made.in_file;
    data->values_digest = NULL;
    m->made.release = NULL;
    qn__text_list_free(data->listed);
    data->listed = NULL;
    qn__wide_free(data->wide);
    data->wide = NULL;
    qn__kept_free(data->kept);
    data->kept = NULL;
    data->features = m->context;
    data->missing = 0;
    data->comma = 0;
    data->rules &= ~(uint32_t)(QN__RULE_EXACT | QN__RULE_TEXT);
    return QN_OK;
}

/* A context that has no place for a token of the text tells nothing. */
static qn_status check_frame(const making *m, qn_error *err) {
    const uint32_t own = m->tokenizer->frame.before + m->tokenizer->frame.after;
    if (m->context == 0 || m->context > own)
        return QN_OK;
    qn__fail(err, QN_INPUT,
             "an item of %u tokens has no place for its text: the tokenizer puts %u around it",
             (unsigned)m->context, (unsigned)own);
    return refuse(m, "give a larger `data.context`", err);
}

/* Whether words are encoded by themselves: for a model that tells their tags, or where the labels
 * are such. */
static qn_status find_tags(making *m, qn_error *err) {
    const qn_data_options *o = m->options;
    const int wanted = qn__tokens_are_words(o->expected_tokens);
    const int never =
        o->task && (strcmp(o->task, "classify") == 0 || strcmp(o->task, "regress") == 0);
    qn_status status = QN_OK;
    if (wanted || (!o->expected_tokens && !never))
        status = qn__tags_find(m->data, m->text, wanted, m->path, &m->tags, err);
    m->by_words = wanted || m->tags.count > 0;
    return status;
}

static qn_status reserve_words(making *m, qn_error *err) {
    if (!m->by_words)
        return QN_OK;
    m->words = qn__text_words_create(m->data->items, m->context, err);
    if (!m->words)
        return QN_MEMORY;
    if (!m->tags.count)
        return QN_OK;
    m->targets = qn__several_create(m->data->items, m->context, 1, m->context, err);
    if (!m->targets)
        return QN_MEMORY;
    memset(m->targets->target, QN__NO_TARGET, (size_t)m->data->items * m->context);
    return QN_OK;
}

/* The tags of the words take the place of the labels. The table has its tokens. */
static void replace_labels(making *m) {
    qn_data *data = m->data;
    data->words = m->words;
    m->words = NULL;
    const size_t used = strlen(data->tokens);
    if (m->by_words)
        snprintf(data->tokens + used, sizeof data->tokens - used, "%s", QN__TOKENS_WORDS);
    if (!m->targets)
        return;
    qn__schema *schema = data->schema;
    qn__schema_drop_classes(schema);
    schema->class_name = m->tags.name;
    schema->classes = m->tags.count;
    schema->target = QN__TARGET_SEVERAL;
    m->tags = (qn__tags){.count = 0};
    qn__free(data->labels);
    data->labels = NULL;
    data->label_values = 0;
    data->doubt = QN__DOUBT_NONE;
    data->several = m->targets;
    m->targets = NULL;
}

static qn_status make(making *m, qn_error *err) {
    qn_status status = gather(m, err);
    const qn__learned_from from = {.text = m->text, .count = m->data->items};
    const qn_data_type type = m->data->type;
    if (status == QN_OK)
        status = qn__data_tokenizer(&from, m->options, m->data, &m->tokenizer, err);
    if (status == QN_OK)
        status = check_frame(m, err);
    if (status == QN_OK)
        status = find_tags(m, err);
    if (status == QN_OK && m->context == 0)
        status = refuse_context(m, err);
    if (status == QN_OK) {
        m->made = (qn_data){.type = m->data->type,
                            .items = m->data->items,
                            .features = m->context,
                            .buffer = m->data->buffer};
        status = qn__table_space_make(&m->made, err);
    }
    if (status == QN_OK)
        status = reserve_words(m, err);
    if (status == QN_OK)
        status = encode(m, err);
    if (status == QN_OK)
        status = note_counts(m, err);
    if (status == QN_OK)
        status = replace(m, err);
    if (status == QN_OK)
        replace_labels(m);
    if (status != QN_OK) /* its values are still those that were read */
        m->data->type = type;
    return status;
}

static qn_status make_items(qn_data *data, const qn_data_options *options, const char *path,
                            qn_error *err) {
    making m = {.data = data,
                .options = options,
                .path = path,
                .context = options->context ? options->context : options->expected_features};
    qn_status status = choose_column(&m, err);
    if (status == QN_OK)
        status = make(&m, err);
    qn__free(m.own);
    if (m.made.release)
        m.made.release(m.made.memory);
    qn__free(m.spaced);
    qn__tags_release(&m.tags);
    qn__text_words_free(m.words);
    qn__several_free(m.targets);
    qn_tokenizer_free(m.tokenizer);
    return status;
}

qn_status qn__text_columns(qn_data *data, int columns, const qn_data_options *options,
                           const char *path, qn_error *err) {
    const int items = columns && qn__text_items_wanted(options);
    const qn_status status =
        qn__prose_find(data, items || qn__prose_wanted(options), options->text_features, path, err);
    return status == QN_OK && items ? make_items(data, options, path, err) : status;
}
