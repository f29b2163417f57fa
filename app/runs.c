#include "runs.h"
#include "jsonline.h"
#include "message.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *runs_file(const char *given) {
    const char *own = getenv("QUERN_RUNS");
    return given ? given : own && *own ? own : NULL;
}

static int need_file(const char *path) {
    return path ? -1
                : message_usage("add --runs FILE, or let QUERN_RUNS name the file; quern train "
                                "--runs FILE writes it",
                                "no file of runs is named");
}

int runs_open(const char *given, qn_runs **out) {
    const char *path = runs_file(given);
    qn_error err;
    *out = NULL;
    const int code = need_file(path);
    if (code >= 0 || qn_runs_open(path, out, &err) == QN_OK)
        return code;
    return message_error(&err);
}

int runs_place(const char *given, const char *run, char *place, size_t size) {
    const char *path = runs_file(given);
    struct stat about;
    const int folder = stat(run, &about) == 0 && S_ISDIR(about.st_mode);
    if (folder || strchr(run, '/') || strchr(run, ':') || !path)
        path = NULL;
    const int length =
        path ? snprintf(place, size, "%s:%s", path, run) : snprintf(place, size, "%s", run);
    return length >= 0 && (size_t)length < size
               ? -1
               : message_usage("use a shorter path", "the name of the run is too long");
}

int runs_info(const qn_runs *runs, uint64_t index, qn_run_info *info) {
    qn_error err;
    *info = (qn_run_info){.size = sizeof *info};
    return qn_runs_get(runs, index, info, &err) == QN_OK ? -1 : message_error(&err);
}

int runs_find(const qn_runs *runs, const char *run, uint64_t *index) {
    qn_error err;
    return qn_runs_find(runs, run, index, &err) == QN_OK ? -1 : message_error(&err);
}

int runs_check(qn_runs *runs, uint64_t index, const qn_run_info *info) {
    char what[160];
    if (qn_runs_key(runs, index, 0))
        return -1;
    snprintf(what, sizeof what, "the record of the run %.20s is damaged: its recipe cannot be read",
             info->id);
    return message_fail(QN_FORMAT, what, "", "name another run");
}

const char *runs_score(const qn_run_info *info, char text[RUNS_SCORE]) {
    text[0] = '\0';
    if (isfinite(info->accuracy))
        snprintf(text, RUNS_SCORE, "%.2f %%", 100 * info->accuracy);
    else if (isfinite(info->rmse))
        snprintf(text, RUNS_SCORE, "RMSE %.6g", info->rmse);
    return text;
}

void runs_fields(const qn_run_info *info) {
    json_text("id", info->id);
    json_text("name", info->name);
    json_text("state", info->state);
    json_text("started", info->started);
    json_text("ended", info->ended);
    json_text("host", info->host);
    json_text("command", info->command);
    json_text("data", info->data);
    json_text("digest", *info->model ? info->model : NULL);
    json_count("epochs", info->epochs);
    json_number("seconds", info->seconds);
    json_text("scored", *info->scored ? info->scored : NULL);
    json_number("accuracy", info->accuracy);
    json_number("loss", info->loss);
    json_number("rmse", info->rmse);
    json_number("r2", info->r2);
}
