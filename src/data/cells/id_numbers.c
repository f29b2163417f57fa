#include "data/cells/id_numbers.h"
#include "base/memory.h"
#include "data/table/wide.h"
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum {
    ITEMS = 20,          /* so many or fewer may differ by chance */
    LOOKED_AT = 1 << 20, /* of more items, these */
    REPEATS = 16,        /* expected among measured numbers of the same range */
    PARTS = 4,
    IN_PART = 8, /* a part of the range has at least one in eight of the numbers */
};

#define LARGE ((double)(1 << 24)) /* quantities are seldom measured to so many digits, */
#define HUGE_ID 0x1p53            /* and never to these */

/* ------------------------------------------------------------------ the name */

/* Words that mean an id wherever they stand in a name, and those that may, at its end. */
static const char *const sure[] = {"id", "ids", "uid", "guid", "uuid", "oid", "pk", "identifier"};
static const char *const likely[] = {"no", "nr", "number", "code", "key", "serial"};
/* Names of columns are often folded to lower case: customerid. */
static const char *const things[] = {"account",  "case",    "client",  "customer",    "device",
                                     "employee", "invoice", "item",    "member",      "movie",
                                     "object",   "obj",     "order",   "patient",     "person",
                                     "player",   "product", "record",  "row",         "session",
                                     "store",    "student", "subject", "transaction", "user"};

static int is_one_of(const char *const *list, size_t count, const char *word, size_t size) {
    size_t i = 0;
    while (i < count && (strlen(list[i]) != size || strncasecmp(list[i], word, size) != 0))
        i++;
    return i < count;
}

#define IS_ONE_OF(list, word, size) is_one_of(list, sizeof(list) / sizeof *(list), word, size)

static int is_sure(const char *word, size_t size) {
    return IS_ONE_OF(sure, word, size) || (size > 2 && strncasecmp(word + size - 2, "id", 2) == 0 &&
                                           IS_ONE_OF(things, word, size - 2));
}

/* A word ends before what is not a letter, and before the first capital letter after a
 * small one. */
static size_t word_size(const char *word) {
    size_t size = 0;
    while (
        isalpha((unsigned char)word[size]) &&
        !(size > 0 && islower((unsigned char)word[size - 1]) && isupper((unsigned char)word[size])))
        size++;
    return size;
}

typedef enum hint { HINT_NONE, HINT_LIKELY, HINT_SURE } hint;

static hint hint_of(const char *name) {
    hint found = HINT_NONE;
    while (name && *name) {
        const size_t size = word_size(name);
        if (is_sure(name, size))
            return HINT_SURE;
        if (size > 0)
            found = IS_ONE_OF(likely, name, size) ? HINT_LIKELY : HINT_NONE;
        name += size > 0 ? size : 1;
    }
    return found;
}

/* ------------------------------------------------------------------ the numbers */

/* The value of an item where it is a whole number of 64 bits. Above 2^24 a float may be one only
 * because it was rounded. */
static int whole_at(const qn_data *data, uint32_t k, const qn__wide_value *exact, uint64_t item,
                    int64_t *whole) {
    if (exact) {
        *whole = exact[item].whole;
        return *whole != QN__WIDE_MISSING;
    }
    const double value = qn__data_number(data, item, k);
    if (!(fabs(value) <= LARGE) || value != rint(value))
        return 0;
    *whole = (int64_t)value;
    return 1;
}

/* The numbers seen so far, all different: a table of 1 << bits places, 0 where one is free. */
typedef struct number_set {
    uint64_t *place;
    uint64_t count;
    int bits, has_zero;
} number_set;

static uint64_t *find(const number_set *s, uint64_t number) {
    const uint64_t mask = ((uint64_t)1 << s->bits) - 1;
    uint64_t at = (number * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - s->bits);
    while (s->place[at] != 0 && s->place[at] != number)
        at = (at + 1) & mask;
    return &s->place[at];
}

/* At most half of the places are in use. */
static int grow(number_set *s) {
    const number_set old = *s;
    const uint64_t places = s->place ? (uint64_t)1 << s->bits : 0;
    if (s->count + 1 <= places / 2)
        return 1;
    s->bits = places ? s->bits + 2 : 6;
    s->place = qn__alloc((uint64_t)1 << s->bits, sizeof *s->place, NULL);
    for (uint64_t i = 0; s->place && i < places; i++)
        if (old.place[i] != 0)
            *find(s, old.place[i]) = old.place[i];
    qn__free(old.place);
    return s->place != NULL;
}

/* 0 where the number was there before, or memory is short. */
static int add(number_set *s, int64_t number) {
    if (number == 0) {
        const int is_new = !s->has_zero;
        s->has_zero = 1;
        return is_new;
    }
    if (!grow(s))
        return 0;
    uint64_t *place = find(s, (uint64_t)number);
    const int is_new = *place == 0;
    *place = (uint64_t)number;
    s->count++;
    return is_new;
}

/* What is known of all numbers of a column. */
typedef struct numbers {
    const qn_data *data;
    uint32_t feature;
    const qn__wide_value *exact;
    uint64_t count;
    int64_t lo, hi;
    int up, down; /* 1: each is above the one before, or below */
} numbers;

/* 0 where one is missing, not whole, or there twice. Most columns of numbers end this early. */
static int look(numbers *n) {
    number_set set = {.place = NULL};
    int64_t value = 0, before = 0;
    uint64_t i = 0;
    n->up = n->down = 1;
    for (; i < n->count; i++, before = value) {
        if (!whole_at(n->data, n->feature, n->exact, i, &value) || !add(&set, value))
            break;
        n->up &= i == 0 || value > before;
        n->down &= i == 0 || value < before;
        n->lo = i == 0 || value < n->lo ? value : n->lo;
        n->hi = i == 0 || value > n->hi ? value : n->hi;
    }
    qn__free(set.place);
    return i == n->count;
}

/* ------------------------------------------------------------------ times */

static int is_month(int64_t v) {
    return v / 100 >= 1900 && v / 100 < 2100 && v % 100 >= 1 && v % 100 <= 12;
}

static int is_day(int64_t v) { return is_month(v / 100) && v % 100 >= 1 && v % 100 <= 31; }

static int is_minute(int64_t v) { return is_day(v / 10000) && v / 100 % 100 < 24 && v % 100 < 60; }

static int is_second(int64_t v) { return is_minute(v / 100) && v % 100 < 60; }

static int all(const numbers *n, int (*is)(int64_t)) {
    int64_t value;
    uint64_t i = 0;
    while (i < n->count && whole_at(n->data, n->feature, n->exact, i, &value) && is(value))
        i++;
    return i == n->count;
}

/* Years, dates in digits, and times since 1970 that are in the years 1979 to 2039. */
static int may_be_times(const numbers *n) {
    if (n->lo >= 1500 && n->hi < 2200)
        return 1;
    for (int64_t unit = 1; unit <= 1000000000; unit *= 1000)
        if (n->lo >= 300000000 * unit && n->hi < 2200000000 * unit)
            return 1;
    return all(n, is_month) || all(n, is_day) || all(n, is_minute) || all(n, is_second);
}

/* ------------------------------------------------------------------ the rule */

/* Numbers drawn from so small a range would repeat. */
static int is_dense(const numbers *n) {
    const double count = (double)n->count, range = (double)n->hi - (double)n->lo + 1;
    return count * (count - 1) / 2 > REPEATS * range;
}

/* Measured numbers crowd together. */
static int is_even(const numbers *n) {
    uint64_t in[PARTS] = {0};
    const double step = ((double)n->hi - (double)n->lo) / PARTS;
    int64_t value = 0;
    int even = 1;
    for (uint64_t i = 0; i < n->count; i++) {
        (void)whole_at(n->data, n->feature, n->exact, i, &value);
        const int part = (int)(((double)value - (double)n->lo) / step);
        in[part < PARTS ? part : PARTS - 1]++;
    }
    for (int part = 0; part < PARTS; part++)
        even &= in[part] * IN_PART >= n->count;
    return even;
}

static int look_assigned(const numbers *n) {
    const double most = fmax(fabs((double)n->lo), fabs((double)n->hi));
    if (most >= HUGE_ID)
        return 1;
    if (n->lo < 0 || n->up || n->down) /* an axis, or a count that grows */
        return 0;
    return is_dense(n) || (most > LARGE && is_even(n));
}

int qn__looks_like_ids(const qn_data *data, uint32_t k, const char *name) {
    const qn__feature *f = data->schema ? &data->schema->feature[k] : NULL;
    numbers n = {.data = data,
                 .feature = k,
                 .exact = qn__wide_column(data, k),
                 .count = data->items < LOOKED_AT ? data->items : LOOKED_AT};
    if (data->items <= ITEMS || (f && (f->categories > 0 || f->dates)) ||
        qn__wide_kind(data, k) == QN__EXACT_REAL || !look(&n))
        return 0;
    const hint says = hint_of(name);
    return says == HINT_SURE || (!may_be_times(&n) && (says == HINT_LIKELY || look_assigned(&n)));
}
