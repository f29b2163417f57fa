/* A file for the standard output: the library writes whole files, so it writes one into a temporary
 * folder, which is copied and removed. No part of it is printed before an error. */
#ifndef APP_WHOLE_OUTPUT_H
#define APP_WHOLE_OUTPUT_H

/* Writes the file at `path`. Returns -1, or an exit code after a message. */
typedef int whole_output_writer(const void *user, const char *path);

/* Calls `write`, and copies what it wrote. Returns -1, or an exit code after a message. */
int whole_output(whole_output_writer *write, const void *user);

#endif
