/* What backends find worth telling a person though nothing failed: a broken cache of programs, say.
 * Kept for the process until somebody asks (qn_device_note), each text once. Any thread. */
#ifndef QN_DEVICE_NOTES_H
#define QN_DEVICE_NOTES_H

#include <stddef.h>

/* An empty text is none. */
void qn__device_tell(const char *text);

/* The oldest that nobody heard, cut to `room`; 0 when there is none. */
int qn__device_told(char *text, size_t room);

#endif
