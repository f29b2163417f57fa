#include "model/exchange/pretrained.h"

#include "model/exchange/pretrained_rows.h"
#include <stdio.h>
#include <string.h>

static const struct activation {
    const char *theirs, *ours;
} activations[] = {
    {"gelu_new", "gelu-tanh"},  {"gelu_pytorch_tanh", "gelu-tanh"},
    {"gelu_fast", "gelu-tanh"}, {"gelu", "gelu"},
    {"relu", "relu"},           {"silu", "silu"},
    {"swish", "silu"},          {"tanh", "tanh"},
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

/* ------------------------------------------------------------------ the table */

static const qn__pretrained *const families[] = {qn__pretrained_decoders, qn__pretrained_encoders};
enum { FAMILIES = sizeof families / sizeof *families };

const qn__pretrained *qn__pretrained_row(uint32_t index) {
    for (size_t f = 0; f < FAMILIES; ++f)
        for (const qn__pretrained *row = families[f]; row->type; ++row)
            if (index-- == 0)
                return row;
    return NULL;
}

const qn__pretrained *qn__pretrained_of_class(const char *type, const char *class) {
    const qn__pretrained *row, *first = NULL;
    for (uint32_t i = 0; (row = qn__pretrained_row(i)); ++i) {
        if (strcmp(row->type, type) != 0)
            continue;
        if (class && strcmp(row->class, class) == 0)
            return row;
        first = first ? first : row;
    }
    return first;
}

const qn__pretrained *qn__pretrained_of_task(const char *type, qn__pretrained_task task) {
    const qn__pretrained *row;
    for (uint32_t i = 0; (row = qn__pretrained_row(i)); ++i)
        if (strcmp(row->type, type) == 0 && row->task == task)
            return row;
    return NULL;
}

void qn__pretrained_list(char *text, size_t size) {
    size_t used = 0;
    const qn__pretrained *row;
    const char *last = "";
    *text = '\0';
    for (uint32_t i = 0; (row = qn__pretrained_row(i)) && used < size; ++i) {
        if (strcmp(row->type, last) == 0)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", row->type);
        last = row->type;
    }
}

const char *qn__pretrained_activation(const char *theirs) {
    for (size_t i = 0; i < ACTIVATIONS; ++i)
        if (strcmp(activations[i].theirs, theirs) == 0)
            return activations[i].ours;
    return NULL;
}

const char *qn__pretrained_activation_back(const char *ours) {
    for (size_t i = 0; i < ACTIVATIONS; ++i)
        if (strcmp(activations[i].ours, ours) == 0)
            return activations[i].theirs;
    return NULL;
}

static void add_number(const char *word, double number, qn__text *text) {
    char digits[40];
    qn__float_plain((float)number, digits);
    qn__text_add(text, " %s%s%s", word, *word ? " " : "", digits);
}

static void add_rotary(const qn__pretrained_sizes *s, qn__text *text) {
    add_number("base", s->base, text);
    add_number("scale", s->factor, text);
    if (!s->trained)
        return;
    add_number("llama3", s->low, text);
    add_number("", s->high, text);
    qn__text_add(text, " %u", s->trained);
}

/* What "%N" and others stand for. */
static void add_value(const qn__pretrained_sizes *s, char key, qn__text *text) {
    switch (key) {
    case 'V':
        qn__text_add(text, "%u", s->vocabulary);
        break;
    case 'N':
        qn__text_add(text, "%u", s->width);
        break;
    case 'A': /* queries, keys and values */
        qn__text_add(text, "%u", (s->heads + 2 * s->groups) * s->head);
        break;
    case 'B':
        qn__text_add(text, "%s", s->biases ? "" : " nobias");
        break;
    case 'K':
        qn__text_add(text, " kv %u", s->groups);
        break;
    case 'R':
        add_rotary(s, text);
        break;
    case 'H':
        qn__text_add(text, "%u", s->heads);
        break;
    case 'F':
        qn__text_add(text, "%u", s->inner);
        break;
    case 'G':
        qn__text_add(text, "%s", s->activation);
        break;
    case 'T':
        qn__text_add(text, "%s", s->tied ? "tied" : "nobias");
        break;
    case 'C':
        qn__text_add(text, "%u", s->outputs);
        break;
    case 'S':
        qn__text_add(text, "%s", s->answer);
        break;
    case 'E':
        add_number("eps", s->epsilon, text);
        break;
    default:
        qn__text_add(text, "%%%c", key);
    }
}

static void add_text(const qn__pretrained_sizes *s, const char *from, qn__text *text) {
    if (text->size)
        qn__text_add(text, *from == '|' ? " " : "; ");
    for (const char *at = from; *at; ++at)
        if (*at == '%' && at[1])
            add_value(s, *++at, text);
        else
            qn__text_add(text, "%c", *at);
}

/* The name with the number of a block. */
static void write_name(const char *from, uint32_t block, char name[QN__PRETRAINED_NAME]) {
    size_t used = 0;
    for (const char *at = from; *at && used + 12 < QN__PRETRAINED_NAME; ++at)
        if (*at == '#')
            used += (size_t)snprintf(name + used, QN__PRETRAINED_NAME - used, "%u", block);
        else
            name[used++] = *at;
    name[used] = '\0';
}

typedef struct expansion {
    const qn__pretrained_sizes *sizes;
    qn__text *text;
    qn__pretrained_layer *layer;
    uint32_t layers;
} expansion;

static void add_lines(expansion *e, const qn__pretrained_line *line, uint32_t block) {
    for (; line->text; ++line) {
        add_text(e->sizes, line->text, e->text);
        if (!line->module)
            continue;
        if (e->layers < QN__MAX_LAYERS) {
            write_name(line->module, block, e->layer[e->layers].module);
            e->layer[e->layers].turned = line->turned;
        }
        e->layers++;
    }
}

uint32_t qn__pretrained_expand(const qn__pretrained *row, const qn__pretrained_sizes *sizes,
                               qn__text *text, qn__pretrained_layer *layer) {
    expansion e = {.sizes = sizes, .text = text, .layer = layer};
    add_lines(&e, row->head, 0);
    for (uint32_t b = 0; b < sizes->blocks; ++b)
        add_lines(&e, row->block, b);
    add_lines(&e, row->tail, 0);
    return e.layers;
}
