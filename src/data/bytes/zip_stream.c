/* The bytes of an entry of a ZIP archive, by zlib. */
#include "base/files/remote.h"
#include "base/memory.h"
#include "data/bytes/zip.h"

#ifdef QN_HAVE_ZLIB

#include "data/bytes/descriptor.h"
#include <limits.h>
#include <string.h>
#include <zlib.h>

/* Of an address: bytes of the entry that are fetched before they are needed. */
#define PLANNED ((uint64_t)64 << 20)

enum { LOCAL_SIZE = 30, STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };
#define INPUT_CAPACITY ((size_t)1 << 18)

struct qn__zip_stream {
    const qn__zip *zip;
    const qn__zip_entry *entry;
    uint64_t at, left;  /* packed bytes that are still in the file: the next, how many */
    uint64_t given;     /* unpacked bytes */
    uLong crc;          /* of these */
    z_stream stream;    /* of a deflated entry */
    int started, ended; /* the stream holds memory; it is through */
    uint8_t input[INPUT_CAPACITY];
};

static qn_status refuse(const qn__zip_stream *s, qn_error *err, const char *what) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s, byte %llu, entry %s", s->zip->path, (unsigned long long)s->at, s->entry->name);
    return qn__remedy(err, QN_INPUT, "write the archive again, or copy it again");
}

/* The bytes begin after the entry's local header, whose texts may differ from the list's. */
static qn_status find_bytes(qn__zip_stream *s, qn_error *err) {
    uint8_t local[LOCAL_SIZE];
    const qn__zip_entry *e = s->entry;
    s->at = e->begin;
    if (s->zip->directory - e->begin < LOCAL_SIZE)
        return refuse(s, err, "an entry of the ZIP archive lies outside the file");
    const qn_status status =
        qn__descriptor_read_at(s->zip->file, s->zip->path, e->begin, local, sizeof local, err);
    if (status != QN_OK)
        return status;
    if (memcmp(local, "PK\3\4", 4) != 0)
        return refuse(s, err, "the ZIP archive has no entry where its list says so");
    s->at += LOCAL_SIZE + (uint64_t)(local[26] | local[27] << 8) +
             (uint64_t)(local[28] | local[29] << 8);
    s->left = e->packed;
    if (s->at > s->zip->directory || s->left > s->zip->directory - s->at)
        return refuse(s, err, "an entry of the ZIP archive lies outside the file");
    return QN_OK;
}

static qn_status start(qn__zip_stream *s, qn_error *err) {
    const qn__zip_entry *e = s->entry;
    s->at = e->begin;
    if (e->flags & ENCRYPTED)
        return refuse(s, err, "the entry is encrypted");
    if (e->method != STORED && e->method != DEFLATED) {
        qn__fail(err, QN_UNSUPPORTED,
                 "the entry %s is packed with method %u of ZIP, and only "
                 "stored and deflated ones are read",
                 e->name, (unsigned)e->method);
        qn__at(err, "%s", s->zip->path);
        return qn__remedy(err, QN_UNSUPPORTED, "write it again, deflated or stored");
    }
    if (e->method == STORED && e->packed != e->size)
        return refuse(s, err, "the ZIP archive's list gives a stored entry two sizes");
    /* RFC 1951: at most 258 bytes of 2 bits. */
    if (e->size / 1032 > e->packed)
        return refuse(s, err, "the entry's size is beyond what its packed bytes can hold");
    s->crc = crc32(0, NULL, 0);
    if (e->method == DEFLATED) {
        if (inflateInit2(&s->stream, -15) != Z_OK)
            return qn__fail_memory(err, 1, (size_t)1 << 15);
        s->started = 1;
    }
    return find_bytes(s, err);
}

qn_status qn__zip_begin(const qn__zip *zip, const qn__zip_entry *entry, qn__zip_stream **out,
                        qn_error *err) {
    *out = NULL;
    qn__zip_stream *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    s->zip = zip;
    s->entry = entry;
    const qn_status status = start(s, err);
    if (status != QN_OK) {
        qn__zip_end(s);
        return status;
    }
    *out = s;
    return QN_OK;
}

void qn__zip_end(qn__zip_stream *stream) {
    if (!stream)
        return;
    if (stream->started)
        inflateEnd(&stream->stream);
    qn__free(stream);
}

/* Reads the next packed bytes. */
static qn_status take_packed(qn__zip_stream *s, void *bytes, size_t size, qn_error *err) {
    qn__remote_plan(s->zip->file, s->at, s->left < PLANNED ? s->left : PLANNED);
    const qn_status status =
        qn__descriptor_read_at(s->zip->file, s->zip->path, s->at, bytes, size, err);
    s->at += size;
    s->left -= size;
    return status;
}

static qn_status unpack(qn__zip_stream *s, uint8_t *bytes, size_t size, size_t *got,
                        qn_error *err) {
    if (s->stream.avail_in == 0 && s->left > 0) {
        const size_t now = s->left < INPUT_CAPACITY ? (size_t)s->left : INPUT_CAPACITY;
        const qn_status status = take_packed(s, s->input, now, err);
        if (status != QN_OK)
            return status;
        s->stream.next_in = s->input;
        s->stream.avail_in = (uInt)now;
    }
    const size_t capacity = size < UINT_MAX ? size : UINT_MAX;
    s->stream.next_out = bytes;
    s->stream.avail_out = (uInt)capacity;
    const int result = inflate(&s->stream, Z_NO_FLUSH);
    *got = capacity - s->stream.avail_out;
    if (result == Z_MEM_ERROR)
        return qn__fail_memory(err, 1, (size_t)1 << 15);
    s->ended = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && (result != Z_BUF_ERROR || s->left == 0))
        return refuse(s, err, "the packed bytes of the entry are corrupt or cut off");
    return QN_OK;
}

/* All bytes are there: they must be those that were packed. */
static qn_status check_end(const qn__zip_stream *s, qn_error *err) {
    if (s->given == s->entry->size && s->crc == s->entry->crc && s->left + s->stream.avail_in == 0)
        return QN_OK;
    return refuse(s, err,
                  s->given == s->entry->size && s->left + s->stream.avail_in == 0
                      ? "the entry's bytes do not have the check sum of the ZIP archive"
                      : "the entry's bytes do not have the size of the ZIP archive");
}

qn_status qn__zip_read(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    qn__zip_stream *s = self;
    const int stored = s->entry->method == STORED;
    *got = 0;
    while (*got < size) {
        size_t now = 0;
        uint8_t *to = (uint8_t *)bytes + *got;
        if (stored ? s->left == 0 : s->ended)
            return check_end(s, err);
        if (stored)
            now = s->left < size - *got ? (size_t)s->left : size - *got;
        const qn_status status =
            stored ? take_packed(s, to, now, err) : unpack(s, to, size - *got, &now, err);
        if (status != QN_OK)
            return status;
        for (size_t done = 0; done < now; done += INPUT_CAPACITY)
            s->crc = crc32(s->crc, to + done,
                           (uInt)(now - done < INPUT_CAPACITY ? now - done : INPUT_CAPACITY));
        s->given += now;
        *got += now;
    }
    return QN_OK;
}

#else

qn_status qn__zip_begin(const qn__zip *zip, const qn__zip_entry *entry, qn__zip_stream **out,
                        qn_error *err) {
    (void)entry;
    *out = NULL;
    qn__fail(err, QN_UNSUPPORTED, "this is a ZIP or NPZ archive, and Quern was built without zlib");
    qn__at(err, "%s", zip->path);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "unpack it, or install zlib (Debian: zlib1g-dev) and "
                      "build Quern again");
}

qn_status qn__zip_read(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    (void)self, (void)bytes, (void)size;
    *got = 0;
    return qn__fail(err, QN_UNSUPPORTED, "Quern was built without zlib");
}

void qn__zip_end(qn__zip_stream *stream) { (void)stream; }

#endif
