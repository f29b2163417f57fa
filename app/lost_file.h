/* The file after an address that a signal tells. */
#ifndef LOST_FILE_H
#define LOST_FILE_H

/* Says on the standard error which mapped file became shorter, or is on a disk that failed. Calls
 * only async-signal-safe functions. */
void lost_file_say(const void *address);

#endif
