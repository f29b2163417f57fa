/* quern fit: models from sums over the items, without training. */

#include "command.h"
#include "fitted.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "ranks.h"
#include "shared_rows.h"
#include "sources.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct fit_flags {
    source_flags from;
    compute_flags compute;
    ranks_flags ranks;
    const char *set, *out;
    int list, quiet, json;
} fit_flags;

#define AT(member) .place = offsetof(fit_flags, member)
#define AGAIN(member) .again = offsetof(fit_flags, member)

static const option fit_options[] = {
    {.heading = "Data", ROW_DATA(from.data, "data in any format that train reads; required")},
    {.more = source_parts_options, AT(from)},
    {.more = source_part_cache_options, AT(from)},
    {.more = source_label_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_image_options, AT(from)},

    {.heading = "Model",
     ROW_TEXT("set", set, "TEXT", "parameters of the kind, such as \"clusters=3 seed=7\"")},
    {ROW_FLAG("list", list,
              "print the parameters of the kind, and what they are unless --set says it")},

    {.heading = "Output", ROW_OUTPUT(out, "FILE", "the model; required")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "the summary as one JSON object on stdout")},

    {.heading = "Devices (they do not change the model)", .more = compute_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

int fitted_is(const qn_model *model) { return strcmp(qn_model_kind(model), "network") != 0; }

/* Data for the end; any rank may have to finish it. */
typedef struct ending {
    const fit_flags *f;
    const qn_data *data;
    const qn_model *model;
    qn_fit_report report;
} ending;

static void report_fields(const ending *e) {
    json_begin("fit");
    json_text("file", e->f->out);
    json_text("kind", qn_model_kind(e->model));
    json_text("digest", qn_model_digest(e->model));
    json_count("items", qn_data_items(e->data));
    json_count("features", qn_model_inputs(e->model));
    json_count("outputs", qn_model_outputs(e->model));
    json_count("iterations", e->report.iterations);
    json_flag("converged", e->report.converged);
    if (qn_model_predicts(e->model) == QN_PREDICTS_CLUSTERS)
        json_number("inertia", e->report.inertia);
    json_end();
}

static void print_report(const ending *e) {
    char items[32];
    printf("%s of %s items with %" PRIu32 " columns", qn_model_title(e->model),
           format_count(qn_data_items(e->data), items), qn_model_inputs(e->model));
    if (e->report.iterations)
        printf(", %" PRIu32 " iterations", e->report.iterations);
    if (qn_model_predicts(e->model) == QN_PREDICTS_CLUSTERS)
        printf(", inertia %.9g", e->report.inertia);
    printf("\n%s in %s\n", qn_model_digest(e->model), e->f->out);
}

static int write_and_report(void *user) {
    const ending *e = user;
    qn_error err;
    if (qn_model_save_among(e->model, e->f->out, ranks_cluster(), &err) != QN_OK)
        return ranks_unwritten(&err);
    if (!e->report.converged)
        message_note("note: not converged after %" PRIu32 " iterations; give more with "
                     "--set iterations=N, or a greater tolerance",
                     e->report.iterations);
    if (e->f->json)
        report_fields(e);
    else if (!e->f->quiet)
        print_report(e);
    return EXIT_DONE;
}

/* The library calls the parameters options->parameters. */
static int fit(const fit_flags *f, const char *kind, const qn_data *data) {
    qn_compute compute = compute_of(&f->compute);
    qn_model *model = NULL;
    ending e = {.f = f, .data = data, .report = {.size = sizeof e.report}};
    qn_error err = {0};
    compute.cluster = ranks_cluster();
    const qn_fit_options o = {
        .size = sizeof o, .kind = kind, .parameters = f->set, .compute = &compute};
    const qn_status status = qn_fit(data, &o, &model, &e.report, &err);
    if (status != QN_OK && !*err.where)
        snprintf(err.where, sizeof err.where, "%.250s", f->from.data);
    e.model = model;
    const int code =
        status == QN_OK ? ranks_conclude(&err, write_and_report, &e) : ranks_failed(&err);
    qn_model_free(model);
    return code;
}

/* Fills `kind` with that of the name. Returns its index, or -1 after a message. */
static int find_kind(const char *name, qn_fit_kind *kind) {
    char known[200] = "";
    for (uint32_t i = 0; i < qn_fit_kind_count(); i++) {
        *kind = (qn_fit_kind){.size = sizeof *kind};
        qn_fit_kind_get(i, kind, NULL);
        if (strcmp(kind->name, name) == 0)
            return (int)i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "",
                 kind->name);
    }
    char remedy[280];
    snprintf(remedy, sizeof remedy, "name one of these: %s; quern train makes networks", known);
    message_usage(remedy, "unknown kind of model \"%.40s\"", name);
    return -1;
}

static int list(int index, const qn_fit_kind *kind) {
    printf("%s: %s%s\n", kind->name, kind->help, kind->labelled ? "; needs real labels" : "");
    for (uint32_t k = 0; k < kind->parameters; k++) {
        qn_fit_parameter p = {.size = sizeof p};
        qn_fit_parameter_get((uint32_t)index, k, &p, NULL);
        printf("  %-12s %s [%s]\n", p.name, p.help, p.usual);
    }
    return EXIT_DONE;
}

static int open_and_fit(const fit_flags *f, const qn_fit_kind *kind) {
    qn_data *data = NULL;
    source_flags from = f->from;
    if (kind->labelled)
        from.task = "regress";
    else
        from.unlabelled = 1;
    int code = source_open(source_data(&f->from), &from, f->compute.threads, NULL, &data);
    if (code < 0)
        code = fit(f, kind->name, data);
    qn_data_close(data);
    return code;
}

static int check_flags(const fit_flags *f, const qn_fit_kind *kind) {
    if (!f->from.data)
        return message_usage("add --data FILE", "--data FILE is required");
    if (!f->out)
        return message_usage("add -o model.safetensors", "-o FILE is required");
    if (!kind->labelled && (f->from.label || f->from.labels))
        return message_usage("leave it out; --drop leaves out the column of the labels",
                             "--%s does nothing here: %s takes no labels",
                             f->from.label ? "label" : "labels", kind->name);
    int code = sources_check(&f->from);
    if (code < 0)
        code = compute_check(&f->compute);
    paths files = {.count = 0};
    paths_add_sources(&files, &f->from, &f->ranks);
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    return code < 0 ? paths_check(&files, ranks_is_writer()) : code;
}

static int run(const command *self, int argc, char **argv) {
    fit_flags f = {.list = 0};
    arguments given;
    qn_fit_kind kind = {.size = sizeof kind};
    qn_agreement same[SOURCES_AGREED];
    int index = -1, code = ranks_join(argc - 2, argv + 2, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0) {
        message_setup(self->name, f.quiet, f.json);
        index = find_kind(given.operand[0], &kind);
        code = index < 0 ? EXIT_USAGE : f.list ? -1 : sources_take_parts(&f.from);
        code = code < 0 && !f.list ? check_flags(&f, &kind) : code;
    }
    if (code < 0 && f.list)
        return ranks_leave(list(index, &kind));
    sources_agreed(&f.from, self->name, same);
    code = ranks_agree(code, same, SOURCES_AGREED, 1);
    if (code < 0)
        code = open_and_fit(&f, &kind);
    return ranks_leave(code);
}

const command fit_command = {
    .name = "fit",
    .summary = "fit k-means, principal components, Ridge or Lasso",
    .usage = "quern fit KIND --data FILE [--set TEXT] -o MODEL",
    .about = "KIND is kmeans, pca, ridge or lasso. The model is computed from exact sums over the "
             "items, so its bytes depend on the data and the parameters alone. Values are float32 "
             "and are not scaled; missing values and columns of text are refused. Ridge and Lasso "
             "predict the label, a real number; the others take no labels: --drop leaves them out. "
             "quern predict, evaluate, replay and model show take the model.",
    .operand = "KIND",
    .options = fit_options,
    .examples = "quern fit kmeans --data points.csv --set \"clusters=3\" -o kmeans.safetensors\n"
                "quern fit ridge --data houses.csv --label price --set alpha=0.1 -o ridge.st\n"
                "quern fit pca --data points.csv --drop species -o pca.safetensors\n"
                "quern fit lasso --list",
    .run = run};

/* ----------------------------------------------------------------------------------------- replay
 */

typedef struct again {
    const fitted_replay *r;
    const qn_model *file, *model;
} again;

static int compare(void *user) {
    const again *a = user;
    const char *before = qn_model_digest(a->file), *now = qn_model_digest(a->model);
    const int same = strcmp(before, now) == 0;
    qn_error err;
    if (a->r->out && qn_model_save_among(a->model, a->r->out, ranks_cluster(), &err) != QN_OK)
        return ranks_unwritten(&err);
    if (a->r->json) {
        json_begin("end");
        json_text("replay", same ? "identical" : "differs");
        json_text("file", a->r->path);
        json_text("digest", before);
        json_text("replay_digest", now);
        json_end();
    } else {
        printf("replay: %s, %s%s%s\n", same ? "identical" : "differs", before,
               same ? "" : " became ", same ? "" : now);
    }
    if (same)
        return EXIT_DONE;
    return message_fail(QN_DIFFERS, "the replay differs in the numbers of the model", a->r->path,
                        "either the file was changed after the fit, or a device computed wrongly: "
                        "\"quern replay --devices cpu --threads 1\" decides");
}

int fitted_replay_run(const fitted_replay *r, const qn_model *model, const qn_data *data) {
    qn_compute compute = compute_of(r->compute);
    qn_model *made = NULL;
    qn_error err = {0};
    compute.cluster = ranks_cluster();
    const qn_status status = qn_fit_again(model, data, &compute, &made, &err);
    again a = {r, model, made};
    const int code = status == QN_OK ? ranks_conclude(&err, compare, &a) : ranks_failed(&err);
    qn_model_free(made);
    return code;
}
