/* A tile of exact integer products by matrix instructions (matrix_words.cl): QN_WARPS_DOWN x
 * QN_WARPS_ACROSS warps of 32 lanes with QN_HIGH x QN_BROAD results of an instruction each.
 * Operands are words (intgemm_words.cl) along the sum. Slabs of eight words of all digits lie in
 * local memory, QN_STAGES of them: while the warps work on one, the others are on their way.
 *
 * A digit's rows follow each other at the distance of eight words, of which the two halves change
 * places in every other four rows: so the 32 lanes that read a word of eight rows meet 32 banks,
 * and so do eight that write half a row each.
 *
 * Sums of 32 bits hold QN_MATRIX_DEPTH numbers along the sum: at most 64 * 64 each, three at a
 * time. */
#undef QN_INTGEMM
#undef QN_ROWS
#undef QN_COLUMNS
#undef QN_SUMS
#undef QN_SLAB
#undef QN_INTGEMM_LANES
#undef QN_VECTORS_OF
#define QN_INTGEMM(name) QN_JOIN(name, QN_BITS_NAME, QN_SIZE_NAME)
#define QN_ROWS (QN_WARPS_DOWN * QN_HIGH * 16u)
#define QN_COLUMNS (QN_WARPS_ACROSS * QN_BROAD * 8u)
#define QN_SUMS (2u * QN_DIGITS - 1u)
#define QN_SLAB (8u * QN_DIGITS * (QN_ROWS + QN_COLUMNS))
#define QN_INTGEMM_LANES (32u * QN_WARPS_DOWN * QN_WARPS_ACROSS)
/* Vectors of four words of a slab's digit that a lane brings. */
#define QN_VECTORS_OF(size) (((size)*2u + QN_INTGEMM_LANES - 1u) / QN_INTGEMM_LANES)

/* The first row of the lane's results in the tile, and the first column; others are 8 further, and
 * so on, each with the column beside it. */
QN_FN qn_u32 QN_INTGEMM(qn_lane_row)(void) {
    return qn_lane() / 32u / QN_WARPS_ACROSS * (QN_HIGH * 16u) + qn_lane() % 32u / 4u;
}
QN_FN qn_u32 QN_INTGEMM(qn_lane_column)(void) {
    return qn_lane() / 32u % QN_WARPS_ACROSS * (QN_BROAD * 8u) + qn_lane() % 4u * 2u;
}

/* Sends the lane's vectors of a slab on their way: of rows first .. first+size-1 of `rows`, those
 * from word `at` on, `left` of them, a multiple of four; what lies outside becomes 0. */
QN_FN void QN_INTGEMM(qn_bring)(QN_LOCAL_POINTER qn_i32 *slab, QN_GLOBAL const qn_i32 *from,
                                const qn_u32 size, qn_u32 first, qn_u32 rows, qn_u32 width,
                                qn_u32 at, qn_u32 left) {
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_VECTORS_OF(size); ++n) {
        const qn_u32 u = n * QN_INTGEMM_LANES + qn_lane(), r = u / 2u, half = u % 2u * 4u;
        const qn_u32 inside = first + r < rows && half < left ? 1u : 0u;
        if (u >= size * 2u)
            continue;
        QN_UNROLL
        for (qn_u32 d = 0u; d < QN_DIGITS; ++d) {
            const qn_u64 place = ((qn_u64)(first + r) * QN_DIGITS + d) * width + at + half;
            qn_copy(slab + (d * size + r) * 8u + (half ^ (r & 4u)),
                    from + (inside != 0u ? place : 0u), inside);
        }
    }
}

/* Adds the products of a slab to the lane's sums. */
QN_FN void QN_INTGEMM(qn_multiply)(qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4],
                                   QN_LOCAL_POINTER const qn_i32 *slab) {
    qn_i32 a[QN_DIGITS][4], b[QN_DIGITS][QN_BROAD][2];
    const qn_u32 g = qn_lane() % 32u / 4u, t = qn_lane() % 4u, swapped = g & 4u;
    const qn_u32 row = QN_INTGEMM(qn_lane_row)(),
                 column = QN_INTGEMM(qn_lane_column)() - 2u * t + g;
    QN_LOCAL_POINTER const qn_i32 *A = slab + row * 8u + t;
    QN_LOCAL_POINTER const qn_i32 *B = slab + (QN_DIGITS * QN_ROWS + column) * 8u + t;
    QN_UNROLL
    for (qn_u32 e = 0u; e < QN_DIGITS; ++e) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
            QN_LOCAL_POINTER const qn_i32 *from = B + (e * QN_COLUMNS + j * 8u) * 8u;
            b[e][j][0] = from[swapped];
            b[e][j][1] = from[swapped ^ 4u];
        }
    }
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_HIGH; ++i) {
        QN_UNROLL
        for (qn_u32 d = 0u; d < QN_DIGITS; ++d) {
            QN_LOCAL_POINTER const qn_i32 *from = A + (d * QN_ROWS + i * 16u) * 8u;
            a[d][0] = from[swapped];
            a[d][1] = from[64u + swapped];
            a[d][2] = from[swapped ^ 4u];
            a[d][3] = from[64u + (swapped ^ 4u)];
        }
        qn_matrix_begin(&a[0][0], &b[0][0][0]);
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
            QN_UNROLL
            for (qn_u32 d = 0u; d < QN_DIGITS; ++d) {
                QN_UNROLL
                for (qn_u32 e = 0u; e < QN_DIGITS; ++e)
                    qn_matrix(acc[d + e][i][j], a[d], b[e][j]);
            }
        }
        qn_matrix_end();
    }
}

/* N of a number from its sums, by their weights. */
QN_FN qn_i64 QN_INTGEMM(qn_gathered)(qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4], qn_u32 i, qn_u32 j,
                                     qn_u32 n) {
    qn_i64 exact = 0;
    QN_UNROLL
    for (qn_u32 s = QN_SUMS; s > 0u; --s)
        exact = exact * 128 + acc[s - 1u][i][j][n];
    return exact;
}

QN_FN void QN_INTGEMM(qn_begin_sums)(qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4]) {
    QN_UNROLL
    for (qn_u32 s = 0u; s < QN_SUMS; ++s) {
        QN_UNROLL
        for (qn_u32 i = 0u; i < QN_HIGH; ++i) {
            QN_UNROLL
            for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
                QN_UNROLL
                for (qn_u32 n = 0u; n < 4u; ++n)
                    acc[s][i][j][n] = 0;
            }
        }
    }
}

/* Sends a slab of both operands on its way; nothing where nothing is left, which counts as one
 * too.
 */
QN_FN void QN_INTGEMM(qn_send)(QN_LOCAL_POINTER qn_i32 *slab, QN_GLOBAL const qn_i32 *A, qn_u32 row,
                               qn_u32 rows, QN_GLOBAL const qn_i32 *B, qn_u32 column,
                               qn_u32 columns, qn_u32 width, qn_u32 at, qn_u32 left) {
    if (left != 0u) {
        QN_INTGEMM(qn_bring)(slab, A, QN_ROWS, row, rows, width, at, left);
        QN_INTGEMM(qn_bring)
        (slab + 8u * QN_DIGITS * QN_ROWS, B, QN_COLUMNS, column, columns, width, at, left);
    }
    qn_copies_end();
}

/* The slab behind another, round and round. */
QN_FN qn_u32 QN_INTGEMM(qn_behind)(qn_u32 slab) {
    return slab == (QN_STAGES - 1u) * QN_SLAB ? 0u : slab + QN_SLAB;
}

/* The sums over `width` words, whole slabs: rows from `row` on of A, which has `rows`, by rows from
 * `column` on of B. `slabs` has room for QN_STAGES. */
QN_FN void QN_INTGEMM(qn_products)(qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4],
                                   QN_LOCAL_POINTER qn_i32 *slabs, QN_GLOBAL const qn_i32 *A,
                                   qn_u32 row, qn_u32 rows, QN_GLOBAL const qn_i32 *B,
                                   qn_u32 column, qn_u32 columns, qn_u32 width) {
    qn_u32 sent = 0u, to = 0u, from = 0u;
    QN_INTGEMM(qn_begin_sums)(acc);
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_STAGES - 1u; ++n) {
        QN_INTGEMM(qn_send)
        (slabs + to, A, row, rows, B, column, columns, width, sent, sent < width ? 8u : 0u);
        to = QN_INTGEMM(qn_behind)(to);
        sent += 8u;
    }
    qn_u32 at = 0u;
    QN_ROLLED
    do {
        /* The slab at `from` has come for all lanes, and none works on the one before it any more.
         */
        qn_copies_wait(QN_STAGES - 2u);
        qn_barrier();
        QN_INTGEMM(qn_send)
        (slabs + to, A, row, rows, B, column, columns, width, sent, sent < width ? 8u : 0u);
        to = QN_INTGEMM(qn_behind)(to);
        sent += 8u;
        QN_INTGEMM(qn_multiply)(acc, slabs + from);
        from = QN_INTGEMM(qn_behind)(from);
        at += 8u;
    } while (at < width);
}
