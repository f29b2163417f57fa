#include "data/parts/parts_heads.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/labels.h"
#include "data/cells/readers.h"
#include "data/open/data_snapshot.h"
#include "data/table/picture.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a rank sends: this, the snapshot of its first item, what it knows of each feature, and for
 * each label eight bytes (how many items have it) and a text that ends in NUL. */
typedef struct front {
    uint64_t items, snapshot, columns, labels, label_bytes;
    uint64_t texts;
    uint32_t asks, typed, classes, tokens, gaps, unused;
} front;

static uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/* ------------------------------------------------------------------ what this rank sends */

/* The reader of a format; NULL: it is not of a file. */
static const qn__reader *reader_of(const char *format) {
    for (size_t i = 0; qn__readers[i]; i++)
        for (int k = 0; k < QN__PACKINGS; k++)
            if (qn__readers[i]->name[k] && strcmp(qn__readers[i]->name[k], format) == 0)
                return qn__readers[i];
    return NULL;
}

static void add_label(qn__text *text, uint64_t items, const char *name) {
    qn__text_add_bytes(text, &items, sizeof items);
    qn__text_add_bytes(text, name, strlen(name) + 1);
}

/* The labels that some item has. */
static qn_status list_labels(const qn_data *own, front *f, qn__text *text, qn_error *err) {
    uint64_t *items = own->labels ? qn__alloc(own->classes, sizeof *items, err) : NULL;
    if (own->labels && !items)
        return QN_MEMORY;
    for (uint64_t i = 0; items && i < own->items; i++)
        items[own->labels[i]]++;
    for (uint32_t k = 0; items && k < own->classes; k++) {
        char number[16];
        snprintf(number, sizeof number, "%u", (unsigned)k);
        f->labels += items[k] > 0;
        if (items[k] > 0)
            add_label(text, items[k],
                      k < own->schema->classes ? own->schema->class_name[k] : number);
    }
    qn__free(items);
    f->label_bytes = text->size;
    return text->failed ? qn__fail_memory(err, text->size + 1, 1) : QN_OK;
}

/* The greatest value of the type marks a position without a token (docs/exactness.md 25.40). */
static void count_tokens(const qn_data *own, front *f) {
    const int narrow = own->type == QN_TOKENS16;
    const uint64_t count = qn__data_bytes_of(own, own->items) / (narrow ? 2 : 4);
    const uint32_t none = narrow ? UINT16_MAX : UINT32_MAX;
    const uint16_t *half = (const void *)own->values;
    const uint32_t *word = (const void *)own->values;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t token = narrow ? half[i] : word[i];
        f->gaps |= token == none;
        if (token != none && token >= f->tokens)
            f->tokens = token + 1;
    }
}

static void count_present(const qn_data *own, qn__part_column *column) {
    for (uint64_t i = 0; i < own->items && !qn__element_is_token(own->type); i++)
        for (uint32_t k = 0; k < own->features; k++)
            column[k].present += (uint64_t)!isnan(qn__data_number(own, i, k));
    for (uint32_t k = 0; k < own->features && qn__element_is_token(own->type); k++)
        column[k].present = own->items;
    for (uint32_t k = 0; k < own->features; k++)
        column[k].said = own->schema->feature[k].said;
}

/* The table of the first item. */
static qn_data first_item(const qn_data *own) {
    qn_data head = *own;
    head.items = 1;
    head.names = NULL;
    head.note = NULL;
    head.late = NULL;
    memset(head.digest, '0', sizeof head.digest - 1);
    return head;
}

static qn_status write_own(const qn_data *own, uint8_t **out, uint64_t *size, qn_error *err) {
    front f = {.asks = 1};
    qn__text labels = {0};
    const qn_data head = own ? first_item(own) : (qn_data){.items = 0};
    qn_status status = own ? list_labels(own, &f, &labels, err) : QN_OK;
    if (own) {
        f.items = own->items;
        f.classes = own->classes;
        f.texts = qn__data_texts(own);
        if (qn__element_is_token(own->type))
            count_tokens(own, &f);
        f.columns = own->features * sizeof(qn__part_column);
        f.snapshot = qn__data_snapshot_bytes(&head);
        const qn__reader *reader = reader_of(own->format);
        f.asks = !reader || reader->quantities || qn__of_image_files(own);
        f.typed = reader && reader->typed;
    }
    const uint64_t at = rounded(sizeof f), held = at + f.snapshot;
    *size = held + f.columns + f.label_bytes;
    *out = status == QN_OK ? qn__alloc(*size, 1, err) : NULL;
    if (*out) {
        memcpy(*out, &f, sizeof f);
        if (own) {
            qn__data_snapshot_write(&head, *out + at);
            count_present(own, (qn__part_column *)(void *)(*out + held));
        }
        if (f.label_bytes > 0)
            memcpy(*out + held + f.columns, labels.data, f.label_bytes);
    }
    qn__text_release(&labels);
    return *out ? QN_OK : QN_MEMORY;
}

/* ------------------------------------------------------------------ what all ranks sent */

static qn_status refuse(const qn_parts *parts, uint32_t rank, qn_error *err) {
    return qn__fail(err, QN_CLUSTER, "%s sent a malformed message",
                    qn_cluster_name(parts->cluster, rank));
}

static qn_status take_labels(const front *f, const uint8_t *at, qn__part_head *out, qn_error *err) {
    const uint8_t *end = at + f->label_bytes;
    out->labels = f->labels;
    out->label = qn__alloc(f->labels, sizeof *out->label, err);
    if (!out->label)
        return QN_MEMORY;
    for (uint64_t i = 0; i < f->labels; i++) {
        if ((size_t)(end - at) < sizeof(uint64_t))
            return QN_CLUSTER;
        memcpy(&out->label[i].items, at, sizeof(uint64_t));
        at += sizeof(uint64_t);
        const uint8_t *nul = memchr(at, 0, (size_t)(end - at));
        if (!nul)
            return QN_CLUSTER;
        out->label[i].text = (const char *)at;
        at = nul + 1;
    }
    return at == end ? QN_OK : QN_CLUSTER;
}

static qn_status take(qn_parts *parts, uint32_t rank, const qn__parts_blobs *blobs,
                      qn__part_head *out, qn_error *err) {
    const uint8_t *from = blobs->all + rank * blobs->each;
    const uint64_t size = blobs->size[rank], at = rounded(sizeof(front));
    front f;
    if (size < at)
        return refuse(parts, rank, err);
    memcpy(&f, from, sizeof f);
    const uint64_t left = size - at;
    if (f.snapshot > left || f.columns > left - f.snapshot ||
        f.label_bytes != left - f.snapshot - f.columns || f.items > QN__ITEMS_MAX ||
        f.texts > f.items || f.labels > f.label_bytes || (f.items > 0) != (f.snapshot > 0))
        return refuse(parts, rank, err);
    out->items = f.items;
    out->asks = f.asks != 0;
    out->classes = f.classes;
    out->texts = f.texts;
    out->tokens = f.tokens;
    out->gaps = f.gaps != 0;
    out->typed = f.typed != 0;
    if (f.items == 0)
        return QN_OK;
    qn_status status = qn__data_snapshot_map(from + at, f.snapshot, &out->data, err);
    out->column = (const qn__part_column *)(const void *)(from + at + f.snapshot);
    if (status == QN_OK && f.columns != out->data->features * sizeof *out->column)
        return refuse(parts, rank, err);
    if (status == QN_OK)
        status = take_labels(&f, from + at + f.snapshot + f.columns, out, err);
    return status == QN_CLUSTER ? refuse(parts, rank, err) : status;
}

void qn__part_heads_at(const qn_parts *parts, uint32_t rank, qn_error *err) {
    qn__at(err, "%s, the part of %s", parts->name[rank],
           parts->cluster ? qn_cluster_name(parts->cluster, rank) : "this process");
}

static qn_status take_all(qn_parts *parts, qn__part_heads *out, qn_error *err) {
    out->part = qn__alloc(parts->ranks, sizeof *out->part, err);
    if (!out->part)
        return QN_MEMORY;
    out->lead = parts->ranks;
    for (uint32_t r = 0; r < parts->ranks; r++) {
        const qn_status status = parts->gone[r] == QN__PART_THERE
                                     ? take(parts, r, &out->blobs, &out->part[r], err)
                                     : QN_OK; /* others have its rows */
        if (status != QN_OK)
            return status;
        parts->first[r + 1] = parts->first[r] + out->part[r].items;
        parts->text[r + 1] = parts->text[r] + out->part[r].texts;
        if (out->part[r].items > 0 && out->lead == parts->ranks)
            out->lead = r;
    }
    if (out->lead < parts->ranks)
        return QN_OK;
    qn__fail(err, QN_INPUT, "no rank has any data");
    return qn__remedy(err, QN_INPUT, "name files with at least one row");
}

qn_status qn__part_heads_gather(qn_parts *parts, qn__part_heads *out, qn_error *err) {
    uint8_t *own = NULL;
    uint64_t size = 0;
    *out = (qn__part_heads){0};
    qn_status status = qn__parts_agree(parts, write_own(parts->own, &own, &size, err), err);
    if (status == QN_OK)
        status = qn__parts_gather_blobs(parts, own, size, &out->blobs, err);
    if (status == QN_OK && parts->gone[parts->rank] == QN__PART_THERE &&
        (out->blobs.size[parts->rank] != size ||
         memcmp(out->blobs.all + parts->rank * out->blobs.each, own, size) != 0))
        status = qn__parts_differ(parts, err);
    if (status == QN_OK)
        status = qn__parts_agree(parts, take_all(parts, out, err), err);
    qn__free(own);
    return status;
}

void qn__part_heads_release(const qn_parts *parts, qn__part_heads *heads) {
    for (uint32_t r = 0; heads->part && r < parts->ranks; r++) {
        qn_data_close(heads->part[r].data);
        qn__free(heads->part[r].label);
    }
    qn__free(heads->part);
    qn__parts_blobs_release(&heads->blobs);
}

int qn__parts_are_tokens(const qn_parts *parts, uint32_t tokens) {
    int all = qn__element_is_token(parts->own->type);
    for (uint32_t r = 0; r < parts->ranks; r++)
        all &= parts->heads->part[r].tokens <= tokens && !parts->heads->part[r].gaps;
    return all;
}

uint64_t qn__parts_missing(const qn_parts *parts, uint32_t feature) {
    uint64_t missing = 0;
    for (uint32_t r = 0; r < parts->ranks; r++)
        if (parts->heads->part[r].data)
            missing += parts->heads->part[r].items - parts->heads->part[r].column[feature].present;
    return missing;
}
