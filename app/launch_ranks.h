/* The ranks of `quern launch`, each a child of this process: a shell on this machine or an ssh. */
#ifndef APP_LAUNCH_RANKS_H
#define APP_LAUNCH_RANKS_H

#include "launch_hosts.h"
#include "secret.h"
#include <stddef.h>
#include <sys/types.h>

typedef enum launch_state {
    LAUNCH_STARTING, /* until its rank is connected with all others */
    LAUNCH_RUNNING,
    LAUNCH_ENDED
} launch_state;

/* Why a rank never began; LAUNCH_BEGAN: none of these. */
typedef enum launch_fault { LAUNCH_BEGAN, LAUNCH_NO_FOLDER, LAUNCH_NO_PROGRAM } launch_fault;

typedef struct launch_stream {
    int from;   /* -1: closed */
    char *text; /* the line that has begun */
    size_t used, size;
} launch_stream;

typedef struct launch_rank {
    const launch_host *host;
    uint32_t number;
    pid_t process; /* 0: none */
    int in;        /* its standard input; -1: closed */
    launch_stream out, err;
    launch_state state;
    launch_fault fault;
    int live; /* its end was not handled yet */
    int joined;
    int code;             /* of the process; 128 and more: by a signal, 255: of ssh */
    uint64_t step, steps; /* 0: not told */
    double rate;          /* items per second of all ranks */
    char said[200];       /* its last line on stderr that was not for the launcher */
    double ended;         /* when it ended, by program_now */
} launch_rank;

/* How ranks are started. Texts are valid while they run. */
typedef struct launch_setup {
    const char *ssh;       /* the program and its first options, with blanks between them */
    const char *program;   /* NULL: this program, or `quern` of the host's PATH */
    const char *directory; /* where the ranks work */
    const char *place;     /* HOST:PORT */
    const char *prefix;    /* the command line of the launcher, for messages of the ranks */
    char **words;          /* the command and its arguments */
    int count, named;      /* words, and those of the command's name */
    uint32_t ranks;
    int resume; /* 1: --resume is added */
    char key[SECRET_MADE];
} launch_setup;

/* Starts rank->number on rank->host, and gives it the key. Returns 0, or an errno. */
int launch_begin(const launch_setup *setup, launch_rank *rank);
/* Asks it to stop: as Ctrl-C at the rank does. */
void launch_stop(launch_rank *rank);
/* Ends it at once. */
void launch_kill(launch_rank *rank);

/* Takes what a stream has. `line` is called for each whole line, with its end; a line of more than
 * a MiB comes in pieces. Closes the stream at its end. */
void launch_read(launch_rank *rank, launch_stream *stream,
                 void (*line)(void *user, launch_rank *rank, launch_stream *stream,
                              const char *text, size_t size),
                 void *user);

/* Reaps the process if it has ended: 1. */
int launch_reap(launch_rank *rank);

void launch_free(launch_rank *rank);

#endif
