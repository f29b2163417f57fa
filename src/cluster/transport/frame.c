/* Frames: the wire format of messages. 72 bytes, little-endian, then the body.
 *
 *        0  u32 type, u32 extra, u64 number[4], u64 bytes of the body
 *       48  u64 sequence number 1, 2, 3, ... of messages that are sent again if lost; else 0
 *       56  u64 MAC of the body; 0 without a body
 *       64  u64 MAC of the 64 bytes before it
 *
 * The header has its own MAC, so that no field, above all the length, is used before it is
 * verified. Each pair of ranks and direction has its own keys. */
#include "cluster/transport/handshake.h"
#include "cluster/transport/socket_state.h"
#include "cluster/transport/wire.h"

enum { SEALED = 64 };

void qn__frame_keys(const unsigned char key[32], uint32_t from, uint32_t to,
                    qn__frame_key *frame_key) {
    unsigned char pair[8], mac[32];
    qn__put_u32(pair, from);
    qn__put_u32(pair + 4, to);
    qn__hmac(key, 32, "frames", 6, pair, sizeof pair, mac);
    frame_key->head = qn__siphash_key_of(mac);
    frame_key->body = qn__siphash_key_of(mac + 16);
}

void qn__frame_write(const qn__frame_key *key, const qn__head *head, const qn__message_buffer *body,
                     unsigned char frame[QN__FRAME_BYTES]) {
    const uint64_t bytes = body ? body->bytes : 0;
    qn__put_u32(frame, head->type);
    qn__put_u32(frame + 4, head->extra);
    for (size_t i = 0; i < 4; ++i)
        qn__put_u64(frame + 8 + 8 * i, head->number[i]);
    qn__put_u64(frame + 40, bytes);
    qn__put_u64(frame + 56, bytes ? qn__siphash_lanes(&key->body, body->data, bytes) : 0);
}

void qn__frame_seal(const qn__frame_key *key, uint64_t sequence,
                    unsigned char frame[QN__FRAME_BYTES]) {
    qn__put_u64(frame + 48, sequence);
    qn__put_u64(frame + SEALED, qn__siphash(&key->head, frame, SEALED));
}

int qn__frame_read(const qn__frame_key *key, const unsigned char frame[QN__FRAME_BYTES],
                   qn__frame *read) {
    if (qn__siphash(&key->head, frame, SEALED) != qn__get_u64(frame + SEALED))
        return 0;
    read->head.type = qn__get_u32(frame);
    read->head.extra = qn__get_u32(frame + 4);
    for (size_t i = 0; i < 4; ++i)
        read->head.number[i] = qn__get_u64(frame + 8 + 8 * i);
    read->head.bytes = qn__get_u64(frame + 40);
    read->sequence = qn__get_u64(frame + 48);
    read->body_mac = qn__get_u64(frame + 56);
    return 1;
}

int qn__frame_body_is_good(const qn__frame_key *key, const qn__frame *frame,
                           const qn__message_buffer *body) {
    return !body || qn__siphash_lanes(&key->body, body->data, body->bytes) == frame->body_mac;
}
