#include "data/arrow/arrow_parts.h"
#include "base/memory.h"
#include "base/system/available.h"
#include <string.h>

/* Blocks below LARGE are cut from slabs once there are many: these have large pages, so that the
 * first writes cost little. Slabs grow with the pile, which may be all the memory that there is. */
#define LARGE ((uint64_t)2 << 20)
#define MANY ((uint64_t)1 << 20)
#define FIRST_SLAB ((uint64_t)4 << 20)
#define LAST_SLAB ((uint64_t)16 << 20)
#define MARGIN ((size_t)64)
/* Less fits always; asking how much memory there is takes longer. */
#define ASKED ((uint64_t)16 << 20)

/* What the program and the table need beside a part of a file. */
#define BESIDE ((uint64_t)8 << 20)

static qn__block make_block(uint64_t count, uint64_t size, qn_error *err) {
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes < LARGE || bytes > SIZE_MAX)
        return (qn__block){qn__alloc(count, size, err), 0};
    return (qn__block){qn__alloc_pages((size_t)bytes, err), (size_t)bytes};
}

static void release_block(qn__block *block) {
    if (block->bytes > 0)
        qn__free_pages(block->memory, block->bytes);
    else
        qn__free(block->memory);
}

static void *new_block(qn__pile *pile, uint64_t count, uint64_t size, qn_error *err) {
    if (pile->blocks == pile->capacity) {
        const size_t capacity = pile->capacity ? 2 * pile->capacity : 64;
        qn__block *more = qn__alloc(capacity, sizeof *more, err);
        if (!more)
            return NULL;
        if (pile->blocks > 0)
            memcpy(more, pile->block, pile->blocks * sizeof *more);
        qn__free(pile->block);
        pile->block = more;
        pile->capacity = capacity;
    }
    const qn__block block = make_block(count, size, err);
    if (block.memory)
        pile->block[pile->blocks++] = block;
    return block.memory;
}

/* With the margin, whole large pages. */
static size_t slab_size(const qn__pile *pile) {
    const uint64_t half = pile->bytes / 2 / LARGE * LARGE;
    return (size_t)(half < FIRST_SLAB ? FIRST_SLAB : half < LAST_SLAB ? half : LAST_SLAB) - MARGIN;
}

void *qn__pile_alloc(qn__pile *pile, uint64_t count, uint64_t size, qn_error *err) {
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = LARGE; /* which is refused */
    pile->bytes += bytes;
    if (bytes >= LARGE || pile->bytes < MANY)
        return new_block(pile, count, size, err);
    const size_t cut = ((size_t)bytes + 2 * MARGIN - 1) / MARGIN * MARGIN;
    if (cut > pile->left) {
        const size_t slab = slab_size(pile);
        pile->slab = new_block(pile, slab, 1, err);
        pile->left = pile->slab ? slab : 0;
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
        release_block(&pile->block[i]);
    qn__free(pile->block);
    *pile = (qn__pile){0};
}

void *qn__scratch_need(qn__scratch *scratch, uint64_t count, uint64_t size, qn_error *err) {
    if (scratch->block.memory && (size == 0 || count <= scratch->size / size))
        return scratch->block.memory;
    qn__scratch_release(scratch);
    scratch->block = make_block(count, size, err);
    scratch->size = scratch->block.memory ? count * size : 0;
    return scratch->block.memory;
}

void qn__scratch_release(qn__scratch *scratch) {
    release_block(&scratch->block);
    *scratch = (qn__scratch){0};
}

/* The pile releases it. */
static void forget_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void forget_array(struct ArrowArray *array) { array->release = NULL; }

/* One pair of names as the Arrow C interface has them: a count, and texts with their lengths. */
static char *extension_metadata(qn__pile *pile, const char *name, qn_error *err) {
    static const char key[] = "ARROW:extension:name";
    const int32_t head[2] = {1, sizeof key - 1}, size = (int32_t)strlen(name);
    char *to = qn__pile_alloc(pile, sizeof head + sizeof key + sizeof size + (size_t)size, 1, err);
    if (!to)
        return NULL;
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, key, sizeof key - 1);
    memcpy(to + sizeof head + sizeof key - 1, &size, sizeof size);
    memcpy(to + sizeof head + sizeof key - 1 + sizeof size, name, (size_t)size);
    return to;
}

qn_status qn__parts_schema(qn__pile *pile, const qn__column_type *type, uint64_t columns,
                           struct ArrowSchema *out, qn_error *err) {
    struct ArrowSchema **child = qn__pile_alloc(pile, columns, sizeof *child, err);
    struct ArrowSchema *column = qn__pile_alloc(pile, 3 * columns, sizeof *column, err);
    struct ArrowSchema **words = qn__pile_alloc(pile, columns, sizeof *words, err);
    if (!child || !column || !words)
        return QN_MEMORY;
    for (uint64_t i = 0; i < columns; i++) {
        struct ArrowSchema *values = &column[columns + i];
        *values = (struct ArrowSchema){.format = type[i].values, .release = forget_schema};
        words[i] = &column[2 * columns + i];
        *words[i] = (struct ArrowSchema){.format = type[i].words, .release = forget_schema};
        column[i] = (struct ArrowSchema){.format = type[i].format,
                                         .name = type[i].name,
                                         .n_children = type[i].words != NULL,
                                         .children = type[i].words ? &words[i] : NULL,
                                         .flags = ARROW_FLAG_NULLABLE,
                                         .dictionary = type[i].values ? values : NULL,
                                         .release = forget_schema};
        child[i] = &column[i];
        if (type[i].extension &&
            !(column[i].metadata = extension_metadata(pile, type[i].extension, err)))
            return QN_MEMORY;
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

qn_status qn__parts_list(qn__pile *pile, int64_t count, struct ArrowArray *list, qn_error *err) {
    struct ArrowArray **child = qn__pile_alloc(pile, 1, sizeof *child, err);
    struct ArrowArray *words = qn__pile_alloc(pile, 1, sizeof *words, err);
    const void **buffer = qn__pile_alloc(pile, QN__PART_BUFFERS, sizeof *buffer, err);
    if (!child || !words || !buffer)
        return QN_MEMORY;
    *words = (struct ArrowArray){.length = count, .buffers = buffer, .release = forget_array};
    *child = words;
    list->n_children = 1;
    list->children = child;
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

uint64_t qn__parts_portion(double bytes) {
    return bytes <= (double)ASKED ? UINT64_MAX : qn__available_memory() / 4;
}

qn_status qn__parts_check_memory(double bytes, const char *what, const char *path, qn_error *err) {
    if (bytes <= (double)ASKED)
        return QN_OK;
    const double available = (double)qn__available_memory();
    const double needed = bytes + (double)BESIDE;
    if (needed <= available)
        return QN_OK;
    qn__fail(err, QN_MEMORY, "%s needs %.0f MiB, and %.0f MiB of memory are available", what,
             needed * 0x1p-20, available * 0x1p-20);
    qn__at(err, "%s", path);
    return QN_MEMORY;
}

qn_status qn__parts_need_little_endian(const char *path, qn_error *err) {
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "such files are not read on this big-endian processor");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_UNSUPPORTED, "convert it to CSV or NPY");
}
