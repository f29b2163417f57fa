/* What lists said about files in the last seconds: a file that was listed need not be asked for its
 * size and tag before it is read. */
#ifndef QN_STORE_LISTED_H
#define QN_STORE_LISTED_H

#include "base/files/remote.h"

void qn__listed_note(const char *address, const qn__remote_about *about);
/* 1: *out is what a list said lately. If the file has changed since, its reading fails by the tag.
 */
int qn__listed_find(const char *address, qn__remote_about *out);

#endif
