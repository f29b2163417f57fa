/* What a person sees while a network is trained, on stderr: on a terminal one live bar, elsewhere
 * (a file, a launcher's pipe) a line every half minute, and in any case one for each epoch. */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include <quern/train.h>

typedef struct progress {
    int quiet;  /* nothing at all */
    int live;   /* stderr is a terminal that can move its cursor */
    int blocks; /* the locale is UTF-8: draw with block characters */
    int colour;
    int drawn;  /* a bar stands in the terminal's last line */
    int headed; /* the epochs' heading was printed */
    double
        last_draw; /* moment of the last bar, or of the last line where there is none; -1: never */
} progress;

/* Finds out what stderr can do. */
void progress_init(progress *p, int quiet);
/* Draws the bar, at most eight times a second, or prints a line every half minute. */
void progress_step(progress *p, const qn_step_event *event);
void progress_epoch(progress *p, const qn_epoch_event *event);
/* Takes the bar away, so that something else may be printed. */
void progress_clear(progress *p);
/* The same for whatever bar there is. */
void progress_make_way(void);

#endif
