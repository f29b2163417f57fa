#include "launched.h"
#include "format.h"
#include "program.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double PAUSE = 0.25; /* seconds between two lines about steps */

static double told = -1;

const char *launched_by(void) { return getenv("QUERN_LAUNCHED"); }

char *launched_line(int argc, char **argv, int named, const char *const *more, size_t count) {
    const char *before = launched_by();
    char *name = format_shell(named, argv + 1, NULL, 0);
    const int skip = 1 + named + LAUNCHED_WORDS;
    char *rest = format_shell(argc > skip ? argc - skip : 0, argv + skip, more, count);
    char *line = NULL;
    if (name && rest) {
        const size_t size = strlen(before) + strlen(name) + strlen(rest) + 4;
        line = malloc(size);
        if (line)
            snprintf(line, size, "%s %s %s", before, name, rest + strspn(rest, " "));
    }
    free(name);
    free(rest);
    return line;
}

static void *listen_to_input(void *unused) {
    char byte;
    (void)unused;
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR)
            continue;
        kill(getpid(), SIGTERM);
        if (n <= 0)
            return NULL;
    }
}

void launched_listen(void) {
    sigset_t all, before;
    pthread_t thread;
    if (!launched_by())
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, listen_to_input, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void launched_joined(void) {
    if (launched_by())
        fprintf(stderr, LAUNCHED_MARK "joined\n");
}

void launched_step(const qn_step_event *e) {
    const double now = launched_by() ? program_now() : 0;
    if (!launched_by() || (told >= 0 && now - told < PAUSE && e->step < e->steps))
        return;
    told = now;
    fprintf(stderr, LAUNCHED_MARK "step %" PRIu64 " %" PRIu64 " %.6g\n", e->step, e->steps,
            e->items_per_second);
}

void launched_end(int code) {
    if (launched_by())
        fprintf(stderr, LAUNCHED_MARK "end %d\n", code);
}
