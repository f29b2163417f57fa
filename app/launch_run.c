#include "launch_run.h"
#include "command.h"
#include "interrupt.h"
#include "launch_view.h"
#include "launched.h"
#include "message.h"
#include "program.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { TICK = 100 }; /* milliseconds */
/* Seconds: before a rank is started again; for the output of a process that has ended; for ranks
 * after the run is over, such as an ssh whose host was lost. */
static const double PAUSE = 1, DRAIN = 1, LINGER = 10;

typedef struct course {
    launch_job *job;
    launch_rank *rank;
    struct pollfd *files;
    double *again; /* when a rank is started again; 0: it is not */
    uint64_t *tries;
    uint32_t joined;   /* ranks that were connected in this start */
    int over, code;    /* the run has ended with that code */
    double over_since; /* also of a failure, and of a stop by the user */
    int asked;         /* the ranks were asked to stop */
} course;

static atomic_int stops;

/* ---------------------------------------------------------------- the end of a start */

static void end_run(course *c, int code) {
    if (c->over)
        return;
    c->over = 1;
    c->code = code;
    c->over_since = program_now();
    for (uint32_t i = 0; i < c->job->setup.ranks; i++)
        c->again[i] = 0;
}

/* Ends a start that cannot succeed: nobody has begun to work. */
static void give_up(course *c, int code) {
    end_run(c, code);
    for (uint32_t i = 0; i < c->job->setup.ranks; i++) {
        c->again[i] = 0;
        launch_kill(&c->rank[i]);
    }
}

static int fell(const launch_rank *r) { return r->code >= 128 && r->code != EXIT_INTERRUPTED; }

static int say_no_start(const launch_job *job, const launch_rank *r) {
    char what[700], where[1400];
    const char *host = r->host->name;
    if (r->fault == LAUNCH_NO_FOLDER) {
        snprintf(what, sizeof what, "%.255s does not have the folder", host);
        return message_fail(QN_IO, what, job->setup.directory,
                            "--directory DIR names the folder in which the ranks work");
    }
    if (r->fault == LAUNCH_NO_PROGRAM) {
        snprintf(what, sizeof what, "%.255s does not have the command %.200s", host,
                 job->setup.program ? job->setup.program : "quern");
        return message_fail(QN_UNSUPPORTED, what, "",
                            "install Quern there, or name its path with --program FILE");
    }
    if (!r->host->local && r->code == 255) {
        snprintf(what, sizeof what, "%.255s could not be reached by %.100s", host, job->setup.ssh);
        snprintf(where, sizeof where, "%.200s", r->said);
        return message_fail(QN_CLUSTER, what, where,
                            "\"ssh HOST true\" must work without a password, also for a new host");
    }
    snprintf(what, sizeof what, "rank %" PRIu32 " on %.255s ended with %d before it was connected",
             r->number, host, r->code);
    const int code = message_fail(QN_CLUSTER, what, "", "its output is above");
    return fell(r) ? code : r->code; /* 2: its command line is wrong */
}

/* A rank has ended before all were connected. One that was killed or could not be reached may be
 * started again: the others wait for it. */
static void on_early_end(course *c, launch_rank *r) {
    const uint32_t i = r->number;
    if (fell(r) && r->fault == LAUNCH_BEGAN && c->tries[i] < c->job->restarts) {
        c->tries[i]++;
        c->again[i] = program_now() + PAUSE;
        launch_view_clear();
        message_note("rank %" PRIu32 " on %s ended with %d before it was connected; it is started "
                     "again",
                     r->number, r->host->name, r->code);
        return;
    }
    launch_view_clear();
    give_up(c, say_no_start(c->job, r));
}

/* Whether a rank that fell can join the others again: rank 0 lets it in, and trainings do. */
static int may_return(const course *c, const launch_rank *r) {
    return fell(r) && r->number > 0 && c->rank[0].live && c->tries[r->number] < c->job->restarts &&
           strcmp(c->job->setup.words[0], "train") == 0;
}

static void on_late_end(course *c, launch_rank *r) {
    const uint32_t i = r->number;
    if (may_return(c, r)) {
        c->again[i] = program_now() + (c->tries[i]++ > 0 ? PAUSE : 0);
        launch_view_clear();
        message_note("rank %" PRIu32
                     " on %s ended with %d; it is started again, to join the others",
                     i, r->host->name, r->code);
    }
    /* Nobody lets in ranks any more. Those that were started again have no step before. */
    for (uint32_t k = 1; i == 0 && k < c->job->setup.ranks; k++) {
        c->again[k] = 0;
        if (c->tries[k] > 0 && c->rank[k].step == 0)
            launch_kill(&c->rank[k]);
    }
}

static void on_end(course *c, launch_rank *r) {
    if (c->over || c->asked)
        return;
    if (c->joined == 0 && !r->joined)
        on_early_end(c, r);
    else
        on_late_end(c, r);
}

/* ---------------------------------------------------------------- what ranks say */

static void on_mark(course *c, launch_rank *r, const char *text) {
    int code = 0;
    if (strcmp(text, "folder") == 0) {
        r->fault = LAUNCH_NO_FOLDER;
    } else if (strcmp(text, "program") == 0) {
        r->fault = LAUNCH_NO_PROGRAM;
    } else if (strcmp(text, "joined") == 0) {
        r->joined = 1;
        r->state = LAUNCH_RUNNING;
        c->joined++;
    } else if (sscanf(text, "end %d", &code) == 1) {
        end_run(c, code >= 0 && code <= 255 ? code : EXIT_FAILED);
    } else {
        (void)sscanf(text, "step %" SCNu64 " %" SCNu64 " %lf", &r->step, &r->steps, &r->rate);
    }
}

static void on_line(void *user, launch_rank *r, launch_stream *stream, const char *text,
                    size_t size) {
    course *c = user;
    char word[200];
    if (stream == &r->out) {
        launch_view_line(stdout, NULL, text, size);
        return;
    }
    const size_t length = size - (text[size - 1] == '\n');
    const size_t part = length < sizeof word - 1 ? length : sizeof word - 1;
    memcpy(word, text, part);
    word[part] = '\0';
    if (word[0] == LAUNCHED_MARK[0]) {
        on_mark(c, r, word + 1);
        return;
    }
    if (part > 0)
        memcpy(r->said, word, part + 1);
    launch_view_line(stderr, r->joined ? NULL : r->host->name, text, size);
}

/* ---------------------------------------------------------------- the loop */

static int begin_rank(course *c, launch_rank *r) {
    char what[400];
    c->again[r->number] = 0;
    const int error = launch_begin(&c->job->setup, r);
    if (error == 0)
        return -1;
    snprintf(what, sizeof what, "cannot start %.255s: %.100s",
             r->host->local ? "sh" : c->job->setup.ssh, strerror(error));
    return message_fail(error == ENOENT ? QN_UNSUPPORTED : QN_IO, what, "",
                        error == ENOENT ? "install it, or name another program with --ssh"
                                        : "\"ulimit -n\" and \"ulimit -u\" limit the ranks here");
}

/* Waits for output at most a tick, and takes it. */
static void take_output(course *c) {
    const uint32_t ranks = c->job->setup.ranks;
    for (uint32_t i = 0; i < ranks; i++) {
        c->files[2 * i] = (struct pollfd){.fd = c->rank[i].out.from, .events = POLLIN};
        c->files[2 * i + 1] = (struct pollfd){.fd = c->rank[i].err.from, .events = POLLIN};
    }
    if (poll(c->files, 2 * ranks, TICK) <= 0)
        return;
    for (uint32_t i = 0; i < ranks; i++) {
        launch_rank *r = &c->rank[i];
        if (r->err.from >= 0 && c->files[2 * i + 1].revents)
            launch_read(r, &r->err, on_line, c);
        if (r->out.from >= 0 && c->files[2 * i].revents)
            launch_read(r, &r->out, on_line, c);
    }
}

/* A process is gone when its output has ended, too. */
static int is_gone(const launch_rank *r) {
    return r->process <= 0 && r->out.from < 0 && r->err.from < 0;
}

static void reap(course *c) {
    for (uint32_t i = 0; i < c->job->setup.ranks; i++) {
        launch_rank *r = &c->rank[i];
        (void)launch_reap(r);
        if (r->live && r->process <= 0 && program_now() - r->ended > DRAIN)
            launch_free(r); /* another process holds its output */
        if (r->live && is_gone(r)) {
            r->live = 0;
            on_end(c, r);
        }
    }
}

static void obey(course *c) {
    if (atomic_load(&stops) == 0 || c->asked)
        return;
    c->asked = 1;
    launch_view_clear();
    if (!message_is_quiet())
        fputs("stopping all ranks; press Ctrl-C again to stop at once\n", stderr);
    for (uint32_t i = 0; i < c->job->setup.ranks; i++) {
        c->again[i] = 0;
        launch_stop(&c->rank[i]);
    }
}

static int step(course *c) {
    int busy = 0;
    take_output(c);
    reap(c);
    obey(c);
    for (uint32_t i = 0; i < c->job->setup.ranks; i++) {
        launch_rank *r = &c->rank[i];
        if (c->again[i] > 0 && program_now() >= c->again[i]) {
            const int code = begin_rank(c, r);
            if (code >= 0)
                give_up(c, code);
        }
        if (c->over && program_now() - c->over_since > LINGER)
            launch_kill(r);
        busy |= !is_gone(r) || c->again[i] > 0;
    }
    if (!c->over || c->joined > 0) /* else the launcher itself ended them */
        launch_view_draw(&c->job->hosts, c->rank, c->job->setup.ranks);
    return busy;
}

/* The exit code, or -1: all ranks fell. */
static int verdict(const course *c) {
    int code = EXIT_DONE, all_fell = 0;
    if (c->over)
        return c->code;
    for (uint32_t i = 0; i < c->job->setup.ranks; i++) {
        if (fell(&c->rank[i]))
            all_fell = 1;
        else if (c->rank[i].code > code)
            code = c->rank[i].code;
    }
    if (c->asked)
        return EXIT_INTERRUPTED;
    return all_fell ? -1 : code != EXIT_DONE ? code : EXIT_FAILED;
}

static int start_all(course *c) {
    char place[PLACE_TEXT];
    launch_job *job = c->job;
    launch_place(&job->hosts, job->meet, place);
    job->setup.place = place;
    if (secret_make(job->setup.key) != 0)
        return message_fail(QN_IO, "the system gives no random numbers for the key", "", "");
    c->joined = 0;
    for (uint32_t i = 0; i < job->setup.ranks; i++) {
        const int code = begin_rank(c, &c->rank[i]);
        if (code >= 0) {
            give_up(c, code);
            break;
        }
    }
    while (step(c))
        ;
    launch_view_clear();
    explicit_bzero(job->setup.key, sizeof job->setup.key);
    return verdict(c);
}

/* Three files for each rank. */
static void raise_limit(uint32_t ranks) {
    struct rlimit limit;
    const rlim_t needed = 3 * (rlim_t)ranks + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void place_ranks(course *c) {
    uint32_t number = 0;
    for (uint32_t h = 0; h < c->job->hosts.count; h++)
        for (uint32_t k = 0; k < c->job->hosts.at[h].slots; k++, number++)
            c->rank[number] = (launch_rank){.host = &c->job->hosts.at[h],
                                            .number = number,
                                            .in = -1,
                                            .out.from = -1,
                                            .err.from = -1};
}

static int run_all(course *c) {
    launch_job *job = c->job;
    int code = start_all(c);
    for (uint64_t n = 1; code < 0 && n <= job->restarts && atomic_load(&stops) == 0; n++) {
        message_note("all ranks have ended before the result was written; they are started again%s "
                     "(%" PRIu64 " of %" PRIu64 ")",
                     job->saves ? ", from the last checkpoint" : ", from the beginning", n,
                     job->restarts);
        job->setup.resume = job->saves;
        code = start_all(c);
    }
    if (code >= 0)
        return code;
    return message_fail(QN_CLUSTER, "all ranks have ended before the result was written", "",
                        job->saves ? "start the same command with --resume to continue"
                                   : "with --checkpoint DIR a new start continues");
}

int launch_run(launch_job *job) {
    const uint32_t ranks = job->setup.ranks = job->hosts.ranks;
    course c = {.job = job,
                .rank = calloc(ranks, sizeof *c.rank),
                .files = calloc(2 * (size_t)ranks, sizeof *c.files),
                .again = calloc(ranks, sizeof *c.again),
                .tries = calloc(ranks, sizeof *c.tries)};
    int code = EXIT_FAILED;
    raise_limit(ranks);
    launch_view_begin(job->quiet);
    if (c.rank && c.files && c.again && c.tries) {
        place_ranks(&c);
        interrupt_watch_launch(&stops);
        code = interrupt_conclude(run_all(&c));
        for (uint32_t i = 0; i < ranks; i++)
            launch_free(&c.rank[i]);
    } else {
        code = message_fail(QN_MEMORY, "out of memory", "", "");
    }
    free(c.rank);
    free(c.files);
    free(c.again);
    free(c.tries);
    return code;
}
