#include "device/notes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TEXTS = 16, ROOM = 384 };

static struct {
    pthread_mutex_t lock;
    int count, heard; /* number of texts, and how many of them were read */
    char text[TEXTS][ROOM];
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

void qn__device_tell(const char *text) {
    int known = 0;
    if (!*text)
        return;
    pthread_mutex_lock(&notes.lock);
    for (int i = 0; i < notes.count; ++i)
        known |= strncmp(notes.text[i], text, ROOM - 1) == 0;
    if (!known && notes.count < TEXTS)
        snprintf(notes.text[notes.count++], ROOM, "%s", text);
    pthread_mutex_unlock(&notes.lock);
}

int qn__device_told(char *text, size_t capacity) {
    pthread_mutex_lock(&notes.lock);
    const int found = notes.heard < notes.count;
    if (found)
        snprintf(text, capacity, "%s", notes.text[notes.heard++]);
    pthread_mutex_unlock(&notes.lock);
    return found;
}

void qn__device_tell_note(void *user, const char *text) {
    (void)user;
    qn__device_tell(text);
}
