/* The settings of a search: --grid "lr 0.01,0.1 batch 64,128". */
#ifndef APP_SEARCH_GRID_H
#define APP_SEARCH_GRID_H

#include <stddef.h>
#include <stdint.h>

enum { GRID_NAMES = 16, GRID_VALUES = 64, GRID_SETTINGS = 10000 };

typedef struct grid {
    char *text; /* the memory of all names and values */
    uint32_t names;
    const char *name[GRID_NAMES];
    uint32_t values[GRID_NAMES];
    const char *value[GRID_NAMES][GRID_VALUES];
    uint32_t settings; /* all combinations */
} grid;

/* Reads the text; NULL: one setting without names. Returns -1, or an exit code after a message;
 * call grid_free in any case. */
int grid_read(const char *text, grid *out);
void grid_free(grid *g);

/* The value of a name in a setting; the last name changes fastest. */
const char *grid_value(const grid *g, uint32_t setting, uint32_t name);

/* "lr 0.1 batch 64", into text of `size` bytes; "-" where there is no name. Returns text. */
const char *grid_describe(const grid *g, uint32_t setting, char *text, size_t size);

#endif
