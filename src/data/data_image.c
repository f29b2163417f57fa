/* The serialised table: a header, the values with their margin, the labels with theirs; each begins
 * at a multiple of 64 bytes. Little-endian numbers, as everywhere in memory here (digest.c). */
#include "data/data_image.h"
#include "base/memory.h"
#include <string.h>

#define MAGIC "quern data image\n"
enum { ALIGNMENT = 64 };

typedef struct head {
    char magic[24];
    uint32_t type, features, rows, columns;
    uint64_t items;
    uint32_t labelled, unused;
    char format[16];
    char digest[72];
} head;

/* Offsets of the parts. */
typedef struct places {
    uint64_t values, labels, bytes;
} places;

static int add(uint64_t *sum, uint64_t more) { return !__builtin_add_overflow(*sum, more, sum); }

/* 0 if the sizes cannot be addressed. */
static int place(const head *h, places *p) {
    uint64_t stride = (uint64_t)h->features * (h->type == QN_F32 ? sizeof(float) : 1), values,
             labels;
    if (__builtin_mul_overflow(stride, h->items, &values) ||
        __builtin_mul_overflow(h->labelled ? sizeof(int32_t) : 0, h->items, &labels))
        return 0;
    const uint64_t margin = QN__DATA_MARGIN + ALIGNMENT - 1, mask = ~(uint64_t)(ALIGNMENT - 1);
    p->values = (sizeof *h + ALIGNMENT - 1) & mask;
    p->labels = p->values;
    if (!add(&p->labels, values) || !add(&p->labels, margin))
        return 0;
    p->labels &= mask;
    p->bytes = p->labels;
    if (!add(&p->bytes, labels) || !add(&p->bytes, margin) || p->bytes > SIZE_MAX / 2)
        return 0;
    p->bytes &= mask;
    return 1;
}

static head head_of(const qn_data *table) {
    head h = {.magic = MAGIC,
              .type = (uint32_t)table->type,
              .features = table->features,
              .rows = table->rows,
              .columns = table->columns,
              .items = table->items,
              .labelled = table->labels != NULL};
    strncpy(h.format, table->format, sizeof h.format - 1);
    memcpy(h.digest, table->digest, sizeof table->digest);
    return h;
}

uint64_t qn__data_image_bytes(const qn_data *table) {
    const head h = head_of(table);
    places p;
    return place(&h, &p) ? p.bytes : 0;
}

void qn__data_image_write(const qn_data *table, void *image) {
    const head h = head_of(table);
    uint8_t *to = image;
    places p;
    if (!place(&h, &p))
        return;
    memcpy(to, &h, sizeof h);
    memcpy(to + p.values, table->values, (size_t)table->items * qn__data_stride(table));
    if (table->labels)
        memcpy(to + p.labels, table->labels, (size_t)table->items * sizeof *table->labels);
}

/* The constant string for `data->format`; NULL for an unknown format. */
static const char *known_format(const char *name) {
    static const char *const formats[] = {"csv", "idx", "csv.gz", "idx.gz", "array", "synth"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i]) == 0)
            return formats[i];
    return NULL;
}

static int is_digest(const char *text) {
    return strspn(text, "0123456789abcdef") == 64 && text[64] == '\0';
}

/* Reads and checks the header, and terminates its texts; 0 if it does not match `bytes`. It is
 * copied first, because another process may still write to it. */
static int read_head(const void *image, uint64_t bytes, head *h, places *p) {
    if (bytes < sizeof *h)
        return 0;
    memcpy(h, image, sizeof *h);
    h->format[sizeof h->format - 1] = h->digest[sizeof h->digest - 1] = '\0';
    return memcmp(h->magic, MAGIC, sizeof MAGIC) == 0 && (h->type == QN_U8 || h->type == QN_F32) &&
           h->items > 0 && h->items <= QN__ITEMS_MAX && h->features > 0 && h->labelled <= 1 &&
           (h->rows == 0) == (h->columns == 0) &&
           (h->rows == 0 || (uint64_t)h->rows * h->columns == h->features) &&
           known_format(h->format) && is_digest(h->digest) && place(h, p) && p->bytes == bytes;
}

static qn_status refuse(qn_error *err, const char *what) {
    qn__fail(err, QN_FORMAT, "%s", what);
    return qn__remedy(err, QN_FORMAT,
                      "another process that shares the data, or the memory of this machine, is at "
                      "fault: start the run again");
}

/* Classes from the labels; 0 if a label is negative. */
static int count_classes(qn_data *data) {
    int32_t greatest = -1;
    for (uint64_t i = 0; data->labels && i < data->items; i++) {
        if (data->labels[i] < 0)
            return 0;
        greatest = data->labels[i] > greatest ? data->labels[i] : greatest;
    }
    data->classes = (uint32_t)greatest + 1;
    return 1;
}

qn_status qn__data_image_map(const void *image, uint64_t bytes, qn_data **out, qn_error *err) {
    const uint8_t *from = image;
    head h;
    places p;
    *out = NULL;
    if (!read_head(image, bytes, &h, &p))
        return refuse(err, "what was shared is not a data set");
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    data->type = (qn_data_type)h.type;
    data->items = h.items;
    data->features = h.features;
    data->rows = h.rows;
    data->columns = h.columns;
    data->format = known_format(h.format);
    memcpy(data->digest, h.digest, sizeof data->digest);
    data->values = from + p.values;
    data->mapped = 1;
    /* Labels are read only; the pointer is not const because other tables allocate them. */
    data->labels = h.labelled ? (int32_t *)(uintptr_t)(from + p.labels) : NULL;
    if (!count_classes(data)) {
        qn_data_close(data);
        return refuse(err, "a label of the shared data is negative");
    }
    *out = data;
    return QN_OK;
}
