/* Prefix sums (SCAN) that are exact and rounded once, by all threads. Threads first add up
 * segments, each for itself. The sums before the segments follow one from the other. Then threads
 * go over the segments again, each from its sum:
 *
 *   numbers    3 1 4 | 1  5  9 | 2  6
 *   sums           8 |      15 |    8     by all threads
 *   before         0 |       8 |   23     by one thread
 *   results    3 4 8 | 9 14 23 | 25 31    by all threads
 *
 * Sums of segments are exact, so the results do not depend on where segments are cut.
 *
 * A long sum has one limb of 64 bits for each 64 powers of two of binary64. Few of them are in use
 * at a time: the window from the lowest limb that an addend reached to the highest one that is not
 * a copy of the sign. So adding and rounding cost as much as the numbers' range, not as the
 * format's:
 *
 *   limb   35 ........ high .......... low ........ 0
 *          the sign    these are stored    zeros
 *
 * Where two doubles hold the sum, they are used instead. That is several times as fast, and the
 * usual case. */
#include "userkernel/execution/user_scan.h"

#include "base/binary/float_bits.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "num/exact_block.h"
#include "num/exact_pair.h"
#include "userkernel/execution/user_fault.h"
#include "userkernel/execution/user_round.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Limb i counts units of 2^(64 i - 1088), as in num/exact_sum.h. A sum of 2^62 numbers fits 34
 * limbs; an addition has two limbs more above the window. */
enum { LIMBS = QN__EXACT_LIMBS / 2 + 2, SEGMENT = 1 << 14, BLOCK = 256 };

/* Of the limbs from `low` to `high` the highest has a sign. The others are not set: those below are
 * 0, those above copies of the sign. */
typedef struct long_sum {
    uint64_t limb[LIMBS];
    int low, high;
} long_sum;

typedef struct scan {
    qn__user_type type;
    int exclusive;
    void *numbers;
    int64_t count, length; /* of all; of a segment */
    qn__exact_sum *segment;
    atomic_int_fast64_t next, faulty;
} scan;

/* ------------------------------------------------------------------ long sums */

static void begin(long_sum *s, qn__exact_sum *from) {
    qn__exact_sum none = {.pending = 0};
    qn__exact_merge(from, &none); /* all limbs but the last are below 2^32 */
    for (int i = 0; i < QN__EXACT_LIMBS / 2; i++)
        s->limb[i] = (uint64_t)from->limb[2 * i] | (uint64_t)from->limb[2 * i + 1] << 32;
    s->low = 0;
    s->high = QN__EXACT_LIMBS / 2 - 1;
    while (s->low < s->high && s->limb[s->low] == 0)
        s->low++;
}

static uint64_t add_carry(uint64_t *limb, uint64_t addend, uint64_t carry) {
    const uint64_t sum = *limb + addend, all = sum + carry;
    const uint64_t over = (uint64_t)(sum < addend) | (uint64_t)(all < carry);
    *limb = all;
    return over;
}

/* Makes the window reach from limb `low` to limb `high`. */
static void widen(long_sum *s, int low, int high) {
    const uint64_t sign = 0 - (s->limb[s->high] >> 63);
    while (s->low > low)
        s->limb[--s->low] = 0;
    while (s->high < high)
        s->limb[++s->high] = sign;
}

/* Adds a finite number other than 0. */
static void add_real(long_sum *s, double value) {
    const uint64_t bits = qn__double_bits(value);
    const int field = (int)(bits >> 52 & 0x7FF), exponent = field > 0 ? field : 1;
    const uint64_t mantissa = (bits & 0xFFFFFFFFFFFFF) | (uint64_t)(field > 0) << 52;
    const int place = exponent - 1075 + QN__EXACT_SCALE, at = place / 64, shift = place % 64;
    uint64_t first = mantissa << shift, second = shift > 0 ? mantissa >> (64 - shift) : 0;
    const uint64_t sign = 0 - (bits >> 63);
    if (sign) { /* the complement */
        first = 0 - first;
        second = ~second + (first == 0);
    }
    widen(s, at, (s->high > at + 1 ? s->high : at + 1) + 1);
    uint64_t carry = add_carry(&s->limb[at], first, 0);
    carry = add_carry(&s->limb[at + 1], second, carry);
    for (int i = at + 2; i <= s->high; i++)
        carry = add_carry(&s->limb[i], sign, carry);
    while (s->high > s->low && s->limb[s->high] == 0 - (s->limb[s->high - 1] >> 63))
        s->high--;
}

/* Rounds the sum to a number of the type. 0: it is beyond the range. */
static int round_sum(const long_sum *s, qn__user_type type, uint64_t *value) {
    const uint64_t sign = 0 - (s->limb[s->high] >> 63);
    uint64_t magnitude[LIMBS] = {0}, carry = sign & 1;
    int top = s->high, rest = 0;
    for (int i = s->low; i <= s->high; i++) {
        magnitude[i] = s->limb[i] ^ sign;
        carry = add_carry(&magnitude[i], 0, carry);
    }
    while (top > s->low && magnitude[top] == 0)
        top--;
    if (magnitude[top] == 0) {
        *value = 0;
        return 1;
    }
    const int shift = __builtin_clzll(magnitude[top]);
    uint64_t bits = magnitude[top] << shift;
    if (top > s->low && shift > 0)
        bits |= magnitude[top - 1] >> (64 - shift);
    if (top > s->low)
        rest = magnitude[top - 1] << shift != 0;
    for (int i = top - 2; i >= s->low && !rest; i--)
        rest = magnitude[i] != 0;
    return qn__user_round(bits, 64 * top - QN__EXACT_SCALE - shift, rest, sign != 0, type, value);
}

/* ------------------------------------------------------------------ segments */

static double real_at(const scan *s, int64_t i) {
    return s->type == QN__USER_F32 ? (double)((const float *)s->numbers)[i]
                                   : ((const double *)s->numbers)[i];
}

/* What is not finite is found when the segment is gone over again, or a fault before it. */
static void add_up(scan *s, qn__exact_sum *sum, int64_t first, int64_t end) {
    if (!qn__user_type_is_real(s->type)) {
        qn__exact_add_integers(sum, (const uint64_t *)s->numbers + first, (size_t)(end - first),
                               s->type == QN__USER_I64);
        return;
    }
    if (s->type == QN__USER_F32)
        qn__exact_add_floats(sum, (const float *)s->numbers + first, (size_t)(end - first));
    else
        qn__exact_add_doubles(sum, (const double *)s->numbers + first, (size_t)(end - first));
}

/* The pair of a sum of few bits. 0: it has more. */
static int pair_of(const long_sum *sum, qn__pair *pair) {
    double part[2];
    uint64_t bits;
    long_sum rest = *sum;
    for (int k = 0; k < 2; k++) {
        if (!round_sum(&rest, QN__USER_F64, &bits))
            return 0;
        memcpy(&part[k], &bits, sizeof bits);
        if (part[k] < 0 || part[k] > 0)
            add_real(&rest, -part[k]);
    }
    *pair = (qn__pair){part[0], part[1]};
    return rest.low == rest.high && rest.limb[rest.low] == 0;
}

/* A float from high + low, whose sum is `near` with the error `rest`. Where `near` is halfway
 * between two floats, the error decides. */
static float float_of(double near, double rest) {
    uint64_t bits = qn__double_bits(near);
    if ((bits & 0x1FFFFFFF) == 0x10000000 && (rest < 0 || rest > 0))
        bits += (rest > 0) == (near > 0) ? 1 : UINT64_MAX;
    memcpy(&near, &bits, sizeof near);
    return (float)near;
}

/* Sums of a block of doubles by a pair. 0: something is lost or out of range; nothing is changed.
 */
static int round_doubles(double *numbers, int64_t count, int exclusive, qn__pair *before) {
    double sum[BLOCK + 1], lost = 0;
    qn__pair pair = *before;
    sum[0] = pair.high + pair.low;
    for (int64_t i = 0; i < count; i++) {
        lost += fabs(qn__pair_add(&pair, numbers[i]));
        sum[i + 1] = pair.high + pair.low;
    }
    for (int64_t i = 0; i <= count; i++)
        lost += sum[i] - sum[i]; /* NaN of an infinity */
    if (!(lost == 0))
        return 0;
    memcpy(numbers, exclusive ? sum : sum + 1, (size_t)count * sizeof *numbers);
    *before = pair;
    return 1;
}

/* The same for floats; subnormal ones are rounded elsewhere. */
static int round_floats(float *numbers, int64_t count, int exclusive, qn__pair *before) {
    float sum[BLOCK + 1];
    double lost = 0;
    qn__pair pair = *before;
    for (int64_t i = 0; i <= count; i++) {
        double rest;
        if (i > 0)
            lost += fabs(qn__pair_add(&pair, (double)numbers[i - 1]));
        const double near = qn__two_sum(pair.high, pair.low, &rest), size = fabs(near);
        lost += size > 0 && size < 0x1p-126 ? 1 : 0;
        sum[i] = float_of(near, rest);
    }
    for (int64_t i = 0; i <= count; i++)
        lost += (double)(sum[i] - sum[i]);
    if (!(lost == 0))
        return 0;
    memcpy(numbers, exclusive ? sum : sum + 1, (size_t)count * sizeof *numbers);
    *before = pair;
    return 1;
}

/* Sums of a block by a long sum. 0: a number is not possible. */
static int round_slowly(scan *s, long_sum *sum, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) {
        const double x = real_at(s, i);
        const int adds = isfinite(x) && (x > 0 || x < 0);
        uint64_t value;
        if (adds && !s->exclusive)
            add_real(sum, x);
        if (!isfinite(x) || !round_sum(sum, s->type, &value)) {
            qn__user_fault_note(&s->faulty, i);
            return 0;
        }
        if (adds && s->exclusive)
            add_real(sum, x);
        if (s->type == QN__USER_F64)
            memcpy((double *)s->numbers + i, &value, sizeof value);
        else
            memcpy((float *)s->numbers + i, &value, sizeof(float));
    }
    return 1;
}

/* By pairs where they hold the sums, which is several times as fast. */
static void round_reals(scan *s, qn__exact_sum *before, int64_t first, int64_t end) {
    long_sum sum;
    qn__pair pair;
    begin(&sum, before);
    int paired = pair_of(&sum, &pair);
    for (int64_t at = first, count; at < end; at += count) {
        count = end - at < BLOCK ? end - at : BLOCK;
        if (paired && (s->type == QN__USER_F64
                           ? round_doubles((double *)s->numbers + at, count, s->exclusive, &pair)
                           : round_floats((float *)s->numbers + at, count, s->exclusive, &pair)))
            continue;
        if (paired) {
            qn__exact_sum same = {.pending = 0};
            qn__exact_add_pair(&same, &pair);
            begin(&sum, &same);
        }
        if (!round_slowly(s, &sum, at, count))
            return;
        paired = pair_of(&sum, &pair);
    }
}

/* Sums that fit the type up to a number are exact in it, so only the next one can leave it. */
static void add_integers(scan *s, qn__exact_sum *before, int64_t first, int64_t end) {
    const qn__user_part part = {.use = QN__USER_SUM, .type = s->type};
    qn__user_total total = {.sum = *before};
    uint64_t *numbers = s->numbers, sum = 0;
    if (!qn__user_total_value(&total, &part, &sum)) {
        qn__user_fault_note(&s->faulty, first); /* where it is inclusive, there is one before it */
        return;
    }
    for (int64_t i = first; i < end; i++) {
        const uint64_t x = numbers[i], next = sum + x;
        const int over =
            s->type == QN__USER_U64 ? next < x : (int)(((sum ^ next) & (x ^ next)) >> 63);
        if (over && s->exclusive && i + 1 == end) { /* the next item is of another segment */
            numbers[i] = sum;
            return;
        }
        if (over) {
            qn__user_fault_note(&s->faulty, i + s->exclusive);
            return;
        }
        numbers[i] = s->exclusive ? sum : next;
        sum = next;
    }
}

typedef void one_segment(scan *s, qn__exact_sum *sum, int64_t first, int64_t end);

static void each(scan *s, one_segment *what) {
    qn__float_state_set();
    for (;;) {
        const int64_t at = atomic_fetch_add(&s->next, 1), first = at * s->length;
        if (first >= s->count || first > atomic_load(&s->faulty))
            return;
        what(s, &s->segment[at], first,
             s->count - first < s->length ? s->count : first + s->length);
    }
}

static void add_segments(void *context, int thread) {
    (void)thread;
    each(context, add_up);
}

static void round_segments(void *context, int thread) {
    scan *s = context;
    (void)thread;
    each(s, qn__user_type_is_real(s->type) ? round_reals : add_integers);
}

/* Sums of segments become those before them. */
static void shift_sums(scan *s, int64_t segments) {
    qn__exact_sum before = {.pending = 0};
    for (int64_t i = 0; i < segments; i++) {
        qn__exact_sum own = s->segment[i];
        s->segment[i] = before;
        qn__exact_merge(&before, &own);
    }
}

qn_status qn__user_scan(qn__user_type type, int exclusive, void *numbers, int64_t count,
                        qn__pool *pool, int64_t *faulty, qn_error *err) {
    const int several = qn__pool_threads(pool) > 1 && count > SEGMENT;
    scan s = {.type = type,
              .exclusive = exclusive,
              .numbers = numbers,
              .count = count,
              .faulty = INT64_MAX};
    s.length = several ? SEGMENT : count;
    const int64_t segments = (count - 1) / s.length + 1;
    s.segment = qn__alloc((uint64_t)segments, sizeof *s.segment, err);
    if (!s.segment)
        return QN_MEMORY;
    if (several) {
        qn__pool_run(pool, add_segments, &s);
        shift_sums(&s, segments);
        atomic_store(&s.next, 0);
        qn__pool_run(pool, round_segments, &s);
    } else {
        round_segments(&s, 0);
    }
    *faulty = atomic_load(&s.faulty) == INT64_MAX ? -1 : atomic_load(&s.faulty);
    qn__free(s.segment);
    return QN_OK;
}

qn_status qn__user_job_scan(const qn__user_job *job, qn__pool *pool, qn_error *err) {
    const qn__user_source *s = job->source;
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < s->parts && status == QN_OK; i++) {
        const qn__user_part *p = &s->part[i];
        int64_t item = -1;
        if (!p->scans)
            continue;
        status = qn__user_scan(p->type, p->scans == 2, job->array[i], qn__user_job_items(job), pool,
                               &item, err);
        if (status != QN_OK || item < 0)
            continue;
        const scan one = {.type = p->type, .numbers = job->array[i]};
        const int infinite = qn__user_type_is_real(p->type) && !isfinite(real_at(&one, item));
        status = qn__user_fault_tell(
            job, infinite ? QN__USER_FAULT_INFINITE(i) : QN__USER_FAULT_RANGE(i), item, err);
    }
    return status;
}
