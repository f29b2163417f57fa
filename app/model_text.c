#include "model_text.h"
#include "message.h"
#include "options.h"
#include <stdio.h>
#include <string.h>

const char *model_file(const char *model) {
    const char *start = model ? model + strspn(model, " \t") : "";
    return *start == '@' ? start + 1 : NULL;
}

int model_read(const qn_train_options *job, uint64_t features, uint64_t classes, char **text) {
    qn_network *network;
    qn_error err;
    *text = NULL;
    if (qn_network_open(job, (uint32_t)features, (uint32_t)classes, &network, &err) != QN_OK)
        return message_error(&err);
    *text = strdup(qn_network_text(network));
    qn_network_free(network);
    return *text ? -1 : message_fail(QN_MEMORY, "out of memory", "", "");
}

/* The number after the first word of the last layer: "dense N ...". */
static uint32_t last_number(const char *text) {
    const char *last = strrchr(text, ';');
    char digits[16] = "";
    uint64_t outputs = 0;
    last = strpbrk(last ? last : text, "0123456789");
    if (last)
        strncat(digits, last, strspn(last, "0123456789") < 15 ? strspn(last, "0123456789") : 15);
    return read_count(digits, &outputs) && outputs <= UINT32_MAX ? (uint32_t)outputs : 0;
}

static qn_status open_text(const char *model, qn_network **network, qn_error *err) {
    qn_train_options job;
    qn_train_options_init(&job);
    job.model = model;
    return qn_network_open(&job, 0, 1, network, err);
}

int model_outputs(const char *model, uint32_t *outputs) {
    qn_network *network;
    qn_error err;
    *outputs = 0;
    if (!model)
        return -1;
    if (open_text(model, &network, &err) != QN_OK)
        return message_error(&err);
    if (!qn_network_ready(network))
        *outputs = last_number(qn_network_text(network));
    qn_network_free(network);
    return -1;
}

void model_title(const char *given, const char *text, int verbose, char title[MODEL_TITLE]) {
    const int most = verbose ? MODEL_TITLE - 8 : MODEL_TITLE_LONG;
    const int rest = strlen(text) > (size_t)most;
    qn_network *network = NULL;
    const int reads = given && !verbose && open_text(given, &network, NULL) == QN_OK;
    const char *name = reads ? qn_network_ready(network) : NULL;
    snprintf(title, MODEL_TITLE, "%.*s%s", most, name ? name : text, rest && !name ? " ..." : "");
    qn_network_free(network);
}

model_totals model_sum(const qn_network *network) {
    model_totals sum = {0};
    for (uint32_t l = 0; l < qn_network_layers(network); l++) {
        qn_layer_info info = {.size = sizeof info};
        if (qn_network_layer(network, l, &info, NULL) != QN_OK)
            continue;
        sum.flops += info.flops;
        sum.training += info.training;
        sum.activation += info.activation;
    }
    return sum;
}
