/* A task of the errors has some rows of one panel of one of the two outputs. The block's input, as
 * a second output, has other readers: its errors go to `branch`. */
#include "device/cpu/layers/cpu_join.h"

/* Rows of a task; fewer of a factor that was spread, whose rows go through all pixels. */
enum { ROWS = 128, SPREAD_ROWS = 16 };

qn__cpu_joined qn__cpu_joined_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, int second) {
    const qn__shape shape = second ? l->layer->second : l->layer->from;
    const qn__cpu_layer *of = second ? l->other : l->below;
    const uint32_t pixels = of ? of->out_pixels : shape.height * shape.width;
    return (qn__cpu_joined){second ? qn__cpu_second(pass, l) : qn__cpu_input(pass, l),
                            qn__cpu_stride(pass->batch->items * pixels), pixels};
}

/* Where the errors of one of the outputs go. */
typedef struct target {
    qn__cpu_layer *of; /* NULL: it has no errors */
    float *errors;
    uint32_t rows, each, tasks; /* each: rows of a task */
} target;

static target target_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, int second) {
    qn__cpu_layer *of = second ? l->other : l->below;
    if (!of)
        return (target){0};
    const uint32_t each = of->out_pixels < l->out_pixels ? SPREAD_ROWS : ROWS;
    const uint32_t rows = pass->batch->items * of->out_pixels;
    return (target){of, second && l->branch ? l->branch : of->error, rows, each,
                    (rows + each - 1) / each};
}

void qn__cpu_join_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const target to[2] = {target_of(pass, l, 0), target_of(pass, l, 1)};
    const qn__cpu_grid grid = {to[0].tasks + to[1].tasks, l->out_panels, 1};
    for (uint32_t index, panel; qn__cpu_take(w, thread, phase, grid, &index, &panel);) {
        const int second = index >= to[0].tasks;
        const target *t = &to[second];
        const uint32_t first = (second ? index - to[0].tasks : index) * t->each;
        const uint32_t rows = t->rows - first < t->each ? t->rows - first : t->each;
        if (!t->of || panel >= t->of->out_panels)
            continue;
        l->kind->part_back(pass, l, second, panel, first, rows,
                           t->errors + panel * t->of->out_stride + (size_t)first * QN__PANEL);
        if (second && l->branch)
            continue;
        const uint32_t path = (uint32_t)(t->of - w->layer);
        qn__cpu_finish_errors(pass, &w->core[thread], path, panel, first, rows);
        if (w->bits)
            qn__cpu_note_errors(pass, path, first, rows, panel, 1);
    }
}
