#include "stage_predictions.h"
#include "format.h"
#include "message.h"
#include <errno.h>
#include <quern/predict.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int stage_predictions_open(const char *path, const sources *from) {
    if (!path)
        return -1;
    if (!from->test && !from->valid)
        return message_usage("add --test FILE or --valid FILE",
                             "--predictions needs a set to predict; a part of the training data "
                             "that --valid sets aside is none");
    struct stat there;
    if (strstr(path, "://") || mkdir(path, 0777) == 0) /* a store has no folders */
        return -1;
    if (errno == EEXIST && stat(path, &there) == 0) {
        if (S_ISDIR(there.st_mode))
            return -1;
        errno = ENOTDIR;
    }
    return message_fail(QN_IO, strerror(errno), path, "name a folder in one that exists");
}

static qn_status write_set(const char *path, const qn_model *model, const qn_data *data,
                           uint32_t stage, const char *name, qn_error *err) {
    char file[4200];
    qn_predictions *made = NULL;
    if (!data)
        return QN_OK;
    /* Right after a step, while the devices of the run wait for the next one. */
    const qn_compute compute = {.size = sizeof compute, .devices = "cpu"};
    qn_status status = qn_predictions_make(model, data, &compute, 0, &made, err);
    uint32_t rows = 0, columns;
    qn_model_answers(model, &rows, &columns); /* masks go to a folder */
    snprintf(file, sizeof file, "%.4000s%sstage%u-%s%s", path, ends_with(path, "/") ? "" : "/",
             stage, name, rows > 0 ? "" : ".csv");
    if (status == QN_OK)
        status = qn_predictions_write(made, file, err);
    qn_predictions_free(made);
    return status;
}

qn_status stage_predictions_write(const char *path, const qn_train *train, const sources *from,
                                  uint32_t stage, qn_error *err) {
    qn_model *model = NULL;
    qn_status status = qn_train_model(train, &model, err);
    if (status == QN_OK)
        status = write_set(path, model, from->valid, stage, "valid", err);
    if (status == QN_OK)
        status = write_set(path, model, from->test, stage, "test", err);
    qn_model_free(model);
    return status;
}
