#include "store/region.h"
#include "store/sign/profile.h"
#include "store/http/xml_answer.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Buckets in a region other than that of the settings; the oldest gives way. */
enum { LEARNT = 32 };
static pthread_mutex_t learnt_guard = PTHREAD_MUTEX_INITIALIZER;
static struct { char bucket[128], region[64]; } learnt[LEARNT];
static size_t learnt_count;

static int find_learnt(const char *bucket, char region[64]) {
    int found = 0;
    pthread_mutex_lock(&learnt_guard);
    for (size_t i = 0; i < LEARNT && !found; i++) {
        found = learnt[i].region[0] && strcmp(learnt[i].bucket, bucket) == 0;
        if (found)
            snprintf(region, 64, "%s", learnt[i].region);
    }
    pthread_mutex_unlock(&learnt_guard);
    return found;
}

void qn__region_of(const char *bucket, int other, char region[64]) {
    if (find_learnt(bucket, region))
        return;
    snprintf(region, 64, "auto");
    if (other)
        return;
    if (!qn__profile_region(qn__profile_name(), region, 64))
        snprintf(region, 64, "us-east-1");
}

void qn__region_learn(const char *bucket, const char *region) {
    pthread_mutex_lock(&learnt_guard);
    size_t at = learnt_count % LEARNT;
    for (size_t i = 0; i < LEARNT; i++)
        if (strcmp(learnt[i].bucket, bucket) == 0)
            at = i;
    learnt_count += at == learnt_count % LEARNT;
    snprintf(learnt[at].bucket, sizeof learnt[at].bucket, "%.127s", bucket);
    snprintf(learnt[at].region, sizeof learnt[at].region, "%.63s", region);
    pthread_mutex_unlock(&learnt_guard);
}

/* It becomes a part of a host's name. */
static int is_region(const char *text) {
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

int qn__region_told(const qn__http_answer *answer, char *region, size_t capacity) {
    return (qn__http_value(answer, "x-amz-bucket-region", region, capacity) ||
            qn__xml_text(answer->body, "Region", region, capacity)) &&
           is_region(region);
}
