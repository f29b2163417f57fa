#include "answers.h"

#include "adapter.h"
#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "ranks.h"
#include <quern/generate.h>
#include <stdio.h>
#include <string.h>

int answers_is_file(const char *path) {
    static const char begin[] = "{\"format\": \"quern-answers-";
    char first[sizeof begin] = "";
    FILE *file = fopen(path, "rbe");
    const size_t size = file ? fread(first, 1, sizeof first - 1, file) : 0;
    if (file)
        fclose(file);
    first[size] = '\0';
    return strcmp(first, begin) == 0;
}

typedef struct replayed {
    const char *path;
    qn_generator *g;
    int quiet, json;
} replayed;

static int compare(void *user) {
    const replayed *r = user;
    qn_error err = {0};
    const qn_status status = qn_generator_compare(r->g, r->path, &err);
    if (status != QN_OK && status != QN_DIFFERS)
        return message_error(&err);
    if (r->json) {
        json_begin("end");
        json_text("replay", status == QN_OK ? "identical" : "differs");
        json_text("file", r->path);
        json_count("answers", qn_generator_answers(r->g));
        json_end();
    } else if (!r->quiet || status == QN_OK) {
        printf("replay: %s, %s\n", status == QN_OK ? "identical" : "differs", r->path);
    }
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}

static int run_again(replayed *r, const qn_model *model, const qn_compute *compute) {
    qn_error err = {0};
    int more = 1;
    qn_status status = qn_generator_reopen(model, r->path, compute, &r->g, &err);
    while (status == QN_OK && more)
        status = qn_generator_step(r->g, &more, &err);
    const int code = status == QN_OK ? ranks_conclude(&err, compare, r) : ranks_failed(&err);
    qn_generator_close(r->g);
    return code;
}

int answers_replay(const char *path, const char *model, const char *adapter,
                   const compute_flags *flags, int quiet, int json) {
    const qn_agreement same = {sizeof same, "the command", "replay of answers",
                               "start all ranks with the same command"};
    qn_compute compute = compute_of(flags);
    replayed r = {.path = path, .quiet = quiet, .json = json};
    qn_model *opened = NULL;
    qn_error err = {0};
    int code = -1;
    if (!model)
        code = message_usage("add --model MODEL, the model that has given them",
                             "%s has answers of a model, which must be named", path);
    else if (adapter_open(model, adapter, &opened, &err) != QN_OK)
        code = message_error(&err);
    code = ranks_agree(code, &same, 1, 0);
    compute.cluster = ranks_cluster();
    if (code < 0)
        code = run_again(&r, opened, &compute);
    qn_model_free(opened);
    return code;
}
