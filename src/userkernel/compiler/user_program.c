/* The functions and loops around a kernel's body. The body is inlined into a loop over items that
 * follow one another in the last dimension, so that a compiler can use its vectors. Where a kernel
 * calls functions of math_common.inc, a second loop is for items that have common arguments only:
 * see user_common.inc. Where neighbours are read there are two functions: for rows whose neighbours
 * all exist (inner), and for the others (rim). In both the few items at the ends of a row have a
 * loop of their own. */
#include "userkernel/compiler/user_program.h"

#include "user_text.h"
#include "userkernel/compiler/user_common.h"
#include "userkernel/compiler/user_lanes.h"
#include "userkernel/compiler/user_program_parts.h"

/* ------------------------------------------------------------------ reading arrays */

/* g_NAME(array, lengths, indices): a number of a whole array. */
static void write_whole(const qn__user_part *p, uint32_t part, qn__text *t) {
    const char *type = qn__user_type_word(p->type);
    qn__text_add(t, "QN_INLINE %s g_%s(QN_FOUND *qn_fault, QN_GLOBAL const %s *a", type, p->name,
                 type);
    for (uint32_t d = 0; d < p->dimensions; d++)
        qn__text_add(t, ", int64_t n%u, int64_t i%u", (unsigned)d, (unsigned)d);
    qn__text_add(t, ") {\n    const int bad = 0");
    for (uint32_t d = 0; d < p->dimensions; d++)
        qn__text_add(t, " || i%u < 0 || i%u >= n%u", (unsigned)d, (unsigned)d, (unsigned)d);
    qn__text_add(t,
                 ";\n    *qn_fault |= -(QN_FOUND)bad & (QN_FOUND)QN_FAULT_READ(%u);\n    return "
                 "bad ? 0 : a[",
                 (unsigned)part);
    for (uint32_t d = 1; d < p->dimensions; d++)
        qn__text_add(t, "(");
    qn__text_add(t, "i0");
    for (uint32_t d = 1; d < p->dimensions; d++)
        qn__text_add(t, ") * n%u + i%u", (unsigned)d, (unsigned)d);
    qn__text_add(t, "];\n}\n#define p_%s(", p->name);
    for (uint32_t d = 0; d < p->dimensions; d++)
        qn__text_add(t, "%si%u", d > 0 ? ", " : "", (unsigned)d);
    qn__text_add(t, ") g_%s(qn_fault, a_%s", p->name, p->name);
    for (uint32_t d = 0; d < p->dimensions; d++)
        qn__text_add(t, ", n_%s_%u, i%u", p->name, (unsigned)d, (unsigned)d);
    qn__text_add(t, ")\n");
}

/* Where an item is in an array: its indices are i0, i1, i2 or j0, j1, j2, from `first` on. */
static void write_position(uint32_t first, const char *index, qn__text *t) {
    for (uint32_t d = first + 1; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, "(");
    qn__text_add(t, "%s%u", index, (unsigned)first);
    for (uint32_t d = first + 1; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, ") * n%u + %s%u", (unsigned)d, index, (unsigned)d);
}

/* g_NAME(array, whether all neighbours exist, whether they do in the last dimension, item,
 * offsets): the number of a neighbour. */
static void write_haloed(const qn__user_source *s, const qn__user_part *p, uint32_t part,
                         qn__text *t) {
    static const char *const borders[] = {"zero", "nearest", "wrap"};
    const char *type = qn__user_type_word(p->type);
    const uint32_t first = QN__USER_DIMENSIONS - s->dimensions;
    qn__text_add(t,
                 "QN_INLINE %s g_%s(QN_FOUND *qn_fault, QN_GLOBAL const %s *a, int inner, int last",
                 type, p->name, type);
    for (uint32_t d = first; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, ", int64_t n%u, int64_t i%u, int64_t d%u", (unsigned)d, (unsigned)d,
                     (unsigned)d);
    qn__text_add(t, ") {\n    const int bad = 0");
    for (uint32_t d = first; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, " || d%u < -%u || d%u > %u", (unsigned)d, (unsigned)p->halo, (unsigned)d,
                     (unsigned)p->halo);
    qn__text_add(t, ";\n    *qn_fault |= -(QN_FOUND)bad & (QN_FOUND)QN_FAULT_READ(%u);\n",
                 (unsigned)part);
    for (uint32_t d = first; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t,
                     "    const int64_t j%u = bad ? i%u : %s ? i%u + d%u : "
                     "qn_neighbour_%s(i%u + d%u, n%u);\n",
                     (unsigned)d, (unsigned)d, d + 1 < QN__USER_DIMENSIONS ? "inner" : "last",
                     (unsigned)d, (unsigned)d, borders[p->border], (unsigned)d, (unsigned)d,
                     (unsigned)d);
    /* A load that always takes place can go into a vector. It takes the item itself: of several
     * iterations at once, rows far away are not in memory. */
    qn__text_add(t, "    const int outside = !last && j2 < 0");
    for (uint32_t d = first; d + 1 < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, " || (!inner && j%u < 0)", (unsigned)d);
    qn__text_add(t, ";\n    const %s x = a[outside ? ", type);
    write_position(first, "i", t);
    qn__text_add(t, " : ");
    write_position(first, "j", t);
    qn__text_add(t, "];\n    return outside ? 0 : x;\n}\n#define p_%s(", p->name);
    for (uint32_t d = first; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, "%sd%u", d > first ? ", " : "", (unsigned)d);
    qn__text_add(t, ") g_%s(qn_fault, a_%s, qn_inner, qn_last", p->name, p->name);
    for (uint32_t d = first; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, ", qn_n%u, qn_i%u, d%u", (unsigned)d, (unsigned)d, (unsigned)d);
    qn__text_add(t, ")\n");
}

void qn__user_write_readers(const qn__user_source *s, qn__text *t) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (p->use == QN__USER_WHOLE)
            write_whole(p, i, t);
        else if (p->use == QN__USER_HALOED)
            write_haloed(s, p, i, t);
        else if (qn__user_use_is_result(p->use))
            qn__text_add(t, "#define p_%s (*o_%s)\n", p->name, p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, "#define t_%s (*h_%s)\n", p->name, p->name);
    }
}

/* ------------------------------------------------------------------ the body */

void qn__user_write_parameters(const qn__user_source *s, qn__text *t) {
    qn__text_add(t,
                 "#define QN_BODY QN_INLINE void qn_body(QN_FOUND *qn_fault, const int qn_inner, "
                 "const int qn_last");
    if (s->has_random)
        qn__text_add(t, ", const qn_draws qn_draw");
    for (uint32_t d = 0; d < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, ", const int64_t qn_n%u, const int64_t qn_i%u", (unsigned)d, (unsigned)d);
    for (uint32_t d = 0; d < s->dimensions; d++)
        qn__text_add(t, ", const int64_t u_%s", s->index[d]);
    for (uint32_t d = 0; d < s->dimensions && s->extent[0][0]; d++)
        qn__text_add(t, ", const int64_t u_%s", s->extent[d]);
    if (s->iteration[0])
        qn__text_add(t, ", const int64_t u_%s", s->iteration);
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        const char *type = qn__user_type_word(p->type);
        if (p->use == QN__USER_INPUT || p->use == QN__USER_SCALAR)
            qn__text_add(t, ", const %s u_%s", type, p->name);
        else if (!qn__user_use_is_result(p->use))
            qn__text_add(t, ", QN_GLOBAL const %s *QN_ALONE a_%s", type, p->name);
        else
            qn__text_add(t, ", %s *o_%s", type, p->name);
        for (uint32_t d = 0; d < p->dimensions; d++)
            qn__text_add(t, ", const int64_t n_%s_%u", p->name, (unsigned)d);
        if (qn__user_is_marked(p))
            qn__text_add(t, ", %s *h_%s", qn__user_mark_of(p), p->name);
    }
    qn__text_add(t, ")\n");
}

/* ------------------------------------------------------------------ the loops */

typedef enum loop_kind { PLAIN, COMMON, RIM, INNER } loop_kind;

/* The arrays as parameters of a loop, and where they come from: compilers trust `restrict` only
 * there, and without it they do not use vectors for loops over many arrays. */
static void write_arrays(const qn__user_source *s, qn__text *t) {
    qn__text_add(t, "#define QN_ARRAYS ");
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (p->use != QN__USER_SCALAR)
            qn__text_add(t, ", %s%s *restrict a_%s", qn__user_use_is_result(p->use) ? "" : "const ",
                         qn__user_type_word(p->type), p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, ", %s *restrict b_%s", qn__user_mark_of(p), p->name);
    }
    qn__text_add(t, "\n#define QN_THEIR_ARRAYS ");
    for (uint32_t i = 0; i < s->parts; i++) {
        if (s->part[i].use != QN__USER_SCALAR)
            qn__text_add(t, ", c->array[%u]", (unsigned)i);
        if (qn__user_is_marked(&s->part[i]))
            qn__text_add(t, ", c->array[%u]", (unsigned)(QN__USER_PARTS + i));
    }
    qn__text_add(t, "\n");
}

/* Takes scalars and lengths from the call. */
static void write_locals(const qn__user_source *s, qn__text *t) {
    if (s->iteration[0] || s->has_random)
        qn__text_add(t, "    const int64_t iteration = c->iteration;\n");
    if (s->has_random)
        qn__text_add(t, "    const uint64_t seed = c->seed;\n");
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        const char *type = qn__user_type_word(p->type);
        const int result = qn__user_use_is_result(p->use);
        if (p->use == QN__USER_SCALAR)
            qn__text_add(t, "    const %s u_%s = *(const %s *)c->scalar[%u];\n", type, p->name,
                         type, (unsigned)i);
        for (uint32_t d = 0; d < p->dimensions; d++)
            qn__text_add(t, "    const int64_t n_%s_%u = c->length[%u];\n    QN_LENGTH(n_%s_%u);\n",
                         p->name, (unsigned)d, (unsigned)(QN__USER_DIMENSIONS * i + d), p->name,
                         (unsigned)d);
        if (result && qn__user_type_is_real(p->type))
            qn__user_write_check_begin(s, i, t);
    }
}

void qn__user_write_call(const qn__user_source *s, const char *fault, const char *inner,
                         qn__text *t) {
    qn__text_add(t, "        qn_body(%s, %s", fault, inner);
    if (s->has_random)
        qn__text_add(t, ", qn_draws_of(seed, (uint64_t)iteration, (uint64_t)(item + k))");
    qn__text_add(t, ", e0, i0, e1, i1, e2, i2 + k");
    for (uint32_t d = 0; d < s->dimensions; d++) {
        const uint32_t own = QN__USER_DIMENSIONS - s->dimensions + d;
        qn__text_add(t, ", i%u%s", (unsigned)own, own + 1 == QN__USER_DIMENSIONS ? " + k" : "");
    }
    for (uint32_t d = 0; d < s->dimensions && s->extent[0][0]; d++)
        qn__text_add(t, ", e%u", (unsigned)(QN__USER_DIMENSIONS - s->dimensions + d));
    if (s->iteration[0])
        qn__text_add(t, ", iteration");
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (p->use == QN__USER_INPUT)
            qn__text_add(t, ", a_%s[QN_AT(item + k)]", p->name);
        else
            qn__text_add(t, ", %s%s",
                         p->use == QN__USER_SCALAR         ? "u_"
                         : !qn__user_use_is_result(p->use) ? "a_"
                         : p->components > 0               ? "o_"
                                                           : "&o_",
                         p->name);
        for (uint32_t d = 0; d < p->dimensions; d++)
            qn__text_add(t, ", n_%s_%u", p->name, (unsigned)d);
        if (qn__user_is_marked(p))
            qn__text_add(t, ", &h_%s", p->name);
    }
    qn__text_add(t, ");\n");
}

void qn__user_write_results(const qn__user_source *s, qn__text *t) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (p->components > 0)
            qn__text_add(t, "        %s o_%s[%u] = {0};\n", qn__user_type_word(p->type), p->name,
                         (unsigned)p->components);
        else if (qn__user_use_is_result(p->use))
            qn__text_add(t, "        %s o_%s = 0;\n", qn__user_type_word(p->type), p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, "        %s h_%s = %d;\n", qn__user_mark_of(p), p->name,
                         p->bins > 0 ? -1 : 0);
    }
}

static void write_loop(const qn__user_source *s, const char *from, const char *to, int few,
                       const char *inside, qn__text *t) {
    qn__text_add(t, "    for (int64_t k = %s; k < %s; k++) {\n%s", from, to,
                 few ? "        __asm__ volatile(\"\");\n" : "");
    qn__user_write_results(s, t);
    qn__user_write_call(s, "fault", inside, t);
    qn__user_write_stores(s, "k", t);
    qn__text_add(t, "    }\n");
}

/* Computes the items from `from` to `to` of a row, counted from i2. `inside`: see
 * qn__user_write_readers. Near the ends of a row are `few` items, for which the checks around
 * vectors would take longer than the items: the empty statement keeps a compiler from using them.
 */
static void write_items(const qn__user_source *s, const char *from, const char *to, int few,
                        const char *inside, qn__text *t) {
    if (s->tree.lanes) {
        qn__text_add(t, "#if QV_USED\n");
        qn__user_lanes_write_items(s, from, to, inside, t);
        qn__text_add(t, "#else\n");
    }
    write_loop(s, from, to, few, inside, t);
    qn__text_add(t, "%s", s->tree.lanes ? "#endif\n" : "");
}

/* An output whose stores are worth to be aligned: a vector of 16 items reaches the next cache line.
 * A long text takes more time for each item than a store. QN__USER_PARTS: there is none. */
static uint32_t part_to_align(const qn__user_source *s) {
    enum { SHORT = 4096 };
    for (uint32_t i = 0; i < s->parts && !s->tree.lanes && s->functions.size < SHORT; i++)
        if (s->part[i].use == QN__USER_OUTPUT && s->part[i].components == 0 &&
            qn__user_type_size(s->part[i].type) >= 4)
            return i;
    return QN__USER_PARTS;
}

/* Computes the items that have all neighbours. They begin with the second one of a row, and so each
 * vector's store would be in two cache lines. Therefore some items are computed twice: in a vector
 * at the beginning, and in those after it, which are aligned. */
static void write_inner_items(const qn__user_source *s, qn__text *t) {
    const uint32_t part = part_to_align(s);
    if (part == QN__USER_PARTS) {
        write_items(s, "from - i2", "to - i2", 0, "1, 1", t);
        return;
    }
    qn__text_add(
        t,
        "    int64_t at = from - i2;\n"
        "    if (to - from >= 64) {\n"
        "    const int64_t ahead = QN_AHEAD(&a_%s[item + at]), head = ahead ? at + 16 : at;\n",
        s->part[part].name);
    write_loop(s, "at", "head", 0, "1, 1", t);
    qn__text_add(t, "    at += ahead;\n    }\n");
    write_loop(s, "at", "to - i2", 0, "1, 1", t);
}

/* The items from i2 to `end` of rows that follow one another; those from `from` to `to` have all
 * neighbours in the last dimension. One call for many rows: a short row takes less than a call. */
static void write_rows(const qn__user_source *s, loop_kind kind, qn__text *t) {
    static const char *const names[] = {"qn_plain", "qn_common", "qn_rim", "qn_inner"};
    const char *name = names[kind];
    qn__text_add(t,
                 "static __attribute__((noinline)) uint64_t %s_loop(const struct qn_user_call *c,\n"
                 "    int64_t i0, int64_t i1, int64_t rows, int64_t i2, int64_t from, int64_t to,\n"
                 "    int64_t end, int64_t item, int64_t done QN_ARRAYS) {\n"
                 "    const int64_t e0 = c->extent[0], e1 = c->extent[1], e2 = c->extent[2];\n"
                 "    QN_LENGTH(e0); QN_LENGTH(e1); QN_LENGTH(e2);\n"
                 "    QN_FOUND fault[] = {0, 0, %d};\n",
                 name, kind == COMMON);
    write_locals(s, t);
    qn__text_add(t, "    for (; rows > 0; rows--, i1++, item += end - i2, done += end - i2) {\n");
    if (kind >= RIM)
        write_items(s, "0", "from - i2", 1, kind == RIM ? "0, 0" : "1, 0", t);
    if (kind == INNER)
        write_inner_items(s, t);
    else
        write_items(s, "from - i2", "to - i2", 0, "0, 1", t);
    if (kind >= RIM)
        write_items(s, "to - i2", "end - i2", 1, kind == RIM ? "0, 0" : "1, 0", t);
    qn__text_add(t, "    }\n    uint64_t found = fault[0];\n");
    for (uint32_t i = 0; i < s->parts; i++)
        if (qn__user_use_is_result(s->part[i].use) && qn__user_type_is_real(s->part[i].type))
            qn__user_write_check_end(s, i, t);
    qn__text_add(t, "    return found | (fault[1] & QN_FAULT_RARE);\n}\n");
    if (kind == COMMON)
        return;
    if (kind == PLAIN && qn__user_has_common(s)) {
        qn__text_add(t, "QN_PLAIN\n");
        return;
    }
    qn__text_add(t,
                 "static uint64_t %s(const struct qn_user_call *c, int64_t i0, int64_t i1,\n"
                 "    int64_t rows, int64_t i2, int64_t from, int64_t to, int64_t end,\n"
                 "    int64_t item, int64_t done) {\n"
                 "    return %s_loop(c, i0, i1, rows, i2, from, to, end, item, done\n"
                 "                   QN_THEIR_ARRAYS);\n}\n",
                 name, name);
}

/* Cuts a row into what is near its ends and the rest, and takes the rows after it with it that are
 * cut in the same way. */
static void write_row_cuts(const qn__user_source *s, qn__text *t) {
    const unsigned reach = (unsigned)qn__user_halo_reach(s);
    qn__text_add(t, "        const int inner = 1");
    for (uint32_t d = QN__USER_DIMENSIONS - s->dimensions; d + 1 < QN__USER_DIMENSIONS; d++)
        qn__text_add(t, " && i%u >= %u && i%u < c->extent[%u] - %u", (unsigned)d, reach,
                     (unsigned)d, (unsigned)d, reach);
    qn__text_add(t,
                 ";\n        const int64_t last = c->extent[2] - %u;\n"
                 "        int64_t from = i2 < %u ? %u : i2, to = i2 + n < last ? i2 + n : last;\n"
                 "        from = from < i2 + n ? from : i2 + n;\n"
                 "        to = to > from ? to : from;\n",
                 reach, reach, reach);
    if (s->dimensions > 1)
        qn__text_add(
            t,
            "        const int64_t alike = c->extent[1] - %u - i1, left = (count - done) / n;\n"
            "        if (inner && n == c->extent[2])\n"
            "            rows = alike < left ? alike : left;\n",
            reach);
    qn__text_add(t,
                 "        fault |= %s(c, i0, i1, rows, i2, from, to, i2 + n,\n"
                 "                    first + done, done);\n",
                 s->dimensions > 1 ? "(inner ? qn_inner : qn_rim)" : "qn_inner");
}

static void write_grain(const qn__user_source *s, qn__text *t) {
    qn__text_add(
        t, "uint64_t qn_user_grain(const struct qn_user_call *c, int64_t first, int64_t count);\n"
           "uint64_t qn_user_grain(const struct qn_user_call *c, int64_t first, int64_t count)\n"
           "{\n    uint64_t fault = 0;\n"
           "    const int64_t row = first / c->extent[2];\n"
           "    int64_t i0 = row / c->extent[1], i1 = row %% c->extent[1];\n"
           "    int64_t i2 = first %% c->extent[2];\n"
           "    for (int64_t done = 0, n, rows; done < count; done += n * rows) {\n"
           "        rows = 1;\n"
           "        n = c->extent[2] - i2 < count - done ? c->extent[2] - i2 : count - done;\n");
    if (qn__user_has_halo(s))
        write_row_cuts(s, t);
    else
        qn__text_add(t, "        fault |= qn_plain(c, i0, i1, rows, i2, i2, i2 + n, i2 + n,\n"
                        "                          first + done, done);\n");
    qn__text_add(t, "        i2 = 0;\n        i1 += rows;\n        i0 += i1 >= c->extent[1];\n"
                    "        i1 = i1 >= c->extent[1] ? 0 : i1;\n"
                    "    }\n    return fault;\n}\n");
}

/* The functions of docs/exactness.md, section 21, random numbers, and what these texts need of C.
 * Inlined, they go with the loop into vectors. */
static void write_functions(const qn__user_source *source, qn__text *t) {
    qn__text_add(t, "#include <math.h>\n#include <string.h>\ntypedef uint32_t qn_u32;\n"
                    "typedef int32_t qn_i32;\ntypedef uint64_t qn_u64;\ntypedef int64_t qn_i64;\n");
    qn__text_add(t, "%s", qn__text_user_words);
    qn__text_add(t, "#undef QN_FN\n#define QN_FN QN_INLINE\n");
    if (source->has_math)
        qn__text_add(t, "%s#define QN_DRAWS_NORMAL 1\n", qn__text_user_math);
    if (source->has_random)
        qn__text_add(t, "%s", qn__text_user_random);
    if (source->has_math && (source->tree.lanes || qn__user_has_common(source)))
        qn__text_add(t, "%s", qn__text_user_math_common);
    if (qn__user_has_common(source))
        qn__text_add(t, "%s", qn__text_user_common);
}

const char *qn__user_random_text(void) { return qn__text_user_random; }

void qn__user_program_write(const qn__user_source *source, qn__text *out) {
    /* What is found of a single item has 32 bits; user_common.inc also notes rare arguments. */
    qn__text_add(out, "#define QN_FOUND uint%d_t\n%s", qn__user_has_common(source) ? 64 : 32,
                 qn__text_user_prelude);
    if (source->has_math || source->has_random)
        write_functions(source, out);
    qn__user_write_readers(source, out);
    qn__user_write_parameters(source, out);
    qn__text_add(out, "%s", source->functions.data ? source->functions.data : "");
    if (source->tree.lanes)
        qn__user_lanes_write_body(source, out);
    qn__text_add(out, "#line 1 \"loops\"\n");
    write_arrays(source, out);
    if (qn__user_has_halo(source) && source->dimensions > 1)
        write_rows(source, RIM, out);
    if (qn__user_has_common(source))
        write_rows(source, COMMON, out);
    write_rows(source, qn__user_has_halo(source) ? INNER : PLAIN, out);
    write_grain(source, out);
}
