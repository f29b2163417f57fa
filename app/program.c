#include "program.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

double program_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Restores the default signal handling for another program: main ignores some signals for its own
 * writes, and submit blocks interruptions. */
static int plain_signals(posix_spawnattr_t *attributes, short more) {
    sigset_t set, none;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    sigemptyset(&none);
    return posix_spawnattr_setsigdefault(attributes, &set) == 0 &&
           posix_spawnattr_setsigmask(attributes, &none) == 0 &&
           posix_spawnattr_setflags(
               attributes, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | more)) == 0;
}

typedef struct reader {
    int from;
    char *text;
    size_t size, used;
} reader;

/* Reads the available output; what does not fit is discarded. 0 at the end. */
static int take(reader *r) {
    char rest[512];
    size_t capacity = r->size - 1 - r->used;
    ssize_t n = capacity > 0 ? read(r->from, r->text + r->used, capacity)
                             : read(r->from, rest, sizeof rest);
    if (n > 0 && capacity > 0)
        r->used += (size_t)n;
    r->text[r->used] = '\0';
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Reads both until they end, and waits for the process. 0 after the time limit. */
static int follow(reader readers[2], double until, pid_t process, int *status) {
    int open_ones = 2;
    while (open_ones > 0) {
        struct pollfd files[2];
        double left = until - program_now();
        for (int i = 0; i < 2; i++)
            files[i] = (struct pollfd){.fd = readers[i].from, .events = POLLIN};
        if (left <= 0)
            return 0;
        if (poll(files, 2, (int)(1000 * left) + 1) < 0 && errno != EINTR)
            return 0;
        for (int i = 0; i < 2; i++)
            if (files[i].fd >= 0 && files[i].revents && !take(&readers[i])) {
                close(readers[i].from);
                readers[i].from = -1;
                open_ones--;
            }
    }
    /* it closed its output, so it is about to end */
    for (;;) {
        pid_t ended = waitpid(process, status, WNOHANG);
        if (ended == process)
            return 1;
        if (program_now() > until)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static int spawn(const char *const *argv, const int out[2], const int err[2], pid_t *process) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err[1], STDERR_FILENO);
    int code = plain_signals(&attributes, 0)
                   ? posix_spawnp(process, argv[0], &files, &attributes, (char **)argv, environ)
                   : EINVAL;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return code;
}

program_end program_run(const char *const *argv, double seconds, program_result *r) {
    int out[2], err[2], status = 0;
    pid_t process = 0;
    memset(r, 0, sizeof *r);
    r->end = PROGRAM_FAILED;
    if (pipe2(out, O_CLOEXEC) != 0)
        return r->end;
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[0]);
        close(out[1]);
        return r->end;
    }
    int code = spawn(argv, out, err, &process);
    close(out[1]);
    close(err[1]);
    reader readers[2] = {{.from = out[0], .text = r->out, .size = sizeof r->out},
                         {.from = err[0], .text = r->err, .size = sizeof r->err}};
    if (code != 0) {
        errno = code;
        r->end = code == ENOENT ? PROGRAM_ABSENT : PROGRAM_FAILED;
    } else if (follow(readers, program_now() + seconds, process, &status)) {
        r->end = PROGRAM_ENDED;
        r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else {
        kill(process, SIGKILL);
        waitpid(process, &status, 0);
        r->end = PROGRAM_SLOW;
    }
    for (int i = 0; i < 2; i++)
        if (readers[i].from >= 0)
            close(readers[i].from);
    return r->end;
}

pid_t program_leave(const char *const *argv, const char *log) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    pid_t process = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
                                     0666);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    int code = plain_signals(&attributes, POSIX_SPAWN_SETSID)
                   ? posix_spawnp(&process, argv[0], &files, &attributes, (char **)argv, environ)
                   : EINVAL;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = code;
    return code == 0 ? process : -1;
}

int program_begin(const char *const *argv, int in, int out, int err, pid_t *process) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    const int code =
        plain_signals(&attributes, POSIX_SPAWN_SETSID)
            ? posix_spawnp(process, argv[0], &files, &attributes, (char **)argv, environ)
            : EINVAL;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return code;
}

unsigned long long program_began(pid_t process) {
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *from = fopen(path, "re");
    if (!from)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    text[n] = '\0';
    /* The name, in parentheses, may contain anything; the 3rd field follows it, the 22nd is
     * needed. */
    const char *rest = strrchr(text, ')');
    if (!rest || strlen(rest) < 4 || rest[2] == 'Z' || rest[2] == 'X')
        return 0;
    rest += 2;
    for (int field = 3; field < 22 && rest; field++)
        rest = strchr(rest, ' ') ? strchr(rest, ' ') + 1 : NULL;
    return rest ? strtoull(rest, NULL, 10) : 0;
}
