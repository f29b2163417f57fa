/* A tile of exact integer products: QN_DOWN x QN_ACROSS lanes, each with QN_RUN x QN_RUN numbers.
 * Both operands are words (intgemm_words.cl) along the sum. Slabs of eight words of all digits are
 * double-buffered in local memory: while the lanes multiply one slab, the next is loaded through
 * registers into the other buffer.
 *
 * Products of digits whose weights are equal are added in 32 bits. A product is at most 64 * 64,
 * and at most QN_DIGITS (three) of them are added for each number along the sum. QN_FLUSH slabs are
 * 2^16 numbers, so the sums stay below 2^30. */
#define QN_INTGEMM(name) QN_JOIN(name, QN_BITS_NAME, QN_SIZE_NAME)
#define QN_FLUSH 2048u
#define QN_ROWS (QN_DOWN * QN_RUN)
#define QN_COLUMNS (QN_ACROSS * QN_RUN)
#define QN_SUMS (2u * QN_DIGITS - 1u)
/* Words of one digit that each lane loads, for a slab of `size` rows. */
#define QN_LOADS_OF(size) ((size)*8u / QN_INTGEMM_LANES)
/* Words of a slab of both operands. */
#define QN_SLAB (8u * QN_DIGITS * (QN_ROWS + QN_COLUMNS))

/* The lane's first row and column in the tile. 32 lanes have 4 runs of rows by 8 of columns. */
QN_FN qn_u32 QN_INTGEMM(qn_lane_row)(void) {
    return (qn_lane() / 8u % 4u + qn_lane() / 64u * 4u) * QN_RUN;
}
QN_FN qn_u32 QN_INTGEMM(qn_lane_column)(void) {
    return (qn_lane() % 8u + qn_lane() / 32u % 2u * 8u) * QN_RUN;
}

/* The row at which word w is stored. Rows are swizzled in blocks of four, so that the 32 lanes that
 * write eight words of four rows together use 32 different banks. */
QN_FN qn_u32 QN_INTGEMM(qn_swizzled)(qn_u32 row, qn_u32 w, const qn_u32 size) {
    return row ^ (w * 4u & (size - 1u));
}

/* Loads the lane's words of a slab into registers: rows first .. first+size-1, words at .. at+7.
 * Words after the `left` remaining ones and rows from `rows` on become 0. */
QN_FN void QN_INTGEMM(qn_load_slab)(qn_i32 *held, QN_GLOBAL const qn_i32 *from, const qn_u32 size,
                                    qn_u32 first, qn_u32 rows, qn_u32 width, qn_u32 at,
                                    qn_u32 left) {
    const qn_u32 w = qn_lane() % 8u;
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_LOADS_OF(size); ++n) {
        const qn_u32 r = first + n * (QN_INTGEMM_LANES / 8u) + qn_lane() / 8u;
        QN_UNROLL
        for (qn_u32 d = 0u; d < QN_DIGITS; ++d)
            held[n * QN_DIGITS + d] =
                r < rows && w < left ? from[((qn_u64)r * QN_DIGITS + d) * width + at + w] : 0;
    }
}

QN_FN void QN_INTGEMM(qn_store_slab)(const qn_i32 *held, QN_LOCAL_POINTER qn_i32 *slab,
                                     const qn_u32 size) {
    const qn_u32 w = qn_lane() % 8u;
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_LOADS_OF(size); ++n) {
        const qn_u32 r = n * (QN_INTGEMM_LANES / 8u) + qn_lane() / 8u;
        QN_UNROLL
        for (qn_u32 d = 0u; d < QN_DIGITS; ++d)
            slab[(d * 8u + w) * size + QN_INTGEMM(qn_swizzled)(r, w, size)] =
                held[n * QN_DIGITS + d];
    }
}

/* Reads a run of rows of one word into registers. */
QN_FN void QN_INTGEMM(qn_words_of)(qn_i32 *x, QN_LOCAL_POINTER const qn_i32 *from) {
#if QN_DOWN == 16u
    const qn_int4 v = *(QN_LOCAL_POINTER const qn_int4 *)from;
    x[0] = v.x;
    x[1] = v.y;
    x[2] = v.z;
    x[3] = v.w;
#else
    const qn_int2 v = *(QN_LOCAL_POINTER const qn_int2 *)from;
    x[0] = v.x;
    x[1] = v.y;
#endif
}

/* Adds the products of one word to all the lane's sums. */
QN_FN void QN_INTGEMM(qn_word)(qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN],
                               QN_LOCAL_POINTER const qn_i32 *slab, qn_u32 w) {
    QN_LOCAL_POINTER const qn_i32 *a =
        slab + w * QN_ROWS + QN_INTGEMM(qn_swizzled)(QN_INTGEMM(qn_lane_row)(), w, QN_ROWS);
    QN_LOCAL_POINTER const qn_i32 *b =
        slab + 8u * QN_DIGITS * QN_ROWS + w * QN_COLUMNS +
        QN_INTGEMM(qn_swizzled)(QN_INTGEMM(qn_lane_column)(), w, QN_COLUMNS);
    qn_i32 x[QN_DIGITS][QN_RUN], y[QN_DIGITS][QN_RUN];
    QN_UNROLL
    for (qn_u32 d = 0u; d < QN_DIGITS; ++d) {
        QN_INTGEMM(qn_words_of)(x[d], a + d * 8u * QN_ROWS);
        QN_INTGEMM(qn_words_of)(y[d], b + d * 8u * QN_COLUMNS);
    }
    /* Digits d and e have the weight 128^(d + e): all pairs of equal weight share an
     * accumulator. */
    QN_UNROLL
    for (qn_u32 d = 0u; d < QN_DIGITS; ++d) {
        QN_UNROLL
        for (qn_u32 e = 0u; e < QN_DIGITS; ++e) {
            QN_UNROLL
            for (qn_u32 i = 0u; i < QN_RUN; ++i) {
                QN_UNROLL
                for (qn_u32 j = 0u; j < QN_RUN; ++j)
                    acc[d + e][i][j] = qn_dot(x[d][i], y[e][j], acc[d + e][i][j]);
            }
        }
    }
}

/* Adds the products of the first `words` words of a slab. Up to two digits a full slab is unrolled;
 * three digits have nine terms a word, so their loop is not. */
QN_FN void QN_INTGEMM(qn_multiply)(qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN],
                                   QN_LOCAL_POINTER const qn_i32 *slab, qn_u32 words) {
#if QN_DIGITS < 3u
    if (words == 8u) {
        QN_UNROLL
        for (qn_u32 w = 0u; w < 8u; ++w)
            QN_INTGEMM(qn_word)(acc, slab, w);
        return;
    }
#endif
    QN_ROLLED
    for (qn_u32 w = 0u; w < words; ++w)
        QN_INTGEMM(qn_word)(acc, slab, w);
}

/* Adds the 32-bit sums, by their weights, to the 64-bit sums `exact`, and clears them. */
QN_FN void QN_INTGEMM(qn_gather)(qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN],
                                 qn_i64 exact[QN_RUN][QN_RUN]) {
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_RUN; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_RUN; ++j) {
            qn_i64 n = 0;
            QN_UNROLL
            for (qn_u32 s = QN_SUMS; s > 0u; --s) {
                n = n * 128 + acc[s - 1u][i][j];
                acc[s - 1u][i][j] = 0;
            }
            exact[i][j] += n;
        }
    }
}

/* The exact integers N of the lane's numbers over `width` words, a multiple of eight: rows of A
 * from `row` on times rows of B from `column` on. A has `rows` rows, B has `columns`. `slabs` has
 * space for two slabs. */
QN_FN void QN_INTGEMM(qn_products)(qn_i64 exact[QN_RUN][QN_RUN], QN_LOCAL_POINTER qn_i32 *slabs,
                                   QN_GLOBAL const qn_i32 *A, qn_u32 row, qn_u32 rows,
                                   QN_GLOBAL const qn_i32 *B, qn_u32 column, qn_u32 columns,
                                   qn_u32 width) {
    qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN];
    qn_i32 a[QN_LOADS_OF(QN_ROWS) * QN_DIGITS], b[QN_LOADS_OF(QN_COLUMNS) * QN_DIGITS];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_RUN; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_RUN; ++j) {
            exact[i][j] = 0;
            QN_UNROLL
            for (qn_u32 s = 0u; s < QN_SUMS; ++s)
                acc[s][i][j] = 0;
        }
    }
    qn_u32 side = 0u, since = 0u;
    QN_INTGEMM(qn_load_slab)(a, A, QN_ROWS, row, rows, width, 0u, width);
    QN_INTGEMM(qn_load_slab)(b, B, QN_COLUMNS, column, columns, width, 0u, width);
    QN_INTGEMM(qn_store_slab)(a, slabs, QN_ROWS);
    QN_INTGEMM(qn_store_slab)(b, slabs + 8u * QN_DIGITS * QN_ROWS, QN_COLUMNS);
    qn_barrier();
    QN_ROLLED
    for (qn_u32 at = 8u; at <= width; at += 8u) {
        QN_INTGEMM(qn_load_slab)(a, A, QN_ROWS, row, rows, width, at, width - at);
        QN_INTGEMM(qn_load_slab)(b, B, QN_COLUMNS, column, columns, width, at, width - at);
        QN_INTGEMM(qn_multiply)(acc, slabs + side, 8u);
        side = QN_SLAB - side;
        QN_INTGEMM(qn_store_slab)(a, slabs + side, QN_ROWS);
        QN_INTGEMM(qn_store_slab)(b, slabs + side + 8u * QN_DIGITS * QN_ROWS, QN_COLUMNS);
        qn_barrier();
        if (++since == QN_FLUSH) {
            QN_INTGEMM(qn_gather)(acc, exact);
            since = 0u;
        }
    }
    QN_INTGEMM(qn_gather)(acc, exact);
}
