/* Writing a data set to the file that a command names, for data convert and data split. */
#ifndef APP_WRITTEN_H
#define APP_WRITTEN_H

#include "options.h"
#include <quern/data.h>

/* Values of the options; every text may be NULL. */
typedef struct written_flags {
    const char *out, *format, *labels;
} written_flags;

/* -o, --format and --output-labels; they fill a written_flags. */
extern const option written_options[];

/* 1 when the file is the standard output. */
int written_is_stream(const written_flags *f);

/* Checks what is possible before any file is opened. Returns -1, or an exit code after a message.
 */
int written_check(const written_flags *f);

/* Reports a file that was written, as written_make does. */
void written_tell(const qn_data *data, const written_flags *f, const char *part, int quiet,
                  int json);

/* Writes the data set, and reports it unless `quiet`: a line, or with `json` an object. `part`: the
 * name of the part, if the data set is a part of another one; else NULL. Returns as above. */
int written_make(const qn_data *data, const written_flags *f, const char *part, int quiet,
                 int json);

#endif
