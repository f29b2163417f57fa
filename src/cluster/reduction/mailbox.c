/* Messages that wait for the caller's thread. */
#include "cluster/reduction/reduction_state.h"

#include "base/memory.h"

void qn__mailbox_drop(qn__reducer *r, qn__queued_message **at) {
    qn__queued_message *message = *at;
    *at = message->next;
    qn__buffer_drop(message->body);
    message->body = NULL;
    message->next = r->mailbox.spare;
    r->mailbox.spare = message;
}

static int is_past(const qn__reducer *r, const qn__head *head) {
    const uint64_t number = head->number[0] >> 32;
    return number < r->group.number ||
           (number == r->group.number && head->number[0] != r->group.stamp) ||
           head->number[1] <= r->current.finished;
}

void qn__mailbox_sort(qn__reducer *r) {
    for (qn__queued_message **at = &r->mailbox.first; *at;)
        if (is_past(r, &(*at)->head))
            qn__mailbox_drop(r, at);
        else
            at = &(*at)->next;
}

void qn__mailbox_keep(qn__reducer *r, uint32_t from, const qn__head *head,
                      qn__message_buffer *body) {
    if (is_past(r, head) || !body || !qn__ranks_has(&r->group.members, from))
        return;
    qn__queued_message *message = r->mailbox.spare;
    if (message)
        r->mailbox.spare = message->next;
    else if (!(message = qn__alloc(1, sizeof *message, &r->error)))
        return;
    *message = (qn__queued_message){r->mailbox.first, from, *head, qn__buffer_hold(body)};
    r->mailbox.first = message;
    qn__reducer_wake(r);
}
