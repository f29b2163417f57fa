#include "cluster/transport/transport.h"

#include "base/memory.h"

qn__message_buffer *qn__buffer_create(qn__transport *transport, uint64_t bytes) {
    if (bytes > QN__BODY_MOST)
        return NULL;
    /* The system commits memory when it is written: a length alone costs nothing. */
    qn__message_buffer *buffer = qn__alloc(1, sizeof *buffer + bytes, NULL);
    if (!buffer)
        return NULL;
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->capacity = bytes;
    buffer->transport = transport;
    return buffer;
}

qn__message_buffer *qn__buffer_hold(qn__message_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->holders, 1, memory_order_relaxed);
    return buffer;
}

void qn__buffer_drop(qn__message_buffer *buffer) {
    if (!buffer || atomic_fetch_sub_explicit(&buffer->holders, 1, memory_order_acq_rel) > 1)
        return;
    qn__transport *transport = buffer->transport;
    if (transport && transport->calls->recycle)
        transport->calls->recycle(transport, buffer);
    else
        qn__free(buffer);
}
