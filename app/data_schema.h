/* quern data info --schema: what files say about themselves. */
#ifndef APP_DATA_SCHEMA_H
#define APP_DATA_SCHEMA_H

#include <stddef.h>

/* Prints it, as text or JSON. Returns the exit code. */
int data_schema_print(const char *const *paths, size_t count, int json);

#endif
