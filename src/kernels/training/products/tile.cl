/* A tile: QN_TILE_ROWS x QN_TILE_COLUMNS chains of one group, QN_LANE_ROWS x QN_LANE_COLUMNS of
 * them in the registers of each lane. A chain is a sum in a fixed order; a link is one of its fma,
 * one index k. K-blocks of QN_K_BLOCK links of both factors are double-buffered in local memory:
 * while the lanes compute with one, the next is loaded through registers into the other side. One
 * barrier a k-block is enough, and the latency of memory is hidden.
 *
 * A lane's rows are runs of QN_ROW_RUN, its columns runs of QN_COLUMN_RUN. Runs of all lanes
 * alternate, so that the runs of one lane are QN_DOWN or QN_ACROSS runs apart. A warp has 4 runs of
 * rows by 8 of columns. Lanes 0 and 1 share a run of columns, lanes 0 and 2 a run of rows: NVIDIA
 * GPUs then read such vectors for 16 lanes at once. */
#define QN_ACROSS (QN_TILE_COLUMNS / QN_LANE_COLUMNS)
#define QN_DOWN (QN_TILE_ROWS / QN_LANE_ROWS)
/* Links of an unrolled loop. */
#define QN_STRIP (QN_K_BLOCK < 16u ? QN_K_BLOCK : 16u)
/* Vectors of four floats in a k-block, and the most that one lane loads. */
#define QN_VECTORS_OF(size) ((size) * (QN_K_BLOCK / 4u))
#define QN_LOADS(size) ((QN_VECTORS_OF(size) + QN_TILE_LANES - 1u) / QN_TILE_LANES)
/* Floats of a k-block of both factors. */
#define QN_SIDE (QN_K_BLOCK * (QN_TILE_ROWS + QN_TILE_COLUMNS))

/* The position of a lane's run i of rows or columns in the tile. */
QN_FN qn_u32 QN_TILE(qn_row_run)(qn_u32 i) {
    const qn_u32 lane = qn_lane() % 32u, block = qn_lane() / 32u / (QN_ACROSS / 8u);
    return (i * QN_DOWN + block * 4u + lane / 16u * 2u + lane % 2u) * QN_ROW_RUN;
}
QN_FN qn_u32 QN_TILE(qn_column_run)(qn_u32 i) {
    const qn_u32 lane = qn_lane() % 32u, block = qn_lane() / 32u % (QN_ACROSS / 8u);
    return (i * QN_ACROSS + block * 8u + lane / 2u % 8u) * QN_COLUMN_RUN;
}

/* Loads a factor into local memory: the lane's vectors of the next k-block. */
typedef struct QN_TILE(qn_loader) {
    QN_GLOBAL const float *from; /* the first vector */
    QN_LOCAL_POINTER float *to;  /* its position in the first k-block */
    qn_u32 link;   /* link of the first vector; beyond every end if the lane loads nothing */
    qn_u32 stride; /* floats between two links */
    qn_float4 held[8];
} QN_TILE(qn_loader);

/* A loader for a factor whose rows run along the links: rows first .. first+size-1 become the
 * columns of a k-block. A vector is four links of a row, and two neighbouring lanes load eight
 * links. In k-blocks of 32 columns and more, qn_swizzle exchanges halves of 32 columns in every
 * second block of four links. Lanes that write at the same time then use different banks. */
QN_FN qn_u32 QN_TILE(qn_swizzle)(const qn_u32 size, qn_u32 link) {
    return size >= 32u ? link / 4u % 2u * 16u : 0u;
}

QN_FN QN_TILE(qn_loader)
    QN_TILE(qn_loader_transposed)(QN_LOCAL_POINTER float *k_block, const qn_u32 size,
                                  QN_GLOBAL const float *from, qn_u32 ld, qn_u32 first,
                                  qn_u32 rows) {
    QN_TILE(qn_loader) loader;
    const qn_u32 u = qn_lane() / 2u, r = u % size, k = (u / size * 2u + qn_lane() % 2u) * 4u;
    const qn_u32 inside = first + r < rows ? 1u : 0u;
    loader.from = from + (inside != 0u ? (qn_u64)(first + r) * ld + k : 0u);
    loader.to = k_block + k * size + (r ^ QN_TILE(qn_swizzle)(size, k));
    loader.link = inside != 0u ? k : 0xf0000000u;
    loader.stride = 1u;
    QN_UNROLL
    for (qn_u32 n = 0u; n < 8u; ++n)
        loader.held[n].x = loader.held[n].y = loader.held[n].z = loader.held[n].w = 0.0f;
    return loader;
}

/* A loader for a factor whose rows are the links: columns first .. first+size-1. */
QN_FN QN_TILE(qn_loader)
    QN_TILE(qn_loader_plain)(QN_LOCAL_POINTER float *k_block, const qn_u32 size,
                             QN_GLOBAL const float *from, qn_u32 ld, qn_u32 first) {
    QN_TILE(qn_loader) loader;
    const qn_u32 k = qn_lane() / (size / 4u), c = qn_lane() % (size / 4u) * 4u;
    const qn_u32 inside = first + c < ld && qn_lane() < QN_VECTORS_OF(size) ? 1u : 0u;
    loader.from = from + (inside != 0u ? (qn_u64)k * ld + first + c : 0u);
    loader.to = k_block + qn_lane() * 4u;
    loader.link = inside != 0u ? k : 0xf0000000u;
    loader.stride = ld;
    QN_UNROLL
    for (qn_u32 n = 0u; n < 8u; ++n)
        loader.held[n].x = loader.held[n].y = loader.held[n].z = loader.held[n].w = 0.0f;
    return loader;
}

/* Loads the lane's vectors of the k-block at the loader's position, which is `left` links before
 * the end. Links after the end are not read; the registers then keep old values, which are not
 * used, or zero. */
QN_FN void QN_TILE(qn_load_block)(QN_TILE(qn_loader) *loader, const qn_u32 size,
                                  const qn_u32 transposed, qn_u32 left) {
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_LOADS(size); ++n) {
        const qn_u32 k =
            n * (transposed != 0u ? QN_TILE_LANES / 2u / size * 8u : QN_TILE_LANES / (size / 4u));
        if (loader->link + k < left)
            loader->held[n] =
                *(QN_GLOBAL const qn_float4 *)(loader->from +
                                               (transposed != 0u ? k : (qn_u64)k * loader->stride));
    }
}

QN_FN void QN_TILE(qn_advance)(QN_TILE(qn_loader) *loader, qn_u32 links, const qn_u32 transposed) {
    loader->from += transposed != 0u ? links : (qn_u64)links * loader->stride;
}

/* Stores the loaded vectors in the k-block that is `side` floats after the first. */
QN_FN void QN_TILE(qn_store_block)(const QN_TILE(qn_loader) *loader, const qn_u32 size,
                                   const qn_u32 transposed, qn_u32 side) {
    QN_UNROLL
    for (qn_u32 n = 0u; n < QN_LOADS(size); ++n) {
        if (transposed != 0u) {
            QN_LOCAL_POINTER float *to = loader->to + side + n * (QN_TILE_LANES / 2u * 8u);
            to[0] = loader->held[n].x;
            to[size] = loader->held[n].y;
            to[2u * size] = loader->held[n].z;
            to[3u * size] = loader->held[n].w;
        } else if (qn_lane() + n * QN_TILE_LANES < QN_VECTORS_OF(size)) {
            *(QN_LOCAL_POINTER qn_float4 *)(loader->to + side + n * QN_TILE_LANES * 4u) =
                loader->held[n];
        }
    }
}

/* Reads a run of a link into registers. */
QN_FN void QN_TILE(qn_run)(float *x, QN_LOCAL_POINTER const float *from, const qn_u32 length) {
    if (length == 4u) {
        const qn_float4 v = *(QN_LOCAL_POINTER const qn_float4 *)from;
        x[0] = v.x;
        x[1] = v.y;
        x[2] = v.z;
        x[3] = v.w;
    } else {
        const qn_float2 v = *(QN_LOCAL_POINTER const qn_float2 *)from;
        x[0] = v.x;
        x[1] = v.y;
    }
}

/* One link of all chains: acc[i][j] = fma(a[i], b[j], acc[i][j]). */
QN_FN void QN_TILE(qn_link)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                            QN_LOCAL_POINTER const float *a, QN_LOCAL_POINTER const float *b) {
    float x[QN_LANE_ROWS], y[QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; i += QN_ROW_RUN)
        QN_TILE(qn_run)(x + i, a + i * QN_DOWN, QN_ROW_RUN);
    QN_UNROLL
    for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; j += QN_COLUMN_RUN)
        QN_TILE(qn_run)(y + j, b + j * QN_ACROSS, QN_COLUMN_RUN);
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j)
            acc[i][j] = qn_fma(x[i], y[j], acc[i][j]);
    }
}

/* Computes n links of the k-blocks a and b. With `strips`, whole strips of QN_STRIP links are
 * unrolled; the rest is a loop. Without it all are a loop. */
QN_FN void QN_TILE(qn_links)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                             QN_LOCAL_POINTER const float *a, QN_LOCAL_POINTER const float *b,
                             qn_u32 n, const qn_u32 a_transposed, const qn_u32 b_transposed,
                             const qn_u32 strips) {
    QN_LOCAL_POINTER const float *a0 = a + QN_TILE(qn_row_run)(0u);
    QN_LOCAL_POINTER const float *b0 = b + QN_TILE(qn_column_run)(0u);
    QN_LOCAL_POINTER const float *a1 = a + (QN_TILE(qn_row_run)(0u) ^ 16u);
    QN_LOCAL_POINTER const float *b1 = b + (QN_TILE(qn_column_run)(0u) ^ 16u);
    qn_u32 k = 0u;
    QN_ROLLED
    for (; strips != 0u && k + QN_STRIP <= n; k += QN_STRIP) {
        QN_UNROLL
        for (qn_u32 l = 0u; l < QN_STRIP; ++l)
            QN_TILE(qn_link)
        (acc,
         (a_transposed != 0u && QN_TILE(qn_swizzle)(QN_TILE_ROWS, l) != 0u ? a1 : a0) +
             (k + l) * QN_TILE_ROWS,
         (b_transposed != 0u && QN_TILE(qn_swizzle)(QN_TILE_COLUMNS, l) != 0u ? b1 : b0) +
             (k + l) * QN_TILE_COLUMNS);
    }
    QN_ROLLED
    for (; k < n; ++k)
        QN_TILE(qn_link)
    (acc,
     (a_transposed != 0u && QN_TILE(qn_swizzle)(QN_TILE_ROWS, k) != 0u ? a1 : a0) +
         k * QN_TILE_ROWS,
     (b_transposed != 0u && QN_TILE(qn_swizzle)(QN_TILE_COLUMNS, k) != 0u ? b1 : b0) +
         k * QN_TILE_COLUMNS);
}

/* Computes a whole k-block at `from` while the next one, with `left` links before the end, is
 * loaded into `to`. */
QN_FN void QN_TILE(qn_k_block)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                               QN_LOCAL_POINTER float *k_blocks, QN_TILE(qn_loader) *a_loader,
                               QN_TILE(qn_loader) *b_loader, qn_u32 left, const qn_u32 a_transposed,
                               const qn_u32 b_transposed, const qn_u32 from, const qn_u32 to) {
    QN_TILE(qn_advance)(a_loader, QN_K_BLOCK, a_transposed);
    QN_TILE(qn_advance)(b_loader, QN_K_BLOCK, b_transposed);
    QN_TILE(qn_load_block)(a_loader, QN_TILE_ROWS, a_transposed, left);
    QN_TILE(qn_load_block)(b_loader, QN_TILE_COLUMNS, b_transposed, left);
    QN_TILE(qn_links)
    (acc, k_blocks + from, k_blocks + from + QN_K_BLOCK * QN_TILE_ROWS, QN_K_BLOCK, a_transposed,
     b_transposed, 1u);
    QN_TILE(qn_store_block)(a_loader, QN_TILE_ROWS, a_transposed, to);
    QN_TILE(qn_store_block)(b_loader, QN_TILE_COLUMNS, b_transposed, to);
    qn_barrier();
}

/* Computes all chains over `links` links, starting with the values of acc. `k_blocks` has space for
 * two sides of both factors. The loaders are at the first link. Each side has its own call, so that
 * addresses in local memory are constants. */
QN_FN void QN_TILE(qn_chains)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                              QN_LOCAL_POINTER float *k_blocks, QN_TILE(qn_loader) *a_loader,
                              QN_TILE(qn_loader) *b_loader, qn_u32 links, const qn_u32 a_transposed,
                              const qn_u32 b_transposed) {
    qn_u32 side = 0u, left = links;
    QN_TILE(qn_load_block)(a_loader, QN_TILE_ROWS, a_transposed, left);
    QN_TILE(qn_load_block)(b_loader, QN_TILE_COLUMNS, b_transposed, left);
    QN_TILE(qn_store_block)(a_loader, QN_TILE_ROWS, a_transposed, 0u);
    QN_TILE(qn_store_block)(b_loader, QN_TILE_COLUMNS, b_transposed, 0u);
    qn_barrier();
    QN_ROLLED
    while (left >= 2u * QN_K_BLOCK) {
        left -= 2u * QN_K_BLOCK;
        QN_TILE(qn_k_block)
        (acc, k_blocks, a_loader, b_loader, left + QN_K_BLOCK, a_transposed, b_transposed, 0u,
         QN_SIDE);
        QN_TILE(qn_k_block)(acc, k_blocks, a_loader, b_loader, left, a_transposed, b_transposed,
                            QN_SIDE, 0u);
    }
    if (left >= QN_K_BLOCK) {
        left -= QN_K_BLOCK;
        QN_TILE(qn_k_block)(acc, k_blocks, a_loader, b_loader, left, a_transposed, b_transposed, 0u,
                            QN_SIDE);
        side = QN_SIDE;
    }
    QN_TILE(qn_links)
    (acc, k_blocks + side, k_blocks + side + QN_K_BLOCK * QN_TILE_ROWS, left, a_transposed,
     b_transposed, QN_STRIP < QN_K_BLOCK ? 1u : 0u);
}
