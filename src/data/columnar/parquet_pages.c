/* The pages of a chunk: a dictionary, and values with a bit for each that is not missing. */
#include "base/digest/crc32.h"
#include "base/memory.h"
#include "data/columnar/parquet.h"
#include "data/columnar/thrift.h"
#include <string.h>

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_2 = 3 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, DELTA_BINARY = 5, DELTA_LENGTH = 6 };
enum { DELTA_TEXT = 7, RLE_DICTIONARY = 8, STREAM_SPLIT = 9 };
enum { BITS_MOST = 32 };
#define ALWAYS ((uint64_t)64 << 20) /* bytes that the texts of any page may take */

typedef struct page {
    int64_t kind, made, size; /* bytes unpacked and packed */
    int64_t values, encoding;
    int64_t missing_size, repeated_size; /* of the levels of DATA_PAGE_2, which are not packed */
    int packed;
    int summed; /* 1: it has a check sum */
    uint32_t sum;
} page;

typedef struct pages {
    const qn__parquet_column *column;
    qn__codec codec;
    qn__parquet_thread *thread;
    qn__pile *pile; /* its */
    qn_error *err;
    const uint8_t *bytes;
    size_t size, at;
    uint64_t rows, row, missing, page; /* page: how many were read */
    uint8_t *values, *valid;           /* of all rows; valid: NULL while none is missing */
    const uint8_t *dictionary;         /* its entries, which are copied */
    uint64_t entries;
    const uint8_t **text; /* buffers of views */
    int64_t *text_size;
    size_t texts, text_space;
    uint32_t *number; /* indices of a page, or levels */
    uint64_t slot;    /* of the `rows` values and lists without one, those that were read */
    struct {
        uint64_t rows, row, missing; /* lists, and those that were begun */
        int64_t *offset;             /* where they end, after a 0 */
        uint8_t *valid;
    } list; /* of a column of lists; its rows are elements */
} pages;

static qn_status refuse(const pages *p, const char *what) {
    qn__fail(p->err, QN_INPUT, "%s", what);
    return qn__remedy(p->err, QN_INPUT, "copy the file, or write it again");
}

/* ------------------------------------------------------------------ headers */

static void take_kind(qn__thrift *t, int id, page *out) {
    page read = *out;
    qn__thrift_field field = {0};
    while (qn__thrift_next(t, &field)) {
        if (id == 8 && field.id == 7) {
            read.packed = field.type == QN__THRIFT_TRUE;
            continue; /* the type is the value */
        }
        int64_t *to = NULL;
        if (field.id == 1)
            to = &read.values;
        else if (field.id == (id == 8 ? 4 : 2))
            to = &read.encoding;
        else if (id == 8 && field.id == 5)
            to = &read.missing_size;
        else if (id == 8 && field.id == 6)
            to = &read.repeated_size;
        if (to)
            *to = qn__thrift_int(t);
        else
            qn__thrift_skip(t, field.type);
    }
    *out = read;
}

/* Of all bytes after the header, as they stand in the file. */
static qn_status check_sum(const pages *p, const page *head) {
    if (qn__crc32(0, p->bytes + p->at, (size_t)head->size) == head->sum)
        return QN_OK;
    qn__fail(p->err, QN_INPUT, "page %llu of the column does not have its check sum",
             (unsigned long long)p->page);
    return qn__remedy(
        p->err, QN_INPUT,
        "its bytes were changed after they were written: copy the file again, or leave "
        "the column out with `data.drop`");
}

static qn_status take_header(pages *p, page *out) {
    qn__thrift t = {.bytes = p->bytes, .size = p->size, .at = p->at};
    qn__thrift_field field = {0};
    *out = (page){.kind = -1, .packed = 1};
    while (qn__thrift_next(&t, &field)) {
        if (field.id >= 1 && field.id <= 3) {
            int64_t *const to[] = {&out->kind, &out->made, &out->size};
            *to[field.id - 1] = qn__thrift_int(&t);
        } else if (field.id == 4) {
            out->sum = (uint32_t)qn__thrift_int(&t);
            out->summed = 1;
        } else if (field.type == QN__THRIFT_STRUCT &&
                   (field.id == 5 || field.id == 7 || field.id == 8)) {
            take_kind(&t, field.id, out);
        } else {
            qn__thrift_skip(&t, field.type);
        }
    }
    if (t.broken || out->kind < 0 || out->size < 0 || out->made < 0 || out->values < 0 ||
        (uint64_t)out->size > p->size - t.at)
        return refuse(p, "a page of the Parquet file is broken");
    p->at = t.at;
    p->page++;
    return out->summed ? check_sum(p, out) : QN_OK;
}

/* ------------------------------------------------------------------ unpacking */

static int is_text(const pages *p) { return p->column->type == QN__PARQUET_BYTES; }

/* Space for an unpacked page. Views point into the page, so it has to stay. */
static uint8_t *page_space(pages *p, size_t size) {
    return is_text(p) ? qn__pile_alloc(p->pile, size, 1, p->err)
                      : qn__scratch_need(&p->thread->page, size, 1, p->err);
}

/* The bytes of a page after its header. The first `plain` are not packed, and are left out. */
static qn_status unpack(pages *p, const page *head, size_t plain, qn__encoded *out) {
    const uint8_t *from = p->bytes + p->at + plain;
    const size_t size = (size_t)head->size - plain, made = (size_t)head->made - plain;
    p->at += (size_t)head->size;
    *out = (qn__encoded){from, from + size};
    if (p->codec == QN__CODEC_NONE || !head->packed || (size == 0 && made == 0))
        return QN_OK;
    if (made > qn__unpacked_most(p->codec, size))
        return refuse(p, "a page of the Parquet file claims an impossible size");
    uint8_t *to = page_space(p, made);
    if (!to)
        return QN_MEMORY;
    if (!qn__unpack(p->codec, from, size, to, made))
        return refuse(p, "a page of the Parquet file is corrupt");
    *out = (qn__encoded){to, to + made};
    return QN_OK;
}

/* Notes a buffer of texts; its number is that of those before. */
static qn_status add_texts(pages *p, const uint8_t *begin, size_t size) {
    if (p->texts == p->text_space) {
        const size_t capacity = p->text_space ? 2 * p->text_space : 16;
        const uint8_t **more = qn__pile_alloc(p->pile, capacity + 3, sizeof *more, p->err);
        int64_t *sizes = qn__pile_alloc(p->pile, capacity, sizeof *sizes, p->err);
        if (!more || !sizes)
            return QN_MEMORY;
        if (p->texts > 0) {
            memcpy((void *)more, (const void *)p->text, (p->texts + 2) * sizeof *more);
            memcpy(sizes, p->text_size, p->texts * sizeof *sizes);
        }
        p->text = more;
        p->text_size = sizes;
        p->text_space = capacity;
    }
    p->text[2 + p->texts] = begin;
    p->text_size[p->texts++] = (int64_t)size;
    return QN_OK;
}

static qn_status number_space(pages *p, uint64_t count) {
    p->number = qn__scratch_need(&p->thread->numbers, count, sizeof *p->number, p->err);
    return p->number ? QN_OK : QN_MEMORY;
}

/* ------------------------------------------------------------------ encodings */

static int take_bits(qn__encoded *in, uint8_t *to, uint64_t count) {
    if (count / 8 + (count % 8 > 0) > (uint64_t)(in->end - in->at))
        return 0;
    for (uint64_t i = 0; i < count; i++)
        to[i] = in->at[i / 8] >> i % 8 & 1;
    return 1;
}

static qn_status check(const pages *p, int good) {
    return good ? QN_OK : refuse(p, "the values of a page of the Parquet file are corrupt");
}

static qn_status take_plain(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    const size_t width = p->column->width;
    if (p->column->type == QN__PARQUET_BOOLEAN)
        return check(p, take_bits(in, to, count));
    if (is_text(p)) {
        const int32_t buffer = (int32_t)p->texts;
        const qn_status status = add_texts(p, in->at, (size_t)(in->end - in->at));
        return status == QN_OK
                   ? check(p, qn__decode_texts(in, in->at, buffer, (qn__view *)(void *)to, count))
                   : status;
    }
    if (count > (uint64_t)(in->end - in->at) / width)
        return check(p, 0);
    if (count > 0)
        memcpy(to, in->at, (size_t)count * width);
    return QN_OK;
}

/* Writes the entries of the dictionary that the numbers name. */
#define GATHER(type)                                                                               \
    {                                                                                              \
        const type *const from = (const void *)p->dictionary;                                      \
        type *const out = (void *)to;                                                              \
        for (uint64_t i = 0; i < count; i++)                                                       \
            out[i] = from[p->number[i]];                                                           \
    }

static void gather(const pages *p, uint8_t *to, uint64_t count) {
    if (p->column->width == 1)
        GATHER(uint8_t)
    else if (p->column->width == 2)
        GATHER(uint16_t)
    else if (p->column->width == 4)
        GATHER(uint32_t)
    else if (p->column->width == 8)
        GATHER(uint64_t)
    else if (is_text(p))
        GATHER(qn__view)
    else
        for (uint64_t i = 0; i < count; i++)
            memcpy(to + i * p->column->width,
                   p->dictionary + (size_t)p->number[i] * p->column->width, p->column->width);
}

static qn_status take_entries(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    if (count == 0)
        return QN_OK;
    if (in->at == in->end || *in->at > BITS_MOST)
        return check(p, 0);
    const unsigned bits = *in->at++;
    const qn_status status = number_space(p, count);
    if (status != QN_OK)
        return status;
    uint32_t most = 0;
    if (!qn__decode_runs(in, bits, p->number, count))
        return check(p, 0);
    for (uint64_t i = 0; i < count; i++)
        most = p->number[i] > most ? p->number[i] : most;
    if (most >= p->entries)
        return refuse(p, "a page of the Parquet file has a value that its dictionary lacks");
    gather(p, to, count);
    return QN_OK;
}

/* RLE of truth values. */
static qn_status take_truths(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    const qn_status status = number_space(p, count);
    if (status != QN_OK)
        return status;
    if (in->end - in->at < 4)
        return check(p, 0);
    in->at += 4; /* its size */
    if (!qn__decode_runs(in, 1, p->number, count))
        return check(p, 0);
    for (uint64_t i = 0; i < count; i++)
        to[i] = (uint8_t)p->number[i];
    return QN_OK;
}

/* Lengths of texts. */
static qn_status take_lengths(pages *p, qn__encoded *in, uint32_t **lengths, uint64_t count) {
    *lengths = qn__alloc(count, sizeof **lengths, p->err);
    uint64_t total = count;
    if (!*lengths)
        return QN_MEMORY;
    if (!qn__decode_deltas(in, sizeof **lengths, (uint8_t *)*lengths, &total) || total != count) {
        qn__free(*lengths);
        *lengths = NULL;
        return check(p, 0);
    }
    return QN_OK;
}

/* Texts one after the other, with the lengths before them. */
static qn_status take_delta_length(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    uint32_t *length;
    qn_status status = take_lengths(p, in, &length, count);
    const int32_t buffer = (int32_t)p->texts;
    const uint8_t *base = in->at;
    if (status == QN_OK)
        status = add_texts(p, base, (size_t)(in->end - base));
    for (uint64_t i = 0; i < count && status == QN_OK; i++) {
        if (length[i] > (uint64_t)(in->end - in->at) || length[i] > INT32_MAX)
            status = check(p, 0);
        else
            ((qn__view *)(void *)to)[i] = qn__view_of(in->at, length[i], buffer, base);
        in->at += status == QN_OK ? length[i] : 0;
    }
    qn__free(length);
    return status;
}

/* Each text begins with so many bytes of the one before. */
static qn_status put_prefixed(pages *p, qn__encoded *in, const uint32_t *prefix,
                              const uint32_t *suffix, uint8_t *to, uint64_t count) {
    uint64_t total = 0, left = (uint64_t)(in->end - in->at), before = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (suffix[i] > left || prefix[i] > before)
            return check(p, 0);
        left -= suffix[i];
        before = (uint64_t)prefix[i] + suffix[i];
        total += before;
    }
    if (total > INT32_MAX || total > ALWAYS + (p->size << 15))
        return refuse(p, "the texts of a page of the Parquet file are too long");
    uint8_t *base = qn__pile_alloc(p->pile, total, 1, p->err), *at = base;
    if (!base)
        return QN_MEMORY;
    const int32_t buffer = (int32_t)p->texts;
    const qn_status status = add_texts(p, base, (size_t)total);
    for (uint64_t i = 0; i < count && status == QN_OK; i++) {
        const size_t size = (size_t)prefix[i] + suffix[i];
        if (prefix[i] > 0) /* it follows the one before, whose beginning it takes */
            memcpy(at, at - ((size_t)prefix[i - 1] + suffix[i - 1]), prefix[i]);
        if (suffix[i] > 0)
            memcpy(at + prefix[i], in->at, suffix[i]);
        in->at += suffix[i];
        ((qn__view *)(void *)to)[i] = qn__view_of(at, size, buffer, base);
        at += size;
    }
    return status;
}

static qn_status take_delta_text(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    uint32_t *prefix = NULL, *suffix = NULL;
    qn_status status = take_lengths(p, in, &prefix, count);
    if (status == QN_OK)
        status = take_lengths(p, in, &suffix, count);
    if (status == QN_OK)
        status = put_prefixed(p, in, prefix, suffix, to, count);
    qn__free(prefix);
    qn__free(suffix);
    return status;
}

static qn_status take_deltas(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    uint64_t total = count;
    return check(p, qn__decode_deltas(in, p->column->width, to, &total) && total == count);
}

static qn_status take_split(pages *p, qn__encoded *in, uint8_t *to, uint64_t count) {
    return check(p, qn__decode_split(in, p->column->width, to, count));
}

static qn_status refuse_encoding(const pages *p, int64_t encoding) {
    qn__fail(p->err, QN_INPUT, "the column is encoded in a way that is not read (encoding %lld)",
             (long long)encoding);
    return qn__remedy(p->err, QN_INPUT,
                      "write the file again with the usual encodings, or leave the column out with "
                      "`data.drop`");
}

/* `count` values that are not missing. */
static qn_status take_values(pages *p, int64_t encoding, qn__encoded *in, uint8_t *to,
                             uint64_t count) {
    const qn__parquet_type type = p->column->type;
    const int text = is_text(p), truth = type == QN__PARQUET_BOOLEAN,
              whole = type == QN__PARQUET_INT32 || type == QN__PARQUET_INT64;
    if (encoding == PLAIN)
        return take_plain(p, in, to, count);
    if (encoding == PLAIN_DICTIONARY || encoding == RLE_DICTIONARY)
        return take_entries(p, in, to, count);
    if (encoding == RLE && truth)
        return take_truths(p, in, to, count);
    if (encoding == DELTA_BINARY && whole)
        return take_deltas(p, in, to, count);
    if (encoding == DELTA_LENGTH && text)
        return take_delta_length(p, in, to, count);
    if (encoding == DELTA_TEXT && text)
        return take_delta_text(p, in, to, count);
    if (encoding == STREAM_SPLIT && !text && !truth)
        return take_split(p, in, to, count);
    return refuse_encoding(p, encoding);
}

/* ------------------------------------------------------------------ missing values */

/* Most columns lack none: one run of ones. */
static int all_there(const qn__encoded *in, uint64_t count) {
    uint64_t head = 0;
    const uint8_t *at = in->at;
    for (unsigned shift = 0; shift < 63 && at < in->end; shift += 7) {
        head |= (uint64_t)(*at & 127) << shift;
        if (*at++ < 128)
            return !(head & 1) && head >> 1 >= count && at < in->end && *at == 1;
    }
    return 0;
}

static qn_status need_valid(pages *p) {
    if (p->valid)
        return QN_OK;
    p->valid = qn__pile_alloc(p->pile, p->rows / 8 + 1, 1, p->err);
    if (!p->valid)
        return QN_MEMORY;
    memset(p->valid, 0xFF, (size_t)(p->rows / 8 + 1));
    return QN_OK;
}

/* Reads which of the next `count` values are there; *there is how many. */
static qn_status take_levels(pages *p, qn__encoded in, uint64_t count, uint64_t *there) {
    *there = count;
    if (all_there(&in, count))
        return QN_OK;
    qn_status status = number_space(p, count);
    if (status == QN_OK && !qn__decode_runs(&in, 1, p->number, count))
        return check(p, 0);
    if (status == QN_OK)
        status = need_valid(p);
    for (uint64_t i = 0; i < count && status == QN_OK; i++)
        if (p->number[i] == 0) {
            const uint64_t row = p->row + i;
            p->valid[row / 8] = (uint8_t)(p->valid[row / 8] & ~(1 << row % 8));
            --*there;
        }
    return status;
}

/* What a page has. */
typedef struct content {
    uint64_t rows, there; /* values, and those that are not missing */
} content;

/* An element of a list, or a list without one: `defined` says how much of it is there. */
static int take_list_level(pages *p, uint32_t repeated, uint32_t defined, content *c) {
    const uint32_t outer = p->column->optional != 0,
                   most = outer + 1 + (p->column->words_optional != 0);
    const int element = defined > outer;
    if (repeated > 1 || defined > most || (repeated && (!element || p->list.row == 0)) ||
        (!repeated && p->list.row == p->list.rows))
        return 0;
    if (!repeated)
        p->list.row++;
    if (defined < outer) {
        const uint64_t row = p->list.row - 1;
        p->list.valid[row / 8] = (uint8_t)(p->list.valid[row / 8] & ~(1 << row % 8));
        p->list.missing++;
    }
    if (element && defined < most) {
        const uint64_t row = p->row + c->rows;
        p->valid[row / 8] = (uint8_t)(p->valid[row / 8] & ~(1 << row % 8));
    }
    c->rows += (uint64_t)element;
    c->there += defined == most;
    p->list.offset[p->list.row] = (int64_t)(p->row + c->rows);
    return 1;
}

/* The levels of `count` elements and lists without one. */
static qn_status take_lists(pages *p, qn__encoded repeated, qn__encoded defined, uint64_t count,
                            content *out) {
    const unsigned bits = p->column->optional || p->column->words_optional ? 2 : 1;
    *out = (content){0};
    qn_status status = number_space(p, 2 * count);
    if (status == QN_OK)
        status = need_valid(p);
    if (status != QN_OK)
        return status;
    int good = qn__decode_runs(&repeated, 1, p->number, count) &&
               qn__decode_runs(&defined, bits, p->number + count, count);
    for (uint64_t i = 0; i < count && good; i++)
        good = take_list_level(p, p->number[i], p->number[count + i], out);
    return check(p, good);
}

/* Moves values that stand at the beginning to their rows. */
static void spread(pages *p, uint64_t there, uint64_t count) {
    const size_t width = p->column->width;
    uint8_t *to = p->values + p->row * width;
    for (uint64_t i = count; i-- > 0 && there < i + 1;) {
        const uint64_t row = p->row + i;
        if (!(p->valid[row / 8] >> row % 8 & 1))
            memset(to + i * width, 0, width);
        else if (there > 0)
            memmove(to + i * width, to + --there * width, width);
    }
}

/* ------------------------------------------------------------------ pages */

static qn_status take_dictionary(pages *p, const page *head) {
    qn__encoded in;
    qn_status status = unpack(p, head, 0, &in);
    if (status != QN_OK)
        return status;
    /* The shortest value of a dictionary takes a byte, a truth value a bit. */
    if ((uint64_t)head->values > 8 * (uint64_t)(in.end - in.at))
        return check(p, 0);
    p->entries = (uint64_t)head->values;
    uint8_t *to = qn__scratch_need(&p->thread->dictionary, p->entries, p->column->width, p->err);
    p->dictionary = to;
    return to ? take_plain(p, &in, to, p->entries) : QN_MEMORY;
}

/* Cuts the levels off, which stand before the values of DATA_PAGE with their size. */
static int cut_levels(qn__encoded *in, qn__encoded *levels) {
    if (in->end - in->at < 4)
        return 0;
    const uint32_t size = (uint32_t)in->at[0] | (uint32_t)in->at[1] << 8 |
                          (uint32_t)in->at[2] << 16 | (uint32_t)in->at[3] << 24;
    in->at += 4;
    if (size > (size_t)(in->end - in->at))
        return 0;
    *levels = (qn__encoded){in->at, in->at + size};
    in->at += size;
    return 1;
}

static qn_status take_data(pages *p, const page *head) {
    qn__encoded in, levels = {0}, repeats = {0};
    const uint64_t count = (uint64_t)head->values;
    content own = {count, count};
    const int first = head->kind == DATA_PAGE, lists = p->column->words != NULL;
    size_t plain = 0;
    if (count > p->rows - p->slot)
        return refuse(p, "the pages of a column hold more values than its row group");
    if (head->kind == DATA_PAGE_2) {
        const int64_t repeated = head->repeated_size,
                      least = head->size < head->made ? head->size : head->made;
        if (head->missing_size < 0 || repeated < 0 || repeated > least ||
            head->missing_size > least - repeated)
            return refuse(p, "a page of the Parquet file is broken");
        /* A flat column repeats nothing; some writers say so with levels that are all 0. */
        plain = (size_t)(head->missing_size + repeated);
        repeats = (qn__encoded){p->bytes + p->at, p->bytes + p->at + repeated};
        levels = (qn__encoded){p->bytes + p->at + repeated, p->bytes + p->at + plain};
    }
    qn_status status = unpack(p, head, plain, &in);
    if (status == QN_OK && first && lists)
        status = check(p, cut_levels(&in, &repeats));
    if (status == QN_OK && first && (lists || p->column->optional))
        status = check(p, cut_levels(&in, &levels));
    if (status == QN_OK && lists)
        status = take_lists(p, repeats, levels, count, &own);
    else if (status == QN_OK && p->column->optional)
        status = take_levels(p, levels, count, &own.there);
    if (status == QN_OK)
        status =
            take_values(p, head->encoding, &in, p->values + p->row * p->column->width, own.there);
    if (status != QN_OK)
        return status;
    if (own.there < own.rows)
        spread(p, own.there, own.rows);
    p->missing += own.rows - own.there;
    p->row += own.rows;
    p->slot += count;
    return QN_OK;
}

static qn_status take_pages(pages *p, size_t *where) {
    while (p->slot < p->rows) {
        page head;
        *where = p->at;
        qn_status status = take_header(p, &head);
        if (status == QN_OK && (head.kind == DATA_PAGE || head.kind == DATA_PAGE_2))
            status = take_data(p, &head);
        else if (status == QN_OK && head.kind == DICTIONARY_PAGE)
            status = take_dictionary(p, &head);
        else if (status == QN_OK)
            p->at += (size_t)head.size; /* an index */
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ chunks */

static qn_status find_codec(int codec, qn__codec *out, qn_error *err) {
    static const struct {
        const char *name; /* of one that is not read */
        qn__codec codec;
    } codecs[] = {{NULL, QN__CODEC_NONE}, {NULL, QN__CODEC_SNAPPY},
                  {NULL, QN__CODEC_GZIP}, {"LZO", 0},
                  {"Brotli", 0},          {NULL, QN__CODEC_LZ4_OLD},
                  {NULL, QN__CODEC_ZSTD}, {NULL, QN__CODEC_LZ4_BLOCK}};
    const int known = codec >= 0 && codec < (int)(sizeof codecs / sizeof *codecs);
    if (known && !codecs[codec].name) {
        *out = codecs[codec].codec;
        return qn__codec_need(*out, err);
    }
    qn__fail(err, QN_INPUT, "the column is compressed with %s, which is not read",
             known ? codecs[codec].name : "an unknown codec");
    return qn__remedy(err, QN_INPUT, "write the file with zstd, snappy, gzip or LZ4_RAW");
}

static const uint8_t *text_of(const pages *p, const qn__view *view, size_t *size) {
    *size = (size_t)view->size;
    return *size <= sizeof view->at.inside ? (const uint8_t *)view->at.inside
                                           : p->text[2 + view->at.out.buffer] + view->at.out.offset;
}

/* Decimals in bytes become numbers of one width. */
static qn_status make_decimals(pages *p) {
    const size_t width = p->column->decimal;
    const uint8_t *from = p->values;
    if (width <= 8)
        return QN_OK; /* integers are numbers already */
    p->values = qn__pile_alloc(p->pile, p->rows, width, p->err);
    if (!p->values)
        return QN_MEMORY;
    for (uint64_t i = 0; i < p->rows; i++, from += p->column->width) {
        size_t size = p->column->width;
        const uint8_t *bytes = is_text(p) ? text_of(p, (const void *)from, &size) : from;
        if (!qn__decode_decimal(bytes, size, p->values + i * width, width))
            return check(p, 0);
    }
    return QN_OK;
}

/* 8 bytes of nanoseconds of a day, and 4 bytes of its Julian day, become microseconds since 1970; a
 * date that these cannot hold is one before year 1. */
static qn_status make_moments(pages *p) {
    enum { JULIAN_1970 = 2440588 };
    const uint8_t *from = p->values;
    const int64_t day = INT64_C(86400000000);
    int64_t *to = qn__pile_alloc(p->pile, p->rows, sizeof *to, p->err);
    p->values = (uint8_t *)to;
    if (!to)
        return QN_MEMORY;
    for (uint64_t i = 0; i < p->rows; i++, from += p->column->width) {
        int64_t nanoseconds;
        uint32_t julian;
        memcpy(&nanoseconds, from, sizeof nanoseconds);
        memcpy(&julian, from + sizeof nanoseconds, sizeof julian);
        const int64_t rest = nanoseconds / 1000 - (nanoseconds % 1000 < 0);
        if (__builtin_mul_overflow((int64_t)julian - JULIAN_1970, day, &to[i]) ||
            __builtin_add_overflow(to[i], rest, &to[i]))
            to[i] = INT64_MIN;
    }
    return QN_OK;
}

/* Views have their buffers after the two that all columns have, and then the sizes of these. */
static qn_status put_buffers(pages *p, struct ArrowArray *out) {
    if (is_text(p) && !p->column->decimal) {
        if (p->texts == 0 && add_texts(p, p->bytes, 0) != QN_OK)
            return QN_MEMORY;
        p->text[2 + p->texts] = (const uint8_t *)p->text_size;
        out->buffers = (const void **)p->text;
        out->n_buffers = (int64_t)p->texts + 3;
    } else {
        out->n_buffers = 2;
    }
    out->buffers[0] = p->valid;
    out->buffers[1] = p->values;
    out->null_count = (int64_t)p->missing;
    return QN_OK;
}

/* Space for lists, and their elements. */
static qn_status begin_lists(pages *p, const qn__parquet_chunk *chunk) {
    const uint64_t rows = p->rows, values = chunk->values < 0 ? 0 : (uint64_t)chunk->values;
    if (values < rows || values > (ALWAYS + (p->size << 15)) / 8)
        return refuse(p, "the lists of the Parquet file have an impossible number of elements");
    p->list.rows = rows;
    p->rows = values;
    p->list.offset = qn__pile_alloc(p->pile, rows + 1, sizeof *p->list.offset, p->err);
    p->list.valid = qn__pile_alloc(p->pile, rows / 8 + 1, 1, p->err);
    if (!p->list.offset || !p->list.valid)
        return QN_MEMORY;
    memset(p->list.valid, 0xFF, (size_t)(rows / 8 + 1));
    return QN_OK;
}

static qn_status put_lists(const pages *p, struct ArrowArray *out) {
    if (p->list.row < p->list.rows)
        return refuse(p, "the pages of a column hold fewer lists than its row group has rows");
    out->n_buffers = 2;
    out->buffers[0] = p->list.valid;
    out->buffers[1] = p->list.offset;
    out->null_count = (int64_t)p->list.missing;
    out->children[0]->length = (int64_t)p->row;
    return QN_OK;
}

qn_status qn__parquet_read_chunk(const qn__parquet_column *column, const qn__parquet_chunk *chunk,
                                 const uint8_t *bytes, qn__parquet_thread *thread,
                                 struct ArrowArray *out, size_t *where, qn_error *err) {
    pages p = {.column = column,
               .thread = thread,
               .pile = &thread->pile,
               .err = err,
               .bytes = bytes,
               .size = (size_t)chunk->size,
               .rows = (uint64_t)out->length};
    *where = 0;
    qn_status status = find_codec(chunk->codec, &p.codec, err);
    if (status == QN_OK && column->words)
        status = begin_lists(&p, chunk);
    if (status == QN_OK) {
        p.values = qn__pile_alloc(p.pile, p.rows, column->width, err);
        status = p.values ? take_pages(&p, where) : QN_MEMORY;
    }
    if (status == QN_OK && column->decimal)
        status = make_decimals(&p);
    if (status == QN_OK && column->type == QN__PARQUET_INT96)
        status = make_moments(&p);
    if (status == QN_OK && column->words)
        status = put_lists(&p, out);
    if (status == QN_OK)
        status = put_buffers(&p, column->words ? out->children[0] : out);
    return status;
}
