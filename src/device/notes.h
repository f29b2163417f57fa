/* Messages of backends for the user about things that are not failures, such as an invalid cache of
 * programs. Each text is kept once, until it is read (qn_device_note). Thread-safe. */
#ifndef QN_DEVICE_NOTES_H
#define QN_DEVICE_NOTES_H

#include <stddef.h>

/* An empty text is ignored. */
void qn__device_tell(const char *text);
/* The same as a qn_note_fn. */
void qn__device_tell_note(void *user, const char *text);

/* The oldest note that was not read yet, cut to `capacity`; 0 when there is none. */
int qn__device_told(char *text, size_t capacity);

#endif
