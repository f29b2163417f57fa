#include "serve/text/embed_job.h"

#include "base/markup.h"
#include "base/memory.h"
#include "data/table/data.h"
#include "serve/batch/answer_json.h"
#include "serve/inference/predictor.h"
#include "serve/text/text_ask.h"
#include "serve/text/text_job.h"
#include <string.h>

typedef struct embed_job {
    qn__pending pending; /* first */
    qn__ask ask;
    uint64_t tokens; /* of all texts */
} embed_job;

static uint32_t vocabulary_of(const qn_model *model) {
    return model->kind == &qn__network_kind ? qn__recipe_vocabulary(qn__model_recipe_of(model)) : 0;
}

int qn__embed_fits(const qn__served *served) { return vocabulary_of(served->model) > 0; }

uint32_t qn__embed_tokens(const qn_model *model) {
    return model->next ? model->answers : model->features;
}

/* ------------------------------------------------------------------------------------- the answer
 */

static void free_job(qn__pending *pending) {
    embed_job *j = (embed_job *)pending;
    qn__ask_release(&j->ask);
    qn__free(j);
}

static void fail(qn__pending *pending, const qn_error *err) {
    const embed_job *j = (const embed_job *)pending;
    qn__ask_refusal no;
    qn__ask_refuse(&j->ask, err, &no);
    qn__text_refuse(pending->request, &no);
}

static void add_embedding(const embed_job *j, const qn__batch_answer *a, uint64_t item,
                          qn__text *to) {
    const float *values = a->outputs + item * a->each_outputs;
    qn__text_add(to,
                 "%s{\"object\": \"embedding\", \"index\": %llu, \"embedding\": ", item ? ", " : "",
                 (unsigned long long)item);
    if (j->ask.base64) {
        qn__text_add(to, "\"");
        qn__markup_add_base64(to, (const uint8_t *)values, a->each_outputs * sizeof *values);
        qn__text_add(to, "\"");
    } else
        qn__answer_add_outputs(to, a, item);
    qn__text_add(to, "}");
}

static int answer(qn__pending *pending, const qn__batch_answer *a) {
    const embed_job *j = (const embed_job *)pending;
    const unsigned long long tokens = j->tokens;
    qn__text text = {0};
    qn__text_add(&text, "{\"object\": \"list\", \"data\": [");
    for (uint64_t i = 0; i < a->items; ++i)
        add_embedding(j, a, i, &text);
    qn__text_add(&text, "], \"model\": ");
    qn__text_add_json(&text, j->ask.model ? j->ask.model : pending->served->name);
    qn__text_add(&text, ", \"usage\": {\"prompt_tokens\": %llu, \"total_tokens\": %llu}}\n", tokens,
                 tokens);
    qn__answer_grown(pending->request, 200, "application/json", &text);
    return 1;
}

/* -------------------------------------------------------------------------------------- the texts
 */

static qn_status read_texts(const embed_job *j, const qn__body_reader *reader, qn_data **out,
                            qn_error *err) {
    const uint32_t count = j->ask.prompts;
    qn__body_text *text = qn__alloc(count, sizeof *text, err);
    if (!text)
        return QN_MEMORY;
    for (uint32_t i = 0; i < count; ++i)
        text[i] =
            (qn__body_text){.text = j->ask.prompt[i].text, .size = strlen(j->ask.prompt[i].text)};
    const qn_status status = qn__body_of_texts(reader, text, count, out, err);
    qn__free(text);
    return status;
}

static qn_status read_items(embed_job *j, const qn__body_reader *reader, qn_error *err) {
    uint32_t texts = 0;
    for (uint32_t i = 0; i < j->ask.prompts; ++i)
        texts += j->ask.prompt[i].text != NULL;
    if (texts > 0 && texts < j->ask.prompts) {
        qn__fail(err, QN_INPUT, "\"input\" has both texts and lists of tokens");
        return qn__remedy(err, QN_INPUT, "send them in two requests");
    }
    if (texts > 0)
        return read_texts(j, reader, &j->pending.data, err);
    return qn__body_of_tokens(reader, j->ask.prompt, j->ask.prompts, &j->pending.data, err);
}

static uint32_t tokens_of(const qn_data *data, uint64_t item, uint32_t vocabulary) {
    uint32_t count = data->features;
    while (count > 0 && qn__data_number(data, item, count - 1) >= vocabulary)
        --count;
    return count;
}

static qn_status refuse_long(const qn_model *model, qn_error *err) {
    qn__fail(err, QN_INPUT, "a text has more than the %u tokens that the model reads",
             qn__embed_tokens(model));
    return qn__remedy(err, QN_INPUT, "send it in parts");
}

/* A text that fills its item, where the reader had something to tell: it was cut. */
static int is_cut(const qn_data *data, uint32_t tokens) {
    return data->note && tokens == data->features;
}

/* Counts the tokens. A text that the model does not read whole would be another text. */
static qn_status check_items(embed_job *j, qn_error *err) {
    const qn_data *data = j->pending.data;
    const qn_model *model = j->pending.served->model;
    if (data->items != j->ask.prompts)
        return refuse_long(model, err);
    for (uint64_t i = 0; i < data->items; ++i) {
        const uint32_t count = tokens_of(data, i, vocabulary_of(model));
        j->tokens += count;
        if (count > qn__embed_tokens(model) || is_cut(data, count))
            return refuse_long(model, err);
        if (count > 0)
            continue;
        qn__fail(err, QN_INPUT, "text %llu (from 0) has no tokens", (unsigned long long)i);
        return qn__remedy(err, QN_INPUT, "leave it out");
    }
    return QN_OK;
}

/* -------------------------------------------------------------------------------------- the layer
 */

static qn_status choose_layer(embed_job *j, qn__predictor *predictor, const char *layer,
                              qn_error *err) {
    qn__layer_name name = qn__layer_of_embeddings(j->pending.served->model);
    qn_status status = layer ? qn__layer_name_read(layer, &name, err) : QN_OK;
    if (status == QN_OK)
        status = qn__predictor_add_layer(predictor, &j->pending, &name, err);
    if (status != QN_OK)
        return status;
    const qn__layer_use *use = j->pending.now = j->pending.layer[0];
    if (use->lengths > 1) {
        qn__fail(err, QN_UNSUPPORTED, "layer %u gives %u numbers for each of %u positions",
                 use->layer, use->shape[1], use->shape[0]);
        return qn__remedy(err, QN_UNSUPPORTED, "the server could take them from \"%s:mean\"",
                          layer);
    }
    if (j->ask.dimensions == 0 || j->ask.dimensions == use->values)
        return QN_OK;
    qn__fail(err, QN_INPUT, "\"dimensions\": embeddings of this model have %u", use->values);
    return qn__remedy(err, QN_INPUT, "leave it out");
}

void qn__embed_begin(qn__request *request, qn__models *models, const char *layer) {
    qn_error err;
    embed_job own = {
        .pending = {.request = request, .answer = answer, .fail = fail, .free = free_job}};
    if (!qn__text_begin(request, models, QN__ASK_EMBEDDING, qn__embed_fits, "embeds texts",
                        &own.ask, &own.pending.served))
        return;
    embed_job *j = qn__alloc(1, sizeof *j, &err);
    if (!j) {
        qn__answer_error(request, 503, &err);
        qn__ask_release(&own.ask);
        qn__served_release(own.pending.served);
        return;
    }
    *j = own;
    qn__predictor *predictor = j->pending.served->part[QN__PART_PREDICTOR];
    qn_status status = choose_layer(j, predictor, layer, &err);
    if (status == QN_OK)
        status = read_items(j, predictor->reader, &err);
    if (status == QN_OK)
        status = check_items(j, &err);
    if (status == QN_OK)
        qn__predictor_submit(predictor, &j->pending);
    else
        qn__pending_fail(&j->pending, &err);
}
