/* A secret in a file: the key by which the ranks of a run authenticate one another. */
#ifndef APP_SECRET_H
#define APP_SECRET_H

enum { SECRET_CAPACITY = 1025 };

/* Reads the file's one line into `key`. Refuses a file that other users may read, and a key of less
 * than 16 characters. "-": the first line of the standard input. Returns -1, or an exit code
 * after a message. */
int secret_read(const char *path, char key[SECRET_CAPACITY]);

enum { SECRET_MADE = 65 };

/* A fresh secret: 64 hexadecimal digits from the system's random numbers. 0 or -1. */
int secret_make(char key[SECRET_MADE]);

#endif
