/* A rank that `quern launch` has started: what it tells the launcher, and how the launcher stops
 * it.
 *
 * The launcher sets QUERN_LAUNCHED and gives --key-file -, so the first line of the standard input
 * is the run's key. Each byte after it stops the rank as SIGTERM does, and so does the end of the
 * input: a rank never outlives its launcher. On stderr, lines that begin with LAUNCHED_MARK are for
 * the launcher, which does not print them:
 *
 *     joined              the ranks are connected
 *     step N ALL RATE     training: after step N of ALL, with the items per second of all ranks
 *     end CODE            this rank has written the results, or has reported the error of all
 *
 * Without a launcher all of it does nothing. */
#ifndef APP_LAUNCHED_H
#define APP_LAUNCHED_H

#include <quern/train.h>

#define LAUNCHED_MARK "\036"
/* Words that the launcher inserts after the name of the command: --meet HOST:PORT --ranks N
 * --rank I --key-file - */
enum { LAUNCHED_WORDS = 8 };

/* The command line of the launcher up to the command of the ranks, or NULL. */
const char *launched_by(void);

/* The command line by which the launcher would start the same again, with more words at its end.
 * argv is that of this rank, whose command has `named` words. The caller frees it; NULL: out of
 * memory. */
char *launched_line(int argc, char **argv, int named, const char *const *more, size_t count);

/* After the key was read: listens to the standard input from now on. */
void launched_listen(void);
void launched_joined(void);
void launched_step(const qn_step_event *event);
void launched_end(int code);

#endif
