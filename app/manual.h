/* Everything that is made from the tables of options: help, manual pages, completions. */
#ifndef APP_MANUAL_H
#define APP_MANUAL_H

#include "command.h"

/* A name and what it means; lists end with {NULL, NULL}. */
typedef struct fact {
    const char *name, *text;
} fact;

extern const fact manual_exit_codes[];
extern const fact manual_environment[];

/* Each prints on stdout. */

/* The manual page of a command in groff's man macros; of NULL: that of the program itself. */
void manual_page(const command *self);

/* What a shell is to load: "bash", "zsh" or "fish". */
void manual_completion(const char *shell);

/* What an option's value can be completed with. */
typedef enum completes_to {
    COMPLETE_NOTHING,
    COMPLETE_WORDS,
    COMPLETE_FILES,
    COMPLETE_FOLDERS
} completes_to;
completes_to manual_completes(const option *o);

#endif
