/* A tile of exact integer products by matrix instructions (matrix_words.cl): QN_WARPS_DOWN x
 * QN_WARPS_ACROSS warps of 32 lanes. Each warp has QN_HIGH x QN_BROAD fragments. Operands are words
 * (intgemm_words.cl) along the sum. Local memory holds QN_STAGES slabs of eight words of all
 * digits: while the warps multiply one slab, asynchronous copies fill the others.
 *
 * A row of a digit has eight words. Its two halves are swapped in every second block of four rows.
 * The 32 lanes that read a fragment thus use 32 different banks, and so do eight lanes that write
 * half a row each.
 *
 * The 32-bit sums hold QN_MATRIX_DEPTH numbers along the sum. For each of them at most three
 * products are added, of at most 64 * 64. */
#define QN_INTGEMM(name) QN_JOIN(name, QN_BITS_NAME, QN_SIZE_NAME)
#define QN_ROWS (QN_WARPS_DOWN * QN_HIGH * 16u)
#define QN_COLUMNS (QN_WARPS_ACROSS * QN_BROAD * 8u)
#define QN_SUMS (2u * QN_DIGITS - 1u)
#define QN_SLAB (8u * QN_DIGITS * (QN_ROWS + QN_COLUMNS))
#define QN_INTGEMM_LANES (32u * QN_WARPS_DOWN * QN_WARPS_ACROSS)
/* Vectors of four words of one digit of a slab that each lane copies. */
#define QN_VECTORS_OF(size) (((size)*2u + QN_INTGEMM_LANES - 1u) / QN_INTGEMM_LANES)

/* The lane's first row and first column in the tile. Its other rows are 8 apart. Its columns are
 * pairs, 8 apart. */
QN_FN qn_u32 QN_INTGEMM(qn_lane_row)(void) {
    return qn_lane() / 32u / QN_WARPS_ACROSS * (QN_HIGH * 16u) + qn_lane() % 32u / 4u;
}
QN_FN qn_u32 QN_INTGEMM(qn_lane_column)(void) {
    return qn_lane() / 32u % QN_WARPS_ACROSS * (QN_BROAD * 8u) + qn_lane() % 4u * 2u;
}

/* Starts the lane's copies for a slab: rows first .. first+size-1, words at .. at+7. Words after
 * the `left` remaining ones, a multiple of four, and rows from `rows` on become 0. */
QN_FN void QN_INTGEMM(qn_load_slab)(QN_LOCAL_POINTER qn_i32 *slab, QN_GLOBAL const qn_i32 *from,
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

/* The exact integer N of a number, from its sums by their weights: Horner's scheme in base 128. */
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

/* Starts the copies of a slab of both operands. With `left` 0 it copies nothing, but still ends a
 * group of copies: qn_copies_wait counts groups. */
QN_FN void QN_INTGEMM(qn_copy_slabs)(QN_LOCAL_POINTER qn_i32 *slab, QN_GLOBAL const qn_i32 *A,
                                     qn_u32 row, qn_u32 rows, QN_GLOBAL const qn_i32 *B,
                                     qn_u32 column, qn_u32 columns, qn_u32 width, qn_u32 at,
                                     qn_u32 left) {
    if (left != 0u) {
        QN_INTGEMM(qn_load_slab)(slab, A, QN_ROWS, row, rows, width, at, left);
        QN_INTGEMM(qn_load_slab)
        (slab + 8u * QN_DIGITS * QN_ROWS, B, QN_COLUMNS, column, columns, width, at, left);
    }
    qn_copies_end();
}

/* The next slab of the circular buffer. */
QN_FN qn_u32 QN_INTGEMM(qn_next_slab)(qn_u32 slab) {
    return slab == (QN_STAGES - 1u) * QN_SLAB ? 0u : slab + QN_SLAB;
}

/* The sums over `width` words, a multiple of eight: rows of A from `row` on times rows of B from
 * `column` on. A has `rows` rows, B has `columns`. `slabs` has space for QN_STAGES slabs. */
QN_FN void QN_INTGEMM(qn_products)(qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4],
                                   QN_LOCAL_POINTER qn_i32 *slabs, QN_GLOBAL const qn_i32 *A,
                                   qn_u32 row, qn_u32 rows, QN_GLOBAL const qn_i32 *B,
                                   qn_u32 column, qn_u32 columns, qn_u32 width) {
    qn_u32 sent = 0u, to = 0u, from = 0u;
    QN_INTGEMM(qn_begin_sums)(acc);
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_STAGES - 1u; ++n) {
        QN_INTGEMM(qn_copy_slabs)
        (slabs + to, A, row, rows, B, column, columns, width, sent, sent < width ? 8u : 0u);
        to = QN_INTGEMM(qn_next_slab)(to);
        sent += 8u;
    }
    qn_u32 at = 0u;
    QN_ROLLED
    do {
        /* After the barrier the slab at `from` is complete for all lanes, and no lane reads the
         * slab before it, which the next copy overwrites. */
        qn_copies_wait(QN_STAGES - 2u);
        qn_barrier();
        QN_INTGEMM(qn_copy_slabs)
        (slabs + to, A, row, rows, B, column, columns, width, sent, sent < width ? 8u : 0u);
        to = QN_INTGEMM(qn_next_slab)(to);
        sent += 8u;
        QN_INTGEMM(qn_multiply)(acc, slabs + from);
        from = QN_INTGEMM(qn_next_slab)(from);
        at += 8u;
    } while (at < width);
}
