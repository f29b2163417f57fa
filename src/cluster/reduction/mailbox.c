/* Messages that wait for the caller. */
#include "cluster/reduction/reduction_state.h"

#include "base/memory.h"

void qn__rounds_drop_mail(qn__rounds *r, qn__mail **at) {
    qn__mail *mail = *at;
    *at = mail->next;
    qn__parcel_drop(mail->body);
    mail->body = NULL;
    mail->next = r->mailbox.spare;
    r->mailbox.spare = mail;
}

static int is_past(const qn__rounds *r, const qn__head *head) {
    const uint64_t number = head->number[0] >> 32;
    return number < r->group.number ||
           (number == r->group.number && head->number[0] != r->group.stamp) ||
           head->number[1] <= r->current.finished;
}

void qn__rounds_sort_mail(qn__rounds *r) {
    for (qn__mail **at = &r->mailbox.mail; *at;)
        if (is_past(r, &(*at)->head))
            qn__rounds_drop_mail(r, at);
        else
            at = &(*at)->next;
}

void qn__rounds_keep_mail(qn__rounds *r, uint32_t from, const qn__head *head, qn__parcel *body) {
    if (is_past(r, head) || !body || !qn__ranks_has(&r->group.members, from))
        return;
    qn__mail *mail = r->mailbox.spare;
    if (mail)
        r->mailbox.spare = mail->next;
    else if (!(mail = qn__alloc(1, sizeof *mail, &r->error)))
        return;
    *mail = (qn__mail){r->mailbox.mail, from, *head, qn__parcel_hold(body)};
    r->mailbox.mail = mail;
    qn__rounds_ring(r);
}
