#include "data/bytes/tar.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"
#include <string.h>

enum {
    BLOCK = 512,
    NAME_MAX_BYTES = 4096,  /* of a path, as on Linux */
    EXTENDED_MAX = 1 << 20, /* of a block of pax records */
    NAME = 0,
    NAME_BYTES = 100,
    SIZE = 124,
    SIZE_BYTES = 12,
    SUM = 148,
    SUM_BYTES = 8,
    TYPE = 156,
    MARK = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155,
};

typedef struct tar {
    const qn__tar_bytes *in;
    uint64_t at; /* of the header that is read */
    uint8_t head[BLOCK];
    char name[NAME_MAX_BYTES + 1];
    uint64_t size;    /* of the entry's bytes */
    int named, sized; /* by an extended header before this one */
    uint64_t new_size;
} tar;

int qn__tar_is(const uint8_t *first, size_t size) {
    return size >= QN__TAR_MARK && memcmp(first + MARK, "ustar", 5) == 0;
}

qn_status qn__tar_read(const qn__tar_bytes *in, uint64_t from, void *bytes, size_t size,
                       qn_error *err) {
    if (!in->memory)
        return qn__descriptor_read_at(in->file, in->path, from, bytes, size, err);
    memcpy(bytes, in->memory + from, size);
    return QN_OK;
}

static qn_status refuse(const tar *t, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    if (*t->name)
        qn__at(err, "%s, byte %llu, %s", t->in->path, (unsigned long long)t->at, t->name);
    else
        qn__at(err, "%s, byte %llu", t->in->path, (unsigned long long)t->at);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status refuse_broken(const tar *t, const char *what, qn_error *err) {
    return refuse(t, what, "copy or download the archive again, or make it again with tar", err);
}

/* A number in octal digits between blanks, or in GNU's way of binary, with bit 7 of the first byte
 * set. 0 when it is neither. */
static int read_number(const uint8_t *at, size_t bytes, uint64_t *out) {
    size_t i = 0;
    *out = 0;
    if (at[0] & 0x80) {
        if (at[0] != 0x80)
            return 0; /* negative, or above 2^64 */
        for (i = 1; i < bytes; i++) {
            if (*out >> 56)
                return 0;
            *out = *out << 8 | at[i];
        }
        return 1;
    }
    while (i < bytes && at[i] == ' ')
        i++;
    const size_t first = i;
    for (; i < bytes && at[i] >= '0' && at[i] <= '7'; i++)
        *out = *out << 3 | (uint64_t)(at[i] - '0'); /* 12 digits are 36 bits */
    return i > first && (i == bytes || at[i] == ' ' || at[i] == '\0');
}

/* The sum of the header's bytes, its own field taken as blanks. */
static int sum_is_right(const uint8_t *head) {
    uint64_t sum = 0, written = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= SUM && i < SUM + SUM_BYTES ? ' ' : head[i];
    return read_number(head + SUM, SUM_BYTES, &written) && written == sum;
}

/* Reads the header at t->at. *end becomes 1 at the block of zeros that ends an archive. */
static qn_status read_header(tar *t, int *end, qn_error *err) {
    static const uint8_t zeros[BLOCK];
    if (t->in->size - t->at < BLOCK)
        return refuse_broken(t, "the tar archive has no end: it is cut off", err);
    const qn_status status = qn__tar_read(t->in, t->at, t->head, BLOCK, err);
    if (status != QN_OK)
        return status;
    *end = memcmp(t->head, zeros, BLOCK) == 0;
    if (*end)
        return QN_OK;
    if (!sum_is_right(t->head))
        return refuse_broken(t, "a header of the tar archive has a wrong check sum", err);
    if (!read_number(t->head + SIZE, SIZE_BYTES, &t->size))
        return refuse_broken(t, "a header of the tar archive has no size", err);
    return QN_OK;
}

/* The name in the header itself; only POSIX's ustar has a prefix, GNU keeps times there. */
static void take_name(tar *t) {
    char *to = t->name;
    if (memcmp(t->head + MARK, "ustar", 6) == 0 && t->head[PREFIX]) {
        const size_t size = strnlen((const char *)t->head + PREFIX, PREFIX_BYTES);
        memcpy(to, t->head + PREFIX, size);
        to += size;
        *to++ = '/';
    }
    const size_t size = strnlen((const char *)t->head + NAME, NAME_BYTES);
    memcpy(to, t->head + NAME, size);
    to[size] = '\0';
}

/* GNU: the bytes of this entry are the name of the next. */
static qn_status take_long_name(tar *t, qn_error *err) {
    if (t->size == 0 || t->size > NAME_MAX_BYTES)
        return refuse_broken(t, "the tar archive has a name that is too long", err);
    memset(t->name, 0, sizeof t->name);
    t->named = 1;
    return qn__tar_read(t->in, t->at + BLOCK, t->name, (size_t)t->size, err);
}

static int is_key(const char *key, size_t size, const char *word) {
    return strlen(word) == size && memcmp(key, word, size) == 0;
}

static qn_status take_record(tar *t, const char *key, size_t key_size, const char *value,
                             size_t size, qn_error *err) {
    if (key_size >= 10 && memcmp(key, "GNU.sparse", 10) == 0)
        return refuse(t, "the tar archive holds a sparse file", "make it again without tar -S",
                      err);
    if (is_key(key, key_size, "path")) {
        if (size == 0 || size > NAME_MAX_BYTES || memchr(value, '\0', size))
            return refuse_broken(t, "the tar archive has a name that is too long or none", err);
        memset(t->name, 0, sizeof t->name);
        memcpy(t->name, value, size);
        t->named = 1;
    }
    if (is_key(key, key_size, "size")) {
        t->new_size = 0;
        for (size_t i = 0; i < size; i++) {
            if (value[i] < '0' || value[i] > '9' || t->new_size > UINT64_MAX / 20)
                return refuse_broken(t, "a header of the tar archive has no size", err);
            t->new_size = t->new_size * 10 + (uint64_t)(value[i] - '0');
        }
        t->sized = 1;
    }
    return QN_OK;
}

/* Records of pax: "LENGTH KEY=VALUE\n"; the length counts the whole record. */
static qn_status take_records(tar *t, const char *text, size_t left, qn_error *err) {
    static const char malformed[] = "an extended header of the tar archive is malformed";
    while (left > 0) {
        size_t length = 0, digits = 0;
        for (; digits < left && digits < 7 && text[digits] >= '0' && text[digits] <= '9'; digits++)
            length = length * 10 + (size_t)(text[digits] - '0');
        if (length > left || length < digits + 3 || text[digits] != ' ' || text[length - 1] != '\n')
            return refuse_broken(t, malformed, err);
        const char *key = text + digits + 1, *end = text + length - 1;
        const char *equal = memchr(key, '=', (size_t)(end - key));
        if (!equal)
            return refuse_broken(t, malformed, err);
        const qn_status status =
            take_record(t, key, (size_t)(equal - key), equal + 1, (size_t)(end - equal - 1), err);
        if (status != QN_OK)
            return status;
        text += length;
        left -= length;
    }
    return QN_OK;
}

static qn_status take_extended(tar *t, qn_error *err) {
    if (t->size > EXTENDED_MAX)
        return refuse_broken(t, "an extended header of the tar archive is too long", err);
    char *text = qn__alloc(t->size + 1, 1, err);
    if (!text)
        return QN_MEMORY;
    qn_status status = qn__tar_read(t->in, t->at + BLOCK, text, (size_t)t->size, err);
    if (status == QN_OK)
        status = take_records(t, text, (size_t)t->size, err);
    qn__free(text);
    return status;
}

/* What is neither a file nor a folder. */
static qn_status refuse_type(const tar *t, char type, qn_error *err) {
    if (type == '1' || type == '2')
        return refuse(t, "the tar archive holds a link in place of a file",
                      "make it again with tar -h, of copies where files are hard links", err);
    if (type == 'S')
        return refuse(t, "the tar archive holds a sparse file", "make it again without tar -S",
                      err);
    return refuse(t, "the tar archive holds an entry that is not a regular file",
                  "make it again of regular files and folders", err);
}

/* Where the bytes of the entry end; refuses those outside the archive. */
static qn_status find_end(const tar *t, uint64_t *end, qn_error *err) {
    const uint64_t begin = t->at + BLOCK;
    if (t->size > t->in->size - begin)
        return refuse_broken(t, "the tar archive is cut off inside a file", err);
    const uint64_t more = (BLOCK - t->size % BLOCK) % BLOCK;
    *end = more > t->in->size - begin - t->size ? t->in->size : begin + t->size + more;
    return QN_OK;
}

static qn_status take_entry(tar *t, int (*hidden)(const char *), qn__tar_file each, void *user,
                            uint64_t *next, qn_error *err) {
    const char type = (char)t->head[TYPE];
    const int extends = type == 'L' || type == 'K' || type == 'x' || type == 'g';
    if (!extends && !t->named)
        take_name(t);
    if (!extends && t->sized)
        t->size = t->new_size;
    qn_status status = find_end(t, next, err);
    if (status != QN_OK || type == 'g' || type == 'K')
        return status;
    if (type == 'L')
        return take_long_name(t, err);
    if (type == 'x')
        return take_extended(t, err);
    const size_t length = strlen(t->name);
    const int folder = type == '5' || (length > 0 && t->name[length - 1] == '/');
    if (!folder && !hidden(t->name)) {
        if (type != '0' && type != '\0' && type != '7')
            return refuse_type(t, type, err);
        status = each(user, t->name, t->at + BLOCK, t->size, err);
    }
    t->named = t->sized = 0;
    t->name[0] = '\0';
    return status;
}

qn_status qn__tar_list(const qn__tar_bytes *in, int (*hidden)(const char *name), qn__tar_file each,
                       void *user, qn_error *err) {
    tar *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->in = in;
    int end = 0;
    qn_status status = QN_OK;
    while (status == QN_OK && !end) {
        uint64_t next = 0;
        status = read_header(t, &end, err);
        if (status == QN_OK && !end)
            status = take_entry(t, hidden, each, user, &next, err);
        t->at = next;
    }
    qn__free(t);
    return status;
}
