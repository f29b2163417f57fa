#include "answers.h"

#include "command.h"
#include "jsonline.h"
#include "message.h"
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

static qn_status run_again(const char *path, const char *model_path, const qn_compute *compute,
                           uint32_t *count, qn_error *err) {
    qn_model *model = NULL;
    qn_generator *g = NULL;
    int more = 1;
    qn_status status = qn_model_load(model_path, &model, err);
    if (status == QN_OK)
        status = qn_generator_reopen(model, path, compute, &g, err);
    while (status == QN_OK && more)
        status = qn_generator_step(g, &more, err);
    if (status == QN_OK)
        status = qn_generator_compare(g, path, err);
    *count = qn_generator_answers(g);
    qn_generator_close(g);
    qn_model_free(model);
    return status;
}

int answers_replay(const char *path, const char *model, const compute_flags *flags, int quiet,
                   int json) {
    const qn_compute compute = compute_of(flags);
    qn_error err = {0};
    uint32_t count = 0;
    if (!model)
        return message_usage("add --model MODEL, the model that has given them",
                             "%s has answers of a model, which must be named", path);
    const qn_status status = run_again(path, model, &compute, &count, &err);
    if (status != QN_OK && status != QN_DIFFERS)
        return message_error(&err);
    if (json) {
        json_begin("end");
        json_text("replay", status == QN_OK ? "identical" : "differs");
        json_text("file", path);
        json_count("answers", count);
        json_end();
    } else if (!quiet || status == QN_OK) {
        printf("replay: %s, %s\n", status == QN_OK ? "identical" : "differs", path);
    }
    return status == QN_OK ? EXIT_DONE : message_error(&err);
}
