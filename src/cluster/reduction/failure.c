/* What every rank forwards as soon as it learns of it: a failure, and the end of the run. */
#include "cluster/reduction/reduction_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void qn__reducer_set_error(qn__reducer *r, qn_status status, const char *format, ...) {
    char text[512];
    va_list arguments;
    if (r->error.status != QN_OK)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    qn__fail(&r->error, status, "%s", text);
    qn__reducer_wake(r);
}

void qn__reducer_broadcast(qn__reducer *r, const qn__head *head, const void *body, uint64_t bytes) {
    for (uint32_t to = 0; to < r->ranks; ++to) {
        if (to == r->rank || !qn__ranks_has(&r->group.members, to))
            continue;
        qn__message_buffer *buffer =
            bytes ? r->transport->calls->buffer(r->transport, bytes) : NULL;
        if (bytes && !buffer)
            continue;
        if (bytes)
            memcpy(buffer->data, body, bytes);
        qn__head own = *head;
        own.bytes = bytes;
        r->transport->calls->send(r->transport, to, &own, buffer);
    }
}

/* Each rank that learns of the failure sends it to all, once. So it arrives even if the rank that
 * failed ends before it has sent all its messages. */
static void set_failure(qn__reducer *r, uint32_t from, const qn_error *why) {
    if (r->error.status != QN_OK)
        return;
    r->error = *why;
    qn__reducer_wake(r);
    qn__reducer_broadcast(r, &(qn__head){.type = QN__MESSAGE_FAIL, .extra = from}, why,
                          sizeof *why);
}

void qn__reducer_fail_all(qn__reducer *r, qn_error *why) {
    qn_error named = {0};
    if (r->error.status !=
        QN_OK) { /* possibly the same failure; all ranks report the same one in any case */
        *why = r->error;
        return;
    }
    if (strncmp(why->what, r->name[r->rank], strlen(r->name[r->rank])) == 0)
        named = *why;
    else
        qn__fail(&named, why->status, "%s: %s", r->name[r->rank], why->what);
    memcpy(named.where, why->where, sizeof named.where);
    memcpy(named.remedy, why->remedy, sizeof named.remedy);
    *why = named;
    if (named.status == QN_DEVICE)
        named.status = QN_CLUSTER; /* other ranks must not take it for a loss of their own device */
    set_failure(r, r->rank, &named);
}

void qn__reducer_take_failure(qn__reducer *r, const qn__head *head,
                              const qn__message_buffer *body) {
    qn_error why;
    if (!body || body->bytes != sizeof why)
        return;
    memcpy(&why, body->data, sizeof why);
    why.what[sizeof why.what - 1] = why.where[sizeof why.where - 1] = 0;
    why.remedy[sizeof why.remedy - 1] = 0;
    if (why.status == QN_OK)
        why.status = QN_CLUSTER;
    set_failure(r, head->extra, &why);
}

/* Each rank that learns of the end sends it to all, for the same reason as failures. */
void qn__reducer_done(qn__reducer *r, int code) {
    if (r->ending.over)
        return;
    r->ending.over = 1;
    r->ending.code = code;
    qn__reducer_broadcast(r, &(qn__head){.type = QN__MESSAGE_DONE, .extra = (uint32_t)code}, NULL,
                          0);
    qn__reducer_wake(r);
}
