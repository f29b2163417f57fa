/* What `quern launch` shows: the lines of the ranks, and below them on a terminal one line a host.
 */
#ifndef APP_LAUNCH_VIEW_H
#define APP_LAUNCH_VIEW_H

#include "launch_ranks.h"
#include <stdio.h>

void launch_view_begin(int quiet);
/* Draws the lines of the hosts again, at most eight times a second. Without a terminal: a line for
 * each host whose state has changed. */
void launch_view_draw(const launch_hosts *hosts, const launch_rank *ranks, uint32_t count);
/* Removes the lines of the hosts; the next drawing brings them back. */
void launch_view_clear(void);
/* Prints a line of a rank as it is. `before`: HOST of a rank that is not connected, or NULL. */
void launch_view_line(FILE *to, const char *before, const char *text, size_t size);

#endif
