/* What the readers of expressions, statements and declarations share.
 *
 * A text is read once, from left to right. Its C is written at the same time, and for the kernel's
 * body also a tree, which the compiler of lanes needs:
 *
 *   y = n / 3;    p_y = qn_div_i32(qn_fault, u_n, ((int32_t)3));
 *                 (result y (binary i32 / (name n) (literal 3)))
 *
 * A type is often known only when what it changes has been written. So text can be inserted before
 * what was written from a byte on. Here that is the call of qn_div_i32, once the sign is read. */
#include "userkernel/language/user_parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int qn__user_use_is_result(qn__user_use use) {
    return use == QN__USER_OUTPUT || use >= QN__USER_SUM;
}

int qn__user_use_is_extreme(qn__user_use use) {
    return use == QN__USER_MIN || use == QN__USER_MAX || use >= QN__USER_ARGMIN;
}

int qn__user_use_is_least(qn__user_use use) {
    return use == QN__USER_MIN || use == QN__USER_ARGMIN;
}

int qn__user_part_is_array(const qn__user_part *part) {
    return part->use <= QN__USER_OUTPUT || part->bins > 0;
}

int qn__user_part_is_written(const qn__user_part *part) {
    return part->use == QN__USER_OUTPUT || part->bins > 0;
}

qn__user_type qn__user_part_type(const qn__user_part *part) {
    return part->use == QN__USER_COUNT    ? QN__USER_U64
           : part->use >= QN__USER_ARGMIN ? QN__USER_I64
                                          : part->type;
}

uint32_t qn__user_part_numbers(const qn__user_part *part) {
    return part->components > 0 ? part->components : 1;
}

uint32_t qn__user_part_each(const qn__user_part *part) {
    return qn__user_part_numbers(part) * qn__user_type_size(part->type);
}

const char *qn__user_use_word(qn__user_use use) {
    static const char *const words[] = {"INPUT", "WHOLE", "HALO",  "OUTPUT", "SCALAR", "SUM",
                                        "MIN",   "MAX",   "COUNT", "ARGMIN", "ARGMAX"};
    return words[use];
}

const qn__user_token *qn__user_next(const qn__user_parser *p) { return &p->tokens.token[p->at]; }

const qn__user_token *qn__user_after(const qn__user_parser *p) {
    return &p->tokens.token[p->at + (p->at + 1 < p->tokens.count)];
}

int qn__user_sees(const qn__user_parser *p, const char *word) {
    return qn__user_token_is(&p->tokens, qn__user_next(p), word);
}

int qn__user_take(qn__user_parser *p, const char *word) {
    const int sees = qn__user_sees(p, word);
    p->at += (uint32_t)sees;
    return sees;
}

void qn__user_word(const qn__user_parser *p, const qn__user_token *token,
                   char word[QN__USER_NAME_MAX + 1]) {
    const uint32_t size = token->size < QN__USER_NAME_MAX ? token->size : QN__USER_NAME_MAX;
    memcpy(word, p->tokens.text + token->at, size);
    word[size] = '\0';
}

int qn__user_refuse(qn__user_parser *p, const qn__user_token *token, const char *remedy,
                    const char *what, ...) {
    char text[256];
    va_list list;
    va_start(list, what);
    vsnprintf(text, sizeof text, what, list);
    va_end(list);
    qn__fail(p->err, QN_INPUT, "%s", text);
    qn__user_token_place(&p->tokens, token, p->err);
    p->status = qn__remedy(p->err, QN_INPUT, "%s", remedy);
    return 0;
}

int qn__user_no_memory(qn__user_parser *p) {
    p->status = qn__fail_memory(p->err, 1, QN__USER_TEXT_MAX);
    return 0;
}

int qn__user_need(qn__user_parser *p, const char *word, const char *where) {
    char found[QN__USER_NAME_MAX + 1], remedy[QN__USER_NAME_MAX + 64];
    const qn__user_token *token = qn__user_next(p);
    if (qn__user_take(p, word))
        return 1;
    qn__user_word(p, token, found);
    if (token->kind == QN__USER_END)
        return qn__user_refuse(p, token, "complete the text",
                               "the text ends where \"%s\" belongs %s", word, where);
    if (*word == ')' && strcmp(found, "=") == 0)
        snprintf(remedy, sizeof remedy, "write == to compare");
    else
        snprintf(remedy, sizeof remedy, "write %s before \"%s\"", word, found);
    return qn__user_refuse(p, token, p->form ? p->form : remedy,
                           "\"%s\" is missing %s, where \"%s\" stands", word, where, found);
}

/* ------------------------------------------------------------------ writing */

void qn__user_move(qn__user_parser *p, const qn__user_token *token) {
    for (; p->line < token->line; p->line++)
        qn__user_write(p, "\n");
}

size_t qn__user_written(const qn__user_parser *p) { return p->source->functions.size; }

void qn__user_insert(qn__user_parser *p, size_t at, const char *text) {
    qn__text *to = &p->source->functions;
    const size_t size = strlen(text), after = to->size - at;
    qn__text_add(to, "%s", text);
    if (to->failed)
        return;
    memmove(to->data + at + size, to->data + at, after);
    memcpy(to->data + at, text, size);
}

static void reverse(char *text, size_t size) {
    for (size_t i = 0; i < size / 2; i++) {
        const char kept = text[i];
        text[i] = text[size - 1 - i];
        text[size - 1 - i] = kept;
    }
}

void qn__user_swap(qn__user_parser *p, size_t from, size_t middle) {
    qn__text *to = &p->source->functions;
    if (to->failed)
        return;
    reverse(to->data + from, middle - from);
    reverse(to->data + middle, to->size - middle);
    reverse(to->data + from, to->size - from);
}

void qn__user_wrap(qn__user_parser *p, size_t from, const char *before, const char *after) {
    qn__user_insert(p, from, before);
    qn__user_write(p, "%s", after);
}

uint32_t qn__user_node_add(qn__user_parser *p, qn__user_node node) {
    return p->in_kernel ? qn__user_tree_add(&p->source->tree, node) : 0;
}

/* ------------------------------------------------------------------ names */

const qn__user_symbol *qn__user_find(const qn__user_parser *p, const char *name) {
    for (uint32_t i = p->symbols; i-- > 0;)
        if (strcmp(p->symbol[i].name, name) == 0)
            return &p->symbol[i];
    return NULL;
}

/* Words of C that a kernel does not have, and the library's names that it has. */
static int is_reserved(const char *name) {
    static const char *const words[] = {"auto",     "break",
                                        "case",     "char",
                                        "const",    "continue",
                                        "default",  "do",
                                        "else",     "enum",
                                        "extern",   "for",
                                        "goto",     "if",
                                        "inline",   "long",
                                        "register", "restrict",
                                        "return",   "short",
                                        "signed",   "sizeof",
                                        "static",   "struct",
                                        "switch",   "typedef",
                                        "union",    "void",
                                        "volatile", "while",
                                        "asm",      "typeof",
                                        "_Bool",    "_Complex",
                                        "_Atomic",  "_Generic",
                                        "_Alignas", "_Static_assert",
                                        "bool",     "INDEX",
                                        "NEXT",     "ITERATION",
                                        "EXTENT",   "INPUT",
                                        "WHOLE",    "HALO",
                                        "OUTPUT",   "SCALAR",
                                        "SUM",      "MIN",
                                        "MAX",      "COUNT",
                                        "KERNEL",   "RANDOM",
                                        "SCAN",     "length",
                                        "min",      "max",
                                        "fmin",     "fmax",
                                        "fma",      "sqrt",
                                        "fabs",     "floor",
                                        "ceil",     "trunc",
                                        "rint",     "cbrt",
                                        "exp",      "log",
                                        "sin",      "cos",
                                        "tan",      "atan",
                                        "erf",      "tanh",
                                        "pow",      "atan2"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return 1;
    return qn__user_type_of(name, strlen(name)) != QN__USER_TYPES;
}

qn__user_symbol *qn__user_add(qn__user_parser *p, const qn__user_token *token, const char *name,
                              qn__user_kind kind, qn__user_type type) {
    if (qn__user_find(p, name)) {
        qn__user_refuse(p, token, "give it another name", "\"%s\" is declared already", name);
        return NULL;
    }
    if (p->symbols == QN__USER_SYMBOLS) {
        qn__user_refuse(p, token, "divide the kernel in two",
                        "there are more than %d names in scope", QN__USER_SYMBOLS);
        return NULL;
    }
    qn__user_symbol *s = &p->symbol[p->symbols++];
    *s = (qn__user_symbol){.kind = kind, .type = type};
    strcpy(s->name, name);
    if (kind == QN__USER_VARIABLE || kind == QN__USER_CONSTANT)
        s->variable = qn__user_tree_variable(&p->source->tree, name, type);
    return s;
}

qn__user_symbol *qn__user_declare(qn__user_parser *p, qn__user_kind kind, qn__user_type type) {
    char name[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, name);
    if (token->kind == QN__USER_SIGN && *name == '*') {
        qn__user_refuse(p, token, "declare arrays with INPUT, WHOLE, HALO and OUTPUT",
                        "a kernel has no pointers");
        return NULL;
    }
    if (token->kind != QN__USER_NAME || is_reserved(name)) {
        const int is_other = token->kind != QN__USER_NAME || qn__user_sees_type(p);
        qn__user_refuse(p, token,
                        !is_other ? "give another name"
                        : p->form ? p->form
                                  : "write a name there, such as a, n2 or my_number",
                        "\"%s\" cannot be declared as a name",
                        token->kind == QN__USER_END ? "the end of the text" : name);
        return NULL;
    }
    qn__user_symbol *s = qn__user_add(p, token, name, kind, type);
    p->at += s != NULL;
    return s;
}

const char *qn__user_remedy_of(const qn__user_remedy *rows, const char *word) {
    while (rows->word && strcmp(rows->word, word) != 0)
        rows++;
    return rows->remedy;
}

/* Types of C whose size or meaning differs between machines, and others that a kernel lacks. */
const char *qn__user_instead_of(const char *word) {
    static const qn__user_remedy types[] = {{"long", "write int64_t"},
                                            {"short", "write int16_t"},
                                            {"char", "write int8_t or uint8_t"},
                                            {"signed", "write int"},
                                            {"bool", "write int"},
                                            {"_Bool", "write int"},
                                            {"size_t", "write uint64_t"},
                                            {"ptrdiff_t", "write int64_t"},
                                            {"struct", "use one variable for each member"},
                                            {"union", "use one variable for each member"},
                                            {"void", "write int, float or double"},
                                            {"auto", "write the type"},
                                            {NULL, NULL}};
    return qn__user_remedy_of(types, word);
}

int qn__user_sees_type(const qn__user_parser *p) {
    char word[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, word);
    return token->kind == QN__USER_NAME &&
           (qn__user_type_of(word, strlen(word)) != QN__USER_TYPES || qn__user_instead_of(word));
}

qn__user_type qn__user_need_type(qn__user_parser *p) {
    char word[QN__USER_NAME_MAX + 1];
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, word);
    const qn__user_type type =
        token->kind == QN__USER_NAME ? qn__user_type_of(word, strlen(word)) : QN__USER_TYPES;
    if (type == QN__USER_TYPES) {
        const char *instead = qn__user_instead_of(word);
        qn__user_refuse(p, token,
                        instead ? instead
                                : "write float, double, int, unsigned, or int8_t to uint64_t",
                        "\"%s\" is not a type of a kernel",
                        token->kind == QN__USER_END ? "the end of the text" : word);
        return type;
    }
    p->at++;
    p->source->has_doubles |= type == QN__USER_F64;
    if (strcmp(word, "unsigned") == 0)
        qn__user_take(p, "int");
    return type;
}

int qn__user_need_size(qn__user_parser *p, uint32_t most, int named, const char *what,
                       uint32_t *size) {
    char text[QN__USER_NAME_MAX + 1], remedy[96];
    uint64_t value = 0;
    const qn__user_token *token = qn__user_next(p);
    qn__user_word(p, token, text);
    const qn__user_symbol *s =
        named && token->kind == QN__USER_NAME ? qn__user_find(p, text) : NULL;
    if (s)
        value = s->number;
    else if (token->kind != QN__USER_INTEGER || !qn__user_type_read(QN__USER_U64, text, &value))
        value = 0;
    if (value < 1 || value > most) {
        snprintf(remedy, sizeof remedy, "write a number from 1 to %u%s", (unsigned)most,
                 named ? ", or a constant with one" : "");
        return qn__user_refuse(p, token, remedy, "%s is missing or out of range", what);
    }
    p->at++;
    *size = (uint32_t)value;
    return 1;
}

int qn__user_grow(qn__user_parser *p, const qn__user_token *token, uint32_t words, uint32_t stack) {
    p->words += words;
    p->stack += stack;
    if (p->words > QN__USER_WORDS)
        return qn__user_refuse(
            p, token, "call functions that call others in loops, or less often",
            "with the functions that are called in it, the function has more than %d tokens",
            QN__USER_WORDS);
    if (p->stack > QN__USER_STACK)
        return qn__user_refuse(p, token,
                               "use shorter arrays, or fewer calls of functions with some",
                               "the arrays of the function and of those that are called in it have "
                               "more than %d bytes",
                               QN__USER_STACK);
    return 1;
}

int qn__user_deeper(qn__user_parser *p) {
    if (p->depth++ < QN__USER_DEPTH)
        return 1;
    return qn__user_refuse(
        p, qn__user_next(p),
        "write inner loops as a function, and parts of an expression as variables",
        "the text is nested deeper than %d levels", QN__USER_DEPTH);
}
