/* The kernels of the GPU backends: their text, their names, their grids.
 *
 * One text is compiled by OpenCL C 1.2 compilers, by NVRTC and (for tests) by the C compiler. A
 * prelude for each language defines the few names in which the languages differ. The text is in the
 * .cl files beside this header and is embedded in the library. docs/exactness.md defines what a
 * kernel computes, so that variants of a kernel, and devices, differ in speed only.
 *
 * Arrays of the kernels. `ld(n)` is n rounded up to a multiple of QN_LD: the row stride in floats.
 * Columns from n on are padding, which is and stays +0.
 *
 * - parameters: one array of floats: for each layer the weights *by input*, W[in][ld(out)],
 *   then the biases [ld(out)]. The host chooses where a layer begins, a multiple of QN_LD.
 *   Slots of the optimiser and sums (int64) have the same layout.
 *
 * - batch arrays [rows][ld(n)], an item to a row: inputs, outputs, outputs after dropout, errors.
 *
 * - step: one qn_step (kernels/step.h), the first argument of every kernel that needs it.
 *
 * - status: one qn_status_words (kernels/step.h): what a step reports.
 *
 * Variants of a kernel have the same arguments. A lane is an OpenCL work-item or a CUDA thread; a
 * group is a work-group or a thread block. A tile is what one group computes: rows x columns of the
 * result. Kernels without tiles (except TALLY) also work with fewer groups than
 * qn__kernel_shape.share implies: each group continues with the stride of the grid. Groups of
 * FORWARD and ERRORS whose rows are all beyond the items of the step return immediately. Buffers
 * begin at multiples of 16 bytes. loss, classes, scores, finite (uint32), targets, weight and
 * numbers have one element for each item. */
#ifndef QN_KERNELS_KERNELS_H
#define QN_KERNELS_KERNELS_H

#include "base/error.h"
#include "kernels/training/kernel_list.h"
#include "num/program.h"
#include <stdint.h>

enum { QN_LD = 16 }; /* also in the text, kernels/step.h */

typedef enum qn__language { QN__OPENCL_C, QN__CUDA_C } qn__language;

/* The kernels, each with its arguments: M buffer, u uint32, U uint64, f float.
 *
 * FETCH: step M, values M, rows M, labels M, weights M, unit M, mean M, inverse M, X M, numbers M,
 * targets M, weight M, features u, type u (QN_VALUES_), scale u, flags u
 *     One group for each item of the batch. Computes the number of the item by the permutation of
 *     the step, its row through `rows` (uint64) with QN_FETCH_ROWS in flags, and its label with
 *     QN_FETCH_LABELS. With QN_FETCH_GATHERED the row is the item's place in the batch instead.
 *     Writes numbers (uint64), targets (int32), the weight of each item (with QN_FETCH_WEIGHTS from
 *     `weights`, else 1) and the scaled inputs X (5.1). unit: 256 floats, RN(v / 255). Columns from
 *     `features` on become +0. A buffer that a call does not use may be any buffer, but not NULL.
 *
 * FORWARD_*: step M, A M, parameters M, weights U, biases U, Y M, D M, numbers M, in u, out u,
 * stride u, layer u, activation u, threshold u, keep f, seed U
 *     Y[items][ld(out)] = activation(chain over in of A * W from the bias), 6.3, 6.4. LOSS applies
 *     softmax, and sigmoid for the loss binary, so these are not activations here. With threshold,
 *     D = Y after dropout, 6.5; without it D is not written. weights, biases: offsets in
 *     `parameters`, in floats. stride: floats from one row of the weights to the next, ld(out) or,
 *     for some columns of a wider layer, that of the layer.
 *
 * GATE: step M, Y M, S M, D M, numbers M, height u, width u, out u, layer u, activation u,
 * threshold u, keep f, seed U
 *     For gelu, silu and hardswish (17.2, 24.10), which FORWARD leaves out: Y[items *
 * pixels][ld(out)] = activation(Y), and S is the derivative there, which ERRORS takes for Y. With
 * threshold, D = Y after dropout.
 *
 * LOSS: step M, Y M, targets M, weight M, loss M, classes M, scores M, finite M, E M, out u,
 * activation u, kind u, delta f, factor f, flags u
 *     For each item: softmax if it is the activation (in place), sigmoid likewise where the loss is
 *     binary, class, score, and finite = 1 if all outputs are finite. With QN_LOSS_LABELS also the
 *     loss, with QN_LOSS_TRAIN the errors E (8.2, 8.3). With QN_LOSS_REAL targets are the bits of
 *     floats. delta is that of huber, or the smoothing of cross-entropy; factor is 2^u. The weight
 *     of an item multiplies its loss and its factor (7.7, 8.1).
 *
 * ANSWERS: step M, Y M, targets M, X M, weight M, loss M, state M, marks M, height u, width u,
 * out u, kind u, inputs u, first u, count u, delta f, factor f, flags u
 *     LOSS of networks with several answers to an item (24.70), of rows first .. first+count-1,
 *     which Y[count][ld(out)] has: softmax or sigmoid in place, with QN_LOSS_TRAIN then the errors
 *     in their place. Loss and state of each pixel: the number of right answers, and the highest
 *     bit where an output is not finite. targets are bytes, item after item. With QN_LOSS_MARKS
 *     marks[row] receives the maximum and the sum of each softmax.
 *
 * ANSWERS_AGAIN: step M, Y M, targets M, X M, weight M, marks M, height u, width u, out u, kind u,
 * inputs u, first u, count u, begin u, columns u, delta f, factor f
 *     The same errors once more, of outputs begin .. begin+columns-1, from their logits in
 *     Y[count][ld(columns)], which they replace.
 *
 * ANSWER_LINES: step M, loss M, state M, line_loss M, line_state M, height u, width u
 *     Their sums over the pixels of each line (24.71).
 *
 * ANSWER_ITEMS: step M, line_loss M, line_state M, weight M, loss M, classes M, scores M, finite M,
 * height u
 *     Sums over the lines of an item. Its loss has its weight. Its class is the number of right
 *     answers, for TALLY with QN_LOSS_ANSWERS.
 *
 * ERRORS_*: step M, E M, parameters M, weights U, Y M, B M, numbers M, in u, out u, layer u,
 * activation u, threshold u, keep f, seed U
 *     B[items][ld(in)] = errors of the layer below (8.4, 8.5), from E[items][ld(out)]. `layer`,
 *     `activation`, `threshold` and `keep` are those of the layer below, Y its outputs before
 *     dropout.
 *
 * GRADIENT_*: step M, A M, E M, sums M, status M, weights U, in u, out u, stride u, layer u,
 * limit f, k_blocks u, flags u
 *     sums[k][o] (+)= over all grains of the step the integer nearest to the grain's chain (8.6,
 *     8.7). Without QN_GRADIENT_ADD the sums are overwritten. With k_blocks > 1 the grains are
 *     divided among as many groups in direction 2 of the grid. These add with atomics to sums that
 *     were cleared before, and QN_GRADIENT_ADD must be set. stride: as that of FORWARD, of the
 *     sums.
 *
 * BIAS: step M, E M, sums M, status M, biases U, out u, layer u, limit f, flags u
 *     GRADIENT of the biases.
 *
 * UPDATE: step M, parameters M, slot0 M, slot1 M, sums M, begin U, count U, optimizer u, momentum
 * f, beta1 f, beta2 f, one_minus_beta1 f, one_minus_beta2 f, epsilon f, decay f, factor f
 *     9.1 to 9.6 for parameters begin .. begin+count-1, both multiples of QN_LD. decay is 0 for
 *     biases. With adamw the kernel computes RN(lr * decay) from the step's rate. factor is that of
 *     24.62.
 *
 * AVERAGE: step M, parameters M, averages M, begin U, count U
 *     24.63 for parameters begin .. begin+count-1.
 *
 * Layers with pixels (docs/exactness.md 16) have one row for each pixel of each item: grain, pixel,
 * item of the grain. Arrays are [rows][ld(channels)]. `index` is a place in an array of qn_taps
 * (kernels/step.h). Rows first .. first+count-1 are processed, a chunk; buffers of a chunk begin
 * with its first row.
 *
 * UNFOLD: step M, taps M, from M, to M, rows M, index u, first u, count u, column u, columns u,
 * grain u
 *     to[count][ld(columns)] = columns column .. of what the rows read, tap after tap, each with
 *     all channels; +0 for taps outside. The column after the last tap is 1: with it GRADIENT has
 *     the biases in its last row. `rows` becomes the step of products over this chunk, whose grains
 *     have `grain` rows.
 *
 * TRANSPOSE_WEIGHTS: parameters M, to M, weights U, taps u, in u, out u
 *     The weights by output, the last tap first, [taps][out][ld(in)], then a row of zeros: with
 *     them, and unfolded errors, FORWARD computes the errors of the layer below.
 *
 * PIXELS_FORWARD: step M, taps M, from M, A M, parameters M, Y M, D M, numbers M, weights U, biases
 * U, index u, first u, count u, out u, flags u, layer u, activation u, threshold u, keep f, seed U
 *     The epilogue of FORWARD for the chains from[count][ld(out)] of a chunk, after z = RN(chain +
 *     (+0)). A tap outside of the input multiplied +0, which gives a NaN if the weight is not
 *     finite. So a chain that is a NaN is computed again, from A and the weights.
 *
 * PIXELS_ERRORS: step M, taps M, from M, E M, weights M, Y M, B M, numbers M, index u, first u,
 * count u, in u, flags u, layer u, activation u, threshold u, keep f, seed U
 *     The epilogue of ERRORS likewise, for the chains from[count][ld(in)], or all rows of
 *     [items][ld(pixels * in)] with QN_PIXELS_FLAT. `weights` are those of TRANSPOSE_WEIGHTS, used
 *     with QN_PIXELS_CHAINS only. With QN_PIXELS_ADD the errors that B has are added first.
 *
 * POOL_FORWARD: step M, taps M, A M, Y M, index u, flags u, factor f
 *     16.5 with QN_POOL_MAX in flags, else 16.6; factor is r, but with QN_POOL_PARTIAL, 24.21.
 *
 * POOL_ERRORS: step M, taps M, A M, E M, B M, index u, flags u, factor f
 *     The errors B of the pool's inputs A, from those of its outputs, E. With QN_POOL_ADD they are
 *     added to those that B has.
 *
 * ADD_FORWARD: step M, taps M, A M, other M, Y M, D M, numbers M, index u, layer u, activation u,
 * threshold u, keep f, seed U
 *     17.7: the outputs of A, which has the rows of Y, and of `other`, which may be planar.
 *
 * MULTIPLY_FORWARD, CONCAT_FORWARD: step M, taps M, A M, other M, Y M, D M, numbers M, index u,
 * channels u, pixels u, out u, layer u, activation u, threshold u, keep f, seed U
 *     24.31, 24.32: of A, which has `channels` and `pixels`, and `other`, which may be planar.
 *
 * MULTIPLY_ERRORS, CONCAT_ERRORS: step M, taps M, E M, other M, to M, index u, channels u, pixels
 * u, out u, first u to[rows][ld(channels)] = the errors of one operand, from those of the outputs,
 * E, which has `pixels` and `out` channels, and the other operand; or channels `first` .. of E.
 *
 * Batchnorm (17.8): `moments` is [QN_NORM_ARRAYS][grains][ld(channels)], QN_NORM_... each.
 * `weights` is where the layer's parameters begin, [4][ld(channels)].
 *
 * NORM_SUMS: step M, taps M, A M, E M, moments M, to M, index u, grains u, flags u
 *     to[2][grains][pixels][ld(channels)] = t and q of each pixel of a grain, with QN_NORM_ERRORS
 *     b and g, from the errors E and the moments.
 *
 * NORM_MOMENTS: step M, taps M, A M, sums M, moments M, index u, grains u, flags u
 *     The moments of the layer's inputs A, from `sums` of NORM_SUMS; with QN_NORM_ERRORS those of
 *     the errors.
 *
 * NORM_FORWARD: step M, taps M, A M, parameters M, moments M, Y M, D M, numbers M, weights U,
 * index u, grains u, layer u, activation u, threshold u, keep f, seed U
 *     The outputs, as FORWARD. grains 0: by the running averages.
 *
 * NORM_ERRORS: step M, taps M, A M, parameters M, moments M, E M, B M, weights U, index u, grains
 * u, flags u
 *     The errors B of the inputs A. With QN_NORM_ADD they are added to those that B has.
 *
 * NORM_GRADIENT: step M, moments M, sums M, status M, weights U, channels u, pixels u, grains u,
 * layer u, limit f, flags u
 *     GRADIENT of weight and bias, and what the grains add to the running averages.
 *
 * NORM_UPDATE: step M, parameters M, sums M, begin U, count u, rate f
 *     The running averages begin .. begin+count-1.
 *
 * Groupnorm and layernorm (17.9): `moments` is [QN_ITEM_ARRAYS][items][groups], QN_ITEM_... each,
 * `sums` [2][items][ld(channels)], `groups` the number of groups.
 *
 * ITEM_NORM_SUMS: step M, taps M, A M, E M, moments M, to M, index u, groups u, flags u
 *     to = t and q of each channel of an item, with QN_NORM_ERRORS b and g, from the errors E.
 *
 * ITEM_NORM_MOMENTS: step M, taps M, A M, parameters M, sums M, moments M, weights U, index u,
 * groups u, flags u
 *     With QN_NORM_SHIFT s of each group, from A; else mean and r, from `sums`; with QN_NORM_ERRORS
 *     h and k. In this order, sums before each of the last two.
 *
 * ITEM_NORM_FORWARD: step M, taps M, A M, parameters M, moments M, Y M, D M, numbers M, weights U,
 * index u, groups u, layer u, activation u, threshold u, keep f, seed U
 *     The outputs, as FORWARD.
 *
 * ITEM_NORM_ERRORS: step M, taps M, A M, parameters M, moments M, E M, B M, weights U, index u,
 * groups u, flags u
 *     As NORM_ERRORS.
 *
 * ITEM_NORM_GRADIENT: step M, from M, moments M, sums M, status M, weights U, channels u, groups u,
 * pixels u, layer u, limit f, flags u
 *     GRADIENT of weight and bias of items with so many parts, from the sums of the errors.
 *
 * LAYERSCALE_FORWARD: step M, taps M, A M, parameters M, Y M, D M, numbers M, weights U, index u,
 * layer u, activation u, threshold u, keep f, seed U
 *     The outputs, as FORWARD.
 *
 * LAYERSCALE_ERRORS: step M, taps M, parameters M, E M, B M, weights U, index u, flags u
 *     As NORM_ERRORS.
 *
 * LAYERSCALE_GRADIENT: step M, taps M, A M, E M, sums M, status M, weights U, index u, layer u,
 * limit f, k_blocks u, flags u
 *     GRADIENT of the factors.
 *
 * rmsnorm (25.30): `moments` is [2][rows]: r, and k of the errors.
 *
 * RMS_NORM_MOMENTS: step M, taps M, A M, parameters M, E M, moments M, weights U, index u, flags u
 *     r of each row of A; with QN_NORM_ERRORS k, from the errors E.
 *
 * RMS_NORM_FORWARD, RMS_NORM_ERRORS: as ITEM_NORM_FORWARD and ITEM_NORM_ERRORS; groups does not
 * matter.
 *
 * RMS_NORM_GRADIENT: step M, taps M, A M, E M, moments M, sums M, status M, weights U, index u,
 * layer u, limit f, k_blocks u, flags u
 *     GRADIENT of the weights.
 *
 * EMBEDDING_FORWARD: step M, A M, parameters M, Y M, D M, numbers M, weights U, tokens u, inputs
 * u, positions u, channels u, tied u, layer u, activation u, threshold u, keep f, seed U
 *     The outputs, as FORWARD: the rows of `parameters` that A[items][ld(inputs)] numbers, of its
 * first `positions` columns. With `tied` not 0, channel c of token v is at c * tied + v.
 *
 * EMBEDDING_LINKS: step M, A M, links M, tokens u, inputs u, positions u
 *     links = the next position with the same token in a grain, and which ones are the first.
 *
 * EMBEDDING_GRADIENT: step M, A M, links M, E M, sums M, status M, weights U, tokens u, inputs
 * u, positions u, channels u, tied u, layer u, limit f, k_blocks u
 *     Adds the GRADIENT of the rows to the sums.
 *
 * LISTS_FORWARD: step M, lists M, parameters M, unit M, mean M, inverse M, Y M, D M, numbers M,
 * weights U, biases U, in u, out u, scale u, layer u, activation u, threshold u, keep f, seed U
 *     As FORWARD, of items that are lists: lists[items + 1] has where the pairs of each item begin,
 *     among those that follow. A pair is an input and the bits of its value; inputs ascend.
 *
 * LISTS_GRADIENT: step M, columns M, E M, unit M, mean M, inverse M, sums M, status M, weights U,
 * count u, out u, scale u, layer u, limit f
 *     Adds the GRADIENT of `count` inputs to the sums: columns[count][2] has each of them and where
 *     its pairs end, among those that follow. A pair is the place of an item and the bits of the
 *     value; places ascend.
 *
 * ATTENTION_FORWARD: step M, taps M, items M, A M, Y M, moments M, index u, tokens u, inputs u,
 * heads u, groups u, span u, causal u
 *     The outputs, and m and r of each query, in `moments`
 * [QN_ATTEND_ARRAYS][items][heads][pixels]. The length of an item is that of its row of
 * items[items][ld(inputs)], with numbers below `tokens`; 0: all positions count.
 *
 * ATTENTION_MEANS: step M, taps M, Y M, E M, moments M, index u, heads u, groups u
 *     D of each query.
 *
 * ATTENTION_QUERIES, ATTENTION_KEYS: step M, taps M, items M, A M, E M, moments M, B M, index u,
 * tokens u, inputs u, heads u, groups u, span u, causal u, flags u
 *     As NORM_ERRORS, of the queries; of the keys and values.
 *
 * ATTENTION_BLOCKS: step M, taps M, X M, moments M, index u, heads u, groups u, back u
 *     The absmax of the blocks of 25.25: of A, or, if `back` is 1, of the errors E.
 *
 * ATTENTION_INTEGER_FORWARD, ATTENTION_INTEGER_QUERIES, ATTENTION_INTEGER_KEYS: ..., bits u
 *     As ATTENTION_*, with integers. `moments` has QN_ATTEND_BLOCKS arrays more.
 *
 * ATTENTION_KEEP: step M, A M, numbers M, cache M, heads u, groups u, width u, positions u
 *     The keys and values of further positions of sequences, of heads of so many channels, in the
 *     cache of [sequences][positions]: see attention_cached.cl.
 *
 * ATTENTION_CACHED: step M, A M, numbers M, cache M, Y M, heads u, groups u, width u, positions u,
 * span u
 *     The outputs of these positions, from the cache.
 *
 * ATTENTION_KEEP_BLOCKS, ATTENTION_CACHED_INTEGER: ..., bits u for the second one
 *     The absmax of their blocks (25.25), in the cache; as ATTENTION_CACHED, with integers.
 *
 * POOLED_FORWARD: step M, taps M, items M, A M, Y M, index u, pooling u, tokens u, inputs u
 *     The outputs; `items` and `tokens` as above, `pooling` is a QN_POOLED_* of step.h or 0.
 *
 * POOLED_ERRORS: step M, taps M, items M, A M, E M, B M, index u, pooling u, tokens u, inputs u,
 * flags u
 *     As POOL_ERRORS.
 *
 * RECURRENT_FORWARD: step M, taps M, items M, A M, parameters M, moments M, Y M, D M, numbers M,
 * weights U, biases U, index u, tokens u, inputs u, gates u, reverse u, at u, layer u,
 * activation u, threshold u, keep f, seed U
 *     The outputs of step `at` of each item, as FORWARD, and what is kept of it: see recurrent.cl.
 *
 * RECURRENT_BACK: step M, taps M, items M, parameters M, E M, moments M, weights U, index u, tokens
 * u, inputs u, gates u, reverse u, at u
 *     The errors of the gates of step `at`, in `moments`, after those of the next step.
 *
 * RECURRENT_ERRORS: step M, taps M, moments M, B M, index u, gates u, flags u
 *     As NORM_ERRORS, from those of the gates.
 *
 * RECURRENT_GRADIENT: step M, taps M, moments M, sums M, status M, weights U, index u, gates u,
 * reverse u, layer u, rows u, limit f, k_blocks u, flags u
 *     As GRADIENT, of the first `rows` rows of sums.
 *
 * POSITION_FORWARD: step M, taps M, A M, parameters M, Y M, D M, numbers M, weights U, index u,
 * layer u, activation u, threshold u, keep f, seed U
 *     The outputs, as FORWARD.
 *
 * POSITION_ERRORS: step M, taps M, E M, B M, index u, flags u
 *     As NORM_ERRORS.
 *
 * POSITION_GRADIENT: step M, E M, sums M, status M, weights U, pixels u, channels u, layer u, limit
 * f, flags u
 *     GRADIENT of the parameters.
 *
 * ROTARY_FORWARD: step M, taps M, A M, table M, Y M, numbers M, index u, pairs u, turned u
 *     The outputs, by table[pixels][2][pairs]: the first `turned` channels, of heads with so many
 *     pairs, are turned.
 *
 * ROTARY_ERRORS: step M, taps M, table M, E M, B M, index u, pairs u, turned u, flags u
 *     As NORM_ERRORS.
 *
 * Convolutions with groups (17.6), without UNFOLD, TRANSPOSE_WEIGHTS and products:
 *
 * GROUPED_FORWARD: step M, taps M, A M, parameters M, Y M, D M, numbers M, weights U, biases U,
 * index u, out u, groups u, layer u, activation u, threshold u, keep f, seed U
 *     The outputs, as FORWARD.
 *
 * GROUPED_ERRORS: step M, taps M, E M, parameters M, Y M, B M, numbers M, weights U, index u, in u,
 * groups u, flags u, layer u, activation u, threshold u, keep f, seed U
 *     As ERRORS; with QN_PIXELS_ADD the errors that B has are added first. index: what the rows of
 *     B read.
 *
 * GROUPED_GRADIENT: step M, taps M, A M, E M, sums M, status M, weights U, index u, out u, groups
 * u, layer u, rows u, limit f, k_blocks u, flags u
 *     As GRADIENT, biases included: of the first `rows` rows of sums.
 *
 * LEARN_VECTOR: step M, A M, E M, parameters M, slot0 M, slot1 M, status M, weights U, in u, out
 * u, layer u, limit f, optimizer u, momentum f, beta1 f, beta2 f, one_minus_beta1 f,
 * one_minus_beta2 f, epsilon f, decay f, factor f
 *     GRADIENT, BIAS and UPDATE of a layer in one pass, for a step that is not shared and whose
 *     grains are all in this pass. The sums are not written. ERRORS of the layer must run before
 *     it.
 *
 * Integer products (docs/exactness.md 15) use *words*: four digits of 7 bits that are consecutive
 * along the sum of the product; intgemm_words.cl describes them. Absolute maxima (absmax) are
 * uint32, the bits of a float.
 *
 * ABSMAX: parameters M, outputs M, weights U, in u, out u, output u
 *     Raises outputs[output + o] to the absmax of the weights of output o.
 *
 * QUANTIZE_WEIGHTS: parameters M, outputs M, by_output M, by_input M, weights U, in u, out u,
 * output u, bits u, flags u
 *     The weights as words along the inputs, [out] rows, and with QN_QUANTIZE_BY_INPUT along the
 *     outputs, [in] rows. Each is quantized by the block of its output.
 *
 * QUANTIZE_ITEMS: step M, from M, outputs M, items M, grains M, to M, status M, columns u, bits u,
 * output u, grain u, layer u, flags u
 *     items[i] = absmax of row i of a batch array, with QN_QUANTIZE_WEIGHED of its numbers times
 *     the factors of the blocks outputs[output ..]. With QN_QUANTIZE_GRAINS raises grains[grain +
 *     i / G] to the absmax without factors. With QN_QUANTIZE_WORDS writes the row as words.
 *
 * QUANTIZE_GRAINS: step M, from M, absmax M, to M, columns u, bits u, first u
 *     A batch array as words along the items of each grain, [columns] rows; absmax[first + g] is
 *     that of grain g.
 *
 * Layers with pixels (17.12) have these besides, in rows as above:
 *
 * PIXELS_ABSMAX: step M, from M, outputs M, items M, grains M, status M, columns u, pixels u, bits
 * u, output u, grain u, layer u, flags u
 *     items[i] = absmax of the `pixels` rows of item i, and QN_QUANTIZE_... as QUANTIZE_ITEMS, but
 *     no words are written. The network's inputs have one row for each item.
 *
 * QUANTIZE_ROWS: step M, taps M, from M, outputs M, items M, rows M, to M, index u, first u, count
 * u, columns u, channels u, bits u, output u, flags u
 *     A chunk from[count][ld(columns)] as words of rows, by the absmax of their items, which is
 *     written to rows[count]; with QN_QUANTIZE_OWN by that which rows[count] has already. With
 *     QN_QUANTIZE_WEIGHED column k belongs to output k mod channels.
 *
 * GRAINS_ABSMAX: from M, grains M, first u, count u, columns u, span u, place u
 *     The absmax of each grain of `span` rows, from the rows first .. of from[count][ld(columns)]:
 *     grains[place + grain] is made as large at least.
 *
 * ROWS_ABSMAX: from M, outputs M, rows M, count u, columns u, channels u, bits u, output u, flags u
 *     rows[r] = absmax of row r of a chunk from[count][ld(columns)], whose columns are the layer's
 *     channels or, with QN_QUANTIZE_WEIGHED, its outputs.
 *
 * QUANTIZE_TRANSPOSED: parameters M, outputs M, to M, weights U, taps u, in u, out u, output u,
 * bits u
 *     The weights of TRANSPOSE_WEIGHTS as words along taps and outputs, [in] rows.
 *
 * INTGEMM_FORWARD_*: step M, A M, absmax M, W M, outputs M, parameters M, biases U, Y M, D M,
 * numbers M, in u, out u, begin u, output u, layer u, activation u, threshold u, keep f, seed U
 *     FORWARD of items as words (15.4); absmax is that of the items. begin: the first row of W.
 *
 * INTGEMM_ERRORS_*: step M, E M, absmax M, W M, Y M, B M, numbers M, in u, out u, layer u,
 * activation u, threshold u, keep f, seed U
 *     ERRORS of weighed errors as words (15.5).
 *
 * INTGEMM_GRADIENT_*: step M, A M, E M, absmax M, sums M, status M, weights U, in u, out u, stride
 * u, layer u, inputs u, errors u, limit f, k_blocks u, flags u
 *     GRADIENT of words along grains (15.6); absmax[inputs + g] and absmax[errors + g] are those
 *     of grain g. Tiles of these three kernels follow each other in direction 0, along the columns
 *     first. Those by matrix instructions (MATRIX, CUDA only) take sums of at most QN_MATRIX_DEPTH
 *     numbers, and gradients only of grains with 13 items or more.
 *
 * TALLY: step M, loss M, classes M, targets M, finite M, status M, flags u
 *     One group. Adds to `status`: with QN_LOSS_LABELS the losses of grains (7.4) and, without
 *     QN_LOSS_REAL, the number of right answers; and the first item whose outputs are not finite.
 *
 * SUMS_OUT: sums M, canonical M, weights U, in u, out u, offset U, biases u
 *     canonical[offset ..] (int64, W[out][in], then `biases` rows of [out]) = the sums of the
 * layer.
 *
 * SUMS_IN: the same
 *     The sums of the layer = canonical[offset ..].
 *
 * MAP: in M, out M, count U, op u
 *     out[i] = op(in[i]), floats; op is a QN_MAP_*. The self-test, the tests over all 2^32
 *     arguments and the measurements run it.
 *
 * TRIAL: a M, b M, c M, out M, count U, op u
 *     out[i] (uint64) = op(a[i], b[i], c[i]), of uint32 words; op is a QN_TRIAL_*. The self-test
 *     checks the arithmetic of the device with it. */
#define QN__KERNEL_NUMBER(KERNEL, NAME, ARGUMENTS, LANES, ROWS, COLUMNS, SHARE, PRODUCTS)          \
    QN__K_##KERNEL,
typedef enum qn__kernel { QN__KERNEL_LIST(QN__KERNEL_NUMBER) QN__KERNELS } qn__kernel;
#undef QN__KERNEL_NUMBER

/* How a kernel is launched. */
typedef struct qn__kernel_shape {
    const char *name;                 /* "qn_forward_large" */
    const char *arguments;            /* a letter each, as above: "MMMUUMMMuuuuuufU" */
    uint32_t lanes[2];                /* of a group, in both directions; 1, 1 for vector kernels */
    uint32_t tile_rows, tile_columns; /* of the result that a group computes; 0: not a product.
                                         Rows are items (FORWARD, ERRORS) or inputs k (GRADIENT);
                                         columns are outputs (FORWARD, GRADIENT) or inputs (ERRORS).
                                         Directions of the grid: 0 columns, 1 rows, 2 k-blocks. */
    /* Of a kernel without tiles: pieces of work that one group does. The grid has work / share
     * groups, rounded up, in direction 0; with 0 always one group. The pieces are items (FETCH,
     * LOSS), rows (ANSWERS), numbers with their padding (GATE, ANSWERS_AGAIN), outputs (BIAS),
     * parameters (UPDATE, AVERAGE: `count`), vectors of four columns in 16 rows (UNFOLD), 16
     * columns of a row (TRANSPOSE_WEIGHTS, PIXELS_*, POOL_*, ADD_FORWARD, MULTIPLY_*, CONCAT_*,
     * GROUPED_*, and of NORM_* and ITEM_NORM_* all but the next, EMBEDDING_FORWARD, LISTS_*,
     * POSITION_*), groups of channels of an item (ITEM_NORM_MOMENTS), channels (NORM_GRADIENT,
     * NORM_UPDATE, ITEM_NORM_GRADIENT, LAYERSCALE_GRADIENT, EMBEDDING_GRADIENT), occurrences of
     * tokens (EMBEDDING_LINKS), words (QUANTIZE_ROWS, QUANTIZE_TRANSPOSED), rows (ROWS_ABSMAX,
     * GRAINS_ABSMAX), items (PIXELS_ABSMAX), queries (ATTENTION_MEANS), blocks (ATTENTION_BLOCKS),
     * numbers (ATTENTION_KEEP), 128 channels of a head of a row (ATTENTION_CACHED*), blocks
     * (ATTENTION_KEEP_BLOCKS), 16 queries or keys and 64 channels of a head (other ATTENTION_*),
     * weights and biases with their padding (SUMS_*: (in + biases) * ld(out)), elements (MAP,
     * TRIAL). Groups beyond the work's end do nothing. */
    uint32_t share;
    int opencl_only;   /* 1: a vector kernel, not in the CUDA text */
    uint32_t products; /* QN_WITH_...: a program with any of these arithmetics has the kernel, if it
                          also has its kind of tiles */
} qn__kernel_shape;

const qn__kernel_shape *qn__kernel_shape_of(qn__kernel kernel);

/* 1 when the program with `products` (QN_WITH_..., kernels/step.h) has the kernel; only OpenCL
 * programs for CPU devices have vector kernels. */
int qn__kernel_belongs(qn__kernel kernel, qn__language language, uint32_t products);

/* The products (QN_WITH_...) that a program for an arithmetic needs. */
uint32_t qn__kernel_products(qn__arith arith);

/* The constants of the kernels' text (kernels/step.h) for the host's enums. */
uint32_t qn__kernel_activation(qn__activation activation);
uint32_t qn__kernel_optimizer(qn__optimizer optimizer);
uint32_t qn__kernel_scale(qn__scale scale);
uint32_t qn__kernel_loss(qn__loss loss);

/* The vector variant, for CPU devices, of a kernel without tiles; the kernel itself if it has
 * none. */
qn__kernel qn__kernel_vector(qn__kernel kernel);

/* The program's text for a language: prelude, then all files, ready for its compiler. Static,
 * NUL-terminated. */
const char *qn__kernel_text(qn__language language);

/* The text of the functions of user kernels (elementary_functions.h) for a language: the prelude,
 * then the functions qn_f32_NAME and, with -DQN_DOUBLE=1 in OpenCL C, qn_f64_NAME. Static,
 * NUL-terminated. */
const char *qn__math_text(qn__language language);

/* The prelude and exact.cl alone; for kernels without such functions, in place of that text. */
const char *qn__exact_text(qn__language language);

/* The operations of user kernels (operations.inc), which follow one of these texts; and the same
 * with their trials, whose kernel is qn_user_trials. */
const char *qn__operations_text(void);
const char *qn__operation_trials_text(void);
/* Exact totals of items' values (totals.cl), which follow qn__exact_text. */
const char *qn__totals_text(void);
/* The kernels for sums of products of columns (pairs.cl), and for sums and extremes of columns
 * (columns.cl). They follow qn__exact_text and the numbers that statistics/pair_device.c and
 * statistics/column_device.c define. */
const char *qn__pairs_text(void);
const char *qn__columns_text(void);

/* SHA-256 of the program's text in hexadecimal (64 characters and a NUL): a part of a cache's key.
 */
const char *qn__kernel_digest(qn__language language);

/* Options for the compiler, separated by spaces. The caller adds those for the device and
 * -DQN_PRODUCTS=..., the products of the program (default: all). */
const char *qn__kernel_options(qn__language language);

#endif
