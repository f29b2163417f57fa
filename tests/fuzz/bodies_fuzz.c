/* Bodies of requests to `quern serve`. The first byte of an input says to which route and model the
 * rest goes. Rows of numbers that are read without a file have the values that a file of them has.
 */
#include "fuzz/fuzz.h"

#include "data/table/data.h"
#include "serve/batch/body_state.h"
#include "serve/inference/v2_message.h"
#include "serve/text/text_ask.h"
#include <quern/quern.h>

/* A model, and what reads its bodies. */
typedef struct served {
    qn_model *model;
    qn__body_reader *reader;
} served;

static served numbers, people, texts, images;

static served train_on(qn_data *data, const char *model) {
    served s = {NULL, NULL};
    qn_train_options o;
    qn_train *t = NULL;
    qn_error err = {0};
    qn_train_options_init(&o);
    o.model = model;
    o.epochs = 1;
    FUZZ_MUST(qn_train_open(&o, data, NULL, NULL, &t, &err) == QN_OK);
    FUZZ_MUST(qn_train_run(t, &err) == QN_OK && qn_train_model(t, &s.model, &err) == QN_OK);
    qn_train_close(t);
    qn_data_close(data);
    FUZZ_MUST(qn__body_reader_make(s.model, &s.reader, &err) == QN_OK);
    return s;
}

/* A table of texts is known by the name of its file. */
static const char *write_table(const char *csv) {
    static char path[80];
    if (!*path)
        snprintf(path, sizeof path, "%s/table.csv", fuzz_folder());
    FILE *file = fopen(path, "w");
    FUZZ_MUST(file && fputs(csv, file) >= 0 && fclose(file) == 0);
    return path;
}

static served train_on_rows(const char *csv, const char *model, const char *tokens) {
    qn_data_options options;
    qn_data *data = NULL;
    qn_error err = {0};
    qn_data_options_init(&options);
    options.no_cache = 1;
    options.threads = 1;
    options.tokens = tokens;
    options.task = "classify";
    options.context = tokens ? 4 : 0;
    const char *path = write_table(csv);
    FUZZ_MUST(qn_data_open(path, &options, &data, &err) == QN_OK);
    remove(path);
    return train_on(data, model);
}

static served train_on_images(void) {
    static const uint8_t values[4 * 12] = {1, [20] = 9, [40] = 7};
    static const int32_t labels[4] = {0, 1, 0, 1};
    qn_data_arrays arrays;
    qn_data *data = NULL;
    qn_error err = {0};
    qn_data_arrays_init(&arrays);
    arrays.type = QN_U8;
    arrays.items = 4;
    arrays.features = 12;
    arrays.values = values;
    arrays.labels = labels;
    FUZZ_MUST(qn_data_lend(&arrays, &data, &err) == QN_OK);
    data->channels = 3;
    data->rows = data->columns = 2;
    return train_on(data, "conv 2 1x1 relu; dense 2 softmax");
}

static void set_up(void) {
    numbers = train_on_rows("label,a,b\n0,1,2\n1,3,4.5\n", "dense 2 softmax", NULL);
    people = train_on_rows("label,age,city,when,note\nyes,1.5,Bern,2026-01-01,so it is\n"
                           "no,2.5,Basel,2026-01-02,and not so\nyes,3,Bern,2026-01-03,so\n",
                           "dense 2 softmax", NULL);
    texts = train_on_rows("label,text\ngood,a fine film\nbad,a dull film\n",
                          "embedding 60 4; pool mean; dense 2 softmax", "words:50");
    images = train_on_images();
    FUZZ_MUST(numbers.reader->numbers && !people.reader->numbers);
}

/* ------------------------------------------------------------------------------------------- rows
 */

static int speaks_of_files;

static void check_items(qn_status status, qn_data *const *data, const qn_error *err) {
    if (status != QN_OK) {
        fuzz_check_refusal(status, *data, err);
        /* The body is not named as a file, unless its own text speaks of such. */
        FUZZ_MUST(speaks_of_files || (!strstr(err->where, "/proc") && !strstr(err->what, "/proc")));
        return;
    }
    FUZZ_MUST(qn_data_items(*data) > 0 && qn_data_features(*data) > 0);
    qn_data_close(*data);
}

static void read_rows(const served *s, const char *body, size_t size) {
    qn__body_kind kind = QN__BODY_IMAGE;
    qn_data *data = NULL;
    qn_error err = {0};
    if (qn__body_kind_of(NULL, body, size, &kind, &err) != QN_OK)
        return;
    check_items(qn__body_read(s->reader, kind, body, size, &data, &err), &data, &err);
}

/* A file of small whole numbers is a table of bytes. */
static float value_of(const qn_data *data, uint64_t k) {
    const void *values = qn_data_values(data);
    return qn_data_type_of(data) == QN_U8 ? (float)((const uint8_t *)values)[k]
                                          : ((const float *)values)[k];
}

/* Read twice: the short way, and as a file of the same bytes. */
static void read_numbers(const served *s, const char *body, size_t size) {
    qn__body_reader by_file = *s->reader;
    qn_data *fast = NULL, *slow = NULL;
    qn_error err = {0};
    by_file.numbers = 0;
    if (!qn__number_rows(s->reader, body, size, &fast)) {
        read_rows(s, body, size);
        return;
    }
    FUZZ_MUST(qn__body_read(&by_file, QN__BODY_JSON, body, size, &slow, &err) == QN_OK);
    const uint64_t items = qn_data_items(fast);
    FUZZ_MUST(items == qn_data_items(slow));
    FUZZ_MUST(qn_data_features(fast) == 2 && qn_data_features(slow) == 2);
    for (uint64_t k = 0; k < 2 * items; k++) {
        const uint32_t column = (uint32_t)(k % 2);
        const char *name = qn_data_feature_name(slow, column);
        const uint64_t own = name && *name == 'b' ? k / 2 * 2 + 1 : k / 2 * 2;
        const float is = value_of(fast, own), was = value_of(slow, k);
        FUZZ_MUST(memcmp(&is, &was, sizeof is) == 0);
    }
    qn_data_close(fast);
    qn_data_close(slow);
}

static void read_image(const served *s, const char *body, size_t size) {
    qn_data *data = NULL;
    qn_error err = {0};
    check_items(qn__body_read(s->reader, QN__BODY_IMAGE, body, size, &data, &err), &data, &err);
}

static void read_text(const served *s, const char *body, size_t size) {
    const qn__body_text two[2] = {{body, size / 2}, {body + size / 2, size - size / 2}};
    qn_data *data = NULL;
    qn_error err = {0};
    check_items(qn__body_of_texts(s->reader, two, 2, &data, &err), &data, &err);
    read_rows(s, body, size);
}

/* ------------------------------------------------------------------------------------ the
 * protocols
 */

/* Whether each output is one of the predictions or the name of a layer. */
static int are_known(const qn__v2_ask *ask, const qn_model *model) {
    qn__layer_name name;
    for (uint32_t i = 0; i < ask->outputs; i++)
        if (!qn__v2_predicts(model, ask->wanted[i].name) &&
            qn__v2_read_layer(ask->wanted[i].name, &name, NULL) != QN_OK)
            return 0;
    return 1;
}

/* A request of version 2 up to the items of its model; tests/fuzz/inference_fuzz.c looks at the
 * request itself. */
static void infer(const served *s, const char *body, size_t size) {
    const char *end = memchr(body, '\n', size);
    char header[24];
    qn__v2_ask ask;
    qn_data *data = NULL;
    qn_error err = {0};
    snprintf(header, sizeof header, "%zu", (size_t)((end ? end : body) - body));
    if (qn__v2_read(body, size, end ? header : NULL, &ask, &err) != QN_OK)
        return;
    if (are_known(&ask, s->model))
        check_items(qn__v2_items(&ask, s->model, s->reader, &data, &err), &data, &err);
    qn__v2_release(&ask);
}

static void infer_people(const served *s, const char *body, size_t size) {
    infer(s, body, size);
    infer(&images, body, size);
    infer(&texts, body, size);
}

static void check_prompt(const qn__text_prompt *p) {
    uint64_t sum = 0;
    for (uint32_t i = 0; p->tokens && i < p->count; i++)
        sum += p->tokens[i];
    for (uint32_t i = 0; !p->tokens && p->said && i < p->count; i++)
        sum += strlen(p->said[i].role) + strlen(p->said[i].content);
    FUZZ_MUST(p->tokens || p->said || strlen(p->text) + sum + 1 > 0);
}

static void ask_for_text(qn__ask_kind kind, const char *body, size_t size) {
    static qn__ask ask;
    static qn__ask_refusal no;
    if (!qn__ask_read(kind, body, size, &ask, &no)) {
        FUZZ_MUST(no.status >= 400 && no.message[0]);
        return;
    }
    FUZZ_MUST(ask.prompts > 0 && ask.options.stops <= QN__ASK_STOPS);
    for (uint32_t i = 0; i < ask.prompts; i++)
        check_prompt(&ask.prompt[i]);
    for (uint32_t i = 0; i < ask.options.stops; i++)
        FUZZ_MUST(ask.stop[i] != NULL);
    qn__ask_release(&ask);
}

static void complete(const served *s, const char *body, size_t size) {
    (void)s;
    ask_for_text(QN__ASK_COMPLETION, body, size);
}

static void chat(const served *s, const char *body, size_t size) {
    (void)s;
    ask_for_text(QN__ASK_CHAT, body, size);
}

static void embed(const served *s, const char *body, size_t size) {
    (void)s;
    ask_for_text(QN__ASK_EMBEDDING, body, size);
}

static const struct {
    char letter;
    const served *to;
    void (*read)(const served *s, const char *body, size_t size);
} routes[] = {{'n', &numbers, read_numbers},
              {'p', &people, read_rows},
              {'t', &texts, read_text},
              {'i', &images, read_image},
              {'v', &people, infer_people},
              {'q', NULL, complete},
              {'c', NULL, chat},
              {'e', NULL, embed}};

/* A body of a request has a NUL after its end. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!numbers.model)
        set_up();
    for (size_t i = 0; size > 0 && i < sizeof routes / sizeof *routes; i++)
        if (routes[i].letter == *bytes) {
            char *body = fuzz_text(bytes + 1, size - 1);
            speaks_of_files = memmem(bytes, size, "proc", 4) != NULL;
            routes[i].read(routes[i].to, body, size - 1);
            free(body);
        }
    return 0;
}
