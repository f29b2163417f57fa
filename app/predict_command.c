/* quern predict: applies a model to data. */

#include "adapter.h"
#include "evaluation.h"
#include "format.h"
#include "jsonline.h"
#include "layer_output.h"
#include "message.h"
#include "paths.h"
#include "predict_parts.h"
#include "program.h"
#include "report.h"
#include "shared_rows.h"
#include "whole_output.h"
#include <inttypes.h>
#include <math.h>
#include <quern/predict.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) .place = offsetof(predict_flags, member)
#define AGAIN(member) .again = offsetof(predict_flags, member)

static const option predict_options[] = {
    {.heading = "Data",
     ROW_DATA(from.data,
              "data to predict: a table or images in a format that \"quern data info --help\" "
              "lists, plain or "
              "compressed; - is the standard input; required, unless it is named after MODEL")},
    {.more = source_parts_options, AT(from)},
    {.more = source_label_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_item_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.more = source_unlabelled_options, AT(from)},
    {.heading = "Model", ROW_ADAPTER(adapter)},

    {.heading = "Output",
     ROW_OUTPUT(
         out, "FILE",
         "CSV with the columns item, file (of images), label (if known), prediction, score; of a "
         "PCA model pca0 and so on; - is stdout; of a model of masks a folder for PNG files; with "
         "--data-parts a file for each rank: %r in the name is its number; "
         "sqlite:FILE?table=NAME or postgresql://USER@HOST/DATABASE?table=NAME adds the rows to a "
         "table, once"),
     .fallback = "-"},
    {ROW_FLAG("outputs", outputs,
              "add the outputs as columns p0, p1 and so on; of a k-means model the distances "
              "kmeans0, kmeans1")},
    {ROW_TEXT(
        "layer", layer, "N",
        "outputs of layer N inside a network, such as embeddings of texts, in the place of "
        "predictions: its number, as \"quern model show\" lists it, -1 for the last one and so "
        "on, or body: the last one before the head. -o\tFILE.npy, another format that \"quern "
        "data convert\" writes, or a table of a database gets a row for each item, with its "
        "label")},
    {ROW_TEXT("pool", pool, "WORD",
              "with --layer, one number of each channel from all positions of a text, or pixels of "
              "an image: mean, max, first or last"),
     .fallback = "none"},
    {ROW_TEXT("output-labels", output_labels, "FILE",
              "with --layer and -o\tFILE.npy: file of the labels, which other formats hold")},
    {ROW_FLAG("logprobs", logprobs,
              "of a model of next tokens: a line for each token, with the logarithm of its "
              "probability")},
    {ROW_COUNT32(
         "top", top, 1, 1 << 24,
         "the N classes with the highest outputs, as columns prediction2, score2 and so on"),
     .fallback = "1"},
    {ROW_FLAG("flips", flips,
              "of images: means of the outputs for each image and its mirror image, left and right "
              "exchanged")},
    {ROW_FLAG("network-size", network_size,
              "masks: write them in the size that the network gives, not that of the image")},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "the summary as one JSON object on stdout; needs -o\tFILE")},

    {.heading = "Devices (they do not change the output)", .more = compute_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

static int to_stdout(const predict_flags *f) { return strcmp(f->out, "-") == 0; }

static int to_database(const predict_flags *f) { return qn_writes_to_database(f->out); }

static int write_predictions(const void *predictions, const char *path) {
    qn_error err;
    return qn_predictions_write(predictions, path, &err) == QN_OK ? -1 : ranks_unwritten(&err);
}

/* Data for the end of a prediction; any rank may have to finish it. */
typedef struct ending {
    const predict_flags *f;
    const qn_model *model;
    const qn_data *data;
    const qn_parts *parts; /* of which `data` is this rank's; else NULL */
    const qn_predictions *predictions;
    const qn_evaluation *evaluation; /* NULL: no labels, or outputs that were not kept */
    double start;
} ending;

/* How well the predictions agree with the labels. */
static void print_score(FILE *to, const qn_score *score, int real) {
    if (score->items == 0)
        return;
    if (real)
        report_errors(to, score);
    if (real)
        fprintf(to, "%" PRIu64 " labels\n", score->items);
    else
        fprintf(to, "accuracy %.2f %% (%" PRIu64 " of %" PRIu64 ")\n",
                100 * evaluation_accuracy(score), score->correct, score->items);
}

static void summary(const predict_flags *f, const ending *e, double seconds) {
    uint64_t items = e->parts ? qn_parts_items(e->parts) : qn_data_texts(e->data);
    const char *out = f->named ? f->named : f->out;
    int real = qn_model_classes(e->model) == 0;
    qn_score score = {0};
    qn_error err;
    qn_predictions_score(e->predictions, &score, &err);
    char number[32], rate[16];
    int there;
    const char *run = qn_predictions_run(e->predictions, &there);
    if (f->json) {
        json_begin("predictions");
        json_text("file", out);
        if (*run) {
            json_text("run", run);
            json_flag("added", !there);
        }
        json_count("items", items);
        json_count("predicted", qn_predictions_items(e->predictions));
        if (real)
            report_error_fields(&score);
        else
            json_number("accuracy", evaluation_accuracy(&score));
        evaluation_field("evaluation", e->evaluation);
        json_number("seconds", seconds);
        json_end();
    }
    if (f->json || f->quiet)
        return;
    /* The table may go to stdout: then the summary goes to stderr. */
    FILE *to = to_stdout(f) ? stderr : stdout;
    print_score(to, &score, real);
    evaluation_line(to, e->evaluation, 1);
    if (to_stdout(f) && message_output(EXIT_DONE) != EXIT_DONE)
        return; /* results are missing */
    fprintf(to, "%s predictions in %s%s%s%s, %.3f s, %s items/s\n",
            format_count(qn_predictions_items(e->predictions), number),
            to_stdout(f) ? "the standard output" : out, *run ? ", run " : "", run,
            there ? " (there already, not added again)" : "", seconds,
            format_rate(seconds > 0 ? (double)items / seconds : 0, rate));
}

/* The numbers of `quern evaluate`. */
static void print_evaluation(const predict_flags *f, const ending *e) {
    qn_score score = {0};
    qn_error err;
    qn_predictions_score(e->predictions, &score, &err);
    if (f->json) {
        json_begin("evaluation");
        json_text("data", f->from.data);
        json_text("model", qn_model_digest(e->model));
        evaluation_field("evaluation", e->evaluation);
        json_end();
        return;
    }
    print_score(stdout, &score, qn_model_classes(e->model) == 0);
    evaluation_line(stdout, e->evaluation, 1);
    if (f->verbose || (e->evaluation && e->evaluation->classes <= EVALUATION_CLASSES))
        evaluation_table(stdout, e->evaluation);
    if (f->verbose)
        evaluation_bins(stdout, e->evaluation);
}

/* Labels that are not classes of the model: another column was used as the labels. */
static int check_labels(const predict_flags *f, const qn_model *model, const qn_data *data) {
    char what[256];
    const uint32_t classes = qn_data_classes(data), known = qn_model_classes(model);
    if (qn_model_answers(model, NULL, NULL)) /* the library compares them */
        return -1;
    if (classes <= known || known == 0 || qn_data_class_name(data, 0) ||
        qn_model_class_name(model, 0))
        return -1; /* names that the model does not have are noted */
    snprintf(what, sizeof what,
             "the data has labels up to %" PRIu32 ", but the model has %" PRIu32 " outputs",
             classes - 1, known);
    return message_fail(QN_MISMATCH, what, f->from.data,
                        "name the column of the labels with --label; if the file holds no labels, "
                        "add --unlabelled");
}

static int is_of_images(const qn_data *data) {
    return strncmp(qn_data_format(data), "images", 6) == 0;
}

/* The most common mistake: a table without labels, whose first feature was used as the label. */
static int check_shape(const predict_flags *f, const char *model_path, const qn_model *model,
                       const qn_data *data) {
    char what[256];
    uint32_t has = qn_data_features(data), wants = qn_model_inputs(model);
    const char *remedy = "predict data with the same columns as the training data";
    if (has == wants || is_of_images(data) ||
        (qn_model_feature_name(model, 0) && qn_data_feature_name(data, 0)))
        return check_labels(f, model, data); /* the library matches names */
    if (strncmp(qn_data_format(data), "csv", 3) == 0 && has + 1 == wants && !f->from.unlabelled)
        remedy = "if the file holds no labels, add --unlabelled";
    if (strncmp(qn_data_format(data), "csv", 3) == 0 && has == wants + 1 && f->from.unlabelled)
        remedy = "if the file holds labels, leave --unlabelled out";
    snprintf(what, sizeof what,
             "the data has %" PRIu32 " features, but the model was trained on %" PRIu32, has,
             wants);
    char where[512];
    snprintf(where, sizeof where, "%.250s, model %.250s", f->from.data, model_path);
    return message_fail(QN_MISMATCH, what, where, remedy);
}

static int is_labelled(const qn_data *data) { return qn_data_target(data) != QN_TARGET_NONE; }

/* Whether there is something to say about the predictions. */
static int may_judge(const qn_model *model, const qn_data *data) {
    const qn_predicted what = qn_model_predicts(model);
    return what == QN_PREDICTS_LABELS ? is_labelled(data)
                                      : what == QN_PREDICTS_CLUSTERS || what == QN_PREDICTS_NEXT;
}

/* Of the masks that a model predicts; 0: it predicts none. Tags of tokens are lines. */
static uint32_t mask_rows(const qn_model *model) {
    uint32_t rows = 0, columns;
    return qn_model_answers(model, &rows, &columns) && !qn_model_tokens(model) ? rows : 0;
}

/* Data without labels cannot be judged. */
static int refuse_unlabelled(const predict_flags *f, const qn_model *model, const qn_data *data) {
    static const char what[] = "the data has no labels to compare with";
    const char *labels = qn_model_label_name(model);
    char remedy[400];
    if (is_of_images(data))
        return message_fail(QN_INPUT, what, f->from.data,
                            qn_model_answers(model, NULL, NULL)
                                ? "name a folder with a mask for each image with --masks"
                                : "name a folder that holds a folder of images for each class");
    if (qn_data_tokens(data))
        return message_fail(QN_INPUT, what, f->from.data, "name their file with --labels");
    if (!qn_model_answers(model, NULL, NULL) || !labels)
        return message_fail(QN_INPUT, what, f->from.data,
                            "name the column of the labels with --label, or their file with "
                            "--labels");
    snprintf(remedy, sizeof remedy,
             "give data with a column for each label of the model: %.240s; where it has no header, "
             "name the columns with --label",
             labels);
    return message_fail(QN_INPUT, what, f->from.data, remedy);
}

/* What must be right before the ranks begin. */
static int check_data(const predict_flags *f, const char *model_path, const qn_model *model,
                      const qn_data *data) {
    if (f->evaluate && qn_model_predicts(model) == QN_PREDICTS_LABELS && !is_labelled(data))
        return refuse_unlabelled(f, model, data);
    return check_shape(f, model_path, model, data);
}

static int write_evaluation(const ending *e) {
    qn_error err;
    int there = 0;
    if (!to_stdout(e->f) && qn_evaluation_write(e->evaluation, e->model, e->f->from.data,
                                                ranks_cluster(), e->f->out, &there, &err) != QN_OK)
        return ranks_unwritten(&err);
    print_evaluation(e->f, e);
    if (there)
        message_note("note: %s has this evaluation already", e->f->out);
    return EXIT_DONE;
}

static int write_and_report(void *user) {
    const ending *e = user;
    qn_error err;
    int code = -1;
    if (e->f->evaluate)
        return write_evaluation(e);
    if (e->parts)
        code = -1; /* each rank has written its file */
    else if (to_stdout(e->f))
        code = whole_output(write_predictions, e->predictions);
    else if (qn_predictions_write(e->predictions, e->f->out, &err) != QN_OK)
        code = ranks_unwritten(&err);
    if (code >= 0)
        return code;
    summary(e->f, e, program_now() - e->start);
    return EXIT_DONE;
}

/* All outputs; of next tokens the logarithm of each probability. */
static int keeps_outputs(const predict_flags *f, const qn_model *model) {
    return qn_model_predicts(model) == QN_PREDICTS_NEXT ? f->logprobs : f->outputs || f->top > 1;
}

/* Options that are for other models. */
static int check_options(const predict_flags *f, const qn_model *model) {
    const int next = qn_model_predicts(model) == QN_PREDICTS_NEXT;
    if (f->logprobs && !next)
        return message_usage("leave it out", "--logprobs is for models of next tokens");
    if (next && f->outputs && !f->evaluate)
        return message_usage("add --logprobs for the logarithm of each token's probability",
                             "--outputs would write the probabilities of all tokens of the "
                             "vocabulary at each position");
    if (f->from.item && !next)
        return message_usage("leave it out", "--item is for models of next tokens");
    if (next && f->top > 1)
        return message_usage("leave it out", "--top is for models with one class of an item");
    return -1;
}

static qn_status write_part(void *user, uint32_t rank, const char *out, const char *labels,
                            qn_error *err) {
    const ending *e = user;
    (void)labels;
    return qn_predictions_write_part(e->predictions, e->parts, rank, out, err);
}

/* What is to be predicted, and where it is said. */
typedef struct prediction_job {
    const predict_flags *f;
    const char *model_path;
    const qn_model *model;
    const qn_data *data; /* in parts: the rows of this rank */
    qn_parts *parts;     /* NULL: all rows are here */
    double start;
} prediction_job;

static qn_status make_predictions(const prediction_job *j, qn_predictions **out, qn_error *err) {
    const predict_flags *f = j->f;
    qn_compute compute = compute_of(&f->compute);
    compute.cluster = j->parts ? NULL : ranks_cluster();
    compute_note(&compute);
    qn_status status = (f->flips ? qn_predictions_make_flipped : qn_predictions_make)(
        j->model, j->data, &compute, keeps_outputs(f, j->model), out, err);
    if (status == QN_OK)
        status =
            qn_predictions_columns(*out, !f->evaluate && (f->outputs || f->logprobs), f->top, err);
    if (status == QN_OK)
        status = qn_predictions_mask_size(*out, f->network_size, err);
    ranks_notes();
    if (status == QN_MISMATCH && !*err->where)
        snprintf(err->where, sizeof err->where, "%.250s, model %.250s", f->from.data,
                 j->model_path);
    return status;
}

/* *again: a rank has ended meanwhile, and its rows are those of another. */
static int predict_once(const prediction_job *j, int *again) {
    const predict_flags *f = j->f;
    qn_predictions *predictions = NULL;
    ending e = {.f = f, .model = j->model, .data = j->data, .parts = j->parts, .start = j->start};
    const int judged = (f->evaluate || may_judge(j->model, j->data)) && (f->json || !f->quiet);
    qn_error err = {0};
    int code = -1;
    qn_status status = make_predictions(j, &predictions, &err);
    e.predictions = predictions;
    if (j->parts)
        code = predict_parts_join(predictions, j->parts, judged, status, &err, again);
    qn_evaluation *evaluation = NULL;
    /* Predictions are written also where they cannot be judged. */
    if (code < 0 && !*again && status == QN_OK && judged) {
        qn_error why;
        const qn_status found = qn_predictions_evaluate(predictions, &evaluation, &why);
        if (found != QN_OK && f->evaluate) {
            status = found;
            err = why;
        }
    }
    e.evaluation = evaluation;
    if (code < 0 && !*again && j->parts && !f->evaluate)
        code = predict_parts_write(f, j->parts, write_part, &e, again);
    if (code < 0 && !*again)
        code = status == QN_OK ? ranks_conclude(&err, write_and_report, &e) : ranks_failed(&err);
    qn_evaluation_free(evaluation);
    qn_predictions_free(predictions);
    return code;
}

static int predict_all(const prediction_job *j) {
    int again, code;
    do {
        again = 0;
        code = predict_once(j, &again);
    } while (code < 0 && again);
    return code;
}

static int names_folder(const predict_flags *f) {
    return !to_stdout(f) && !to_database(f) && (ends_with(f->out, "/") || paths_is_folder(f->out));
}

/* What would be found after the prediction otherwise. */
static int check_output(const predict_flags *f, const qn_model *model, const qn_data *data) {
    qn_error err;
    qn_status status = QN_OK;
    if (ranks_is_writer() && f->evaluate)
        status = to_stdout(f) ? QN_OK : qn_evaluation_check(f->out, &err);
    else if (ranks_is_writer())
        status = qn_predictions_check(model, data, f->out, f->outputs || f->logprobs, f->top, &err);
    return ranks_agree(status == QN_OK ? -1 : message_error(&err), NULL, 0, 0);
}

/* Opens model and data; each rank checks what its own machine has read. */
static int open_and_predict(const predict_flags *f, const char *model_path) {
    qn_model *model = NULL;
    qn_data *opened = NULL;
    qn_parts *parts = NULL;
    qn_error err;
    int code = -1;
    if (adapter_open(model_path, f->adapter, &model, &err) != QN_OK)
        code = ranks_failed(&err);
    uint32_t layer = 0;
    if (code < 0)
        code = ranks_agree(check_options(f, model), NULL, 0, 0);
    if (code < 0)
        code = ranks_agree(layer_output_find(f, model, &layer), NULL, 0, 0);
    source_flags from = f->from;
    if (code < 0 && qn_model_predicts(model) == QN_PREDICTS_NEXT)
        from.task = "next";
    else if (code < 0 && qn_model_predicts(model) != QN_PREDICTS_LABELS)
        from.unlabelled = !from.label && !from.labels;
    else if (code < 0) /* whatever numbers the labels are */
        from.task = qn_model_classes(model) == 0 ? "regress" : "classify";
    if (code < 0 && qn_model_answers(model, NULL, NULL) && !qn_model_label_name(model))
        from.unlabelled |= /* folders are not its classes */
            !from.label && !from.labels && !from.masks;
    char *categories = code < 0 ? source_categories_of_model(model) : NULL;
    from.categories = categories;
    char *texts = code < 0 ? source_texts_of_model(model) : NULL;
    from.texts = texts;
    const char *weight = code < 0 ? qn_model_weight_name(model) : NULL;
    from.expected_weight = weight && *weight ? weight : NULL;
    from.expected_resize = code < 0 ? qn_model_resize(model) : NULL;
    from.expected_rules = code < 0 ? qn_model_rules(model) : NULL;
    from.expected_tokens = code < 0 ? qn_model_tokens(model) : NULL;
    from.expected_context = code < 0 ? qn_model_context(model) : 0;
    from.expected_tokenizer = code < 0 ? qn_model_tokenizer(model) : NULL;
    if (code < 0 && !from.date_format)
        from.date_format = qn_model_date_format(model);
    from.expected_features = code < 0 ? qn_model_inputs(model) : 0;
    if (code < 0 && from.parts)
        code = source_open_parts(&from, f->compute.threads, qn_model_label_name(model), &parts);
    else if (code < 0)
        code = source_open(source_data(&f->from), &from, f->compute.threads,
                           qn_model_label_name(model), &opened);
    const qn_data *data = parts ? qn_parts_own(parts) : opened;
    if (code < 0)
        code = ranks_agree(check_data(f, model_path, model, data), NULL, 0, 0);
    uint32_t rows = 0;
    if (code < 0)
        rows = mask_rows(model);
    if (f->layer)
        rows = 0;
    if (code < 0 && rows > 0 && to_stdout(f) && !f->evaluate)
        code = message_usage("add -o FOLDER", "the model gives masks, which need a folder");
    if (code < 0 && rows == 0 && !f->evaluate && names_folder(f))
        code = message_fail(QN_IO, "the predictions need a file, and this is a folder", f->out,
                            "name a file in it");
    if (code < 0 && !f->layer && (rows > 0 || to_database(f)))
        code = check_output(f, model, data);
    if (code < 0)
        code =
            f->layer
                ? layer_output(f, layer, model, parts, data)
                : predict_all(&(prediction_job){f, model_path, model, data, parts, program_now()});
    free(categories);
    free(texts);
    qn_data_close(opened);
    qn_parts_close(parts);
    qn_model_free(model);
    return code;
}

/* Data in the place of the model is a common mistake. */
static int has_name_of_data(const char *path) {
    static const char *const data[] = {
        ".csv",    ".csv.gz", ".tsv", ".txt", ".idx",  ".idx.gz", ".npy",     ".npz",   ".tar",
        ".tar.gz", ".tgz",    ".zip", ".bz2", ".xz",   ".zst",    ".parquet", ".arrow", ".jpg",
        ".JPG",    ".jpeg",   ".png", ".gif", ".webp", ".tif",    ".tiff",    ".bmp"};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        if (ends_with(path, data[i]))
            return 1;
    return 0;
}

static int refuse_model(const predict_flags *f, const char *path) {
    char remedy[512];
    snprintf(remedy, sizeof remedy, "quern %s MODEL --data %.400s",
             f->evaluate ? "evaluate" : "predict", path);
    return message_usage(remedy, "\"%.400s\" looks like data, not like a model", path);
}

static int check_flags(const predict_flags *f, const char *model_path) {
    if ((!f->from.data && has_name_of_data(model_path)) || qn_path_is_folder(model_path))
        return refuse_model(f, model_path);
    if (!f->from.data)
        return message_usage("name files after the model, or add --data FILE",
                             "--data FILE is required, or --data-parts LIST");
    if (f->json && to_stdout(f) && !f->evaluate)
        return message_usage("add -o predictions.csv",
                             "--json and the predictions both write to the standard output");
    if (f->from.unlabelled && (f->from.labels || f->from.label))
        return message_usage("leave one of them out",
                             "--unlabelled contradicts --labels and --label");
    int code = layer_output_check(f);
    if (code < 0)
        code = sources_check(&f->from);
    if (code < 0)
        code = compute_check(&f->compute);
    paths files = {.count = 0};
    paths_add(&files, QN_FILE_READ, "MODEL", model_path);
    paths_add_sources(&files, &f->from, &f->ranks);
    paths_add(&files, QN_FILE_WRITE, "--output-labels", f->output_labels);
    paths_add(&files, names_folder(f) ? QN_FOLDER_WRITE : QN_FILE_WRITE, "-o",
              to_stdout(f) || to_database(f) ? NULL : f->out);
    return code < 0 ? paths_check(&files, ranks_is_writer()) : code;
}

/* Files after the model are data, after those of --data. */
static int take_files(predict_flags *f, const arguments *given) {
    file_list *more = &f->from.data_more;
    if (given->operands > 1 && has_name_of_data(given->operand[0]))
        return refuse_model(f, given->operand[0]);
    for (int i = 1; i < given->operands; i++)
        if (!f->from.data)
            f->from.data = given->operand[i];
        else if (more->count < MOST_FILES)
            more->at[more->count++] = given->operand[i];
        else
            return message_usage("put a pattern in quotes: 'photos/*.jpg'",
                                 "too many files are named");
    return -1;
}

int predict_run(const command *self, int argc, char **argv, predict_flags *flags) {
    predict_flags f = *flags;
    arguments given;
    qn_agreement same[SOURCES_AGREED];
    int code = ranks_join(argc - 2, argv + 2, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0)
        code = take_files(&f, &given);
    if (code < 0)
        code = predict_parts_take(&f);
    if (code < 0) {
        message_setup(self->name, f.quiet, f.json);
        code = check_flags(&f, given.operand[0]);
    }
    sources_agreed(&f.from, self->name, same);
    code = ranks_agree(code, same, SOURCES_AGREED, 1);
    if (code < 0)
        code = open_and_predict(&f, given.operand[0]);
    predict_parts_release(&f);
    return ranks_leave(code);
}

static int run(const command *self, int argc, char **argv) {
    predict_flags f = {.out = "-"};
    return predict_run(self, argc, argv, &f);
}

const command predict_command = {
    .name = "predict",
    .summary = "apply a model to data",
    .usage = "quern predict MODEL (--data FILE | FILE...) [options] [-o FILE]",
    .about = "Writes the predicted class of each item and its score as CSV. Inputs are scaled as "
             "in training; the model file says how. Columns, the label column and classes are "
             "found by their names where the model has names, in any order. If the data has "
             "labels, the accuracy and other scores are "
             "printed on stdout, or on stderr when stdout carries the predictions. Files after "
             "MODEL are data, as with --data.\n"
             "Models of quern fit are applied likewise: k-means gives the cluster and the distance "
             "from its centre, PCA the components, Ridge and Lasso a number.",
    .operand = "MODEL",
    .most_operands = MOST_FILES + 1,
    .options = predict_options,
    .examples = "quern predict digits.safetensors --data test.csv -o predictions.csv\n"
                "quern predict resnet18.safetensors photo.jpg more.png --top 5\n"
                "quern predict m.safetensors --data new.csv --unlabelled --outputs | head\n"
                "quern predict kmeans.safetensors --data points.csv --outputs\n"
                "quern predict m.safetensors --data images.idx.gz --labels labels.idx.gz\n"
                "quern predict m.safetensors --data new.csv -o \"sqlite:results.db?table=new\"",
    .run = run};
