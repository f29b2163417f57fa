/* Runs the program on a larger stack, where the limit of the first thread's stack (`ulimit -s`) is
 * smaller than it needs. */
#ifndef APP_OWN_STACK_H
#define APP_OWN_STACK_H

/* Calls run(argc, argv) and returns what it does: in a thread with a stack of its own where that of
 * the first thread is small. Signals then go to that thread. */
int own_stack_run(int (*run)(int, char **), int argc, char **argv);

#endif
