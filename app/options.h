/* Reading a command line by a table.
 *
 *     typedef struct flags { const char *data; uint64_t batch; int quiet; } flags;
 *     static const option table[] = {
 *         {.name = "data", .kind = OPTION_TEXT, .place = offsetof(flags, data)},
 *         {.more = compute_options, .place = offsetof(flags, compute)},   // shared with others
 *         {.name = NULL}};
 *     flags f = {.batch = 64};
 *     arguments given;
 *     int code = options_read(self, argc, argv, &f, &given);
 *     if (code >= 0) return code;   // help was shown, or the usage was wrong
 *
 * `--name value`, `--name=value`, `-o value` and `-h` are understood; `--` ends the options. A
 * value may begin with one dash ("-o -", "--lr -1") but not with two, unless written with `=`. */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include <quern/choices.h>
#include <quern/option.h>
#include <stddef.h>
#include <stdint.h>

typedef struct command command;

typedef enum option_kind {
    OPTION_FLAG,    /* int: becomes 1 */
    OPTION_TEXT,    /* const char * */
    OPTION_TEXTS,   /* text_list: may be repeated */
    OPTION_CHOICE,  /* const char *, one of the option's words */
    OPTION_COUNT,   /* uint64_t from .low to .high */
    OPTION_COUNT32, /* uint32_t, the same */
    OPTION_FLOAT    /* float: the one nearest to the decimal number */
} option_kind;

/* The values of an option that may be repeated. */
enum { MOST_TEXTS = 64 };
typedef struct text_list {
    const char *at[MOST_TEXTS];
    uint32_t count;
} text_list;

/* Further files of an option or an argument that names the files of one table. */
enum { MOST_FILES = 128 };
typedef struct file_list {
    const char *at[MOST_FILES];
    uint32_t count;
} file_list;

/* A word that an option accepts, and a line about it for the help (NULL: none). */
typedef struct option_word {
    const char *name, *about;
} option_word;

typedef struct option option;

/* A row of a table: an option, or the place at which another table's rows are inserted (`more`). */
struct option {
    const char *name; /* without its dashes */
    char letter;      /* 'o' for -o, or 0 */
    option_kind kind;
    size_t place; /* offset in the command's own struct */
    size_t again; /* of a file_list for further values of an OPTION_TEXT; 0: it is given once */
    const char *value; /* "FILE" in the help; words with FILE or DIR are completed as paths */
    const option_word *words; /* of a choice that only this command has, or values that a text can
                                 have; ends with {NULL, NULL} */
    qn_choice_kind from;  /* or the kind of names that the library lists. For an OPTION_TEXT: names
                             that its text can contain */
    int brief;            /* 1: the help names the words without a line for each */
    uint64_t low, high;   /* limits of a count */
    const char *field;    /* member of the library's struct with the default (<quern/defaults.h>) */
    qn_choice_kind only;  /* only names of this kind that take the field use the option */
    int dashes;           /* 1: its value may begin with dashes, because it consists of options */
    const char *fallback; /* or the default as a text for the help; NULL: none */
    const char *help;
    const char *heading; /* starts a group of options in the help, or NULL */
    const option *more;  /* a table without such rows; its places count from .place of this row */
};

/* An option of a table or of an inserted one. */
typedef struct option_row {
    const option *option;
    size_t base; /* base of its place */
    const char *heading;
} option_row;

/* Word number `index` of an option, counted from 0; returns 0 after the last. */
int options_word(const option *option, uint32_t index, option_word *word);

enum { FALLBACK_CAPACITY = 256 };

/* The default of an option for the help, written to text; empty if it has none. Returns text. */
const char *options_fallback(const option *option, char *text, size_t size);

enum { HELP_CAPACITY = 480 };

/* The help of an option, with the names that alone use it before: "adam, adamw: decay ...". Written
 * to text, which is returned. */
const char *options_about(const option *option, char *text, size_t size);

/* Name number `index`, counted from 0, that uses an option with `only`; NULL after the last. */
const char *options_user(const option *option, uint32_t index);

/* Option `index` of a table, with the rows of inserted tables; returns 0 after the last. */
int options_row(const option *table, int index, option_row *row);

enum { MOST_OPERANDS = 32 };

/* Which options of a table were on the command line. */
enum { MOST_OPTIONS = 128 };
typedef struct options_set {
    uint64_t word[MOST_OPTIONS / 64]; /* bit i % 64 of word i / 64: option i */
} options_set;

typedef struct arguments {
    options_set given;
    options_set like; /* the same of the command that this one is like (command.h) */
    const char *operand[MOST_FILES + 1];
    int operands;
} arguments;

/* Fills `values` and `out` from the words after the command's name. Returns -1 to continue, or the
 * exit code after the help or a message was printed. The texts belong to argv. */
int options_read(const command *self, int argc, char **argv, void *values, arguments *out);

/* 1 when the option of that name was on the command line. */
int options_given(const command *self, const arguments *words, const char *name);

/* The option of that name, which may be a row of an inserted table: its number, or -1. */
int options_find(const option *table, const char *name, option_row *row);

/* For a command that takes another command after its own options: how many of the words are its
 * own. *next: the first word of the other command, after a "--" that may stand between them. */
int options_before(const option *table, int argc, char **argv, int *next);

/* Does what "--name text" would do after the words that were read, for option `index`; of a flag
 * `text` is not used. */
int options_add(const command *self, int index, const char *text, void *values, arguments *words);

/* Parses only the options of `table`, wherever they are among others, and leaves everything else to
 * options_read. *given: those that were there. Returns -1, or an exit code after a message. */
int options_pick(const option *table, int argc, char **argv, void *values, options_set *given);
/* 1 if the option of that name was among them. */
int options_picked(const option *table, const options_set *given, const char *name);

/* Parses the whole decimal text as a finite float, rounded once; 0 if it is invalid. */
int read_float(const char *text, float *out);
/* Parses the whole text as decimal digits; 0 if it is invalid or too large. */
int read_count(const char *text, uint64_t *out);
/* Parses a time of the option `name` with its unit, such as "500us", "20ms", "1.5s" or "2m", as
 * seconds above 0, at most an hour. Returns -1, or an exit code after a message. */
int read_time(const char *name, const char *text, double *seconds);
/* How often something is done: a time (at most 365 days), or a number above 0 ("500"); the other
 * one becomes 0. Returns 1 on success. */
int read_interval(const char *text, double *seconds, uint64_t *count);

/* The help of one command, on stdout. */
void options_help(const command *self);

#endif
