/* The epilogue for `run` consecutive numbers of a row that a lane computed. A lane stores its sums
 * first and then reads them again in a loop. If the loop were unrolled with the sums in registers,
 * the kernel would contain one copy of the elementary functions for each number of a lane.
 *
 * A run does not cross the end of the padded row, nor of a quad of dropout words: its length is 2
 * or 4, and its column is a multiple of the length. */

/* Two forms of one selection. ptxas keeps each of them in registers for one length of a run only;
 * for the other length it spills or uses the stack (tests/test_kernels_cuda.py). */
QN_FN qn_u32 qn_word_of(qn_four words, qn_u32 column, const qn_u32 run) {
    const qn_u32 all[4] = {words.x, words.y, words.z, words.w}, n = column % 4u;
    if (run == 4u)
        return all[n];
    return n == 0u ? words.x : n == 1u ? words.y : n == 2u ? words.z : words.w;
}

QN_FN qn_four qn_run_words(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_u64 *numbers,
                           qn_u32 row, qn_u32 column, qn_u32 layer, qn_u32 threshold, qn_u64 seed) {
    return qn_dropout_words(seed, layer, step->epoch, threshold != 0u ? numbers[row] : 0u,
                            column / 4u);
}

/* Whether the outputs of a layer differ from its sums; softmax is applied by LOSS. */
QN_FN qn_u32 qn_finishes_forward(qn_u32 activation, qn_u32 threshold) {
    return (activation != QN_ACT_NONE && activation != QN_ACT_SOFTMAX) || threshold != 0u ? 1u : 0u;
}

QN_FN qn_u32 qn_finishes_errors(qn_u32 activation, qn_u32 threshold) {
    return activation != QN_ACT_NONE || threshold != 0u ? 1u : 0u;
}

QN_FN void qn_finish_forward_run(QN_GLOBAL const qn_step *step, qn_u32 items, QN_GLOBAL float *Y,
                                 QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u32 row,
                                 qn_u32 column, const qn_u32 run, qn_u32 columns, qn_u32 layer,
                                 qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    const qn_u32 ld = qn_ld(columns);
    if (row >= items || column >= ld)
        return;
    QN_GLOBAL float *y = Y + (qn_u64)row * ld + column;
    QN_GLOBAL float *d = D + (y - Y);
    const qn_four words = qn_run_words(step, numbers, row, column, layer, threshold, seed);
    QN_ROLLED
    for (qn_u32 n = 0u; n < run; ++n)
        qn_finish_forward(y + n, d + n, column + n, columns, activation, threshold, keep,
                          qn_word_of(words, column + n, run));
}

QN_FN void qn_finish_errors_run(QN_GLOBAL const qn_step *step, qn_u32 items, QN_GLOBAL float *B,
                                QN_GLOBAL const float *Y, QN_GLOBAL const qn_u64 *numbers,
                                qn_u32 row, qn_u32 column, const qn_u32 run, qn_u32 columns,
                                qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep,
                                qn_u64 seed) {
    const qn_u32 ld = qn_ld(columns);
    if (row >= items || column >= ld)
        return;
    QN_GLOBAL float *e = B + (qn_u64)row * ld + column;
    QN_GLOBAL const float *y = Y + (e - B);
    const qn_four words = qn_run_words(step, numbers, row, column, layer, threshold, seed);
    QN_ROLLED
    for (qn_u32 n = 0u; n < run; ++n)
        qn_finish_errors(e + n, y + n, column + n, columns, activation, threshold, keep,
                         qn_word_of(words, column + n, run));
}
