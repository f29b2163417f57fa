/* The loss of networks that give several answers to an item (docs/exactness.md 24.70, 25.14), of
 * some rows at a time. Errors take the place of outputs. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include <math.h>

/* The arguments that say what a row answers, and which rows these are. */
static void push_rows(const qn__gpu_pass *pass, const qn__gpu_range *rows, qn__gpu_call *c) {
    const qn__program *p = pass->worker->program;
    const qn__layer *l = pass->worker->layer[p->layers - 1].layer;
    QN__PUSH_NUMBERS(c, l->to.height, l->to.width, l->to.channels, qn__kernel_loss(p->loss),
                     p->next ? p->layer[0].in : 0, rows->begin, rows->count);
}

static void push_factors(const qn__program *p, qn__gpu_call *c) {
    QN__PUSH_FLOATS(c, qn__program_loss_number(p), ldexpf(1.0f, (int)p->gradient_scale));
}

/* Any memory, where the pass needs none. */
static const qn__gpu_memory *or_step(const qn__worker *w, const qn__gpu_memory *memory) {
    return memory->bytes ? memory : &w->step;
}

void qn__gpu_launch_answers(qn__gpu_pass *pass, const qn__gpu_range *rows, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->layer[w->program->layers - 1].output,
                    or_step(w, &w->batch.answers), qn__gpu_output_of(pass, -1), &w->batch.weight,
                    &w->batch.pixel_loss, &w->batch.pixel_state, or_step(w, &w->slices.marks));
    push_rows(pass, rows, &c);
    push_factors(w->program, &c);
    QN__PUSH_NUMBERS(&c, flags);
    qn__gpu_launch_over(pass, QN__K_ANSWERS, rows->count, &c);
}

void qn__gpu_launch_answers_again(qn__gpu_pass *pass, const qn__gpu_range *rows,
                                  const qn__gpu_range *outputs) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->layer[w->program->layers - 1].output,
                    or_step(w, &w->batch.answers), qn__gpu_output_of(pass, -1), &w->batch.weight,
                    &w->slices.marks);
    push_rows(pass, rows, &c);
    QN__PUSH_NUMBERS(&c, outputs->begin, outputs->count);
    push_factors(w->program, &c);
    qn__gpu_launch_over(pass, QN__K_ANSWERS_AGAIN, rows->count * qn__gpu_ld(outputs->count), &c);
}

/* Sums over the pixels of lines, and over the lines of items. */
void qn__gpu_launch_answer_sums(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[w->program->layers - 1].layer;
    qn__gpu_call c = {0}, d = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->batch.pixel_loss, &w->batch.pixel_state, &w->batch.line_loss,
                    &w->batch.line_state);
    QN__PUSH_NUMBERS(&c, l->to.height, l->to.width);
    qn__gpu_launch_over(pass, QN__K_ANSWER_LINES, (uint64_t)pass->items * l->to.height, &c);
    QN__PUSH_MEMORY(&d, &w->step, &w->batch.line_loss, &w->batch.line_state, &w->batch.weight,
                    &w->batch.loss, &w->batch.classes, &w->batch.scores, &w->batch.finite);
    QN__PUSH_NUMBERS(&d, l->to.height);
    qn__gpu_launch_over(pass, QN__K_ANSWER_ITEMS, pass->items, &d);
}
