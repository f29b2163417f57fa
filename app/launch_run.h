/* The course of `quern launch`: ranks are started, watched, started again, and stopped. */
#ifndef APP_LAUNCH_RUN_H
#define APP_LAUNCH_RUN_H

#include "launch_ranks.h"

typedef struct launch_job {
    launch_setup setup; /* without place and key, which are new for each start */
    launch_hosts hosts;
    const char *meet; /* HOST or HOST:PORT; NULL: chosen */
    uint64_t
        restarts; /* how often all ranks may be started again, and a rank before it is connected */
    int saves;    /* 1: the ranks write checkpoints, and continue from them with --resume */
    int quiet;
} launch_job;

/* Returns the exit code: that of the rank that wrote the result. */
int launch_run(launch_job *job);

#endif
