/* The program of a kernel for a device. It is the C text of the kernel's functions, as for a
 * processor, in a frame of OpenCL C or CUDA C++. A lane computes one item.
 *
 *   arguments   a_NAME, an array; b_NAME, which items assigned it, or to which bin
 *   numbers     the extents, the iteration, the seed, scalars and lengths, as one array
 *   a lane      finds its item, calls the body, and stores results or a fault
 *
 * The first item with a fault is found by an atomic maximum of the complement of its number. That
 * item is then computed alone, which tells what is wrong with it. */
#include "userkernel/execution/user_device.h"

#include "userkernel/compiler/user_program_parts.h"
#include "userkernel/execution/user_device_sums.h"
#include "userkernel/execution/user_device_trial.h"
#include <string.h>

/* What to do where arrays do not fit on a device. */
#define SMALLER                                                                                    \
    "leave the device out, or declare INPUT in place of WHOLE or HALO where an item needs its "    \
    "own "                                                                                         \
    "number only"

/* ------------------------------------------------------------------ the program */

/* Where a part's scalar or lengths stand among the numbers: after the three extents, the iteration
 * and the seed. */
enum { ITERATION = QN__USER_DIMENSIONS, SEED, FIRST_OF_PARTS };

static uint32_t place_of(const qn__user_source *s, uint32_t part) {
    uint32_t at = FIRST_OF_PARTS;
    for (uint32_t i = 0; i < part; i++)
        at += s->part[i].use == QN__USER_SCALAR ? 1 : s->part[i].dimensions;
    return at;
}

static int is_array(const qn__user_part *p) { return p->use != QN__USER_SCALAR; }

static void write_arguments(const qn__user_source *s, qn__text *t) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (is_array(p))
            qn__text_add(t, "    QN_GLOBAL %s%s *QN_RESTRICT a_%s,\n",
                         qn__user_use_is_result(p->use) ? "" : "const ",
                         qn__user_type_word(p->type), p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, "    QN_GLOBAL %s *QN_RESTRICT b_%s,\n", qn__user_mark_of(p), p->name);
    }
}

/* Scalars and lengths. */
static void write_numbers(const qn__user_source *s, qn__text *t) {
    if (s->iteration[0] || s->has_random)
        qn__text_add(t, "    const int64_t iteration = (int64_t)qn_numbers[%d];\n", ITERATION);
    if (s->has_random)
        qn__text_add(t, "    const uint64_t seed = qn_numbers[%d];\n", SEED);
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        const unsigned at = place_of(s, i);
        const char *type = qn__user_type_word(p->type);
        if (p->use == QN__USER_SCALAR)
            qn__text_add(t, "    const %s u_%s = %s(qn_numbers[%u]);\n", type, p->name,
                         p->type == QN__USER_F64   ? "QN_DOUBLE_OF"
                         : p->type == QN__USER_F32 ? "QN_FLOAT_OF"
                                                   : "",
                         at);
        for (uint32_t d = 0; d < p->dimensions; d++)
            qn__text_add(t, "    const int64_t n_%s_%u = (int64_t)qn_numbers[%u];\n", p->name,
                         (unsigned)d, at + (unsigned)d);
    }
}

/* The place of an item in the space. A division of 64 bits takes long, so it is avoided. */
static void write_place(const qn__user_source *s, qn__text *t) {
    qn__text_add(t, "    const int64_t e0 = (int64_t)qn_numbers[0], e1 = (int64_t)qn_numbers[1];\n"
                    "    const int64_t e2 = (int64_t)qn_numbers[2];\n"
                    "    const uint64_t qn_item = (uint64_t)item;\n");
    if (s->dimensions == 1)
        qn__text_add(t, "    const int64_t i2 = (int64_t)qn_item, i1 = 0, i0 = 0;\n");
    else
        qn__text_add(t, "    const uint64_t qn_row = qn_quotient(qn_item, (uint64_t)e2);\n"
                        "    const int64_t i2 = (int64_t)(qn_item - qn_row * (uint64_t)e2);\n");
    if (s->dimensions == 2)
        qn__text_add(t, "    const int64_t i1 = (int64_t)qn_row, i0 = 0;\n");
    if (s->dimensions == 3)
        qn__text_add(t, "    const uint64_t qn_plane = qn_quotient(qn_row, (uint64_t)e1);\n"
                        "    const int64_t i1 = (int64_t)(qn_row - qn_plane * (uint64_t)e1);\n"
                        "    const int64_t i0 = (int64_t)qn_plane;\n");
    if (!qn__user_has_halo(s))
        return;
    const uint32_t reach = qn__user_halo_reach(s), last = QN__USER_DIMENSIONS - 1;
    qn__text_add(t, "    const int last = i%u >= %u && i%u < e%u - %u;\n    const int inner = 1",
                 (unsigned)last, (unsigned)reach, (unsigned)last, (unsigned)last, (unsigned)reach);
    for (uint32_t d = QN__USER_DIMENSIONS - s->dimensions; d < last; d++)
        qn__text_add(t, " && i%u >= %u && i%u < e%u - %u", (unsigned)d, (unsigned)reach,
                     (unsigned)d, (unsigned)d, (unsigned)reach);
    qn__text_add(t, ";\n");
}

/* The numbers of a result to its array, and whether one is NaN. */
static void write_numbers_of(const qn__user_part *p, uint32_t part, qn__text *t) {
    char result[QN__USER_NUMBER_NAME];
    for (uint32_t c = 0; c < qn__user_part_numbers(p); c++) {
        qn__user_name_number(p, c, result);
        if (qn__user_type_is_real(p->type))
            qn__text_add(t, "    fault |= %s != %s ? QN_FAULT_NAN(%u) : 0;\n", result, result,
                         (unsigned)part);
        qn__text_add(t, "    ");
        qn__user_write_store(p, p->use == QN__USER_OUTPUT ? "QN_AT(item)" : "qn_lane_item", c, t);
    }
}

/* Results to their arrays, and faults. */
static void write_ends(const qn__user_source *s, qn__text *t) {
    qn__text_add(t, "    uint64_t infinite = 0;\n"); /* QN__USER_FAULT_INFINITE */
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        write_numbers_of(p, i, t);
        if (p->use == QN__USER_SUM && qn__user_type_is_real(p->type))
            qn__text_add(t,
                         "    if (infinite == 0 && !(o_%s - o_%s == 0))\n"
                         "        infinite = (uint64_t)1 << 63 | %uu;\n",
                         p->name, p->name, (unsigned)i);
        if (qn__user_is_marked(p))
            qn__text_add(t, "    b_%s[qn_lane_item] = h_%s;\n", p->name, p->name);
    }
    qn__text_add(t, "    fault = fault != 0 ? fault : infinite;\n"
                    "    if (fault != 0) {\n"
                    "        qn_atomic_max(&qn_faults[0], ~qn_lane_item);\n"
                    "        if (qn_count == 1u) {\n"
                    "            qn_faults[1] = (qn_u32)fault;\n"
                    "            qn_faults[2] = (qn_u32)(fault >> 32);\n"
                    "        }\n    }\n}\n");
}

static void write_kernel(const qn__user_source *s, qn__text *t) {
    qn__text_add(t,
                 "#line 1 \"items\"\n"
                 "QN_INLINE uint64_t qn_quotient(uint64_t a, uint64_t b) {\n"
                 "    return (a | b) >> 32 == 0 ? (uint32_t)a / (uint32_t)b : a / b;\n}\n"
                 "QN_KERNEL(%d)\nqn_user_items(QN_GLOBAL qn_u32 *qn_faults,\n"
                 "    QN_GLOBAL const qn_u64 *qn_numbers,\n",
                 QN__KERNEL_LANES);
    write_arguments(s, t);
    qn__text_add(t,
                 "    qn_u64 qn_place, qn_u64 qn_first, qn_u32 qn_count) {\n"
                 "    const qn_u32 qn_lane_item = qn_group(0) * %du + qn_lane();\n"
                 "    if (qn_lane_item >= qn_count)\n        return;\n"
                 "    const int64_t item = (int64_t)(qn_first + qn_lane_item), k = 0;\n"
                 "    const int64_t qn_shift = (int64_t)(qn_first - qn_place);\n"
                 "    uint64_t fault = QN_FAULT_UNKNOWN(qn_first);\n",
                 QN__KERNEL_LANES);
    write_place(s, t);
    write_numbers(s, t);
    qn__user_write_results(s, t);
    qn__user_write_call(s, "&fault", qn__user_has_halo(s) ? "inner, last" : "0, 0", t);
    write_ends(s, t);
}

void qn__user_device_write(const qn__user_source *s, qn__language language, qn__text *out) {
    qn__text_add(out, "%s", s->has_math ? qn__math_text(language) : qn__exact_text(language));
    if (s->has_random)
        qn__text_add(out, "#define QN_DRAWS_NORMAL %d\n%s", s->has_math, qn__user_random_text());
    qn__text_add(out, "%s", qn__operations_text());
    qn__user_write_readers(s, out);
    qn__user_write_parameters(s, out);
    qn__text_add(out, "%s", s->functions.data ? s->functions.data : "");
    write_kernel(s, out);
}

/* ------------------------------------------------------------------ its arrays */

/* A scalar as an unsigned number of 64 bits, its own bits lowest. */
static uint64_t number_of(qn__user_type type, const void *scalar) {
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    switch (qn__user_type_size(type)) {
    case 1:
        memcpy(&a, scalar, sizeof a);
        return a;
    case 2:
        memcpy(&b, scalar, sizeof b);
        return b;
    case 4:
        memcpy(&c, scalar, sizeof c);
        return c;
    default:
        memcpy(&d, scalar, sizeof d);
        return d;
    }
}

static qn__kernel_use use_of(const qn__user_part *p) {
    return p->use == QN__USER_INPUT                                ? QN__KERNEL_READ
           : p->use == QN__USER_WHOLE || p->use == QN__USER_HALOED ? QN__KERNEL_WHOLE
           : p->use == QN__USER_OUTPUT                             ? QN__KERNEL_WRITTEN
                                                                   : QN__KERNEL_VALUES;
}

static void add_array(qn__user_device *d, qn__kernel_array array, uint32_t of) {
    d->of[d->job.arrays] = of;
    d->array[d->job.arrays++] = array;
}

static void add_part(qn__user_device *d, const qn__user_part *p, uint32_t part) {
    const int summed = qn__user_device_sums_part(p);
    if (summed) {
        qn__kernel_total *total = &d->total[d->job.totals++];
        total->array = d->job.arrays;
        total->arrays = 1 + (qn__user_is_marked(p) != 0);
        total->word = d->job.total_words;
        total->words = qn__user_device_sums_words(p);
        total->part = p;
        total->sample = qn__user_device_trial_sample;
        total->check = qn__user_device_trial_check;
        d->job.total_words += total->words;
    }
    add_array(d,
              (qn__kernel_array){.use = use_of(p), .each = qn__user_part_each(p), .summed = summed},
              part);
    const uint32_t mark = p->bins > 0 ? sizeof(int32_t) : 1;
    if (qn__user_is_marked(p))
        add_array(d, (qn__kernel_array){.use = QN__KERNEL_VALUES, .each = mark, .summed = summed},
                  QN__USER_PARTS + part);
}

/* What an output of the iteration before became has other numbers in each iteration. */
static int is_carried(const qn__user_source *s, uint32_t part) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_OUTPUT && s->part[i].next == part + 1)
            return 1;
    return 0;
}

static void bind_array(const qn__user_source *s, const qn__user_call *call, uint32_t part,
                       qn__kernel_array *a) {
    const qn__user_part *p = &s->part[part];
    uint64_t numbers = 1;
    for (uint32_t i = 0; i < QN__USER_DIMENSIONS; i++)
        numbers *= p->use != QN__USER_WHOLE ? (uint64_t)call->extent[i]
                   : i < p->dimensions      ? (uint64_t)call->length[part * QN__USER_DIMENSIONS + i]
                                            : 1;
    a->bytes = a->use == QN__KERNEL_WHOLE ? numbers * a->each : 0;
    a->data = a->use == QN__KERNEL_VALUES ? NULL : call->array[part];
    a->back = is_carried(s, part) && call->iteration > 0 ? call->array[part] : NULL;
    /* What is carried on has the number of the iteration that reads it. */
    a->version = p->use == QN__USER_OUTPUT && p->next ? (uint64_t)call->iteration + 1
                 : is_carried(s, part)                ? (uint64_t)call->iteration
                                                      : 0;
}

void qn__user_device_bind(const qn__user_source *s, const qn__user_call *call, qn__user_device *d) {
    uint32_t at = FIRST_OF_PARTS;
    d->numbers[ITERATION] = (uint64_t)call->iteration;
    d->numbers[SEED] = call->seed;
    for (uint32_t i = 0; i < QN__USER_DIMENSIONS; i++)
        d->numbers[i] = (uint64_t)call->extent[i];
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (p->use == QN__USER_SCALAR)
            d->numbers[at++] = number_of(p->type, call->scalar[i]);
        for (uint32_t k = 0; k < p->dimensions; k++)
            d->numbers[at++] = (uint64_t)call->length[QN__USER_DIMENSIONS * i + k];
    }
    d->job.count = at;
    d->job.items =
        (uint64_t)call->extent[0] * (uint64_t)call->extent[1] * (uint64_t)call->extent[2];
    for (uint32_t i = 0; i < d->job.arrays; i++)
        if (d->of[i] < QN__USER_PARTS)
            bind_array(s, call, d->of[i], &d->array[i]);
}

/* The programs for one language. 0: no memory. */
static int write_texts(const qn__user_source *s, qn__language language, qn__user_device *out) {
    qn__text *items = &out->text[language];
    qn__user_device_write(s, language, items);
    out->job.text[language] = items->data;
    int failed = items->failed;
    for (uint32_t i = 0, n = 0; i < s->parts; i++) {
        if (!qn__user_device_sums_part(&s->part[i]))
            continue;
        qn__text *text = &out->total_text[language][n];
        qn__user_device_sums_write(&s->part[i], language, text);
        out->total[n++].text[language] = text->data;
        failed |= text->failed;
    }
    return !failed;
}

qn_status qn__user_device_make(const qn__user_source *s, qn__user_device *out, qn_error *err) {
    *out = (qn__user_device){.job = {.doubles = s->has_doubles, .smaller = SMALLER}};
    for (int language = 0; language < 2; language++)
        if (!write_texts(s, (qn__language)language, out)) {
            qn__user_device_release(out);
            return qn__fail_memory(err, 1, out->text[language].size);
        }
    for (uint32_t i = 0; i < s->parts; i++)
        if (is_array(&s->part[i]))
            add_part(out, &s->part[i], i);
    out->job.array = out->array;
    out->job.total = out->total;
    out->job.numbers = out->numbers;
    return QN_OK;
}

void qn__user_device_release(qn__user_device *d) {
    for (int language = 0; language < 2; language++) {
        qn__text_release(&d->text[language]);
        for (uint32_t i = 0; i < QN__USER_PARTS; i++)
            qn__text_release(&d->total_text[language][i]);
    }
}
