/* Regions of buckets. */
#ifndef QN_STORE_REGION_H
#define QN_STORE_REGION_H

#include "store/http/http.h"

/* The region of a bucket: what a store told before, else that of the environment (AWS_REGION,
 * AWS_DEFAULT_REGION), of the profile, else us-east-1. `other`: the store is not Amazon's, whose
 * region is "auto". */
void qn__region_of(const char *bucket, int other, char region[64]);
/* Remembers it for this process. */
void qn__region_learn(const char *bucket, const char *region);
/* The region that a refusal names; 0: none. */
int qn__region_told(const qn__http_answer *answer, char *region, size_t capacity);

#endif
