/* RECURRENT_* (docs/exactness.md 25.34 to 25.36): states of positions that follow one another. A
 * lane has a channel of an item at one position; a launch is a step from one position to the next.
 * `moments` has arrays of all rows, each [rows][ld(width)]: four gates, or three and q, which
 * become errors; the states; the cells. Last comes what is carried backward, [items][ld(width)].
 *
 * Of sequences that grow, `moments` has two rows of each sequence in place of all rows. Positions
 * have them in turn, so no lane overwrites what another one still reads. A launch computes the rows
 * before which the pass has `at` others of their sequence. */
#define QN_STATES 4u
#define QN_CELLS 5u
#define QN_CARRIES 6u

/* A layer's arrays, and the item of a lane at a step. */
typedef struct qn_recurrent {
    qn_pixel p;
    qn_u64 array;                /* numbers of one array */
    qn_u32 pixels, width, gates; /* width: channels of a state */
    qn_u32 ld, item, n, length, reverse;
    qn_u32 sequences, sequence; /* that grow: how many, and the item's; 0: items are whole */
} qn_recurrent;

QN_FN qn_recurrent qn_recurrent_of(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *taps,
                                   QN_GLOBAL const float *items, qn_u32 tokens, qn_u32 inputs,
                                   qn_u32 gates, qn_u32 reverse) {
    qn_recurrent r;
    r.pixels = taps->height * taps->width;
    r.gates = gates;
    r.width = taps->channels / gates;
    r.ld = qn_ld(r.width);
    r.sequences = step->sequences;
    r.sequence = 0u;
    r.array =
        (r.sequences != 0u ? 2u * (qn_u64)r.sequences : (qn_u64)step->items * r.pixels) * r.ld;
    r.item = qn_sixteen_of(r.ld).row;
    r.n = qn_sixteen_of(r.ld).column;
    r.reverse = reverse;
    r.length = 0u;
    if (r.item < step->items) {
        r.p = qn_item_pixel(step, r.item);
        r.length = qn_length_of(items, tokens, inputs, r.p.begin + r.p.item, r.pixels);
    }
    return r;
}

/* The position of a step. Those after the length come last. */
QN_FN qn_u32 qn_recurrent_at(const qn_recurrent *r, qn_u32 step) {
    return r->reverse != 0u && step < r->length ? r->length - 1u - step : step;
}

QN_FN qn_u64 qn_recurrent_row(const qn_recurrent *r, qn_u32 step) {
    if (r->sequences != 0u)
        return ((qn_u64)(step & 1u) * r->sequences + r->sequence) * r->ld;
    return (qn_u64)qn_row_of(r->p, r->pixels, qn_recurrent_at(r, step)) * r->ld;
}

/* The array with a gate's part of the products. */
QN_FN qn_u32 qn_recurrent_product(const qn_recurrent *r, qn_u32 gate) {
    return r->gates == 3u && gate == 2u ? 3u : gate;
}

/* The chain of the states before for a gate, from `acc` on. */
QN_FN float qn_recurrent_chain(const qn_recurrent *r, QN_GLOBAL const float *states,
                               QN_GLOBAL const float *weights, qn_u32 gate, qn_u32 step,
                               float acc) {
    if (step == 0u)
        return acc;
    const qn_u64 from = qn_recurrent_row(r, step - 1u);
    QN_ROLLED
    for (qn_u32 k = 0u; k < r->width; ++k)
        acc = qn_fma(states[from + k], weights[(qn_u64)(gate * r->width + k) * r->ld + r->n], acc);
    return acc;
}

QN_FN float qn_recurrent_slope(float y) { return y * (1.0f - y); }

/* The state; x: the first of the row's channels for this lane. */
QN_FN float qn_recurrent_lstm(const qn_recurrent *r, QN_GLOBAL const float *A, qn_u64 x,
                              QN_GLOBAL const float *weights, QN_GLOBAL float *moments,
                              qn_u32 step) {
    QN_GLOBAL float *own = moments + qn_recurrent_row(r, step) + r->n;
    float gate[4];
    for (qn_u32 g = 0u; g < 4u; ++g) {
        const float z = A[x + g * r->width] + qn_recurrent_chain(r, moments + QN_STATES * r->array,
                                                                 weights, g, step, 0.0f);
        gate[g] = g == 2u ? qn_tanh(z) : qn_sigmoid(z);
        own[g * r->array] = gate[g];
    }
    float cell = 0.0f;
    if (step > 0u)
        cell = moments[QN_CELLS * r->array + qn_recurrent_row(r, step - 1u) + r->n];
    cell = qn_fma(gate[1], cell, gate[0] * gate[2]);
    own[QN_CELLS * r->array] = cell;
    return gate[3] * qn_tanh(cell);
}

QN_FN float qn_recurrent_gru(const qn_recurrent *r, QN_GLOBAL const float *A, qn_u64 x,
                             QN_GLOBAL const float *weights, float bias, QN_GLOBAL float *moments,
                             qn_u32 step) {
    QN_GLOBAL float *own = moments + qn_recurrent_row(r, step) + r->n;
    QN_GLOBAL float *states = moments + QN_STATES * r->array;
    float gate[2], before = 0.0f;
    for (qn_u32 g = 0u; g < 2u; ++g) {
        gate[g] =
            qn_sigmoid(A[x + g * r->width] + qn_recurrent_chain(r, states, weights, g, step, 0.0f));
        own[g * r->array] = gate[g];
    }
    const float q = qn_recurrent_chain(r, states, weights, 2u, step, bias);
    const float n = qn_tanh(qn_fma(gate[0], q, A[x + 2u * r->width]));
    own[2u * r->array] = n;
    own[3u * r->array] = q;
    if (step > 0u)
        before = states[qn_recurrent_row(r, step - 1u) + r->n];
    return qn_fma(gate[1], before - n, n);
}

QN_KERNEL(128)
qn_recurrent_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *items, QN_GLOBAL const float *A,
                     QN_GLOBAL const float *parameters, QN_GLOBAL float *moments,
                     QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                     qn_u64 weights, qn_u64 biases, qn_u32 index, qn_u32 tokens, qn_u32 inputs,
                     qn_u32 gates, qn_u32 reverse, qn_u32 at, qn_u32 layer, qn_u32 activation,
                     qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    qn_recurrent r = qn_recurrent_of(step, taps, items, tokens, inputs, gates, reverse);
    if (r.item >= step->items)
        return;
    qn_u32 now = at, t = qn_recurrent_at(&r, at);
    if (r.sequences != 0u) {
        const qn_growth own = qn_growth_of(numbers[r.item]);
        if (own.before != at)
            return;
        r.sequence = own.sequence;
        now = own.position;
        r.length = now + 1u;
        t = 0u; /* a row has one position */
    }
    const qn_u64 kept = qn_recurrent_row(&r, now) + r.n;
    const qn_u64 row = (qn_u64)qn_row_of(r.p, r.pixels, t) * r.ld + r.n;
    float z = 0.0f;
    qn_u32 word = 0u;
    r.p.y = t / taps->width;
    r.p.x = t - r.p.y * taps->width;
    if (r.n < r.width && now < r.length) {
        const qn_u64 x = qn_place_of_tap(taps, r.p, r.p.y, r.p.x, r.n);
        z = gates == 4u ? qn_recurrent_lstm(&r, A, x, parameters + weights, moments, now)
                        : qn_recurrent_gru(&r, A, x, parameters + weights, parameters[biases + r.n],
                                           moments, now);
    }
    if (r.n < r.width && threshold != 0u)
        word = qn_pixel_word(step, numbers, r.p, taps->width, r.width, r.n, layer, seed);
    z = z + 0.0f;
    moments[QN_STATES * r.array + kept] = z;
    Y[row] = z;
    qn_finish_forward(Y + row, D + row, r.n, r.width, activation, threshold, keep, word);
}

/* What the errors of the next step give to channel n of the state. */
QN_FN float qn_recurrent_returned(const qn_recurrent *r, QN_GLOBAL const float *weights,
                                  QN_GLOBAL const float *moments, qn_u32 step) {
    float acc = 0.0f;
    if (step + 1u >= r->length)
        return acc;
    const qn_u64 row = qn_recurrent_row(r, step + 1u);
    QN_ROLLED
    for (qn_u32 g = 0u; g < r->gates; ++g) {
        QN_GLOBAL const float *errors = moments + qn_recurrent_product(r, g) * r->array + row;
        QN_GLOBAL const float *w = weights + (qn_u64)(g * r->width + r->n) * r->ld;
        QN_ROLLED
        for (qn_u32 n = 0u; n < r->width; ++n)
            acc = qn_fma(errors[n], w[n], acc);
    }
    return acc;
}

QN_FN void qn_recurrent_lstm_back(const qn_recurrent *r, QN_GLOBAL float *moments,
                                  QN_GLOBAL float *carry, float error, qn_u32 step) {
    QN_GLOBAL float *own = moments + qn_recurrent_row(r, step) + r->n;
    const float i = own[0], f = own[r->array], g = own[2u * r->array], o = own[3u * r->array];
    const float cell = qn_tanh(own[QN_CELLS * r->array]), out = error * o;
    float before = 0.0f;
    if (step > 0u)
        before = moments[QN_CELLS * r->array + qn_recurrent_row(r, step - 1u) + r->n];
    const float inner = qn_fma(out, qn_fma(-cell, cell, 1.0f), *carry);
    own[0] = inner * g * qn_recurrent_slope(i) + 0.0f;
    own[r->array] = inner * before * qn_recurrent_slope(f) + 0.0f;
    own[2u * r->array] = inner * i * qn_fma(-g, g, 1.0f) + 0.0f;
    own[3u * r->array] = error * cell * qn_recurrent_slope(o) + 0.0f;
    *carry = inner * f;
}

QN_FN void qn_recurrent_gru_back(const qn_recurrent *r, QN_GLOBAL float *moments,
                                 QN_GLOBAL float *carry, float given, qn_u32 step) {
    QN_GLOBAL float *own = moments + qn_recurrent_row(r, step) + r->n;
    const float reset = own[0], z = own[r->array], n = own[2u * r->array], q = own[3u * r->array];
    const float error = given + *carry;
    float before = 0.0f;
    if (step > 0u)
        before = moments[QN_STATES * r->array + qn_recurrent_row(r, step - 1u) + r->n];
    const float inner = error * (1.0f - z) * qn_fma(-n, n, 1.0f);
    own[0] = inner * q * qn_recurrent_slope(reset) + 0.0f;
    own[r->array] = error * (before - n) * qn_recurrent_slope(z) + 0.0f;
    own[2u * r->array] = inner + 0.0f;
    own[3u * r->array] = inner * reset + 0.0f;
    *carry = error * z;
}

QN_KERNEL(128)
qn_recurrent_back(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *items, QN_GLOBAL const float *parameters,
                  QN_GLOBAL const float *E, QN_GLOBAL float *moments, qn_u64 weights, qn_u32 index,
                  qn_u32 tokens, qn_u32 inputs, qn_u32 gates, qn_u32 reverse, qn_u32 at) {
    const qn_recurrent r =
        qn_recurrent_of(step, all + index, items, tokens, inputs, gates, reverse);
    if (r.item >= step->items || r.n >= r.width)
        return;
    const qn_u64 row = qn_recurrent_row(&r, at) + r.n;
    QN_GLOBAL float *carry = moments + QN_CARRIES * r.array + (qn_u64)r.item * r.ld + r.n;
    if (at >= r.length) {
        for (qn_u32 g = 0u; g < 4u; ++g)
            moments[g * r.array + row] = 0.0f;
        return;
    }
    if (at + 1u == r.length)
        *carry = 0.0f;
    const float error = E[row] + qn_recurrent_returned(&r, parameters + weights, moments, at);
    if (gates == 4u)
        qn_recurrent_lstm_back(&r, moments, carry, error, at);
    else
        qn_recurrent_gru_back(&r, moments, carry, error, at);
}

/* The errors of what the layer reads. A lane has a channel of a row. */
QN_KERNEL(128)
qn_recurrent_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *moments, QN_GLOBAL float *B, qn_u32 index, qn_u32 gates,
                    qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), width = taps->channels / gates;
    const qn_sixteen s = qn_sixteen_of(ld);
    const qn_u64 rows = (qn_u64)step->items * taps->height * taps->width;
    const qn_u64 at = (qn_u64)s.row * ld + s.column;
    float e = 0.0f;
    if (s.row >= rows)
        return;
    if (s.column < taps->channels) {
        const qn_u32 gate = s.column / width;
        e = moments[(gate * rows + s.row) * qn_ld(width) + s.column - gate * width];
    }
    B[at] = (flags & QN_NORM_ADD) != 0u ? e + B[at] : e;
}

/* The partial of a grain. k: the channel of a state; `width`: the bias. */
QN_FN float qn_recurrent_partial(qn_pixel p, QN_GLOBAL const float *errors,
                                 QN_GLOBAL const float *states, qn_u32 pixels, qn_u32 width,
                                 qn_u32 k, qn_u32 n, qn_u32 reverse) {
    const qn_u32 ld = qn_ld(width);
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 t = 0u; t < pixels; ++t) {
        const qn_u64 row = qn_row_of(p, pixels, t);
        if (k < width && (reverse != 0u ? t + 1u == pixels : t == 0u))
            continue;
        const qn_u64 before = qn_row_of(p, pixels, reverse != 0u ? t + 1u : t - 1u);
        QN_ROLLED
        for (qn_u32 i = 0u; i < p.items; ++i) {
            const float d = errors[(row + i) * ld + n];
            sum = k < width ? qn_fma(d, states[(before + i) * ld + k], sum) : sum + d;
        }
    }
    return sum;
}

QN_KERNEL(128)
qn_recurrent_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                      QN_GLOBAL const float *moments, QN_GLOBAL qn_i64 *sums,
                      QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 index, qn_u32 gates,
                      qn_u32 reverse, qn_u32 layer, qn_u32 rows, float limit, qn_u32 k_blocks,
                      qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 width = taps->channels / gates, ld = qn_ld(width), grain = qn_grain_of(step);
    const qn_u32 pixels = taps->height * taps->width;
    const qn_u32 grains = (step->items + grain - 1u) / grain;
    const qn_u32 end = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= rows)
        return;
    /* The bias is the row after the weights, of the last gate. */
    const qn_u32 gate = s.row < taps->channels ? s.row / width : gates - 1u;
    const qn_u32 k = s.row - gate * width, product = gates == 3u && gate == 2u ? 3u : gate;
    const qn_u64 array = (qn_u64)step->items * pixels * ld;
    QN_GLOBAL qn_i64 *to = sums + weights + (qn_u64)s.row * ld + s.column;
    qn_i64 total = 0;
    qn_u32 bad = 0u;
    QN_ROLLED
    for (qn_u32 g = qn_block_begin(grains, qn_group(2), k_blocks); g < end && s.column < width;
         ++g) {
        const float partial =
            qn_recurrent_partial(qn_grain_pixel(step, g), moments + product * array,
                                 moments + QN_STATES * array, pixels, width, k, s.column, reverse);
        bad |= qn_leaves(partial, limit);
        total = qn_plus(total, qn_i64_of(partial));
    }
    qn_put_units(to, total, k_blocks, flags);
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
