#include "base/system/process.h"

#include "base/files/unfinished.h"
#include "base/files/write_whole.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A file without a name that holds the text, for reading from its begin. -1 with errno set. */
static int file_of(const char *text) {
    const int file = memfd_create("input", MFD_CLOEXEC);
    const int why = file >= 0 ? qn__write_whole(file, text, strlen(text)) : 0;
    if (why != 0) {
        close(file);
        errno = why;
        return -1;
    }
    if (file >= 0)
        lseek(file, 0, SEEK_SET);
    return file;
}

/* The environment with another TMPDIR, for qn__free; `word` has the text of that. */
static char **environment_with(const char *temporary, char *word, size_t capacity) {
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **words = qn__alloc(count + 2, sizeof *words, NULL);
    if (!words)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "TMPDIR=", 7) != 0)
            words[used++] = environ[i];
    snprintf(word, capacity, "TMPDIR=%s", temporary);
    words[used++] = word;
    words[used] = NULL;
    return words;
}

/* The process is recorded before a signal can end this one. */
static int start(const char *const *argv, char **environment, int in, int out, int error,
                 pid_t *process, int *entry) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all, none, before;
    char *words[64];
    size_t count = 0;
    for (; argv[count] && count + 1 < sizeof words / sizeof *words; count++)
        memcpy(&words[count], &argv[count], sizeof *words);
    words[count] = NULL;
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, error, STDERR_FILENO);
    int code = posix_spawnattr_setsigdefault(&attributes, &all);
    if (code == 0)
        code = posix_spawnattr_setsigmask(&attributes, &none);
    if (code == 0)
        code = posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (code == 0)
        code = posix_spawn(process, words[0], &files, &attributes, words, environment);
    *entry = code == 0 ? qn__unfinished_process(*process) : -1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return code;
}

/* Waits until there is something to read. Returns 0 when the time is over. */
static int await(int from, double until) {
    struct pollfd poll_of = {.fd = from, .events = POLLIN};
    for (;;) {
        const double left = until - qn__now();
        if (left <= 0)
            return 0;
        const int ready = poll(&poll_of, 1, left < 1000 ? (int)(left * 1000) + 1 : 1000000);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return 1;
    }
}

/* Reads to the end; what has no space is dropped. Returns 0 when the time was over before. */
static int listen_to(int from, double until, char *said, size_t capacity) {
    char rest[512];
    size_t used = 0;
    int in_time;
    while ((in_time = await(from, until))) {
        const int fits = used + 1 < capacity;
        const ssize_t n =
            fits ? read(from, said + used, capacity - 1 - used) : read(from, rest, sizeof rest);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += fits ? (size_t)n : 0;
    }
    said[used] = '\0';
    return in_time;
}

static qn_status too_slow(pid_t process, const char *path, double seconds, qn_error *err) {
    int status;
    kill(-process, SIGKILL);
    while (waitpid(process, &status, 0) < 0 && errno == EINTR)
        ;
    qn__fail(err, QN_BUSY, "%s did not end within %g seconds, and was killed", path, seconds);
    return qn__remedy(err, QN_BUSY, "find out why it hangs");
}

static qn_status wait_for(pid_t process, int entry, const char *path, int *code, qn_error *err) {
    siginfo_t ended;
    int status = 0;
    while (waitid(P_PID, (id_t)process, &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        ;
    qn__unfinished_process_end(entry);
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return qn__fail_errno(err, "wait for", path);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return QN_OK;
}

qn_status qn__process_run(const char *const *argv, const char *text, const char *temporary,
                          qn__process_errors errors, double seconds, char *said, size_t capacity,
                          int *code, qn_error *err) {
    char word[PATH_MAX + 8], **environment = environ;
    int out[2], in_time = 1, entry = -1;
    pid_t process = 0;
    said[0] = '\0';
    const int in = file_of(text);
    if (in < 0)
        return qn__fail_errno(err, "start", argv[0]);
    if (pipe2(out, O_CLOEXEC) != 0) {
        qn__fail_errno(err, "start", argv[0]);
        close(in);
        return QN_IO;
    }
    if (temporary)
        environment = environment_with(temporary, word, sizeof word);
    const int error = errors == QN__PROCESS_ERRORS_PASS ? STDERR_FILENO : out[1];
    const int why =
        environment ? start(argv, environment, in, out[1], error, &process, &entry) : ENOMEM;
    if (temporary)
        qn__free(environment);
    close(in);
    close(out[1]);
    if (why == 0)
        in_time = listen_to(out[0], qn__now() + seconds, said, capacity);
    close(out[0]);
    if (!in_time)
        qn__unfinished_process_end(entry);
    if (!in_time)
        return too_slow(process, argv[0], seconds, err);
    if (why == 0)
        return wait_for(process, entry, argv[0], code, err);
    errno = why;
    return qn__fail_errno(err, "start", argv[0]);
}
