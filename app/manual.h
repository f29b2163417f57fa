/* Everything that is generated from the tables of options: help, manual pages, completions. */
#ifndef APP_MANUAL_H
#define APP_MANUAL_H

#include "command.h"

/* A name and its description; lists end with {NULL, NULL}. */
typedef struct fact {
    const char *name, *text;
} fact;

extern const fact manual_exit_codes[];
extern const fact manual_environment[];

/* Each prints on stdout. */

/* The manual page of a command in groff's man macros; NULL: of the program itself. */
void manual_page(const command *self);

/* The completion script of "bash", "zsh" or "fish". */
void manual_completion(const char *shell);

/* How an option's value can be completed. */
typedef enum completes_to {
    COMPLETE_NOTHING,
    COMPLETE_WORDS,
    COMPLETE_FILES,
    COMPLETE_FOLDERS
} completes_to;
completes_to manual_completes(const option *o);

#endif
