/* The progress of a training on stderr: on a terminal one live bar; elsewhere (a file, a launcher's
 * pipe) a line every half minute; and a line for each epoch. */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include <quern/kernel.h>
#include <quern/train.h>
#include <stdint.h>

typedef struct progress {
    int quiet;  /* no output */
    int live;   /* stderr is a terminal that can move its cursor */
    int blocks; /* the locale is UTF-8: draw with block characters */
    int colour;
    int drawn;        /* the terminal's last line is a bar */
    int headed;       /* the heading of the epochs was printed */
    double last_draw; /* time of the last bar, or of the last line without a terminal; -1: never */
} progress;

/* Detects what stderr supports. */
void progress_init(progress *p, int quiet);
/* Draws the bar, at most eight times a second, or prints a line every half minute. */
void progress_step(progress *p, const qn_step_event *event);
void progress_epoch(progress *p, const qn_epoch_event *event);
/* A bar for `done` of `all` things that are not steps, on a terminal only and not in the first
 * moment: "decoding". */
void progress_count(progress *p, const char *what, uint64_t done, uint64_t all);
/* The same for a kernel, with its speed and the time left; elsewhere a line every half minute. */
void progress_kernel(progress *p, const qn_kernel_progress *kernel);
/* Removes the bar, so that other output can be printed. */
void progress_clear(progress *p);
/* The same for any current bar. */
void progress_make_way(void);

#endif
