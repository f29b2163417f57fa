#include "cluster/membership/view_state.h"

#include <string.h>

uint64_t qn__view_set_bytes(const qn__view *view) { return (view->ranks + 7) / 8; }

void qn__view_put_u64(unsigned char *to, uint64_t value) {
    for (int i = 0; i < 8; ++i)
        to[i] = (unsigned char)(value >> 8 * i);
}

uint64_t qn__view_get_u64(const unsigned char *from) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

void qn__view_put_set(const qn__view *view, unsigned char *to, const qn__ranks *set) {
    for (uint32_t i = 0; i < qn__view_set_bytes(view); ++i)
        to[i] = (unsigned char)(set->word[i / 8] >> 8 * (i % 8));
}

/* Ranks outside the run are ignored, whatever the bytes say. */
void qn__view_get_set(const qn__view *view, const unsigned char *from, qn__ranks *set) {
    memset(set, 0, sizeof *set);
    for (uint32_t r = 0; r < view->ranks; ++r)
        if (from[r / 8] >> r % 8 & 1)
            qn__ranks_add(set, r);
}

/* u64 origin, set of members, plan. */
int qn__proposal_pack(const qn__view *view, qn__proposal *proposal) {
    const uint64_t set = qn__view_set_bytes(view), plan = proposal->plan->bytes;
    qn__message_buffer *wire = view->transport->calls->buffer(view->transport, 8 + set + plan);
    if (!wire)
        return 0;
    qn__view_put_u64(wire->data, proposal->origin);
    qn__view_put_set(view, wire->data + 8, &proposal->members);
    memcpy(wire->data + 8 + set, proposal->plan->data, plan);
    proposal->wire = wire;
    return 1;
}

int qn__proposal_unpack(const qn__view *view, qn__message_buffer *wire, qn__proposal *proposal) {
    const uint64_t set = qn__view_set_bytes(view);
    memset(proposal, 0, sizeof *proposal);
    if (!wire || wire->bytes < 8 + set)
        return 0;
    proposal->origin = qn__view_get_u64(wire->data);
    qn__view_get_set(view, wire->data + 8, &proposal->members);
    if (!proposal->origin || !qn__ranks_count(&proposal->members))
        return 0;
    proposal->plan = qn__view_buffer(view, wire->data + 8 + set, wire->bytes - 8 - set);
    if (!proposal->plan)
        return 0;
    proposal->wire = qn__buffer_hold(wire);
    return 1;
}

void qn__proposal_copy(qn__proposal *to, const qn__proposal *from) {
    *to = *from;
    if (to->plan)
        qn__buffer_hold(to->plan);
    if (to->wire)
        qn__buffer_hold(to->wire);
}

void qn__proposal_drop(qn__proposal *proposal) {
    qn__buffer_drop(proposal->plan);
    qn__buffer_drop(proposal->wire);
    memset(proposal, 0, sizeof *proposal);
}

qn__message_buffer *qn__view_buffer(const qn__view *view, const void *bytes, uint64_t count) {
    qn__message_buffer *buffer = view->transport->calls->buffer(view->transport, count);
    if (buffer)
        memcpy(buffer->data, bytes, count);
    return buffer;
}

qn__message_buffer *qn__view_losses(const qn__view *view) {
    const uint64_t set = qn__view_set_bytes(view);
    qn__message_buffer *buffer = view->transport->calls->buffer(view->transport, 2 * set);
    if (buffer) {
        qn__view_put_set(view, buffer->data, &view->gone);
        qn__view_put_set(view, buffer->data + set, &view->certain);
    }
    return buffer;
}

void qn__view_send(qn__view *view, uint32_t to, uint32_t type, uint64_t ballot,
                   qn__message_buffer *body) {
    const qn__head head = {
        .type = type, .number = {view->number, view->id, ballot}, .bytes = body ? body->bytes : 0};
    view->transport->calls->send(view->transport, to, &head, body);
}
