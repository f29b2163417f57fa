#include "interrupt.h"
#include "command.h"
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Atomic(qn_train *) watched;
static atomic_int heard, speaks;

/* Only calls that are safe in a handler: qn_train_stop is documented as such. */
static void on_signal(int number) {
    static const char text[] = "\nstopping at the end of this step; once more stops at once\n";
    qn_train *train = atomic_load(&watched);
    int before = atomic_fetch_add(&heard, 1);
    if (train && before > 0 && (number == SIGUSR1 || number == SIGUSR2))
        return;
    if (!train || before > 0)
        _exit(EXIT_INTERRUPTED);
    qn_train_stop(train);
    if (atomic_load(&speaks)) {
        ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
    }
}

void interrupt_watch(qn_train *train, int speak) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    struct sigaction action, before;
    atomic_store(&speaks, speak);
    atomic_store(&watched, train);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        /* Who started the program with a signal ignored (nohup, a shell's &) meant it. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}
