/* The inside of a qn_generator. */
#ifndef QN_PREDICT_GENERATE_GENERATOR_H
#define QN_PREDICT_GENERATE_GENERATOR_H

#include "predict/generate/engine.h"
#include "predict/generate/taken_options.h"

struct qn_generator {
    const qn_model *model;
    qn__taken_options own;
    char **prompt; /* the texts */
    uint32_t prompts;
    qn__codec codec;
    qn__engine *engine;
    qn_cluster *cluster;               /* NULL: no other ranks */
    struct qn__shared_answers *shared; /* NULL: this rank computes all answers */
    qn__answer *answer;
    uint32_t answers;
    uint32_t sequences; /* answers at once */
};

/* The options that decide answers, as JSON. */
void qn__answers_add_options(const qn_generator *g, qn__text *to);

/* All answers as JSON: *out is for qn__free. */
qn_status qn__answers_json(const qn_generator *g, char **out, size_t *size, qn_error *err);

#endif
