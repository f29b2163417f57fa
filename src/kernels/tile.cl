/* A tile: QN_TILE_ROWS x QN_TILE_COLUMNS chains of one group, QN_LANE_ROWS x QN_LANE_COLUMNS of
 * them in the registers of each lane. Slices of QN_SLICE links of both factors lie in local memory,
 * link after link, so that a lane reads its rows and columns of a link as a few vectors.
 *
 * A lane's rows and columns are runs of four, the runs of one lane as far apart as all lanes' runs
 * together take: lanes beside each other then read neighbouring vectors. */
#ifndef QN_SLICE
#define QN_SLICE 16u
#endif
#undef QN_ACROSS
#undef QN_DOWN
#define QN_ACROSS (QN_TILE_COLUMNS / QN_LANE_COLUMNS)
#define QN_DOWN (QN_TILE_ROWS / QN_LANE_ROWS)

/* Where the run i of a lane's rows or columns begins in the tile. */
QN_FN qn_u32 QN_TILE(qn_row_run)(qn_u32 i) {
    return (i * QN_DOWN + qn_lane() / QN_ACROSS) * 4u;
}
QN_FN qn_u32 QN_TILE(qn_column_run)(qn_u32 i) {
    return (i * QN_ACROSS + qn_lane() % QN_ACROSS) * 4u;
}

/* Loads a slice of a factor whose rows run along the links: rows first .. first+size-1 of `from`
 * become the columns of the slice. Rows from `rows` on count as zeros and are not read. Four links
 * of a row are read at once; their places are exchanged by eights (qn_turn), so that lanes that
 * write at the same time meet different banks. */
QN_FN qn_u32 QN_TILE(qn_turn)(qn_u32 link) { return link / 4u * 8u; }

QN_FN void QN_TILE(qn_load_turned)(QN_LOCAL_POINTER float *slice, const qn_u32 size,
                                   QN_GLOBAL const float *from, qn_u32 ld, qn_u32 first,
                                   qn_u32 rows, qn_u32 link) {
    QN_UNROLL
    for (qn_u32 u = qn_lane(); u < size * (QN_SLICE / 4u); u += QN_TILE_LANES) {
        const qn_u32 r = u / (QN_SLICE / 4u), q = u % (QN_SLICE / 4u);
        qn_float4 v;
        v.x = v.y = v.z = v.w = 0.0f;
        if (first + r < rows)
            v = *(QN_GLOBAL const qn_float4 *)(from + (qn_u64)(first + r) * ld + link + 4u * q);
        QN_LOCAL_POINTER float *to = slice + 4u * q * size + (r ^ QN_TILE(qn_turn)(4u * q));
        to[0] = v.x;
        to[size] = v.y;
        to[2u * size] = v.z;
        to[3u * size] = v.w;
    }
}

/* Loads a slice of a factor whose rows are the links: columns first .. first+size-1 of the rows
 * link .. link+QN_SLICE-1. Links from `links` on and columns from ld on count as zeros. */
QN_FN void QN_TILE(qn_load_straight)(QN_LOCAL_POINTER float *slice, const qn_u32 size,
                                     QN_GLOBAL const float *from, qn_u32 ld, qn_u32 first,
                                     qn_u32 links, qn_u32 link) {
    QN_UNROLL
    for (qn_u32 u = qn_lane(); u < size / 4u * QN_SLICE; u += QN_TILE_LANES) {
        const qn_u32 k = u / (size / 4u), c = u % (size / 4u) * 4u;
        qn_float4 v;
        v.x = v.y = v.z = v.w = 0.0f;
        if (link + k < links && first + c < ld)
            v = *(QN_GLOBAL const qn_float4 *)(from + (qn_u64)(link + k) * ld + first + c);
        *(QN_LOCAL_POINTER qn_float4 *)(slice + k * size + c) = v;
    }
}

/* One link of all chains: acc[i][j] = fma(a[i], b[j], acc[i][j]). */
QN_FN void QN_TILE(qn_link)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                            QN_LOCAL_POINTER const float *a, QN_LOCAL_POINTER const float *b,
                            const qn_u32 a_turn, const qn_u32 b_turn) {
    float x[QN_LANE_ROWS], y[QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS / 4u; ++i) {
        const qn_float4 v =
            *(QN_LOCAL_POINTER const qn_float4 *)(a + (QN_TILE(qn_row_run)(i) ^ a_turn));
        x[4u * i] = v.x;
        x[4u * i + 1u] = v.y;
        x[4u * i + 2u] = v.z;
        x[4u * i + 3u] = v.w;
    }
    QN_UNROLL
    for (qn_u32 j = 0u; j < QN_LANE_COLUMNS / 4u; ++j) {
        const qn_float4 v =
            *(QN_LOCAL_POINTER const qn_float4 *)(b + (QN_TILE(qn_column_run)(j) ^ b_turn));
        y[4u * j] = v.x;
        y[4u * j + 1u] = v.y;
        y[4u * j + 2u] = v.z;
        y[4u * j + 3u] = v.w;
    }
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j)
            acc[i][j] = qn_fma(x[i], y[j], acc[i][j]);
    }
}

/* The first n links of the slices in local memory; a whole slice is unrolled. */
QN_FN void QN_TILE(qn_links)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                             QN_LOCAL_POINTER const float *a, QN_LOCAL_POINTER const float *b,
                             qn_u32 n, const qn_u32 a_turned, const qn_u32 b_turned) {
    if (n >= QN_SLICE) {
        QN_UNROLL
        for (qn_u32 k = 0u; k < QN_SLICE; ++k)
            QN_TILE(qn_link)
            (acc, a + k * QN_TILE_ROWS, b + k * QN_TILE_COLUMNS, a_turned * QN_TILE(qn_turn)(k),
             b_turned * QN_TILE(qn_turn)(k));
    } else {
        QN_ROLLED
        for (qn_u32 k = 0u; k < n; ++k)
            QN_TILE(qn_link)
            (acc, a + k * QN_TILE_ROWS, b + k * QN_TILE_COLUMNS, a_turned * QN_TILE(qn_turn)(k),
             b_turned * QN_TILE(qn_turn)(k));
    }
}
