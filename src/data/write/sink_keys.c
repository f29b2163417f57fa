#include "data/write/sink_keys.h"

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "data/write/sink_kinds.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PLACES = 1 << 10, DIGEST = 16, BLOCK = 1 << 16 };

/* A key by its digest; `last`: the greatest number in the key's last column among those that have
 * the same columns before it. -1: a key itself. -2: an empty place. */
typedef struct entry {
    uint8_t digest[DIGEST];
    int64_t last;
} entry;

enum { IS_KEY = -1, IS_EMPTY = -2 };

struct qn__sink_keys {
    const qn__sink_table *table;
    int is_numbered; /* the last column of the key holds integers */
    entry *at;       /* a table with open addressing */
    uint64_t places, used;
    entry *fresh; /* of the batch that is not yet kept */
    uint64_t fresh_count, fresh_places;
};

static void empty(entry *at, uint64_t places) {
    for (uint64_t i = 0; i < places; i++)
        at[i].last = IS_EMPTY;
}

qn_status qn__sink_keys_create(const qn__sink_table *table, qn__sink_keys **out, qn_error *err) {
    qn__sink_keys *k = *out = qn__alloc(1, sizeof *k, err);
    if (!k)
        return QN_MEMORY;
    k->table = table;
    k->is_numbered = table->keys > 0 && table->column[table->keys - 1].type == QN__SINK_INTEGER;
    k->places = FIRST_PLACES;
    k->at = qn__alloc(k->places, sizeof *k->at, err);
    if (!k->at)
        return QN_MEMORY;
    empty(k->at, k->places);
    return QN_OK;
}

void qn__sink_keys_free(qn__sink_keys *k) {
    if (!k)
        return;
    qn__free(k->at);
    qn__free(k->fresh);
    qn__free(k);
}

/* ------------------------------------------------------------------ the table */

static entry *find(entry *at, uint64_t places, const uint8_t digest[DIGEST]) {
    uint64_t place;
    memcpy(&place, digest, sizeof place);
    for (place &= places - 1; at[place].last != IS_EMPTY; place = (place + 1) & (places - 1))
        if (memcmp(at[place].digest, digest, DIGEST) == 0)
            break;
    return &at[place];
}

static qn_status grow(qn__sink_keys *k, qn_error *err) {
    if (k->used * 2 < k->places)
        return QN_OK;
    entry *more = qn__alloc(k->places * 2, sizeof *more, err);
    if (!more)
        return QN_MEMORY;
    empty(more, k->places * 2);
    for (uint64_t i = 0; i < k->places; i++)
        if (k->at[i].last != IS_EMPTY)
            *find(more, k->places * 2, k->at[i].digest) = k->at[i];
    qn__free(k->at);
    k->at = more;
    k->places *= 2;
    return QN_OK;
}

static qn_status insert(qn__sink_keys *k, const entry *new, qn_error *err) {
    if (grow(k, err) != QN_OK)
        return QN_MEMORY;
    entry *at = find(k->at, k->places, new->digest);
    if (at->last == IS_EMPTY)
        k->used++;
    if (at->last < new->last)
        *at = *new;
    return QN_OK;
}

/* ------------------------------------------------------------------ digests */

/* Of the first `count` columns of a key; `what` keeps whole keys and beginnings apart. */
static void digest_of(const qn__text *cells, uint32_t count, char what, uint8_t out[DIGEST]) {
    qn__sha256 hash;
    uint8_t digest[32];
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, &what, 1);
    for (uint32_t i = 0; i < count; i++) { /* with the zero byte of their end */
        const char *text = cells[i].data ? cells[i].data : "";
        qn__sha256_add(&hash, text, strlen(text) + 1);
    }
    qn__sha256_end(&hash, digest);
    memcpy(out, digest, DIGEST);
}

static void key_of(const qn__sink_keys *k, const qn__text *cells, entry *out) {
    digest_of(cells, k->table->keys, 'k', out->digest);
    out->last = IS_KEY;
}

/* What qn__sink_last looks for; 0: the key has no number. */
static int number_of(const qn__sink_keys *k, const qn__text *cells, entry *out) {
    const uint32_t last = k->table->keys - 1;
    if (!k->is_numbered || !cells[last].data)
        return 0;
    digest_of(cells, last, 'l', out->digest);
    out->last = strtoll(cells[last].data, NULL, 10);
    return out->last >= 0;
}

/* The texts of the first columns, for release_texts. */
static qn_status texts_of(const qn__sink_cell *cells, uint32_t count, qn__text texts[QN__SINK_KEYS],
                          qn_error *err) {
    memset(texts, 0, QN__SINK_KEYS * sizeof *texts);
    for (uint32_t i = 0; i < count; i++) {
        qn__sink_add_value(&texts[i], &cells[i]);
        if (texts[i].failed)
            return qn__fail_memory(err, texts[i].size, 1);
    }
    return QN_OK;
}

static void release_texts(qn__text texts[QN__SINK_KEYS]) {
    for (int i = 0; i < QN__SINK_KEYS; i++)
        qn__text_release(&texts[i]);
}

/* ------------------------------------------------------------------ batches */

void qn__sink_keys_begin(qn__sink_keys *k) { k->fresh_count = 0; }

static qn_status note_fresh(qn__sink_keys *k, const entry *new, qn_error *err) {
    if (k->fresh_count == k->fresh_places) {
        const uint64_t places = k->fresh_places * 2 + 64;
        entry *more = qn__alloc(places, sizeof *more, err);
        if (!more)
            return QN_MEMORY;
        if (k->fresh)
            memcpy(more, k->fresh, k->fresh_count * sizeof *more);
        qn__free(k->fresh);
        k->fresh = more;
        k->fresh_places = places;
    }
    k->fresh[k->fresh_count++] = *new;
    return QN_OK;
}

/* A key twice in one batch is found as well: fresh ones are in the table at once. */
static qn_status add_key(qn__sink_keys *k, const qn__text *cells, int *is_new, qn_error *err) {
    entry key, number;
    key_of(k, cells, &key);
    *is_new = find(k->at, k->places, key.digest)->last == IS_EMPTY;
    if (!*is_new)
        return QN_OK;
    qn_status status = note_fresh(k, &key, err); /* first: what is in the table can be dropped */
    if (status == QN_OK)
        status = insert(k, &key, err);
    if (status == QN_OK && number_of(k, cells, &number))
        status = note_fresh(k, &number, err);
    return status;
}

qn_status qn__sink_keys_add(qn__sink_keys *k, const qn__sink_cell *row, int *is_new,
                            qn_error *err) {
    qn__text texts[QN__SINK_KEYS];
    *is_new = 1;
    if (k->table->keys == 0)
        return QN_OK;
    qn_status status = texts_of(row, k->table->keys, texts, err);
    if (status == QN_OK)
        status = add_key(k, texts, is_new, err);
    release_texts(texts);
    return status;
}

/* Memory that is short here loses only what qn__sink_last says; the rows are stored. */
void qn__sink_keys_keep(qn__sink_keys *k) {
    for (uint64_t i = 0; i < k->fresh_count; i++)
        if (k->fresh[i].last >= 0)
            (void)insert(k, &k->fresh[i], NULL);
    k->fresh_count = 0;
}

/* Taking an entry out of such a table means to build it again; this is rare. Without memory for it
 * the place stays taken, by a digest that no key has: the rows may come again in any case. */
void qn__sink_keys_drop(qn__sink_keys *k) {
    for (uint64_t i = 0; i < k->fresh_count; i++)
        if (k->fresh[i].last == IS_KEY)
            memset(find(k->at, k->places, k->fresh[i].digest)->digest, 0, DIGEST);
    k->fresh_count = 0;
    entry *rest = qn__alloc(k->places, sizeof *rest, NULL);
    if (!rest)
        return;
    empty(rest, k->places);
    static const uint8_t none[DIGEST] = {0};
    k->used = 0;
    for (uint64_t i = 0; i < k->places; i++)
        if (k->at[i].last != IS_EMPTY && memcmp(k->at[i].digest, none, DIGEST) != 0) {
            *find(rest, k->places, k->at[i].digest) = k->at[i];
            k->used++;
        }
    qn__free(k->at);
    k->at = rest;
}

/* ------------------------------------------------------------------ questions */

qn_status qn__sink_keys_hold(const qn__sink_keys *k, const qn__sink_cell *key, int *holds,
                             qn_error *err) {
    qn__text texts[QN__SINK_KEYS];
    entry wanted;
    const qn_status status = texts_of(key, k->table->keys, texts, err);
    *holds = 0;
    if (status == QN_OK && k->table->keys > 0) {
        key_of(k, texts, &wanted);
        *holds = find(k->at, k->places, wanted.digest)->last == IS_KEY;
    }
    release_texts(texts);
    return status;
}

qn_status qn__sink_keys_last(const qn__sink_keys *k, const qn__sink_cell *first, int64_t *last,
                             qn_error *err) {
    qn__text texts[QN__SINK_KEYS];
    uint8_t digest[DIGEST];
    const qn_status status = texts_of(first, first ? k->table->keys - 1 : 0, texts, err);
    *last = -1;
    if (status == QN_OK && k->is_numbered) {
        digest_of(texts, k->table->keys - 1, 'l', digest);
        const entry *at = find(k->at, k->places, digest);
        *last = at->last == IS_EMPTY ? -1 : at->last;
    }
    release_texts(texts);
    return status;
}

/* ------------------------------------------------------------------ a file's keys */

/* Where a file is being read. A record ends with a line end outside quotes. */
typedef struct scan {
    qn__sink_keys *keys;
    const char *shown;
    qn__text header; /* what it must begin with */
    uint64_t at, whole;
    uint64_t matched; /* bytes of the header that were right */
    uint32_t column;
    int in_header, in_quotes, was_quote;
    qn__text cells[QN__SINK_KEYS];
} scan;

static qn_status refuse_file(const scan *s, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file is there, and does not begin with the line \"%.*s\"",
             (int)strcspn(s->header.data, "\r\n"), s->header.data);
    qn__at(err, "%.400s", s->shown);
    return qn__remedy(err, QN_INPUT, "name another file, or move this one away");
}

static qn_status end_record(scan *s, qn_error *err) {
    int is_new;
    qn_status status = QN_OK;
    if (!s->in_header && s->keys->table->keys > 0)
        status = add_key(s->keys, s->cells, &is_new, err);
    s->in_header = 0;
    s->column = 0;
    s->whole = s->at + 1;
    for (int i = 0; i < QN__SINK_KEYS; i++) {
        s->cells[i].size = 0;
        if (s->cells[i].data)
            s->cells[i].data[0] = '\0';
    }
    return status;
}

static void add_byte(scan *s, char byte) {
    if (!s->in_header && s->column < s->keys->table->keys)
        qn__text_add(&s->cells[s->column], "%c", byte);
}

static qn_status take(scan *s, char byte, qn_error *err) {
    if (s->in_header && (s->matched >= s->header.size || byte != s->header.data[s->matched++]))
        return refuse_file(s, err);
    const int second_quote = s->was_quote && byte == '"';
    s->was_quote = 0;
    if (byte == '"') {
        if (second_quote)
            add_byte(s, byte);
        s->was_quote = s->in_quotes;
        s->in_quotes = !s->in_quotes;
    } else if (s->in_quotes) {
        add_byte(s, byte);
    } else if (byte == ',') {
        s->column++;
    } else if (byte == '\n') {
        return end_record(s, err);
    } else {
        add_byte(s, byte);
    }
    return QN_OK;
}

static qn_status read_file(scan *s, int file, qn_error *err) {
    char block[BLOCK];
    qn_status status = QN_OK;
    ssize_t got = 1;
    while (got > 0 && status == QN_OK) {
        got = read(file, block, sizeof block);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got < 0)
            return qn__fail_errno(err, "read", s->shown);
        else
            for (ssize_t i = 0; i < got && status == QN_OK; i++, s->at++)
                status = take(s, block[i], err);
    }
    return status;
}

qn_status qn__sink_keys_read(qn__sink_keys *keys, int file, const char *shown, uint64_t *size,
                             qn_error *err) {
    scan s = {.keys = keys, .shown = shown, .in_header = 1};
    qn__sink_add_header(&s.header, keys->table);
    qn_status status = s.header.failed ? qn__fail_memory(err, s.header.size, 1) : QN_OK;
    if (status == QN_OK)
        status = read_file(&s, file, err);
    for (int i = 0; i < QN__SINK_KEYS && status == QN_OK; i++)
        if (s.cells[i].failed)
            status = qn__fail_memory(err, 1, 1 << 16);
    qn__sink_keys_keep(keys);
    *size = s.whole;
    qn__text_release(&s.header);
    release_texts(s.cells);
    return status;
}
