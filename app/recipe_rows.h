/* The options of a training, which the library lists (<quern/option.h>), as rows of a table of this
 * program. Their values are a qn_train_options. */
#ifndef APP_RECIPE_ROWS_H
#define APP_RECIPE_ROWS_H

#include "options.h"

/* One table a group, for `.more` of an option. */
enum { RECIPE_GROUPS = 4, RECIPE_ROWS = 64 };
extern option recipe_options[RECIPE_GROUPS][RECIPE_ROWS];

/* Fills the tables. Called once, when the program starts. */
void recipe_rows_load(void);

/* The library's row of the option --NAME, or NULL. */
const qn_option *recipe_option(const char *name);

#endif
