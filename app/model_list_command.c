/* quern model list: the networks that have a name. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "model_text.h"
#include "shared_rows.h"
#include <stdio.h>

typedef struct list_flags {
    int json;
} list_flags;

#define AT(member) .place = offsetof(list_flags, member)

static const option list_options[] = {
    {.heading = "Options", ROW_JSON(json, "print one JSON object a line instead")}, {.name = NULL}};

static void print_ready(const qn_ready_model *m, const qn_network *network, int json) {
    char number[32];
    const model_totals sum = model_sum(network);
    if (!json) {
        printf("%-17s %-9s %11s %7.1f  %s\n", m->name, m->shape,
               format_count(qn_network_parameters(network), number), 1e-6 * (double)sum.flops,
               m->about);
        return;
    }
    json_begin("model");
    json_text("name", m->name);
    json_text("about", m->about);
    json_text("input", m->shape);
    json_text("text", qn_network_text(network));
    json_count("parameters", qn_network_parameters(network));
    json_count("flops", sum.flops);
    json_count("training_flops", sum.training);
    json_end();
}

static int list_one(uint32_t index, int json) {
    qn_ready_model m = {.size = sizeof m};
    qn_train_options job;
    qn_network *network;
    qn_error err;
    qn_train_options_init(&job);
    if (qn_ready_get(index, &m, &err) != QN_OK)
        return message_error(&err);
    job.model = m.name;
    job.shape = m.shape;
    if (qn_network_open(&job, 0, MODEL_USUAL_CLASSES, &network, &err) != QN_OK)
        return message_error(&err);
    print_ready(&m, network, json);
    qn_network_free(network);
    return -1;
}

static int run(const command *self, int argc, char **argv) {
    list_flags f = {0};
    arguments given;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    if (!f.json)
        printf("%-17s %-9s %11s %7s\n", "model", "input", "parameters", "MFLOP");
    for (uint32_t i = 0; code < 0 && i < qn_ready_count(); i++)
        code = list_one(i, f.json);
    if (code < 0 && !f.json)
        puts("\nMFLOP: forward, of one item of this input, with 10 classes.");
    return code < 0 ? EXIT_DONE : code;
}

const command model_list_command = {
    .name = "model list",
    .summary = "list the ready models",
    .usage = "quern model list [options]",
    .about = "A ready model is a network with a name, which can stand for its layers wherever a "
             "model text can: quern train --model lenet. Its last layer follows the labels of the "
             "data.",
    .options = list_options,
    .examples = "quern model list\n"
                "quern train --data photos --resize 32x32 --model vgg8 -o m.safetensors",
    .run = run};
