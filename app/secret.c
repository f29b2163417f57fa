#include "secret.h"
#include "message.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHORTEST = 16 };

static const char make_one[] =
    "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE), and copy it to every "
    "machine that needs it";

/* Only a regular file that no other user can read may hold a secret. */
static int check(const char *path, int file) {
    struct stat about;
    char remedy[600];
    if (fstat(file, &about) != 0)
        return message_fail(QN_IO, strerror(errno), path, "");
    if (!S_ISREG(about.st_mode))
        return message_fail(QN_USAGE, "the key file is not a regular file", path, make_one);
    if (about.st_mode & 077) {
        snprintf(remedy, sizeof remedy, "chmod 600 %.500s", path);
        return message_fail(QN_USAGE, "the key file is accessible to users other than its owner",
                            path, remedy);
    }
    return -1;
}

/* Takes the line without its end; a longer one, or a second line, is invalid. */
static int check_line(const char *path, char *key, size_t size) {
    size_t length = strcspn(key, "\r\n");
    size_t rest = length + strspn(key + length, "\r\n");
    if (strlen(key) != size || rest != size || size >= SECRET_CAPACITY - 1)
        return message_fail(QN_USAGE, "the key file is not one line of at most 1,023 characters",
                            path, make_one);
    key[length] = '\0';
    if (length < SHORTEST)
        return message_fail(QN_USAGE, "the key has less than 16 characters", path, make_one);
    return -1;
}

/* The first line of the standard input; the rest of it stays there for others. */
static int read_input(char *key) {
    size_t size = 0;
    while (size < SECRET_CAPACITY - 1) {
        const ssize_t got = read(STDIN_FILENO, key + size, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || key[size++] == '\n')
            break;
    }
    key[size] = '\0';
    return check_line("the standard input", key, size);
}

int secret_read(const char *path, char key[SECRET_CAPACITY]) {
    if (strcmp(path, "-") == 0)
        return read_input(key);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t size = 0;
    ssize_t got = 1;
    if (file < 0) {
        char what[128];
        int absent = errno == ENOENT;
        snprintf(what, sizeof what, "cannot open the file of the key: %.80s", strerror(errno));
        return message_fail(QN_IO, what, path,
                            absent ? make_one : "name a key file that you can read");
    }
    int code = check(path, file);
    while (code < 0 && size < SECRET_CAPACITY - 1 && got > 0) {
        got = read(file, key + size, SECRET_CAPACITY - 1 - size);
        if (got < 0)
            code = message_fail(QN_IO, strerror(errno), path, "");
        size += got > 0 ? (size_t)got : 0;
    }
    close(file);
    key[size] = '\0';
    return code >= 0 ? code : check_line(path, key, size);
}

int secret_make(char key[SECRET_MADE]) {
    unsigned char bytes[(SECRET_MADE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}
