/* Buffers and messages are reused, so that a steady state allocates nothing. */
#include "cluster/transport/socket_state.h"

#include "base/memory.h"

/* The size class for `bytes`: the smallest with 2^class >= bytes. */
static unsigned class_of(uint64_t bytes) {
    return bytes <= 256 ? 8 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

qn__message_buffer *qn__pool_buffer(qn__transport *base, uint64_t bytes) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    if (bytes > QN__BODY_MOST)
        return NULL;
    const unsigned class = class_of(bytes);
    pthread_mutex_lock(&transport->pool_lock);
    qn__message_buffer *buffer = transport->pool[class];
    if (buffer)
        transport->pool[class] = buffer->next;
    pthread_mutex_unlock(&transport->pool_lock);
    if (!buffer)
        buffer = qn__buffer_create(base, UINT64_C(1) << class);
    if (!buffer)
        return NULL;
    buffer->next = NULL;
    buffer->bytes = bytes;
    atomic_store_explicit(&buffer->holders, 1, memory_order_relaxed);
    return buffer;
}

void qn__pool_recycle(qn__transport *base, qn__message_buffer *buffer) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    const unsigned class = class_of(buffer->capacity);
    pthread_mutex_lock(&transport->pool_lock);
    buffer->next = transport->pool[class];
    transport->pool[class] = buffer;
    pthread_mutex_unlock(&transport->pool_lock);
}

qn__message *qn__pool_message(qn__socket_transport *transport) {
    pthread_mutex_lock(&transport->pool_lock);
    qn__message *message = transport->messages;
    if (message)
        transport->messages = message->next;
    pthread_mutex_unlock(&transport->pool_lock);
    return message ? message : qn__alloc(1, sizeof *message, NULL);
}

void qn__pool_take_message(qn__socket_transport *transport, qn__message *message) {
    pthread_mutex_lock(&transport->pool_lock);
    message->next = transport->messages;
    transport->messages = message;
    pthread_mutex_unlock(&transport->pool_lock);
}

void qn__pool_release(qn__socket_transport *transport) {
    for (int i = 0; i < QN__POOL_CLASSES; ++i)
        while (transport->pool[i]) {
            qn__message_buffer *buffer = transport->pool[i];
            transport->pool[i] = buffer->next;
            qn__free(buffer);
        }
    while (transport->messages) {
        qn__message *message = transport->messages;
        transport->messages = message->next;
        qn__free(message);
    }
}
