/* Matrix instructions for bytes: d += a * b, where a has 16 x 32 numbers, b 32 x 8 and d 16 x 8.
 * PTX calls it mma.m16n8k32. The fragments are distributed over the 32 lanes of a warp. With g =
 * lane / 4 and t = lane % 4, a lane holds
 *
 *   a[0], a[1]  numbers 4t .. 4t+3 of rows g and g + 8, one word each; a[2], a[3] the same at 16
 * further b[0], b[1]  numbers 4t .. 4t+3 of column g, and the same at 16 further d[0], d[1] columns
 * 2t and 2t + 1 of row g; d[2], d[3] of row g + 8
 *
 * The prelude of a language with such instructions defines qn_matrix, or qn_matrix_quarter: 8 x 16
 * by 16 x 8, PTX's m8n8k16, with one word of a and one of b in each lane. It also defines
 * qn_matrix_begin and qn_matrix_end, which enclose all uses of the same words. */
#ifdef qn_matrix_quarter
QN_FN void qn_matrix_of_quarters(qn_i32 *d, const qn_i32 *a, const qn_i32 *b) {
    qn_matrix_quarter(d, a, b);
    qn_matrix_quarter(d, a + 2, b + 1);
    qn_matrix_quarter(d + 2, a + 1, b);
    qn_matrix_quarter(d + 2, a + 3, b + 1);
}
#ifndef qn_matrix
#define qn_matrix(d, a, b) qn_matrix_of_quarters(d, a, b)
#endif
#endif
