/* The mapped file at an address that a signal (SIGBUS) reports. */
#ifndef LOST_FILE_H
#define LOST_FILE_H

/* Prints to stderr which mapped file became shorter, or is on a disk that failed. Calls only
 * async-signal-safe functions. */
void lost_file_say(const void *address);

#endif
