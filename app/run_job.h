/* What `quern submit` needs from a command line of `quern run`. */
#ifndef APP_RUN_JOB_H
#define APP_RUN_JOB_H

#include "job_options.h"
#include <limits.h>

typedef struct run_job {
    const char *result;     /* the file that the run writes last: its recipe */
    const char *checkpoint; /* NULL: none is given */
    int resume;
    arguments given;
    job_options kept; /* for job_options_free */
    char path[PATH_MAX];
} run_job;

/* Reads and checks the words after "run" and a file of options among them; also the kernel if its
 * file is here, and with `opens` the inputs. Returns -1, or an exit code after a message. */
int run_job_read(int count, char **words, int opens, run_job *out);

#endif
