/* A tile of exact integer products: QN_DOWN x QN_ACROSS lanes with QN_RUN x QN_RUN numbers each.
 * Both operands are words (intgemm_words.cl) along the sum. Slabs of eight words of all digits lie
 * in local memory, twice: while the lanes work on one, the next is on its way through registers
 * into the other.
 *
 * Products of digits of the same weight are added in 32 bits: at most 64 * 64 each, three at a time
 * (QN_DIGITS), so that QN_FLUSH slabs, 2^16 numbers along the sum, stay below 2^30. */
#undef QN_INTGEMM
#undef QN_ROWS
#undef QN_COLUMNS
#undef QN_SUMS
#undef QN_LOADS_OF
#undef QN_SLAB
#define QN_INTGEMM(name) QN_JOIN(name, QN_BITS_NAME, QN_SIZE_NAME)
#undef QN_FLUSH
#define QN_FLUSH 2048u
#define QN_ROWS (QN_DOWN * QN_RUN)
#define QN_COLUMNS (QN_ACROSS * QN_RUN)
#define QN_SUMS (2u * QN_DIGITS - 1u)
/* Words of one digit that a lane brings of a slab with so many rows. */
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

/* Rows of a word are exchanged by fours, so that eight words of four rows, which 32 lanes write
 * together, meet 32 banks. */
QN_FN qn_u32 QN_INTGEMM(qn_mixed)(qn_u32 row, qn_u32 w, const qn_u32 size) {
    return row ^ (w * 4u & (size - 1u));
}

/* Reads the lane's words of a slab: of rows first .. first+size-1 of `rows`, those from word `at`
 * on, `left` of them; what lies outside is 0. */
QN_FN void QN_INTGEMM(qn_bring)(qn_i32 *held, QN_GLOBAL const qn_i32 *from, const qn_u32 size,
                                qn_u32 first, qn_u32 rows, qn_u32 width, qn_u32 at, qn_u32 left) {
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

QN_FN void QN_INTGEMM(qn_lay)(const qn_i32 *held, QN_LOCAL_POINTER qn_i32 *slab,
                              const qn_u32 size) {
    const qn_u32 w = qn_lane() % 8u;
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_LOADS_OF(size); ++n) {
        const qn_u32 r = n * (QN_INTGEMM_LANES / 8u) + qn_lane() / 8u;
        QN_UNROLL
        for (qn_u32 d = 0u; d < QN_DIGITS; ++d)
            slab[(d * 8u + w) * size + QN_INTGEMM(qn_mixed)(r, w, size)] = held[n * QN_DIGITS + d];
    }
}

/* A run of rows of a word into registers. */
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

/* One word of all the lane's sums. */
QN_FN void QN_INTGEMM(qn_word)(qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN],
                               QN_LOCAL_POINTER const qn_i32 *slab, qn_u32 w) {
    QN_LOCAL_POINTER const qn_i32 *a =
        slab + w * QN_ROWS + QN_INTGEMM(qn_mixed)(QN_INTGEMM(qn_lane_row)(), w, QN_ROWS);
    QN_LOCAL_POINTER const qn_i32 *b =
        slab + 8u * QN_DIGITS * QN_ROWS + w * QN_COLUMNS +
        QN_INTGEMM(qn_mixed)(QN_INTGEMM(qn_lane_column)(), w, QN_COLUMNS);
    qn_i32 x[QN_DIGITS][QN_RUN], y[QN_DIGITS][QN_RUN];
    QN_UNROLL
    for (qn_u32 d = 0u; d < QN_DIGITS; ++d) {
        QN_INTGEMM(qn_words_of)(x[d], a + d * 8u * QN_ROWS);
        QN_INTGEMM(qn_words_of)(y[d], b + d * 8u * QN_COLUMNS);
    }
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

/* The words of a slab. */
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

/* Adds the sums of 32 bits, by their weights, to those of 64, and begins them anew. */
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

/* N of the lane's numbers over `width` words, whole slabs: rows from `row` on of A, which has
 * `rows`, by rows from `column` on of B. `slabs` has room for two. */
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
    QN_INTGEMM(qn_bring)(a, A, QN_ROWS, row, rows, width, 0u, width);
    QN_INTGEMM(qn_bring)(b, B, QN_COLUMNS, column, columns, width, 0u, width);
    QN_INTGEMM(qn_lay)(a, slabs, QN_ROWS);
    QN_INTGEMM(qn_lay)(b, slabs + 8u * QN_DIGITS * QN_ROWS, QN_COLUMNS);
    qn_barrier();
    QN_ROLLED
    for (qn_u32 at = 8u; at <= width; at += 8u) {
        QN_INTGEMM(qn_bring)(a, A, QN_ROWS, row, rows, width, at, width - at);
        QN_INTGEMM(qn_bring)(b, B, QN_COLUMNS, column, columns, width, at, width - at);
        QN_INTGEMM(qn_multiply)(acc, slabs + side, 8u);
        side = QN_SLAB - side;
        QN_INTGEMM(qn_lay)(a, slabs + side, QN_ROWS);
        QN_INTGEMM(qn_lay)(b, slabs + side + 8u * QN_DIGITS * QN_ROWS, QN_COLUMNS);
        qn_barrier();
        if (++since == QN_FLUSH) {
            QN_INTGEMM(qn_gather)(acc, exact);
            since = 0u;
        }
    }
    QN_INTGEMM(qn_gather)(acc, exact);
}
