#include "interrupt.h"
#include "command.h"
#include "lost_file.h"
#include <quern/files.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
/* Seconds. */
enum { NUMBERS = sizeof numbers / sizeof *numbers, MOST_BEFORE = 10 };

static _Atomic(qn_train *) watched;
static _Atomic(qn_kernel *) watched_kernel;
static _Atomic(qn_server *) watched_server;
static _Atomic(qn_watch *) watched_folder;
static _Atomic(atomic_int *) watched_launch;
static _Atomic(const char *) answer;
static atomic_int heard, hangups, serves, lost, exit_code = EXIT_INTERRUPTED;
static _Atomic(const char *) own_file, own_folder;

static void say(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

/* Calls only async-signal-safe functions. */
_Noreturn static void end_now(void) {
    const char *file = atomic_load(&own_file), *folder = atomic_load(&own_folder);
    qn_files_abandon();
    if (file)
        unlink(file);
    if (folder)
        rmdir(folder);
    _exit(atomic_load(&exit_code));
}

/* A server ends with SIGINT and SIGTERM, at the second one at once. At SIGHUP it looks at its
 * files. Other signals are not for it. */
static void tell_server(qn_server *server, int number) {
    const char *text = atomic_load(&answer);
    if (number == SIGHUP) {
        atomic_fetch_add(&hangups, 1);
        qn_server_reload(server);
    }
    if (number != SIGINT && number != SIGTERM)
        return;
    if (atomic_fetch_add(&heard, 1) == 0 && text)
        say(text);
    qn_server_stop(server);
}

/* qn_train_stop, qn_kernel_stop, qn_server_stop, qn_watch_stop and qn_files_abandon are documented
 * as async-signal-safe. */
static void on_signal(int number) {
    qn_server *server = atomic_load(&watched_server);
    if (server) {
        tell_server(server, number);
        return;
    }
    if (atomic_load(&serves) && number != SIGINT &&
        number != SIGTERM) { /* it begins, or has ended */
        atomic_fetch_add(&hangups, number == SIGHUP);
        return;
    }
    qn_train *train = atomic_load(&watched);
    qn_kernel *kernel = atomic_load(&watched_kernel);
    qn_watch *watch = atomic_load(&watched_folder);
    atomic_int *launch = atomic_load(&watched_launch);
    const int works = train || kernel || watch || launch;
    int before = atomic_fetch_add(&heard, 1);
    if (works && before > 0 && (number == SIGUSR1 || number == SIGUSR2 || number == SIGXCPU))
        return;
    if (!works || before > 0)
        end_now();
    qn_train_stop(train);
    qn_kernel_stop(kernel);
    qn_watch_stop(watch);
    if (launch)
        atomic_fetch_add(launch, 1);
    const char *text = atomic_load(&answer);
    if (text)
        say(text);
}

/* A file that is mapped became shorter, or cannot be read any more. Several threads may notice it
 * at once; one of them says so. */
static void on_lost_file(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    while (atomic_exchange(&lost, 1))
        pause();
    atomic_store(&exit_code, EXIT_FAILURE);
    lost_file_say(info->si_addr);
    end_now();
}

/* With `ulimit -t` both limits of the processor's time are equal, and the system kills at once. The
 * soft limit comes some seconds earlier, so that a run can write a checkpoint. Other processes that
 * this one starts inherit it: it does no more to them than the other limit. */
static void lower_cpu_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY ||
        limit.rlim_cur < limit.rlim_max)
        return;
    const rlim_t tenth = limit.rlim_max / 10;
    const rlim_t before = tenth < 1 ? 1 : tenth > MOST_BEFORE ? MOST_BEFORE : tenth;
    limit.rlim_cur = limit.rlim_max > before ? limit.rlim_max - before : limit.rlim_max;
    setrlimit(RLIMIT_CPU, &limit);
}

void interrupt_start(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (int i = 0; i < NUMBERS; i++) {
        /* A signal that was ignored at the start (nohup, a shell's &) stays ignored. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    lower_cpu_limit();
    action.sa_sigaction = on_lost_file;
    action.sa_flags |= SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
}

void interrupt_watch(qn_train *train, const char *text) {
    atomic_store(&answer, text);
    atomic_store(&watched, train);
}

void interrupt_watch_kernel(qn_kernel *kernel, const char *text) {
    atomic_store(&answer, text);
    atomic_store(&watched_kernel, kernel);
}

void interrupt_serves(void) {
    atomic_store(&exit_code, EXIT_DONE);
    atomic_store(&serves, 1);
}

void interrupt_watch_server(qn_server *server, const char *text) {
    atomic_store(&answer, text);
    atomic_store(&watched_server, server);
    if (server && atomic_load(&hangups) > 0)
        qn_server_reload(server);
}

int interrupt_hangups(void) { return atomic_load(&hangups); }

void interrupt_watch_folder(qn_watch *watch, const char *text) {
    atomic_store(&answer, text);
    atomic_store(&watched_folder, watch);
}

void interrupt_watch_launch(atomic_int *stops) { atomic_store(&watched_launch, stops); }

int interrupt_conclude(int code) {
    atomic_store(&exit_code, code);
    interrupt_watch(NULL, NULL);
    interrupt_watch_kernel(NULL, NULL);
    interrupt_watch_server(NULL, NULL);
    interrupt_watch_folder(NULL, NULL);
    interrupt_watch_launch(NULL);
    return code;
}

void interrupt_removes(const char *file, const char *folder) {
    atomic_store(&own_file, file);
    atomic_store(&own_folder, folder);
}

/* Used by the main thread only. */
static int holds;

static void block(int how) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < NUMBERS; i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(how, &set, NULL);
}

void interrupt_hold(void) {
    if (holds++ == 0)
        block(SIG_BLOCK);
}

void interrupt_release(void) {
    if (--holds == 0)
        block(SIG_UNBLOCK);
}
