/* The top level of a user kernel's text: declarations, constants, functions, the kernel. */
#include "userkernel/language/user_source.h"

#include "base/memory.h"
#include "userkernel/language/user_statement.h"
#include <stdio.h>
#include <string.h>

enum { WORDS = QN__USER_ARGMAX + 1 };

void qn__user_source_release(qn__user_source *source) {
    qn__text_release(&source->functions);
    qn__user_tree_release(&source->tree);
    *source = (qn__user_source){0};
}

/* ------------------------------------------------------------------ declarations */

/* Names of the index space, between parentheses: INDEX(y, x), EXTENT(height, width). */
static int read_names(qn__user_parser *p, uint32_t least, uint32_t most,
                      char names[QN__USER_DIMENSIONS][QN__USER_NAME_MAX + 1], uint32_t *count) {
    for (*count = 0; *count == 0 || qn__user_take(p, ","); ++*count) {
        const qn__user_token *token = qn__user_next(p);
        if (*count == most)
            return qn__user_refuse(p, token, "leave the others out", "there are more names than %u",
                                   (unsigned)most);
        const qn__user_symbol *s = qn__user_declare(p, QN__USER_CONSTANT, QN__USER_I64);
        if (!s)
            return 0;
        strcpy(names[*count], s->name);
    }
    if (*count < least)
        return qn__user_refuse(p, qn__user_next(p), "give one for each dimension of INDEX",
                               "there are fewer names than %u", (unsigned)least);
    return 1;
}

static int read_space(qn__user_parser *p, const qn__user_token *token, int extents) {
    qn__user_source *s = p->source;
    uint32_t count = 0;
    if (!extents && s->dimensions > 0)
        return qn__user_refuse(p, token, "write all indices in one", "there is a second INDEX");
    if (extents && s->dimensions == 0)
        return qn__user_refuse(p, token, "write INDEX first, as INDEX(i);",
                               "EXTENT stands before INDEX");
    if (extents && s->extent[0][0])
        return qn__user_refuse(p, token, "write all extents in one", "there is a second EXTENT");
    if (!read_names(p, extents ? s->dimensions : 1, extents ? s->dimensions : QN__USER_DIMENSIONS,
                    extents ? s->extent : s->index, &count))
        return 0;
    s->dimensions = count;
    return 1;
}

static int need_border(qn__user_parser *p, qn__user_border *border) {
    static const char *const borders[] = {"zero", "nearest", "wrap"};
    if (!qn__user_need(p, ",", "before the border"))
        return 0;
    for (int b = 0; b < 3; b++)
        if (qn__user_take(p, borders[b])) {
            *border = (qn__user_border)b;
            return 1;
        }
    return qn__user_refuse(p, qn__user_next(p),
                           "write zero, nearest or wrap: what neighbours outside the space are",
                           "a HALO needs a border");
}

/* A default's text; `narrow`: with f, so a float that a double may take. */
static int take_default(qn__user_part *part, const char *text, int narrow) {
    float rounded = 0;
    if (!narrow || part->type != QN__USER_F64)
        return qn__user_type_read(part->type, text, &part->value);
    const int read = qn__user_type_read(QN__USER_F32, text, &rounded);
    memcpy(&part->value, &(double){(double)rounded}, sizeof part->value);
    return read;
}

/* The default of a scalar, after its comma. */
static int read_default(qn__user_parser *p, qn__user_part *part) {
    char text[QN__USER_NAME_MAX + 2] = "-";
    const qn__user_token *token = qn__user_next(p);
    const int negative = qn__user_take(p, "-");
    const qn__user_token *number = qn__user_next(p);
    qn__user_word(p, number, text + 1);
    const size_t size = strlen(text);
    const int narrow =
        number->kind == QN__USER_REAL && (text[size - 1] == 'f' || text[size - 1] == 'F');
    if (narrow)
        text[size - 1] = '\0';
    if ((number->kind != QN__USER_REAL && number->kind != QN__USER_INTEGER) ||
        !take_default(part, text + !negative, narrow))
        return qn__user_refuse(p, token, "write a decimal number, such as 12 or 0.5",
                               "the default of \"%s\" is not of type %s", part->name,
                               qn__user_type_word(part->type));
    p->at++;
    part->has_default = 1;
    return 1;
}

static int check_result(qn__user_parser *p, const qn__user_token *token,
                        const qn__user_part *part) {
    const int sums = part->type == QN__USER_F64 || part->type == QN__USER_F32 ||
                     part->type == QN__USER_I64 || part->type == QN__USER_U64;
    if ((part->use == QN__USER_SUM || part->scans) && !sums)
        return qn__user_refuse(p, token, "write double, float, int64_t or uint64_t",
                               "\"%s\" is not a type of a sum", qn__user_type_word(part->type));
    return 1;
}

/* The bins of an array of totals, after the name. */
static int read_bins(qn__user_parser *p, qn__user_part *part) {
    const int few = qn__user_use_is_extreme(part->use) ||
                    (part->use == QN__USER_SUM && qn__user_type_is_real(part->type));
    p->at++;
    return qn__user_need_size(p, few ? QN__USER_REAL_BINS : QN__USER_BINS, 1, "the number of bins",
                              &part->bins);
}

/* OUTPUT(type, name, components): an array has at most QN__USER_DIMENSIONS dimensions. */
static int read_components(qn__user_parser *p, qn__user_part *part) {
    if (p->source->dimensions == QN__USER_DIMENSIONS)
        return qn__user_refuse(p, qn__user_next(p), "declare an OUTPUT for each component",
                               "an OUTPUT of %d indices has no components", QN__USER_DIMENSIONS);
    p->at++;
    return qn__user_need_size(p, QN__USER_COMPONENTS, 1, "the number of components",
                              &part->components);
}

/* SCAN(type, name, exclusive): each item gets the sum of those before it. */
static int read_range(qn__user_parser *p, qn__user_part *part) {
    p->at++;
    part->scans = qn__user_sees(p, "exclusive") ? 2 : 1;
    if (qn__user_take(p, "exclusive") || qn__user_take(p, "inclusive"))
        return 1;
    return qn__user_refuse(p, qn__user_next(p),
                           "write exclusive for the sum of the items before, or leave it out",
                           "a SCAN is inclusive or exclusive");
}

/* What may stand after the name of a result. */
static int read_more(qn__user_parser *p, qn__user_part *part) {
    if (qn__user_sees(p, ","))
        return part->scans                    ? read_range(p, part)
               : part->use == QN__USER_OUTPUT ? read_components(p, part)
                                              : read_bins(p, part);
    if (part->use < QN__USER_ARGMIN)
        return 1;
    return qn__user_refuse(p, qn__user_next(p),
                           "write MIN or MAX, whose result names its first item too; or give a "
                           "number of bins after the name",
                           "%s needs bins", qn__user_use_word(part->use));
}

/* What stands between the parentheses of a declaration. */
static int read_part(qn__user_parser *p, qn__user_use use, qn__user_part *part) {
    const qn__user_token *token = qn__user_next(p);
    const int part_kind =
        use == QN__USER_WHOLE || use == QN__USER_HALOED || qn__user_use_is_result(use);
    part->use = use;
    part->type = QN__USER_U8; /* of a COUNT: whether the item counts */
    if (use != QN__USER_COUNT) {
        part->type = qn__user_need_type(p);
        if (part->type == QN__USER_TYPES || !check_result(p, token, part) ||
            !qn__user_need(p, ",", "after the type"))
            return 0;
    }
    qn__user_symbol *s =
        qn__user_declare(p, part_kind ? QN__USER_PART : QN__USER_CONSTANT, part->type);
    if (!s)
        return 0;
    s->part = p->source->parts;
    strcpy(part->name, s->name);
    if (use == QN__USER_WHOLE)
        return qn__user_need(p, ",", "before the number") &&
               qn__user_need_size(p, QN__USER_DIMENSIONS, 0, "the number of dimensions",
                                  &part->dimensions);
    if (use == QN__USER_HALOED)
        return qn__user_need(p, ",", "before the number") &&
               qn__user_need_size(p, QN__USER_HALO_MAX, 0, "the reach of the halo", &part->halo) &&
               need_border(p, &part->border);
    if (use == QN__USER_SCALAR)
        return !qn__user_take(p, ",") || read_default(p, part);
    return use < QN__USER_OUTPUT ? 1 : read_more(p, part);
}

static int add_part(qn__user_parser *p, const qn__user_token *token, qn__user_use use, int scans) {
    qn__user_source *s = p->source;
    if (s->dimensions == 0)
        return qn__user_refuse(p, token, "begin with INDEX(i); or INDEX(y, x);",
                               "%s stands before INDEX", scans ? "SCAN" : qn__user_use_word(use));
    if (s->parts == QN__USER_PARTS)
        return qn__user_refuse(p, token, "divide the kernel in two",
                               "there are more than %d declarations", QN__USER_PARTS);
    s->part[s->parts].scans = scans;
    s->has_scan |= scans;
    if (!read_part(p, use, &s->part[s->parts]))
        return 0;
    s->parts++;
    return 1;
}

/* ITERATION(t) */
static int read_iteration(qn__user_parser *p, const qn__user_token *token) {
    qn__user_source *s = p->source;
    if (s->dimensions == 0)
        return qn__user_refuse(p, token, "write INDEX first, as INDEX(i);",
                               "ITERATION stands before INDEX");
    if (s->iteration[0])
        return qn__user_refuse(p, token, "leave it out", "there is a second ITERATION");
    const qn__user_symbol *name = qn__user_declare(p, QN__USER_CONSTANT, QN__USER_I64);
    if (!name)
        return 0;
    strcpy(s->iteration, name->name);
    return 1;
}

/* The name of an array that NEXT pairs: an output, or one that is read. */
static int need_paired(qn__user_parser *p, int output, uint32_t *part) {
    char name[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    const qn__user_source *s = p->source;
    qn__user_word(p, token, name);
    for (*part = 0; *part < s->parts && strcmp(s->part[*part].name, name) != 0;)
        ++*part;
    const qn__user_part *found = *part < s->parts ? &s->part[*part] : NULL;
    if (!found)
        return qn__user_refuse(p, token, "declare both arrays before NEXT(output, input);",
                               "\"%s\" is not declared", name);
    if (output ? found->use != QN__USER_OUTPUT : found->use >= QN__USER_OUTPUT)
        return qn__user_refuse(
            p, token, "write NEXT(output, input);",
            output ? "\"%s\" is not an OUTPUT" : "\"%s\" is not an array that is read", name);
    if (found->components > 0)
        return qn__user_refuse(p, token, "declare an OUTPUT for each component",
                               "\"%s\" has components, which an array that is read has not", name);
    if (found->next)
        return qn__user_refuse(p, token, "write one NEXT for each", "\"%s\" is in two NEXT", name);
    if (found->use == QN__USER_WHOLE && found->dimensions != s->dimensions)
        return qn__user_refuse(p, token, "give it the dimensions of INDEX",
                               "\"%s\" has other dimensions than an output", name);
    p->at++;
    return 1;
}

/* NEXT(output, input) */
static int read_next(qn__user_parser *p) {
    qn__user_part *part = p->source->part;
    uint32_t output, input;
    if (!need_paired(p, 1, &output) || !qn__user_need(p, ",", "after the output"))
        return 0;
    const qn__user_token *token = qn__user_next(p);
    if (!need_paired(p, 0, &input))
        return 0;
    if (part[output].type != part[input].type)
        return qn__user_refuse(p, token, "declare both with one type",
                               "\"%s\" is %s, and \"%s\" is %s", part[output].name,
                               qn__user_type_word(part[output].type), part[input].name,
                               qn__user_type_word(part[input].type));
    part[output].next = 1 + input;
    part[input].next = 1 + output;
    p->source->has_next = 1;
    return 1;
}

/* RANDOM; declares the functions that draw. */
static int read_random(qn__user_parser *p) {
    static const struct {
        const char *name;
        qn__user_type type;
    } draws[] = {{"random32", QN__USER_U32},
                 {"uniform", QN__USER_F64},
                 {"uniformf", QN__USER_F32},
                 {"normal", QN__USER_F64},
                 {"normalf", QN__USER_F32}};
    const qn__user_token *token = qn__user_next(p);
    p->at++;
    if (p->source->dimensions == 0)
        return qn__user_refuse(p, token, "begin with INDEX(i); or INDEX(y, x);",
                               "RANDOM stands before INDEX");
    if (p->source->has_random)
        return qn__user_refuse(p, token, "leave it out", "there is a second RANDOM");
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        qn__user_symbol *s = qn__user_add(p, token, draws[i].name, QN__USER_DRAW, draws[i].type);
        if (!s)
            return 0;
        s->everywhere = 1;
    }
    p->source->has_random = 1;
    p->form = "write RANDOM; the seed is given to the run";
    if (!qn__user_need(p, ";", "after RANDOM"))
        return 0;
    p->form = NULL;
    return 1;
}

/* How a declaration looks, and its arguments at most. In the order of qn__user_use, then the others
 * of read_declared, then SCAN. */
static const struct form {
    const char *text;
    int most;
} forms[] = {
    {"write INPUT(type, name);", 2},
    {"write WHOLE(type, name, dimensions);", 3},
    {"write HALO(type, name, reach, border); with zero, nearest or wrap as the border", 4},
    {"write OUTPUT(type, name); or OUTPUT(type, name, components);", 3},
    {"write SCALAR(type, name); or SCALAR(type, name, default); with a number", 3},
    {"write SUM(type, name); or SUM(type, name, bins);", 3},
    {"write MIN(type, name); or MIN(type, name, bins);", 3},
    {"write MAX(type, name); or MAX(type, name, bins);", 3},
    {"write COUNT(name); or COUNT(name, bins);", 2},
    {"write ARGMIN(type, name, bins);", 3},
    {"write ARGMAX(type, name, bins);", 3},
    {"write INDEX(i); or INDEX(y, x); or INDEX(z, y, x);", QN__USER_DIMENSIONS},
    {"write EXTENT(height, width); with a name for each dimension of INDEX", QN__USER_DIMENSIONS},
    {"write ITERATION(t);", 1},
    {"write NEXT(output, input);", 2},
    {"write SCAN(type, name); or SCAN(type, name, exclusive);", 3}};
enum { SCAN_FORM = WORDS + 4 };

static int end_declaration(qn__user_parser *p, const struct form *form) {
    if (qn__user_sees(p, ","))
        return qn__user_refuse(p, qn__user_next(p), form->text, "there are more arguments than %d",
                               form->most);
    if (!qn__user_need(p, ")", "after the declaration"))
        return 0;
    p->form = NULL;
    return qn__user_need(p, ";", "after the declaration");
}

/* WORD(...); 0 also where no declaration is next: *found tells. */
static int read_declared(qn__user_parser *p, int *found) {
    static const char *const others[] = {"INDEX", "EXTENT", "ITERATION", "NEXT"};
    const qn__user_token *token = qn__user_next(p);
    const int scans = qn__user_sees(p, "SCAN");
    int word = scans ? QN__USER_OUTPUT : -1, other = -1;
    *found = qn__user_sees(p, "RANDOM");
    if (*found)
        return read_random(p);
    for (int i = 0; i < WORDS && word < 0; i++)
        if (qn__user_sees(p, qn__user_use_word((qn__user_use)i)))
            word = i;
    for (int i = 0; i < 4 && other < 0; i++)
        if (qn__user_sees(p, others[i]))
            other = i;
    *found = word >= 0 || other >= 0;
    if (!*found)
        return 0;
    p->at++;
    const struct form *form = &forms[scans ? SCAN_FORM : word >= 0 ? word : WORDS + other];
    p->form = form->text;
    if (!qn__user_need(p, "(", "after the word") ||
        !(word >= 0    ? add_part(p, token, (qn__user_use)word, scans)
          : other < 2  ? read_space(p, token, other)
          : other == 2 ? read_iteration(p, token)
                       : read_next(p)))
        return 0;
    return end_declaration(p, form);
}

/* ------------------------------------------------------------------ functions */

static int read_parameters(qn__user_parser *p, qn__user_symbol *function) {
    if (qn__user_sees(p, "void") && qn__user_token_is(&p->tokens, qn__user_after(p), ")"))
        p->at++;
    while (!qn__user_sees(p, ")")) {
        if (function->arguments > 0 && !qn__user_need(p, ",", "before the next parameter"))
            return 0;
        if (function->arguments == QN__USER_ARGUMENTS)
            return qn__user_refuse(p, qn__user_next(p), "divide the function in two",
                                   "a function has more than %d parameters", QN__USER_ARGUMENTS);
        const int constant = qn__user_take(p, "const");
        const qn__user_type type = qn__user_need_type(p);
        if (type == QN__USER_TYPES)
            return 0;
        const qn__user_symbol *s =
            qn__user_declare(p, constant ? QN__USER_CONSTANT : QN__USER_VARIABLE, type);
        if (!s)
            return 0;
        if (qn__user_sees(p, "["))
            return qn__user_refuse(p, qn__user_next(p),
                                   "pass each element as a parameter of its own, or use the array "
                                   "in the kernel itself",
                                   "the parameter \"%s\" is an array", s->name);
        function->argument[function->arguments++] = type;
        qn__user_write(p, ", %s u_%s", qn__user_type_word(type), s->name);
    }
    p->at++;
    return 1;
}

/* A function joins the names when it is complete, so that none calls itself. */
static int read_function(qn__user_parser *p, qn__user_type type) {
    qn__user_symbol function, *s = qn__user_declare(p, QN__USER_FUNCTION, type);
    uint32_t assigned = 0;
    if (!s)
        return 0;
    function = *s;
    p->symbols--;
    p->own = p->symbols;
    p->in_kernel = 0;
    p->function = function.name;
    p->result = type;
    p->words = p->stack = 0;
    const uint32_t begin = p->at++; /* ( */
    function.draws = p->source->has_random;
    qn__user_write(p, "QN_INLINE %s u_%s(QN_FOUND *qn_fault%s", qn__user_type_word(type),
                   function.name, function.draws ? ", const qn_draws qn_draw" : "");
    if (!read_parameters(p, &function))
        return 0;
    qn__user_write(p, ") {(void)qn_fault; ");
    if (!qn__user_body(p, &assigned))
        return 0;
    qn__user_write(p, " return 0;}"); /* what a function without return gives */
    p->function = NULL;
    function.words = p->words + p->at - begin;
    function.stack = p->stack;
    p->symbols = p->own;
    if (qn__user_find(p, function.name) || p->symbols == QN__USER_SYMBOLS)
        return qn__user_refuse(p, qn__user_next(p), "give it another name",
                               "\"%s\" is declared already", function.name);
    p->symbol[p->symbols++] = function;
    return 1;
}

/* static TYPE NAME( or static const TYPE NAME = */
static int read_static(qn__user_parser *p) {
    const qn__user_token *token = qn__user_next(p);
    p->at++;
    const int is_inline = qn__user_take(p, "inline"), constant = qn__user_take(p, "const");
    const qn__user_type type = qn__user_need_type(p);
    if (type == QN__USER_TYPES)
        return 0;
    const int function = qn__user_token_is(&p->tokens, qn__user_after(p), "(");
    qn__user_move(p, qn__user_next(p));
    if (function && !constant)
        return read_function(p, type);
    if (!function && constant && !is_inline)
        return qn__user_constant(p, type);
    return qn__user_refuse(p, token,
                           "write static TYPE NAME(...) {...}, or static const TYPE NAME = NUMBER;",
                           "this is neither a function nor a constant");
}

static int check_results(qn__user_parser *p, const qn__user_token *token, uint32_t assigned) {
    const qn__user_source *s = p->source;
    int results = 0;
    for (uint32_t i = 0; i < s->parts; i++) {
        if (!qn__user_use_is_result(s->part[i].use))
            continue;
        results++;
        if (!(assigned >> i & 1))
            return qn__user_refuse(p, token, "assign it in the kernel, or remove its declaration",
                                   "the kernel never assigns \"%s\"", s->part[i].name);
    }
    if (results == 0)
        return qn__user_refuse(p, token, "declare an OUTPUT, or a SUM, MIN, MAX or COUNT",
                               "the kernel has no result");
    return 1;
}

static int read_kernel(qn__user_parser *p) {
    const qn__user_token *token = qn__user_next(p);
    uint32_t assigned = 0;
    p->at++;
    if (p->source->dimensions == 0)
        return qn__user_refuse(p, token, "begin with INDEX(i); or INDEX(y, x);",
                               "KERNEL stands before INDEX");
    p->own = p->symbols;
    p->in_kernel = 1;
    p->words = p->stack = 0;
    qn__user_move(p, qn__user_next(p));
    qn__user_write(p, "QN_BODY ");
    if (!qn__user_sees(p, "{"))
        return qn__user_refuse(p, qn__user_next(p), "write KERNEL { ... }",
                               "the statements of the kernel are missing");
    if (!qn__user_body(p, &assigned))
        return 0;
    p->source->tree.body = p->node;
    qn__user_write(p, "\n");
    if (qn__user_next(p)->kind != QN__USER_END)
        return qn__user_refuse(p, qn__user_next(p), "put functions and declarations before KERNEL",
                               "text stands after the kernel");
    return check_results(p, token, assigned);
}

/* No declaration, and what may have been meant. */
static int refuse_beginning(qn__user_parser *p, const qn__user_token *token) {
    char word[QN__USER_NAME_MAX + 1];
    qn__user_word(p, token, word);
    const char *instead = qn__user_instead_of(word);
    return qn__user_refuse(
        p, token,
        instead ? instead
        : qn__user_sees_type(p) || strcmp(word, "const") == 0 || strcmp(word, "inline") == 0
            ? "write static before it: static TYPE NAME(...) {...}, or static const TYPE NAME = "
              "NUMBER;"
            : "write INDEX, EXTENT, INPUT, WHOLE, HALO, OUTPUT, SCAN, SCALAR, SUM, MIN, MAX, "
              "COUNT, RANDOM, NEXT, ITERATION, static or KERNEL",
        "no declaration begins with \"%s\"", word);
}

static int read_all(qn__user_parser *p) {
    for (;;) {
        int found = 0;
        const qn__user_token *token = qn__user_next(p);
        if (qn__user_sees(p, "KERNEL"))
            return read_kernel(p);
        if (token->kind == QN__USER_END)
            return qn__user_refuse(p, token, "write KERNEL { ... } with what is done for each item",
                                   "the text has no KERNEL");
        if (qn__user_sees(p, "static")) {
            if (!read_static(p))
                return 0;
        } else if (!read_declared(p, &found)) {
            return found ? 0 : refuse_beginning(p, token);
        }
    }
}

/* ------------------------------------------------------------------ the whole */

/* The text begins by telling the compiler its own name. */
static void write_name(qn__text *to, const char *name) {
    qn__text_add(to, "#line 1 \"");
    for (const char *c = name; *c; c++)
        if (*c == '"' || *c == '\\' || *c == '?') /* ??/ would be a backslash */
            qn__text_add(to, "\\%c", *c);
        else
            qn__text_add(to, "%c", (unsigned char)*c < ' ' ? '_' : *c);
    qn__text_add(to, "\"\n");
}

qn_status qn__user_source_read(const char *text, const char *name, qn__user_source *out,
                               qn_error *err) {
    *out = (qn__user_source){0};
    qn__user_parser *p = qn__alloc(1, sizeof *p, err);
    if (!p)
        return QN_MEMORY;
    *p = (qn__user_parser){.source = out, .line = 1, .err = err};
    qn_status status = qn__user_tokens_read(text, name, &p->tokens, err);
    if (status == QN_OK) {
        write_name(&out->functions, name);
        if (!read_all(p))
            status = p->status;
        else if (out->functions.failed || out->tree.failed)
            status = qn__fail_memory(err, 1, QN__USER_TEXT_MAX);
    }
    qn__user_tokens_release(&p->tokens);
    qn__free(p);
    if (status != QN_OK)
        qn__user_source_release(out);
    return status;
}
