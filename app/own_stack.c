#include "own_stack.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* Bytes. The largest frames are of tables of the machine that is examined at the start. */
enum { LEAST = 1 << 20, OWN = 8 << 20 };

typedef struct call {
    int (*run)(int, char **);
    int argc, code;
    char **argv;
} call;

static void *make(void *user) {
    call *c = user;
    c->code = c->run(c->argc, c->argv);
    return NULL;
}

/* Without a thread the first one has to do: it may be enough. */
static int run_in_thread(call *c) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    int error = pthread_attr_setstacksize(&attributes, OWN);
    if (error == 0)
        error = pthread_create(&thread, &attributes, make, c);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 1;
}

int own_stack_run(int (*run)(int, char **), int argc, char **argv) {
    struct rlimit limit;
    call c = {.run = run, .argc = argc, .argv = argv};
    const int is_small = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < LEAST;
    if (is_small && run_in_thread(&c))
        return c.code;
    return run(argc, argv);
}
