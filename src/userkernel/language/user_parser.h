/* What the files that read a user kernel share: tokens one after the other, names in scope, and C
 * that is written while reading. */
#ifndef QN_USERKERNEL_LANGUAGE_USER_PARSER_H
#define QN_USERKERNEL_LANGUAGE_USER_PARSER_H

#include "userkernel/language/user_source.h"

enum { QN__USER_SYMBOLS = 256, QN__USER_ARGUMENTS = 16, QN__USER_DEPTH = 80 };

/* Most words and bytes of arrays of a function with copies of those that it calls. Compiling the
 * words takes seconds; a thread's stack may have 2 MiB. */
enum { QN__USER_WORDS = 30000, QN__USER_STACK = 1 << 18 };

typedef enum qn__user_kind {
    QN__USER_VARIABLE, /* can be assigned */
    QN__USER_CONSTANT, /* index, extent, scalar, constant, number of an input */
    QN__USER_ARRAY,    /* of the function, or a table of constants; `length` elements */
    QN__USER_PART,     /* a whole array, one with a halo, a result */
    QN__USER_FUNCTION,
    QN__USER_DRAW /* a function that RANDOM declares */
} qn__user_kind;

typedef struct qn__user_symbol {
    qn__user_kind kind;
    qn__user_type type; /* of a function: its result */
    char name[QN__USER_NAME_MAX + 1];
    uint32_t length; /* of an array */
    uint32_t number; /* of a constant of the file: its value, where an array can have that length */
    int everywhere;  /* 1: a constant of the file, visible in all functions */
    uint32_t part;   /* of a PART: its number in the source */
    uint32_t variable;     /* of a variable, constant or array: its number in the tree */
    uint32_t words, stack; /* of a function: see qn__user_grow */
    int draws;             /* 1: a function that follows RANDOM, and can draw */
    uint32_t arguments;
    qn__user_type argument[QN__USER_ARGUMENTS];
} qn__user_symbol;

typedef struct qn__user_parser {
    qn__user_tokens tokens;
    uint32_t at;
    qn__user_source *source;
    uint32_t line; /* of the text that was written last */
    qn__user_symbol symbol[QN__USER_SYMBOLS];
    uint32_t symbols;
    uint32_t own;  /* the first symbol of the function that is read */
    int in_kernel; /* 0: of the symbols before `own`, only constants and functions are visible */
    const char *function;  /* its name; NULL: the kernel's body, or a declaration, is read */
    qn__user_type result;  /* of the function that is read */
    uint32_t words, stack; /* of it, so far */
    uint32_t depth, loops;
    uint32_t node; /* of the expression, list of arguments or statement that was read last */
    const char
        *form; /* the syntax of the declaration that is being read, for remedies; NULL: none */
    qn_error *err;
    qn_status status; /* why a function returned 0 */
} qn__user_parser;

/* Functions that return int return 0 after a refusal, with the status in the parser. */

const qn__user_token *qn__user_next(const qn__user_parser *p);
const qn__user_token *qn__user_after(const qn__user_parser *p); /* the one after it */
int qn__user_sees(const qn__user_parser *p, const char *word);
/* Skips the next token if it is this word. Returns 1 if it was. */
int qn__user_take(qn__user_parser *p, const char *word);
/* The same, but refuses any other token. `where` says what it belongs to: "after the condition". */
int qn__user_need(qn__user_parser *p, const char *word, const char *where);

/* Refuses the text at a token, whose name "%s" of the format is if there is one. Returns 0. */
int qn__user_refuse(qn__user_parser *p, const qn__user_token *token, const char *remedy,
                    const char *what, ...) __attribute__((format(printf, 4, 5)));
int qn__user_no_memory(qn__user_parser *p);

/* A token's text, cut to a name's length. */
void qn__user_word(const qn__user_parser *p, const qn__user_token *token,
                   char word[QN__USER_NAME_MAX + 1]);

/* Writes C. qn__user_move first begins a new line where the token does, so that a compiler's
 * messages name the user's lines. */
void qn__user_move(qn__user_parser *p, const qn__user_token *token);
#define qn__user_write(p, ...) qn__text_add(&(p)->source->functions, __VA_ARGS__)
size_t qn__user_written(const qn__user_parser *p);
/* Puts text at a byte of what was written. */
void qn__user_insert(qn__user_parser *p, size_t at, const char *text);
/* Swaps what was written: the part from byte `middle` on is moved before the part from byte `from`
 * on. */
void qn__user_swap(qn__user_parser *p, size_t from, size_t middle);

/* Adds a node to the tree of the kernel's body; 0 in other functions, which have no tree. */
uint32_t qn__user_node_add(qn__user_parser *p, qn__user_node node);

/* Puts text around all from a byte on. */
void qn__user_wrap(qn__user_parser *p, size_t from, const char *before, const char *after);

/* A symbol in scope, or NULL. */
const qn__user_symbol *qn__user_find(const qn__user_parser *p, const char *name);
/* Reads a new name, which must not be in use, and adds it; NULL after a refusal. The pointer is
 * valid until the next. */
qn__user_symbol *qn__user_declare(qn__user_parser *p, qn__user_kind kind, qn__user_type type);
/* The same for a name that a declaration brings along; `token` is for messages. */
qn__user_symbol *qn__user_add(qn__user_parser *p, const qn__user_token *token, const char *name,
                              qn__user_kind kind, qn__user_type type);
/* Reads the name of a type; QN__USER_TYPES after a refusal. */
qn__user_type qn__user_need_type(qn__user_parser *p);
/* Whether a type's name is next. Words of C for other types count, and are refused when read. */
int qn__user_sees_type(const qn__user_parser *p);

/* A word that a kernel lacks, and what to write instead. */
typedef struct qn__user_remedy {
    const char *word, *remedy;
} qn__user_remedy;
/* The remedy of a word in a table, which ends with NULL; NULL: there is none. */
const char *qn__user_remedy_of(const qn__user_remedy *rows, const char *word);

/* What to do without a word of C for a type that a kernel lacks, for remedies; else NULL. */
const char *qn__user_instead_of(const char *word);

/* Reads how many elements an array has: a number from 1 to `most`; with `named` also a constant
 * with such a one (C has no such lengths for arrays of functions). `what` is for messages: "the
 * length of the array". */
int qn__user_need_size(qn__user_parser *p, uint32_t most, int named, const char *what,
                       uint32_t *size);

/* Adds to the function that is read the words that a compiler will see, and the bytes of arrays on
 * the stack. Each call is compiled as a copy of the function, so calls in calls multiply. */
int qn__user_grow(qn__user_parser *p, const qn__user_token *token, uint32_t words, uint32_t stack);

/* Enters one more level of nesting; refuses too deep a text, at which a compiler would fail. */
int qn__user_deeper(qn__user_parser *p);

#endif
