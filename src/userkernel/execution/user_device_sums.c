/* Totals that a device makes itself, so that the values of each item need not be copied to the
 * host. Each total has a kernel of its own. Small bins are added in the local memory of a group,
 * and then to those of the device with atomics; large ones directly. All words are integers, so
 * their order does not matter. Bins that need more than 1 MiB, and bins of extremes, are left to
 * the host. */
#include "userkernel/execution/user_device_sums.h"

#include "device/device.h"
#include "userkernel/compiler/user_program_parts.h"
#include <string.h>

/* Words of a part on the device at most, 1 MiB; and words of bins that a group has in local memory,
 * 16 KiB. */
enum { MOST_WORDS = 1 << 17, LOCAL_WORDS = 1 << 11 };

static int is_extreme(const qn__user_part *p) { return qn__user_use_is_extreme(p->use); }

uint64_t qn__user_device_sums_words(const qn__user_part *p) {
    return qn__user_total_words(p) + (is_extreme(p) ? 2 * QN__KERNEL_GROUPS : 0);
}

int qn__user_device_sums_part(const qn__user_part *p) {
    return p->use >= QN__USER_SUM && !(is_extreme(p) && p->bins > 0) &&
           qn__user_device_sums_words(p) <= MOST_WORDS;
}

/* ------------------------------------------------------------------ the program */

/* "f64", "f32", or "integers" with whether they have a sign; "count". */
static const char *kind_of(const qn__user_part *p) {
    return p->use == QN__USER_COUNT  ? "count"
           : p->type == QN__USER_F64 ? "f64"
           : p->type == QN__USER_F32 ? "f32"
                                     : "integers";
}

static const char *sign_of(const qn__user_part *p) {
    return p->use == QN__USER_COUNT || qn__user_type_is_real(p->type) ? ""
           : qn__user_type_is_signed(p->type)                         ? ", 1u"
                                                                      : ", 0u";
}

static void write_bins(const qn__user_part *p, qn__text *t) {
    const unsigned words = (unsigned)qn__user_device_sums_words(p);
    if (words > LOCAL_WORDS)
        qn__text_add(t, "    qn_bins_%s_global(words + at, values, marks, count%s);\n", kind_of(p),
                     sign_of(p));
    else
        qn__text_add(t,
                     "    QN_LOCAL qn_u64 own[%u];\n"
                     "    qn_clear_words(own, %uu);\n"
                     "    qn_bins_%s_local(own, values, marks, count%s);\n"
                     "    qn_add_words(words + at, own, %uu);\n",
                     words, words, kind_of(p), sign_of(p), words);
}

static void write_extreme(const qn__user_part *p, qn__text *t) {
    qn__text_add(
        t,
        "    QN_LOCAL qn_u64 board[2 * %d];\n    QN_LOCAL qn_u32 items[%d];\n"
        "    qn_extreme_%u(words + at, values, marks, first, count, QN_KEY_%s, %s, board,\n"
        "        items);\n",
        QN__KERNEL_LANES, QN__KERNEL_LANES, 8 * (unsigned)qn__user_type_size(p->type),
        qn__user_type_is_real(p->type)     ? "F"
        : qn__user_type_is_signed(p->type) ? "I"
                                           : "U",
        p->use == QN__USER_MAX ? "~(qn_u64)0" : "(qn_u64)0");
}

static void write_sum(const qn__user_part *p, qn__text *t) {
    qn__text_add(t, "    QN_LOCAL qn_u64 board[3 * %d];\n", QN__KERNEL_LANES);
    if (qn__user_type_is_real(p->type))
        qn__text_add(t,
                     "    QN_LOCAL qn_u32 tops[%d];\n    QN_LOCAL qn_u64 own[%d];\n"
                     "    qn_sum_%s(words + at, values, count, board, tops, own);\n",
                     QN__KERNEL_LANES, QN__EXACT_LIMBS, kind_of(p));
    else
        qn__text_add(t, "    qn_%s%s(words + at, values, count%s, board);\n",
                     p->use == QN__USER_COUNT ? "" : "sum_", kind_of(p), sign_of(p));
}

void qn__user_device_sums_write(const qn__user_part *p, qn__language language, qn__text *t) {
    qn__text_add(t, "%s%s#line 1 \"total\"\n", qn__exact_text(language), qn__totals_text());
    qn__text_add(t,
                 "QN_KERNEL(%d)\nqn_user_totals(QN_GLOBAL qn_u64 *words,\n"
                 "    QN_GLOBAL const qn_u%u *values,\n",
                 QN__KERNEL_LANES, 8 * (unsigned)qn__user_type_size(p->type));
    if (qn__user_is_marked(p))
        qn__text_add(t, "    QN_GLOBAL const qn_%s *marks,\n", p->bins > 0 ? "i32" : "u8");
    qn__text_add(t, "    qn_u64 at, qn_u64 first, qn_u32 count) {\n");
    if (p->bins > 0)
        write_bins(p, t);
    else if (is_extreme(p))
        write_extreme(p, t);
    else
        write_sum(p, t);
    qn__text_add(t, "}\n");
}

/* ------------------------------------------------------------------ the words */

/* The bytes of a number, at the lowest address, from its bits as an integer. */
static uint64_t bytes_of(qn__user_type type, int64_t word) {
    const uint64_t bits = (uint64_t)word;
    const uint8_t a = (uint8_t)bits;
    const uint16_t b = (uint16_t)bits;
    const uint32_t c = (uint32_t)bits;
    uint64_t value = 0;
    switch (qn__user_type_size(type)) {
    case 1:
        memcpy(&value, &a, sizeof a);
        return value;
    case 2:
        memcpy(&value, &b, sizeof b);
        return value;
    case 4:
        memcpy(&value, &c, sizeof c);
        return value;
    default:
        return bits;
    }
}

static void take_extreme(const qn__user_part *p, const int64_t *words, qn__user_total *total) {
    for (int g = 0; g < QN__KERNEL_GROUPS; g++)
        if (words[1 + 2 * g + 1] > 0)
            qn__user_total_offer(total, p, bytes_of(p->type, words[1 + 2 * g]),
                                 words[1 + 2 * g + 1] - 1);
}

void qn__user_device_sums_take(const qn__user_source *s, const int64_t *words,
                               qn__user_total *total) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_device_sums_part(p))
            continue;
        qn__user_total_take(&total[i], p, words);
        if (is_extreme(p))
            take_extreme(p, words, &total[i]);
        words += qn__user_device_sums_words(p);
    }
}
