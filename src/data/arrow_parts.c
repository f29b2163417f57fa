#include "data/arrow_parts.h"
#include "base/memory.h"
#include <string.h>

/* Blocks below LARGE are cut from slabs once there are many: these have large pages, so that the
 * first writes cost little. */
#define LARGE ((uint64_t)2 << 20)
#define MANY ((uint64_t)1 << 20)
#define SLAB ((size_t)16 << 20)
#define MARGIN ((size_t)64)

static void *new_block(qn__pile *pile, uint64_t count, uint64_t size, qn_error *err) {
    if (pile->blocks == pile->room) {
        const size_t room = pile->room ? 2 * pile->room : 64;
        void **more = qn__alloc(room, sizeof *more, err);
        if (!more)
            return NULL;
        if (pile->blocks > 0)
            memcpy((void *)more, (void *)pile->block, pile->blocks * sizeof *more);
        qn__free((void *)pile->block);
        pile->block = more;
        pile->room = room;
    }
    void *block = qn__alloc(count, size, err);
    if (block)
        pile->block[pile->blocks++] = block;
    return block;
}

void *qn__pile_alloc(qn__pile *pile, uint64_t count, uint64_t size, qn_error *err) {
    const uint64_t bytes = count < LARGE && size < LARGE ? count * size : LARGE;
    pile->bytes += bytes;
    if (bytes >= LARGE || pile->bytes < MANY)
        return new_block(pile, count, size, err);
    const size_t cut = ((size_t)bytes + 2 * MARGIN - 1) / MARGIN * MARGIN;
    if (cut > pile->left) {
        pile->slab = new_block(pile, SLAB, 1, err);
        pile->left = pile->slab ? SLAB : 0;
        if (!pile->slab)
            return NULL;
    }
    uint8_t *block = pile->slab;
    pile->slab += cut;
    pile->left -= cut;
    return block;
}

char *qn__pile_text(qn__pile *pile, const void *bytes, size_t size, qn_error *err) {
    char *text = qn__pile_alloc(pile, (uint64_t)size + 1, 1, err);
    if (text && size > 0)
        memcpy(text, bytes, size);
    return text;
}

void qn__pile_release(qn__pile *pile) {
    for (size_t i = 0; i < pile->blocks; i++)
        qn__free(pile->block[i]);
    qn__free((void *)pile->block);
    *pile = (qn__pile){0};
}

/* The pile releases it. */
static void forget_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void forget_array(struct ArrowArray *array) { array->release = NULL; }

qn_status qn__parts_schema(qn__pile *pile, const qn__column_type *type, uint64_t columns,
                           struct ArrowSchema *out, qn_error *err) {
    struct ArrowSchema **child = qn__pile_alloc(pile, columns, sizeof *child, err);
    struct ArrowSchema *column = qn__pile_alloc(pile, 2 * columns, sizeof *column, err);
    if (!child || !column)
        return QN_MEMORY;
    for (uint64_t i = 0; i < columns; i++) {
        struct ArrowSchema *values = &column[columns + i];
        *values = (struct ArrowSchema){.format = type[i].values, .release = forget_schema};
        column[i] = (struct ArrowSchema){.format = type[i].format,
                                         .name = type[i].name,
                                         .flags = ARROW_FLAG_NULLABLE,
                                         .dictionary = type[i].values ? values : NULL,
                                         .release = forget_schema};
        child[i] = &column[i];
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .n_children = (int64_t)columns,
                                .children = child,
                                .release = forget_schema};
    return QN_OK;
}

qn_status qn__parts_array(qn__pile *pile, uint64_t columns, int64_t rows, struct ArrowArray *out,
                          qn_error *err) {
    struct ArrowArray **child = qn__pile_alloc(pile, columns, sizeof *child, err);
    struct ArrowArray *column = qn__pile_alloc(pile, columns, sizeof *column, err);
    const void **buffer = qn__pile_alloc(pile, columns * QN__PART_BUFFERS + 1, sizeof *buffer, err);
    if (!child || !column || !buffer)
        return QN_MEMORY;
    for (uint64_t i = 0; i < columns; i++) {
        column[i] = (struct ArrowArray){
            .length = rows, .buffers = buffer + i * QN__PART_BUFFERS, .release = forget_array};
        child[i] = &column[i];
    }
    *out = (struct ArrowArray){.length = rows,
                               .n_buffers = 1,
                               .n_children = (int64_t)columns,
                               .buffers = buffer + columns * QN__PART_BUFFERS,
                               .children = child,
                               .release = forget_array};
    return QN_OK;
}

qn_status qn__parts_check_rows(double rows, const uint8_t *wanted, uint64_t columns, uint64_t size,
                               const char *path, qn_error *err) {
    uint64_t read = 0;
    for (uint64_t i = 0; i < columns; i++)
        read += wanted[i];
    if (rows * (double)read * 8 <= (double)size * 0x1p15 + 0x1p26)
        return QN_OK;
    qn__fail(
        err, QN_INPUT,
        "the file claims %.0f rows of %llu columns, more than 64 MiB and 32,768 times its size",
        rows, (unsigned long long)read);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "leave out columns that are constant with `data.drop`, or "
                      "write the file without dictionaries and compression");
}

qn_status qn__parts_need_little_endian(const char *path, qn_error *err) {
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "such files are not read on this big-endian processor");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_UNSUPPORTED, "convert it to CSV or NPY");
}
