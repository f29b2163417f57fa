/* Running other programs: sbatch, squeue, kubectl. */
#ifndef APP_PROGRAM_H
#define APP_PROGRAM_H

#include <sys/types.h>

typedef enum program_end {
    PROGRAM_ENDED,  /* with `code`; 128 and more: by a signal */
    PROGRAM_ABSENT, /* the program does not exist */
    PROGRAM_SLOW,   /* it had not ended after `seconds` and was killed */
    PROGRAM_FAILED  /* it could not be started or read; see errno */
} program_end;

typedef struct program_result {
    program_end end;
    int code;
    char out[4096], err[1024]; /* its output, truncated to the buffer */
} program_result;

/* Seconds of a clock that is never set back. */
double program_now(void);

/* Runs argv[0], found in PATH, with an empty input. NULL ends `argv`. */
program_end program_run(const char *const *argv, double seconds, program_result *result);

/* Starts a background program in a session of its own, with its output appended to `log`. Returns
 * its process, or -1 with errno set. */
pid_t program_leave(const char *const *argv, const char *log);

/* Starts a program with these files as its standard ones, in a session of its own: Ctrl-C at the
 * terminal does not come to it. Returns 0, or an errno. */
int program_begin(const char *const *argv, int in, int out, int err, pid_t *process);

/* The start time of a process in ticks since boot, which distinguishes it from a later one with the
 * same number. 0: no such process. */
unsigned long long program_began(pid_t process);

#endif
