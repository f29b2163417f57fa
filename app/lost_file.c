#include "lost_file.h"
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line of /proc/self/maps has some 75 bytes before the path. */
enum { LINE = PATH_MAX + 128, DIGITS = 24 };

typedef struct text {
    size_t size;
    char data[LINE + 512];
} text;

static void add(text *t, const char *more) {
    while (*more && t->size < sizeof t->data - 1)
        t->data[t->size++] = *more++;
    t->data[t->size] = 0;
}

static void add_number(text *t, uint64_t number) {
    char digits[DIGITS] = "";
    size_t at = DIGITS - 1;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    add(t, digits + at);
}

/* A hexadecimal number; *at moves after it and the character after it. */
static uint64_t take_number(const char **at) {
    uint64_t number = 0;
    for (const char *c; **at && (c = strchr("0123456789abcdef", **at)); ++*at)
        number = number << 4 | (uint64_t)((c - "0123456789abcdef") & 15);
    *at += **at != 0;
    return number;
}

/* "BEGIN-END RIGHTS OFFSET DEVICE INODE   PATH": the path if the address is there, and where it is
 * in the file; else NULL. */
static const char *find_path(const char *line, uint64_t address, uint64_t *place) {
    const uint64_t begin = take_number(&line), end = take_number(&line);
    if (address < begin || address >= end || !(line = strchr(line, ' ')))
        return NULL;
    line++;
    *place = take_number(&line) + (address - begin);
    return strchr(line, '/');
}

/* Reads the list of mappings line by line. 1: `path` has the file's. */
static int find_file(uint64_t address, char path[LINE], uint64_t *place) {
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char line[LINE], byte;
    const char *found = NULL;
    size_t size = 0;
    while (maps >= 0 && !found && read(maps, &byte, 1) == 1) {
        if (byte != '\n' && size < LINE - 1)
            line[size++] = byte;
        if (byte != '\n')
            continue;
        line[size] = 0;
        size = 0;
        found = find_path(line, address, place);
    }
    if (maps >= 0)
        close(maps);
    if (found)
        strcpy(path, found);
    return found != NULL;
}

void lost_file_say(const void *address) {
    char path[LINE];
    uint64_t place = 0;
    struct stat info;
    text t = {.size = 0};
    const int found = find_file((uint64_t)(uintptr_t)address, path, &place);
    const int is_long =
        found && stat(path, &info) == 0 && info.st_size > 0 && (uint64_t)info.st_size > place;
    add(&t, "quern: ");
    add(&t, found ? path : "a file that the command reads");
    add(&t, is_long ? " cannot be read" : " became shorter, or its disk failed");
    if (found) {
        add(&t, ", at byte ");
        add_number(&t, place);
    }
    add(&t, is_long ? ": its disk failed\n  use a copy on another disk; QUERN_CACHE names another "
                      "folder for the cache\n"
                    : "\n  do not change inputs, or files of the cache, until the command has "
                      "ended; then run it again\n");
    const ssize_t written = write(STDERR_FILENO, t.data, t.size);
    (void)written;
}
