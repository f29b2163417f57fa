/* Which outputs are computed again in the backward pass instead of being kept.
 *
 * The layers that train are cut into segments. Only the last outputs of a segment are kept, and all
 * of the last segment. Before the backward pass comes to the last layer of another segment, the
 * layers before it in the segment are computed once more:
 *
 *     forward      0 1 2 | 3 4 5 | 6 7          kept: 2, 5, 6, 7
 *     backward     7 6, again 3 4, 5 4 3, again 0 1, 2 1 0
 *
 * A cut is where no later layer reads outputs from before it: not inside a block. Longer segments
 * keep less, but more is there at once. So several lengths are tried, and the one is taken whose
 * arrays need the least memory. */
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/layer.h"

enum { TRIALS = 12 };

/* Whether the layer reads outputs of layers before `cut`. */
static int reads_before(const qn__cpu_layer *layers, uint32_t layer, uint32_t cut) {
    const qn__cpu_layer *l = &layers[layer];
    return !l->below || l->below < layers + cut ||
           (qn__layer_joins(l->layer) && (!l->other || l->other < layers + cut));
}

/* Whether a segment can end with this layer. */
static int is_cut(const qn__worker *w, uint32_t layer) {
    int cut = layer >= w->program->frozen && layer + 1 < w->program->layers;
    for (uint32_t i = layer + 1; cut && i < w->program->layers; ++i)
        cut = !reads_before(w->layer, i, layer);
    return cut;
}

/* Bytes that a layer leaves for the backward pass. */
static size_t kept_bytes(const qn__cpu_layer *l) {
    return l->output_place.bytes + l->dropped_place.bytes + l->slope_place.bytes;
}

/* Segments that are as long as their bytes do not exceed `most`. */
static void cut_at(qn__worker *w, const char *cuts, size_t most) {
    uint32_t begin = w->program->frozen, end = begin;
    size_t bytes = 0;
    for (uint32_t i = begin; i < w->program->layers; ++i) {
        w->layer[i].recomputes = 0;
        bytes += kept_bytes(&w->layer[i]);
        if (bytes > most && end > begin) { /* it ends with the layer before `end` */
            w->layer[end - 1].recomputes = end - 1 - begin;
            begin = end;
            bytes = 0;
            for (uint32_t j = begin; j <= i; ++j)
                bytes += kept_bytes(&w->layer[j]);
        }
        if (cuts[i])
            end = i + 1;
    }
}

/* The last layers are never computed again. */
void qn__cpu_place_segments(qn__worker *w) {
    char cuts[QN__MAX_LAYERS];
    size_t all = 0, best = SIZE_MAX, most = SIZE_MAX, tried;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        cuts[i] = (char)is_cut(w, i);
        const size_t bytes = kept_bytes(&w->layer[i]);
        all = bytes < SIZE_MAX / 2 - all ? all + bytes : SIZE_MAX / 2;
    }
    tried = all;
    for (int trial = 0; trial <= TRIALS; ++trial, tried -= tried / 3) {
        cut_at(w, cuts, tried);
        qn__cpu_place_arrays(w);
        if (w->memory.shared_bytes < best) {
            best = w->memory.shared_bytes;
            most = tried;
        }
    }
    cut_at(w, cuts, most);
    qn__cpu_place_arrays(w);
}
