#include "launch_ranks.h"
#include "format.h"
#include "launched.h"
#include "program.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST_LINE = 1 << 20, PIECE = 1 << 16, MOST_SSH_WORDS = 32 };

/* ---------------------------------------------------------------- the command of a rank */

/* The words of the rank, with quotes. The launcher's follow the name of the command: options may
 * not follow the arguments, where a "--" is among them. */
static char *rank_words(const launch_setup *s, const launch_rank *rank) {
    char count[16], number[16];
    snprintf(count, sizeof count, "%u", s->ranks);
    snprintf(number, sizeof number, "%u", rank->number);
    char *ours[] = {(char *)"--meet", (char *)s->place, (char *)"--ranks",    count,
                    (char *)"--rank", number,           (char *)"--key-file", (char *)"-"};
    const size_t all = (size_t)s->count + LAUNCHED_WORDS + 1;
    char **words = calloc(all, sizeof *words);
    if (!words)
        return NULL;
    size_t n = 0;
    for (int i = 0; i < s->named; i++)
        words[n++] = s->words[i];
    for (size_t i = 0; i < LAUNCHED_WORDS; i++)
        words[n++] = ours[i];
    if (s->resume)
        words[n++] = (char *)"--resume";
    for (int i = s->named; i < s->count; i++)
        words[n++] = s->words[i];
    char *text = format_shell((int)n, words, NULL, 0);
    free(words);
    return text;
}

static char *quoted(const char *text) { return format_shell(1, (char *[]){(char *)text}, NULL, 0); }

/* What a shell runs on the host. It says by lines for the launcher why a rank cannot begin. */
static char *script_of(const launch_setup *s, const launch_rank *rank) {
    char own[4096];
    const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = '\0';
    char *folder = quoted(s->directory), *program = quoted(s->program ? s->program : own);
    char *prefix = quoted(s->prefix), *words = rank_words(s, rank), *text = NULL;
    size_t size = 0;
    FILE *to = folder && program && prefix && words ? open_memstream(&text, &size) : NULL;
    if (to) {
        fprintf(to, "cd -- %s 2>/dev/null || { printf '\\036folder\\n' >&2; exit 1; }; ", folder);
        fprintf(to, "p=%s; ", program);
        if (!s->program)
            fprintf(to, "[ -x \"$p\" ] || p=quern; ");
        fprintf(to, "command -v \"$p\" >/dev/null 2>&1 || { printf '\\036program\\n' >&2; exit 1; "
                    "}; ");
        fprintf(to, "QUERN_LAUNCHED=%s; export QUERN_LAUNCHED; exec \"$p\" %s", prefix, words);
        if (fclose(to) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(folder);
    free(program);
    free(prefix);
    free(words);
    return text;
}

/* ---------------------------------------------------------------- processes */

static void close_both(const int file[2]) {
    if (file[0] >= 0)
        close(file[0]);
    if (file[1] >= 0)
        close(file[1]);
}

static int start(char *const *argv, launch_rank *rank) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    int code =
        pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0
            ? errno
            : program_begin((const char *const *)argv, in[0], out[1], err[1], &rank->process);
    if (code != 0) {
        close_both(in);
        close_both(out);
        close_both(err);
        rank->process = 0;
        return code;
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    rank->in = in[1];
    rank->out.from = out[0];
    rank->err.from = err[0];
    return 0;
}

/* The words of --ssh, the host, and one word with the command. */
static int start_by_ssh(const launch_setup *s, launch_rank *rank, const char *script) {
    static const char *const more[] = {"-oBatchMode=yes", "-oConnectTimeout=10",
                                       "-oServerAliveInterval=10", "-oServerAliveCountMax=3"};
    char *argv[MOST_SSH_WORDS + 8], *kept = NULL;
    char *words = strdup(s->ssh), *inner = quoted(script);
    const size_t size = 16 + (inner ? strlen(inner) : 0);
    char *command = inner ? malloc(size) : NULL;
    int n = 0, code = ENOMEM;
    if (words && command) {
        snprintf(command, size, "exec sh -c %s", inner);
        for (char *w = strtok_r(words, " ", &kept); w && n < MOST_SSH_WORDS;
             w = strtok_r(NULL, " ", &kept))
            argv[n++] = w;
        for (size_t i = 0; i < sizeof more / sizeof *more; i++)
            argv[n++] = (char *)more[i];
        argv[n++] = (char *)rank->host->name;
        argv[n++] = command;
        argv[n] = NULL;
        code = start(argv, rank);
    }
    free(words);
    free(inner);
    free(command);
    return code;
}

/* The pipe holds the key until the rank reads it. */
static void give_key(const launch_setup *s, launch_rank *rank) {
    char line[SECRET_MADE + 1];
    const int size = snprintf(line, sizeof line, "%s\n", s->key);
    const int given = write(rank->in, line, (size_t)size) == size;
    explicit_bzero(line, sizeof line);
    if (!given) {
        close(rank->in); /* the rank says that it has no key */
        rank->in = -1;
    }
}

int launch_begin(const launch_setup *s, launch_rank *rank) {
    char *script = script_of(s, rank);
    char *argv[] = {(char *)"sh", (char *)"-c", script, NULL};
    if (!script)
        return ENOMEM;
    rank->state = LAUNCH_STARTING;
    rank->fault = LAUNCH_BEGAN;
    rank->joined = rank->code = 0;
    rank->step = rank->steps = 0;
    rank->out.used = rank->err.used = 0;
    rank->said[0] = '\0';
    const int code = rank->host->local ? start(argv, rank) : start_by_ssh(s, rank, script);
    free(script);
    rank->live = code == 0;
    if (code == 0)
        give_key(s, rank);
    return code;
}

void launch_stop(launch_rank *rank) {
    if (rank->in >= 0 && write(rank->in, "\n", 1) < 0) {
        close(rank->in);
        rank->in = -1;
    }
}

void launch_kill(launch_rank *rank) {
    if (rank->process > 0)
        kill(-rank->process, SIGKILL);
}

int launch_reap(launch_rank *rank) {
    int status;
    if (rank->process <= 0 || waitpid(rank->process, &status, WNOHANG) != rank->process)
        return 0;
    rank->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    rank->process = 0;
    rank->state = LAUNCH_ENDED;
    rank->ended = program_now();
    if (rank->in >= 0)
        close(rank->in);
    rank->in = -1;
    return 1;
}

/* ---------------------------------------------------------------- output */

static int grow(launch_stream *stream) {
    if (stream->size - stream->used >= PIECE)
        return 1;
    char *more = realloc(stream->text, stream->size + PIECE);
    if (!more)
        return 0;
    stream->text = more;
    stream->size += PIECE;
    return 1;
}

static void close_stream(launch_stream *stream) {
    if (stream->from >= 0)
        close(stream->from);
    stream->from = -1;
}

void launch_read(launch_rank *rank, launch_stream *stream,
                 void (*line)(void *user, launch_rank *rank, launch_stream *stream,
                              const char *text, size_t size),
                 void *user) {
    if (!grow(stream)) {
        close_stream(stream);
        return;
    }
    const ssize_t n = read(stream->from, stream->text + stream->used, PIECE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    size_t begin = 0, end = stream->used + (n > 0 ? (size_t)n : 0);
    for (size_t i = stream->used; i < end; i++)
        if (stream->text[i] == '\n') {
            line(user, rank, stream, stream->text + begin, i + 1 - begin);
            begin = i + 1;
        }
    if (begin < end && (n <= 0 || end - begin >= LONGEST_LINE)) {
        line(user, rank, stream, stream->text + begin, end - begin);
        begin = end;
    }
    memmove(stream->text, stream->text + begin, end - begin);
    stream->used = end - begin;
    if (n <= 0)
        close_stream(stream);
}

void launch_free(launch_rank *rank) {
    if (rank->in >= 0)
        close(rank->in);
    close_stream(&rank->out);
    close_stream(&rank->err);
    free(rank->out.text);
    free(rank->err.text);
    rank->in = -1;
    rank->out.text = rank->err.text = NULL;
}
