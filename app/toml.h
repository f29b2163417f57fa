/* Job files: the part of TOML 1.0 (toml.io) that options need. That is tables of one level,
 * comments, basic and literal strings, integers, floats, booleans, and arrays of integers. All else
 * is refused. A file that is accepted means the same to every other reader of TOML. */
#ifndef APP_TOML_H
#define APP_TOML_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

typedef enum toml_kind {
    TOML_TABLE, /* the line [key] itself */
    TOML_TEXT,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOLEAN,
    TOML_INTEGERS
} toml_kind;

typedef struct toml_value {
    const char *table; /* the table that contains it; "": before the first table */
    const char *key;
    toml_kind kind;
    const char *text; /* a number in decimal, from -2^63 to 2^64 - 1 if it is whole; "true" or
                         "false"; integers with a blank between them */
    uint32_t line;    /* from 1 */
} toml_value;

/* The values in the order of the file. */
typedef struct toml_file {
    toml_value *at;
    size_t count;
    char *buffer; /* holds their texts */
} toml_file;

/* Reads `size` bytes. `path` is for messages. Fails with QN_INPUT (where: path and line) or
 * QN_MEMORY; *out is then empty. Release it with toml_release. */
qn_status toml_read(const char *text, size_t size, const char *path, toml_file *out, qn_error *err);
void toml_release(toml_file *file);

#endif
