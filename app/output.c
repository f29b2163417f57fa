#include "output.h"
#include <errno.h>
#include <stdio.h>

static int lost;

void output_lost(int why) {
    if (!lost)
        lost = why;
}

/* The stream itself only has an error flag, and drops the bytes. */
void output_flush(void) {
    if (fflush(stdout) != 0)
        output_lost(errno);
}

int output_failure(void) { return lost; }
