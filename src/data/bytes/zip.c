/* The list of entries of a ZIP archive, which stands at its end. */
#include "data/bytes/zip.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"
#include <string.h>

enum {
    END_SIZE = 22, /* of the end record, without its comment */
    COMMENT_MAX = 65535,
    LOCATOR_SIZE = 20, /* of ZIP64's record that says where its end record is */
    END64_SIZE = 56,
    ENTRY_SIZE = 46, /* of an entry, without its texts */
};

static uint16_t load2(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

static uint32_t load4(const uint8_t *at) { return load2(at) | (uint32_t)load2(at + 2) << 16; }

static uint64_t load8(const uint8_t *at) { return load4(at) | (uint64_t)load4(at + 4) << 32; }

static qn_status refuse(const qn__zip *zip, uint64_t byte, qn_error *err, const char *what) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s, byte %llu", zip->path, (unsigned long long)byte);
    return qn__remedy(err, QN_INPUT, "write the archive again, or copy it again");
}

static qn_status read_at(const qn__zip *zip, uint64_t from, void *bytes, size_t size,
                         qn_error *err) {
    return qn__descriptor_read_at(zip->file, zip->path, from, bytes, size, err);
}

/* The end record is the last thing in the file, after it only a comment whose length it says. */
static qn_status find_end(const qn__zip *zip, uint8_t end[END_SIZE], uint64_t *at, qn_error *err) {
    const uint64_t most = END_SIZE + COMMENT_MAX;
    const size_t size = (size_t)(zip->size < most ? zip->size : most);
    uint8_t *tail = qn__alloc(size, 1, err);
    if (!tail)
        return QN_MEMORY;
    const qn_status status = read_at(zip, zip->size - size, tail, size, err);
    int found = 0;
    for (size_t i = size < END_SIZE ? 0 : size - END_SIZE + 1; status == QN_OK && i-- > 0;)
        if (memcmp(tail + i, "PK\5\6", 4) == 0 && load2(tail + i + 20) == size - END_SIZE - i) {
            memcpy(end, tail + i, END_SIZE);
            *at = zip->size - size + i;
            found = 1;
            break;
        }
    qn__free(tail);
    if (status != QN_OK || found)
        return status;
    return refuse(zip, zip->size, err, "the ZIP archive has no list of entries: it is cut off");
}

/* Where the list of entries is. */
typedef struct place {
    uint64_t count, size, begin, end; /* the list ends at most at `end` */
} place;

static qn_status find_end64(const qn__zip *zip, uint64_t end_at, place *p, qn_error *err) {
    uint8_t locator[LOCATOR_SIZE], end[END64_SIZE];
    if (end_at < LOCATOR_SIZE)
        return refuse(zip, end_at, err, "the ZIP archive lacks its ZIP64 record");
    const uint64_t locator_at = end_at - LOCATOR_SIZE;
    qn_status status = read_at(zip, locator_at, locator, sizeof locator, err);
    if (status != QN_OK)
        return status;
    const uint64_t at = load8(locator + 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || locator_at < END64_SIZE ||
        at > locator_at - END64_SIZE)
        return refuse(zip, locator_at, err, "the ZIP archive lacks its ZIP64 record");
    status = read_at(zip, at, end, sizeof end, err);
    if (status != QN_OK)
        return status;
    if (memcmp(end, "PK\6\6", 4) != 0)
        return refuse(zip, at, err, "the ZIP archive lacks its ZIP64 record");
    *p = (place){load8(end + 32), load8(end + 40), load8(end + 48), at};
    return QN_OK;
}

static qn_status find_list(qn__zip *zip, place *p, qn_error *err) {
    uint8_t end[END_SIZE] = {0};
    uint64_t at = 0;
    qn_status status = find_end(zip, end, &at, err);
    if (status != QN_OK)
        return status;
    if (load2(end + 4) != load2(end + 6) || (load2(end + 4) != 0 && load2(end + 4) != UINT16_MAX))
        return refuse(zip, at, err, "the ZIP archive has several parts, which are not read");
    *p = (place){load2(end + 10), load4(end + 12), load4(end + 16), at};
    if (p->count == UINT16_MAX || p->size == UINT32_MAX || p->begin == UINT32_MAX)
        status = find_end64(zip, at, p, err);
    if (status != QN_OK)
        return status;
    if (p->begin > p->end || p->size > p->end - p->begin || p->count > p->size / ENTRY_SIZE)
        return refuse(zip, at, err, "the ZIP archive's list of entries does not fit the file");
    zip->directory = p->begin;
    return QN_OK;
}

/* The fields that do not fit 32 bits are in a field of ZIP64, in this order, each only if needed.
 * 0 when they are missing. */
static int read_zip64(const uint8_t *extra, size_t size, qn__zip_entry *e) {
    uint64_t *wide[] = {&e->size, &e->packed, &e->begin};
    while (size >= 4) {
        const size_t length = load2(extra + 2);
        if (length > size - 4)
            return 0;
        if (load2(extra) == 1) {
            size_t at = 4;
            for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
                if (*wide[i] == UINT32_MAX) {
                    if (at + 8 > 4 + length)
                        return 0;
                    *wide[i] = load8(extra + at);
                    at += 8;
                }
            return 1;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return 0;
}

/* Reads the entry at `at`; *taken is its size in the list, 0 when it does not fit. */
static qn_status read_entry(const qn__zip *zip, const uint8_t *at, size_t left, qn__zip_entry *e,
                            size_t *taken, qn_error *err) {
    *taken = 0;
    if (left < ENTRY_SIZE || memcmp(at, "PK\1\2", 4) != 0)
        return QN_OK;
    const size_t name = load2(at + 28), extra = load2(at + 30), comment = load2(at + 32);
    if (name + extra + comment > left - ENTRY_SIZE)
        return QN_OK;
    *e = (qn__zip_entry){.flags = load2(at + 8),
                         .method = load2(at + 10),
                         .crc = load4(at + 16),
                         .packed = load4(at + 20),
                         .size = load4(at + 24),
                         .begin = load4(at + 42)};
    const int wide = e->packed == UINT32_MAX || e->size == UINT32_MAX || e->begin == UINT32_MAX;
    if (wide && !read_zip64(at + ENTRY_SIZE + name, extra, e))
        return QN_OK;
    if (e->begin > zip->directory || e->packed > zip->directory - e->begin)
        return QN_OK;
    e->name = qn__alloc(name + 1, 1, err);
    if (!e->name)
        return QN_MEMORY;
    memcpy(e->name, at + ENTRY_SIZE, name);
    *taken = ENTRY_SIZE + name + extra + comment;
    return QN_OK;
}

static qn_status read_list(qn__zip *zip, const place *p, const uint8_t *list, qn_error *err) {
    size_t at = 0;
    for (; zip->count < p->count; zip->count++) {
        size_t taken = 0;
        const qn_status status =
            read_entry(zip, list + at, (size_t)p->size - at, &zip->entry[zip->count], &taken, err);
        if (status != QN_OK)
            return status;
        if (taken == 0)
            return refuse(zip, p->begin + at, err,
                          "an entry of the ZIP archive's list is malformed");
        at += taken;
    }
    return QN_OK;
}

static qn_status open_into(qn__zip *zip, qn_error *err) {
    place p = {0};
    qn_status status = find_list(zip, &p, err);
    if (status != QN_OK)
        return status;
    uint8_t *list = qn__alloc(p.size, 1, err);
    zip->entry = list ? qn__alloc(p.count, sizeof *zip->entry, err) : NULL;
    if (!zip->entry) {
        qn__free(list);
        return QN_MEMORY;
    }
    status = read_at(zip, p.begin, list, (size_t)p.size, err);
    if (status == QN_OK)
        status = read_list(zip, &p, list, err);
    qn__free(list);
    return status;
}

qn_status qn__zip_open(int file, const char *path, uint64_t size, qn__zip **out, qn_error *err) {
    *out = NULL;
    qn__zip *zip = qn__alloc(1, sizeof *zip, err);
    if (!zip)
        return QN_MEMORY;
    zip->file = file;
    zip->path = path;
    zip->size = size;
    const qn_status status = open_into(zip, err);
    if (status != QN_OK) {
        qn__zip_close(zip);
        return status;
    }
    *out = zip;
    return QN_OK;
}

void qn__zip_close(qn__zip *zip) {
    if (!zip)
        return;
    for (uint64_t i = 0; zip->entry && i < zip->count; i++)
        qn__free(zip->entry[i].name);
    qn__free(zip->entry);
    qn__free(zip);
}
