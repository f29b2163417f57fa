/* Running other programs: sbatch, squeue, kubectl. */
#ifndef APP_PROGRAM_H
#define APP_PROGRAM_H

#include <sys/types.h>

typedef enum program_end {
    PROGRAM_ENDED,  /* with `code`; 128 and more: by a signal */
    PROGRAM_ABSENT, /* there is no such program */
    PROGRAM_SLOW,   /* it had not ended after `seconds` and was killed */
    PROGRAM_FAILED  /* it could not be started or read; errno says why */
} program_end;

typedef struct program_result {
    program_end end;
    int code;
    char out[4096], err[1024]; /* what it printed, as much as fits */
} program_result;

/* Runs argv[0], found on the PATH, with an empty input. `argv` ends with NULL. */
program_end program_run(const char *const *argv, double seconds, program_result *result);

/* Starts a program that stays when this one ends: in a session of its own, its output appended to
 * `log`. Returns its process, or -1 with errno set. */
pid_t program_leave(const char *const *argv, const char *log);

/* What tells a process from a later one of the same number: the ticks since the machine's start at
 * which it began. 0: there is no such process (any more). */
unsigned long long program_began(pid_t process);

#endif
