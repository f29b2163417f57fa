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
#include "device/places.h"
#include "layer/layer.h"
#include <string.h>

enum { TRIALS = 12 };

/* Whether the layer reads outputs of layers before `cut`, or the inputs. */
static int reads_before(const qn__layer *layers, uint32_t layer, uint32_t cut) {
    return qn__layer_source(layers, layer) < (int32_t)cut ||
           (qn__layer_joins(&layers[layer]) && qn__layer_other(layers, layer) < (int32_t)cut);
}

/* Whether a segment can end with this layer. */
static int is_cut(const qn__program *p, uint32_t layer) {
    int cut = layer >= p->frozen && layer + 1 < p->layers;
    for (uint32_t i = layer + 1; cut && i < p->layers; ++i)
        cut = !reads_before(p->layer, i, layer);
    return cut;
}

/* Segments that are as long as their bytes do not exceed `most`. */
static void cut_at(const qn__segments *s, const char *cuts, size_t most, uint32_t *again) {
    uint32_t begin = s->program->frozen, end = begin;
    size_t bytes = 0;
    memset(again, 0, s->program->layers * sizeof *again);
    for (uint32_t i = begin; i < s->program->layers; ++i) {
        bytes += s->bytes[i];
        if (bytes > most && end > begin) { /* it ends with the layer before `end` */
            again[end - 1] = end - 1 - begin;
            begin = end;
            bytes = 0;
            for (uint32_t j = begin; j <= i; ++j)
                bytes += s->bytes[j];
        }
        if (cuts[i])
            end = i + 1;
    }
}

void qn__find_segments(const qn__segments *s) {
    const qn__program *p = s->program;
    char cuts[QN__MAX_LAYERS];
    uint32_t again[QN__MAX_LAYERS];
    size_t all = 0, best = SIZE_MAX, most = SIZE_MAX, tried;
    for (uint32_t i = 0; i < p->layers; ++i) {
        cuts[i] = (char)is_cut(p, i);
        all = s->bytes[i] < SIZE_MAX / 2 - all ? all + s->bytes[i] : SIZE_MAX / 2;
    }
    tried = all;
    for (int trial = 0; trial <= TRIALS; ++trial, tried -= tried / 3) {
        cut_at(s, cuts, tried, again);
        const size_t bytes = s->place(s->context, again);
        if (bytes < best) {
            best = bytes;
            most = tried;
        }
    }
    cut_at(s, cuts, most, again);
    s->place(s->context, again);
}
