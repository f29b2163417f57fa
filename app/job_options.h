/* Options from a job file (toml.h): `quern run JOB.toml`. */
#ifndef APP_JOB_OPTIONS_H
#define APP_JOB_OPTIONS_H

#include "command.h"

/* The memory that the options' values point into; freed with job_options_free when they are no
 * longer used. */
typedef struct job_options {
    struct job_option {
        char *text;
        const char *name; /* of the option */
        uint32_t line;
    } * at;
    size_t count;
    char *path;
} job_options;

/* Adds the options of the file to those of the command line, which options_read filled and which
 * override them: an option as a whole, one that can be repeated by its NAME. A key is the name of
 * an option; one that is repeated as NAME=VALUE is a table. Paths are relative to the file. `early`
 * are options that only the command line can give, because they were used before; NULL: none.
 * Returns -1, or an exit code after a message. */
int job_options_read(const command *self, const char *path, const option *early, void *values,
                     arguments *given, job_options *kept);
void job_options_free(job_options *kept);

/* The place at which the job file that was read last gives an option, or the NAME of one that can
 * be repeated ("job.toml, line 3"). "": the command line gives it, or it is not given. The text is
 * valid until the next call. For messages about its value. */
const char *job_options_place(const char *word, const char *name);

#endif
