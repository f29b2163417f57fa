#include "job/answer_counts.h"

#include "layer/answers.h"

uint32_t qn__answer_classes(const qn_data *data, const qn__program *program) {
    return data->several->height ? qn__program_classes(program) : data->several->each;
}

void qn__answers_from(const qn__program *program, const float *outputs, uint8_t *answers) {
    const uint32_t each = qn__answers_of_pixel(program);
    const uint32_t channels = program->layer[program->layers - 1].to.channels;
    for (uint32_t at = 0; at < program->answers; at += each, outputs += channels)
        for (uint32_t a = 0; a < each; ++a)
            answers[at + a] = (uint8_t)qn__answers_class(program, outputs, a);
}

static void add_label(qn__answer_class *of, int target, int answer) {
    of->labelled += (uint64_t)target;
    of->answered += (uint64_t)answer;
    of->right += (uint64_t)(target && answer);
}

static void add_pixel(qn__answer_class *of, uint8_t target, uint8_t answer) {
    ++of[target].labelled;
    ++of[answer].answered;
    of[target].right += target == answer;
}

void qn__answers_add(const qn_data *data, uint64_t item, const uint8_t *answers,
                     qn__answer_counts *counts) {
    const uint8_t *target = qn__several_of(data, item);
    uint64_t targets = 0, right = 0;
    for (uint32_t k = 0; k < data->several->each; ++k) {
        if (target[k] == QN__NO_TARGET)
            continue;
        ++targets;
        right += target[k] == answers[k];
        if (data->several->height)
            add_pixel(counts->of, target[k], answers[k]);
        else
            add_label(&counts->of[k], target[k], answers[k]);
    }
    counts->items += targets > 0;
    counts->exact += targets > 0 && right == targets;
    counts->targets += targets;
    counts->right += right;
}
