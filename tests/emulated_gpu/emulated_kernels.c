/* The kernel text as C, and its kernels by name. */
#include "emulated_gpu.h"

#include "emulated_matrix.h"
/* All that any program has. */
#define QN_PRODUCTS 191u
#include "kernels/runtime/prelude_c.h"

uint32_t qn_lane(void) { return qn_emulated_now.lane; }
uint32_t qn_group(int direction) { return qn_emulated_now.group[direction]; }
uint32_t qn_groups(int direction) { return qn_emulated_now.groups[direction]; }
void qn_barrier(void) { qn_emulated_barrier(); }

#include "kernels/training/program.cl"

/* The argument i as memory and as the numbers of kernels/kernels.h. */
#define M(i) (*(void *const *)a[i])
#define U(i) (*(const uint64_t *)a[i])
#define u(i) (*(const uint32_t *)a[i])
#define f(i) (*(const float *)a[i])

static void fetch(void *const *a) {
    qn_fetch(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), M(9), M(10), M(11), u(12), u(13),
             u(14), u(15));
}
static void forward_large(void *const *a) {
    qn_forward_large(M(0), M(1), M(2), U(3), U(4), M(5), M(6), M(7), u(8), u(9), u(10), u(11),
                     u(12), u(13), f(14), U(15));
}
static void forward_medium(void *const *a) {
    qn_forward_medium(M(0), M(1), M(2), U(3), U(4), M(5), M(6), M(7), u(8), u(9), u(10), u(11),
                      u(12), u(13), f(14), U(15));
}
static void forward_small(void *const *a) {
    qn_forward_small(M(0), M(1), M(2), U(3), U(4), M(5), M(6), M(7), u(8), u(9), u(10), u(11),
                     u(12), u(13), f(14), U(15));
}
static void loss(void *const *a) {
    qn_loss(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), u(9), u(10), u(11), f(12), f(13),
            u(14));
}
static void errors_large(void *const *a) {
    qn_errors_large(M(0), M(1), M(2), U(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11), f(12),
                    U(13));
}
static void errors_medium(void *const *a) {
    qn_errors_medium(M(0), M(1), M(2), U(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                     f(12), U(13));
}
static void errors_small(void *const *a) {
    qn_errors_small(M(0), M(1), M(2), U(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11), f(12),
                    U(13));
}
static void gradient_large(void *const *a) {
    qn_gradient_large(M(0), M(1), M(2), M(3), M(4), U(5), u(6), u(7), u(8), u(9), f(10), u(11),
                      u(12));
}
static void gradient_small(void *const *a) {
    qn_gradient_small(M(0), M(1), M(2), M(3), M(4), U(5), u(6), u(7), u(8), u(9), f(10), u(11),
                      u(12));
}
static void bias(void *const *a) { qn_bias(M(0), M(1), M(2), M(3), U(4), u(5), u(6), f(7), u(8)); }
static void update(void *const *a) {
    qn_update(M(0), M(1), M(2), M(3), M(4), U(5), U(6), u(7), f(8), f(9), f(10), f(11), f(12),
              f(13), f(14), f(15));
}
static void average(void *const *a) { qn_average(M(0), M(1), M(2), U(3), U(4)); }
static void answers(void *const *a) {
    qn_answers(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), u(8), u(9), u(10), u(11), u(12),
               u(13), u(14), f(15), f(16), u(17));
}
static void answers_again(void *const *a) {
    qn_answers_again(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8), u(9), u(10), u(11),
                     u(12), u(13), u(14), f(15), f(16));
}
static void answer_lines(void *const *a) {
    qn_answer_lines(M(0), M(1), M(2), M(3), M(4), u(5), u(6));
}
static void answer_items(void *const *a) {
    qn_answer_items(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), u(8));
}
static void gate(void *const *a) {
    qn_gate(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8), u(9), u(10), f(11), U(12));
}
static void tally(void *const *a) { qn_tally(M(0), M(1), M(2), M(3), M(4), M(5), u(6)); }
static void sums_out(void *const *a) { qn_sums_out(M(0), M(1), U(2), u(3), u(4), U(5), u(6)); }
static void sums_in(void *const *a) { qn_sums_in(M(0), M(1), U(2), u(3), u(4), U(5), u(6)); }
static void map(void *const *a) { qn_map(M(0), M(1), U(2), u(3)); }
static void trial(void *const *a) { qn_trial(M(0), M(1), M(2), M(3), U(4), u(5)); }

/* Integer products: a function for each width and kind of tiles. */
#define INTGEMM_FORWARD(name)                                                                      \
    static void intgemm_forward_##name(void *const *a) {                                           \
        qn_intgemm_forward_##name(M(0), M(1), M(2), M(3), M(4), M(5), U(6), M(7), M(8), M(9),      \
                                  u(10), u(11), u(12), u(13), u(14), u(15), u(16), f(17), U(18));  \
    }
#define INTGEMM_ERRORS(name)                                                                       \
    static void intgemm_errors_##name(void *const *a) {                                            \
        qn_intgemm_errors_##name(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9),       \
                                 u(10), u(11), f(12), U(13));                                      \
    }
#define INTGEMM_GRADIENT(name)                                                                     \
    static void intgemm_gradient_##name(void *const *a) {                                          \
        qn_intgemm_gradient_##name(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), u(9),     \
                                   u(10), u(11), u(12), f(13), u(14), u(15));                      \
    }
#define WHOLE(name)                                                                                \
    INTGEMM_FORWARD(name)                                                                          \
    INTGEMM_ERRORS(name)                                                                           \
    INTGEMM_GRADIENT(name)
#define MATRIX(bits)                                                                               \
    INTGEMM_FORWARD(bits##_matrix_large)                                                           \
    INTGEMM_ERRORS(bits##_matrix_large)                                                            \
    WHOLE(bits##_matrix_small)
#define WIDTH(bits)                                                                                \
    WHOLE(bits##_large)                                                                            \
    WHOLE(bits##_small)                                                                            \
    MATRIX(bits)
WIDTH(i7)
WIDTH(i14)
WIDTH(i21)

static void unfold(void *const *a) {
    qn_unfold(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8), u(9), u(10));
}
static void transpose_weights(void *const *a) {
    qn_transpose_weights(M(0), M(1), U(2), u(3), u(4), u(5));
}
static void pixels_forward(void *const *a) {
    qn_pixels_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), U(8), U(9), u(10), u(11),
                      u(12), u(13), u(14), u(15), u(16), u(17), f(18), U(19));
}
static void pixels_errors(void *const *a) {
    qn_pixels_errors(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), u(8), u(9), u(10), u(11),
                     u(12), u(13), u(14), u(15), f(16), U(17));
}
static void pool_forward(void *const *a) {
    qn_pool_forward(M(0), M(1), M(2), M(3), u(4), u(5), f(6));
}
static void pool_errors(void *const *a) {
    qn_pool_errors(M(0), M(1), M(2), M(3), M(4), u(5), u(6), f(7));
}
static void add_forward(void *const *a) {
    qn_add_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), f(11), U(12));
}

static void multiply_forward(void *const *a) {
    qn_multiply_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                        u(12), u(13), f(14), U(15));
}

static void multiply_errors(void *const *a) {
    qn_multiply_errors(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8), u(9));
}

static void concat_forward(void *const *a) {
    qn_concat_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                      u(12), u(13), f(14), U(15));
}

static void concat_errors(void *const *a) {
    qn_concat_errors(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8), u(9));
}
static void norm_sums(void *const *a) {
    qn_norm_sums(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8));
}
static void norm_moments(void *const *a) {
    qn_norm_moments(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7));
}
static void norm_forward(void *const *a) {
    qn_norm_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), U(8), u(9), u(10), u(11), u(12),
                    u(13), f(14), U(15));
}
static void norm_errors(void *const *a) {
    qn_norm_errors(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), u(10));
}
static void norm_gradient(void *const *a) {
    qn_norm_gradient(M(0), M(1), M(2), M(3), U(4), u(5), u(6), u(7), u(8), f(9), u(10));
}
static void norm_update(void *const *a) { qn_norm_update(M(0), M(1), M(2), U(3), u(4), f(5)); }
static void item_norm_sums(void *const *a) {
    qn_item_norm_sums(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8));
}
static void item_norm_moments(void *const *a) {
    qn_item_norm_moments(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), u(9));
}
static void item_norm_forward(void *const *a) {
    qn_item_norm_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), U(8), u(9), u(10), u(11),
                         u(12), u(13), f(14), U(15));
}
static void item_norm_errors(void *const *a) {
    qn_item_norm_errors(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), u(10));
}
static void item_norm_gradient(void *const *a) {
    qn_item_norm_gradient(M(0), M(1), M(2), M(3), M(4), U(5), u(6), u(7), u(8), u(9), f(10), u(11));
}
static void attention_forward(void *const *a) {
    qn_attention_forward(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8), u(9), u(10), u(11),
                         u(12));
}
static void attention_means(void *const *a) {
    qn_attention_means(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7));
}
static void attention_queries(void *const *a) {
    qn_attention_queries(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                         u(12), u(13), u(14));
}
static void attention_keys(void *const *a) {
    qn_attention_keys(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                      u(12), u(13), u(14));
}
static void attention_blocks(void *const *a) {
    qn_attention_blocks(M(0), M(1), M(2), M(3), u(4), u(5), u(6), u(7));
}
static void attention_integer_forward(void *const *a) {
    qn_attention_integer_forward(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8), u(9), u(10),
                                 u(11), u(12), u(13));
}
static void attention_integer_queries(void *const *a) {
    qn_attention_integer_queries(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10),
                                 u(11), u(12), u(13), u(14), u(15));
}
static void attention_integer_keys(void *const *a) {
    qn_attention_integer_keys(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10),
                              u(11), u(12), u(13), u(14), u(15));
}
static void attention_keep(void *const *a) {
    qn_attention_keep(M(0), M(1), M(2), M(3), u(4), u(5), u(6), u(7));
}
static void attention_cached(void *const *a) {
    qn_attention_cached(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8), u(9));
}
static void attention_keep_blocks(void *const *a) {
    qn_attention_keep_blocks(M(0), M(1), M(2), M(3), u(4), u(5), u(6), u(7));
}
static void attention_cached_integer(void *const *a) {
    qn_attention_cached_integer(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8), u(9), u(10));
}
static void recurrent_forward(void *const *a) {
    qn_recurrent_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), U(9), U(10), u(11),
                         u(12), u(13), u(14), u(15), u(16), u(17), u(18), u(19), f(20), U(21));
}
static void recurrent_back(void *const *a) {
    qn_recurrent_back(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), u(9), u(10), u(11),
                      u(12));
}
static void recurrent_errors(void *const *a) {
    qn_recurrent_errors(M(0), M(1), M(2), M(3), u(4), u(5), u(6));
}
static void recurrent_gradient(void *const *a) {
    qn_recurrent_gradient(M(0), M(1), M(2), M(3), M(4), U(5), u(6), u(7), u(8), u(9), u(10), f(11),
                          u(12), u(13));
}
static void pooled_forward(void *const *a) {
    qn_pooled_forward(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8));
}
static void pooled_errors(void *const *a) {
    qn_pooled_errors(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8), u(9), u(10));
}
static void layerscale_forward(void *const *a) {
    qn_layerscale_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), u(10), u(11),
                          f(12), U(13));
}
static void layerscale_errors(void *const *a) {
    qn_layerscale_errors(M(0), M(1), M(2), M(3), M(4), U(5), u(6), u(7));
}
static void layerscale_gradient(void *const *a) {
    qn_layerscale_gradient(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), f(9), u(10),
                           u(11));
}
static void rms_norm_moments(void *const *a) {
    qn_rms_norm_moments(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8));
}
static void rms_norm_forward(void *const *a) {
    qn_rms_norm_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), U(8), u(9), u(10), u(11),
                        u(12), u(13), f(14), U(15));
}
static void rms_norm_errors(void *const *a) {
    qn_rms_norm_errors(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), u(10));
}
static void rms_norm_gradient(void *const *a) {
    qn_rms_norm_gradient(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), f(10), u(11),
                         u(12));
}
static void embedding_forward(void *const *a) {
    qn_embedding_forward(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), u(9), u(10), u(11),
                         u(12), u(13), u(14), f(15), U(16));
}
static void embedding_links(void *const *a) {
    qn_embedding_links(M(0), M(1), M(2), u(3), u(4), u(5));
}
static void embedding_gradient(void *const *a) {
    qn_embedding_gradient(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), u(9), u(10), u(11),
                          u(12), f(13), u(14));
}
static void lists_forward(void *const *a) {
    qn_lists_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), U(9), U(10), u(11),
                     u(12), u(13), u(14), u(15), u(16), f(17), U(18));
}
static void lists_gradient(void *const *a) {
    qn_lists_gradient(M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7), U(8), u(9), u(10), u(11),
                      u(12), f(13));
}
static void position_forward(void *const *a) {
    qn_position_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), u(10), u(11),
                        f(12), U(13));
}
static void position_errors(void *const *a) {
    qn_position_errors(M(0), M(1), M(2), M(3), u(4), u(5));
}
static void position_gradient(void *const *a) {
    qn_position_gradient(M(0), M(1), M(2), M(3), U(4), u(5), u(6), u(7), f(8), u(9));
}
static void rotary_forward(void *const *a) {
    qn_rotary_forward(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8));
}
static void rotary_errors(void *const *a) {
    qn_rotary_errors(M(0), M(1), M(2), M(3), M(4), u(5), u(6), u(7), u(8));
}
static void grouped_forward(void *const *a) {
    qn_grouped_forward(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), U(8), u(9), u(10), u(11),
                       u(12), u(13), u(14), f(15), U(16));
}
static void grouped_errors(void *const *a) {
    qn_grouped_errors(M(0), M(1), M(2), M(3), M(4), M(5), M(6), U(7), u(8), u(9), u(10), u(11),
                      u(12), u(13), u(14), f(15), U(16));
}
static void grouped_gradient(void *const *a) {
    qn_grouped_gradient(M(0), M(1), M(2), M(3), M(4), M(5), U(6), u(7), u(8), u(9), u(10), u(11),
                        f(12), u(13), u(14));
}
static void quantize_items(void *const *a) {
    qn_quantize_items(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                      u(12));
}
static void quantize_grains(void *const *a) {
    qn_quantize_grains(M(0), M(1), M(2), M(3), u(4), u(5), u(6));
}
static void absmax(void *const *a) { qn_absmax(M(0), M(1), U(2), u(3), u(4), u(5)); }
static void quantize_weights(void *const *a) {
    qn_quantize_weights(M(0), M(1), M(2), M(3), U(4), u(5), u(6), u(7), u(8), u(9));
}
static void pixels_absmax(void *const *a) {
    qn_pixels_absmax(M(0), M(1), M(2), M(3), M(4), M(5), u(6), u(7), u(8), u(9), u(10), u(11),
                     u(12));
}
static void quantize_rows(void *const *a) {
    qn_quantize_rows(M(0), M(1), M(2), M(3), M(4), M(5), M(6), u(7), u(8), u(9), u(10), u(11),
                     u(12), u(13), u(14));
}
static void grains_absmax(void *const *a) {
    qn_grains_absmax(M(0), M(1), u(2), u(3), u(4), u(5), u(6));
}
static void rows_absmax(void *const *a) {
    qn_rows_absmax(M(0), M(1), M(2), u(3), u(4), u(5), u(6), u(7), u(8));
}
static void quantize_transposed(void *const *a) {
    qn_quantize_transposed(M(0), M(1), M(2), U(3), u(4), u(5), u(6), u(7), u(8));
}

static const qn_emulated_kernel kernels[] = {
    {"qn_fetch", "MMMMMMMMMMMMuuuu", fetch},
    {"qn_forward_large", "MMMUUMMMuuuuuufU", forward_large},
    {"qn_forward_medium", "MMMUUMMMuuuuuufU", forward_medium},
    {"qn_forward_small", "MMMUUMMMuuuuuufU", forward_small},
    {"qn_answers", "MMMMMMMMuuuuuuuffu", answers},
    {"qn_answers_again", "MMMMMMuuuuuuuuuff", answers_again},
    {"qn_answer_lines", "MMMMMuu", answer_lines},
    {"qn_answer_items", "MMMMMMMMu", answer_items},
    {"qn_gate", "MMMMMuuuuuufU", gate},
    {"qn_loss", "MMMMMMMMMuuuffu", loss},
    {"qn_errors_large", "MMMUMMMuuuuufU", errors_large},
    {"qn_errors_medium", "MMMUMMMuuuuufU", errors_medium},
    {"qn_errors_small", "MMMUMMMuuuuufU", errors_small},
    {"qn_gradient_large", "MMMMMUuuuufuu", gradient_large},
    {"qn_gradient_small", "MMMMMUuuuufuu", gradient_small},
    {"qn_bias", "MMMMUuufu", bias},
    {"qn_update", "MMMMMUUuffffffff", update},
    {"qn_average", "MMMUU", average},
    {"qn_tally", "MMMMMMu", tally},
    {"qn_sums_out", "MMUuuUu", sums_out},
    {"qn_sums_in", "MMUuuUu", sums_in},
    {"qn_map", "MMUu", map},
    {"qn_unfold", "MMMMMuuuuuu", unfold},
    {"qn_transpose_weights", "MMUuuu", transpose_weights},
    {"qn_pixels_forward", "MMMMMMMMUUuuuuuuuufU", pixels_forward},
    {"qn_pixels_errors", "MMMMMMMMuuuuuuuufU", pixels_errors},
    {"qn_pool_forward", "MMMMuuf", pool_forward},
    {"qn_pool_errors", "MMMMMuuf", pool_errors},
    {"qn_add_forward", "MMMMMMMuuuufU", add_forward},
    {"qn_multiply_forward", "MMMMMMMuuuuuuufU", multiply_forward},
    {"qn_multiply_errors", "MMMMMuuuuu", multiply_errors},
    {"qn_concat_forward", "MMMMMMMuuuuuuufU", concat_forward},
    {"qn_concat_errors", "MMMMMuuuuu", concat_errors},
    {"qn_norm_sums", "MMMMMMuuu", norm_sums},
    {"qn_norm_moments", "MMMMMuuu", norm_moments},
    {"qn_norm_forward", "MMMMMMMMUuuuuufU", norm_forward},
    {"qn_norm_errors", "MMMMMMMUuuu", norm_errors},
    {"qn_norm_gradient", "MMMMUuuuufu", norm_gradient},
    {"qn_norm_update", "MMMUuf", norm_update},
    {"qn_item_norm_sums", "MMMMMMuuu", item_norm_sums},
    {"qn_item_norm_moments", "MMMMMMUuuu", item_norm_moments},
    {"qn_item_norm_forward", "MMMMMMMMUuuuuufU", item_norm_forward},
    {"qn_item_norm_errors", "MMMMMMMUuuu", item_norm_errors},
    {"qn_item_norm_gradient", "MMMMMUuuuufu", item_norm_gradient},
    {"qn_layerscale_forward", "MMMMMMMUuuuufU", layerscale_forward},
    {"qn_layerscale_errors", "MMMMMUuu", layerscale_errors},
    {"qn_layerscale_gradient", "MMMMMMUuufuu", layerscale_gradient},
    {"qn_embedding_forward", "MMMMMMUuuuuuuuufU", embedding_forward},
    {"qn_rms_norm_moments", "MMMMMMUuu", rms_norm_moments},
    {"qn_rms_norm_forward", "MMMMMMMMUuuuuufU", rms_norm_forward},
    {"qn_rms_norm_errors", "MMMMMMMUuuu", rms_norm_errors},
    {"qn_rms_norm_gradient", "MMMMMMMUuufuu", rms_norm_gradient},
    {"qn_lists_forward", "MMMMMMMMMUUuuuuuufU", lists_forward},
    {"qn_lists_gradient", "MMMMMMMMUuuuuf", lists_gradient},
    {"qn_embedding_links", "MMMuuu", embedding_links},
    {"qn_embedding_gradient", "MMMMMMUuuuuuufu", embedding_gradient},
    {"qn_position_forward", "MMMMMMMUuuuufU", position_forward},
    {"qn_position_errors", "MMMMuu", position_errors},
    {"qn_position_gradient", "MMMMUuuufu", position_gradient},
    {"qn_rotary_forward", "MMMMMMuuu", rotary_forward},
    {"qn_rotary_errors", "MMMMMuuuu", rotary_errors},
    {"qn_grouped_forward", "MMMMMMMUUuuuuuufU", grouped_forward},
    {"qn_grouped_errors", "MMMMMMMUuuuuuuufU", grouped_errors},
    {"qn_grouped_gradient", "MMMMMMUuuuuufuu", grouped_gradient},
#define INTGEMM_KERNEL_FORWARD(name)                                                               \
    { "qn_intgemm_forward_" #name, "MMMMMMUMMMuuuuuuufU", intgemm_forward_##name }
#define INTGEMM_KERNEL_ERRORS(name)                                                                \
    { "qn_intgemm_errors_" #name, "MMMMMMMuuuuufU", intgemm_errors_##name }
#define INTGEMM_KERNEL_GRADIENT(name)                                                              \
    { "qn_intgemm_gradient_" #name, "MMMMMMUuuuuuufuu", intgemm_gradient_##name }
#define INTGEMM_KERNELS(name)                                                                      \
    INTGEMM_KERNEL_FORWARD(name), INTGEMM_KERNEL_ERRORS(name), INTGEMM_KERNEL_GRADIENT(name)
#define WIDTH_KERNELS(bits)                                                                        \
    INTGEMM_KERNELS(bits##_large), INTGEMM_KERNELS(bits##_small),                                  \
        INTGEMM_KERNELS(bits##_matrix_small), INTGEMM_KERNEL_FORWARD(bits##_matrix_large),         \
        INTGEMM_KERNEL_ERRORS(bits##_matrix_large)
    WIDTH_KERNELS(i7),
    WIDTH_KERNELS(i14),
    WIDTH_KERNELS(i21),
    {"qn_attention_forward", "MMMMMMuuuuuuu", attention_forward},
    {"qn_attention_means", "MMMMMuuu", attention_means},
    {"qn_attention_queries", "MMMMMMMuuuuuuuu", attention_queries},
    {"qn_attention_keys", "MMMMMMMuuuuuuuu", attention_keys},
    {"qn_attention_keep", "MMMMuuuu", attention_keep},
    {"qn_attention_cached", "MMMMMuuuuu", attention_cached},
    {"qn_attention_keep_blocks", "MMMMuuuu", attention_keep_blocks},
    {"qn_attention_cached_integer", "MMMMMuuuuuu", attention_cached_integer},
    {"qn_recurrent_forward", "MMMMMMMMMUUuuuuuuuuufU", recurrent_forward},
    {"qn_recurrent_back", "MMMMMMUuuuuuu", recurrent_back},
    {"qn_recurrent_errors", "MMMMuuu", recurrent_errors},
    {"qn_recurrent_gradient", "MMMMMUuuuuufuu", recurrent_gradient},
    {"qn_pooled_forward", "MMMMMuuuu", pooled_forward},
    {"qn_pooled_errors", "MMMMMMuuuuu", pooled_errors},
    {"qn_quantize_items", "MMMMMMMuuuuuu", quantize_items},
    {"qn_quantize_grains", "MMMMuuu", quantize_grains},
    {"qn_absmax", "MMUuuu", absmax},
    {"qn_pixels_absmax", "MMMMMMuuuuuuu", pixels_absmax},
    {"qn_quantize_rows", "MMMMMMMuuuuuuuu", quantize_rows},
    {"qn_rows_absmax", "MMMuuuuuu", rows_absmax},
    {"qn_grains_absmax", "MMuuuuu", grains_absmax},
    {"qn_attention_blocks", "MMMMuuuu", attention_blocks},
    {"qn_attention_integer_forward", "MMMMMMuuuuuuuu", attention_integer_forward},
    {"qn_attention_integer_queries", "MMMMMMMuuuuuuuuu", attention_integer_queries},
    {"qn_attention_integer_keys", "MMMMMMMuuuuuuuuu", attention_integer_keys},
    {"qn_quantize_transposed", "MMMUuuuuu", quantize_transposed},
    {"qn_quantize_weights", "MMMMUuuuuu", quantize_weights},
    {"qn_trial", "MMMMUu", trial},
};

const qn_emulated_kernel *qn_emulated_find(const char *name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
