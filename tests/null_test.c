/* NULL in every place of the public functions: a refusal that names function and argument, or a
 * neutral answer, and no crash. `err` may be NULL, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "null_case_test.h"
#include <quern/quern.h>

static struct {
    qn_data *data;
    qn_model *model;
    qn_train *train;
    qn_predictions *predictions;
    qn_train_options options;
} have;

static qn_status opener(void *user, qn_data **out, qn_error *err) {
    (void)user;
    return qn_data_synth_digits(1, 0, 64, out, err);
}

static qn_status next_batch(void *user, qn_data_batch *batch, qn_error *err) {
    (void)user, (void)batch, (void)err;
    return QN_OK;
}

static int set_up(void **state) {
    (void)state;
    qn_error err;
    const qn_compute one = {.size = sizeof(qn_compute), .threads = 1, .devices = "cpu"};
    qn_train_options_init(&have.options);
    have.options.model = "dense 10 softmax";
    have.options.epochs = 1;
    have.options.compute = one;
    return qn_data_synth_digits(1, 0, 64, &have.data, &err) != QN_OK ||
           qn_train_open(&have.options, have.data, NULL, NULL, &have.train, &err) != QN_OK ||
           qn_train_run(have.train, &err) != QN_OK ||
           qn_train_model(have.train, &have.model, &err) != QN_OK ||
           qn_predictions_make(have.model, have.data, &one, 0, &have.predictions, &err) != QN_OK;
}

static int tear_down(void **state) {
    (void)state;
    qn_predictions_free(have.predictions);
    qn_model_free(have.model);
    qn_train_close(have.train);
    qn_data_close(have.data);
    return 0;
}

static void test_data(void **state) {
    (void)state;
    qn_data *out = have.data;
    const float value = 1;
    struct ArrowArrayStream no_stream = {0};
    REFUSED(qn_data_open, "path", NULL, NULL, &out);
    assert_null(out);
    REFUSED(qn_data_open, "out", "a.csv", NULL, NULL);
    REFUSED(qn_data_open_files, "paths", NULL, 1, NULL, &out);
    REFUSED(qn_data_open_files, "out", &(const char *){"a.csv"}, 1, NULL, NULL);
    REFUSED(qn_data_from_arrays, "values", QN_F32, 1, 1, NULL, NULL, &out);
    REFUSED(qn_data_from_arrays, "out", QN_F32, 1, 1, &value, NULL, NULL);
    qn_data_arrays arrays;
    qn_data_arrays_init(NULL);
    qn_data_arrays_init(&arrays);
    REFUSED(qn_data_lend, "arrays", NULL, &out);
    REFUSED(qn_data_lend, "out", &arrays, NULL);
    REFUSED(qn_data_lend, "arrays->values", &arrays, &out);
    REFUSED(qn_data_from_batches, "arrays", NULL, next_batch, NULL, &out);
    REFUSED(qn_data_from_batches, "next", &arrays, NULL, NULL, &out);
    REFUSED(qn_data_from_batches, "out", &arrays, next_batch, NULL, NULL);
    REFUSED(qn_data_from_arrow, "stream", NULL, NULL, &out);
    REFUSED(qn_data_from_arrow, "out", &no_stream, NULL, NULL);
    REFUSED(qn_data_synth_digits, "out", 1, 0, 1, NULL);
    REFUSED(qn_data_share, "open", NULL, 0, NULL, NULL, &out);
    REFUSED(qn_data_share, "out", NULL, 0, opener, NULL, NULL);
    REFUSED(qn_data_write_idx, "data", NULL, "images", NULL);
    REFUSED(qn_data_write_idx, "images_path", have.data, NULL, NULL);
    REFUSED(qn_data_write, "data", NULL, NULL, "a.csv", NULL);
    REFUSED(qn_data_write, "path", have.data, NULL, NULL, NULL);
    REFUSED(qn_data_split, "data", NULL, &(uint64_t){1}, 1, 1, 0, &out);
    REFUSED(qn_data_split, "shares", have.data, NULL, 1, 1, 0, &out);
    REFUSED(qn_data_split, "out", have.data, &(uint64_t){1}, 1, 1, 0, NULL);
    qn_data *other;
    const qn_data *const parts[2] = {have.data, NULL};
    const char *const paths[2] = {"a.csv", "b.csv"};
    REFUSED(qn_data_write_parts, "parts", NULL, 1, NULL, paths, NULL);
    REFUSED(qn_data_write_parts, "paths", parts, 1, NULL, NULL, NULL);
    REFUSED(qn_data_write_parts, "parts[1]", parts, 2, NULL, paths, NULL);
    REFUSED(qn_data_fold, "data", NULL, 2, 0, 1, 0, &out, &other);
    REFUSED(qn_data_fold, "train", have.data, 2, 0, 1, 0, NULL, &other);
    REFUSED(qn_data_fold, "valid", have.data, 2, 0, 1, 0, &out, NULL);
    assert_int_equal(qn_data_fold(have.data, 1, 0, 1, 0, &out, &other, NULL), QN_USAGE);
    assert_int_equal(qn_data_fold(have.data, 2, 2, 1, 0, &out, &other, NULL), QN_USAGE);
    assert_null(out);
    char note[8] = "x";
    qn_data_reading(have.data, NULL, note, sizeof note);
    assert_string_equal(note, "");
    assert_null(qn_data_write_format(NULL));
    qn_data_reading(NULL, "csv", note, sizeof note);
    qn_data_reading(have.data, "csv", NULL, sizeof note);
    REFUSED(qn_data_write_csv, "data", NULL, "a.csv");
    REFUSED(qn_data_write_csv, "path", have.data, NULL);
    REFUSED(qn_data_write_sheet, "data", NULL, NULL, "a.png");
    REFUSED(qn_data_write_sheet, "path", have.data, NULL, NULL);
    qn_sheet_options_init(NULL);
    REFUSED(qn_data_write_tar, "data", NULL, "a.tar");
    REFUSED(qn_data_write_tar, "path", have.data, NULL);
}

static void test_questions_of_data(void **state) {
    (void)state;
    char exact[32] = "x", rules[QN_RULES_TEXT] = "x", parts[QN_DATE_TEXT] = "x";
    uint32_t rows = 1, columns = 1;
    qn_several several = {.size = sizeof several};
    qn_data_options_init(NULL);
    qn_data_close(NULL);
    assert_int_equal(qn_data_items(NULL), 0);
    assert_int_equal(qn_data_texts(NULL), 0);
    assert_int_equal(qn_data_features(NULL), 0);
    assert_int_equal(qn_data_inputs(NULL), 0);
    assert_int_equal((int)qn_data_type_of(NULL), 0);
    assert_null(qn_data_values(NULL));
    assert_null(qn_data_labels(NULL));
    assert_int_equal(qn_data_classes(NULL), 0);
    assert_string_equal(qn_data_digest(NULL), "");
    assert_string_equal(qn_data_format(NULL), "");
    assert_null(qn_data_feature_name(NULL, 0));
    assert_int_equal(qn_data_feature_type(NULL, 0), 0);
    assert_null(qn_data_whole(NULL, 0));
    assert_null(qn_data_real(NULL, 0));
    qn_data_exact(NULL, 0, 0, exact, sizeof exact);
    assert_string_equal(exact, "");
    assert_int_equal(qn_data_categories(NULL, 0), 0);
    assert_int_equal(qn_data_text_inputs(NULL, 0), 0);
    qn_data_text_features(NULL, 0, exact, sizeof exact);
    assert_string_equal(exact, "");
    qn_data_text_features(have.data, 0, NULL, 0);
    assert_null(qn_data_category(NULL, 0, 0));
    assert_int_equal(qn_data_target(NULL), QN_TARGET_NONE);
    assert_null(qn_data_targets(NULL));
    REFUSED(qn_data_several, "data", NULL, &several);
    REFUSED(qn_data_several, "several", have.data, NULL);
    assert_null(qn_data_label_name(NULL));
    assert_null(qn_data_weights(NULL));
    assert_null(qn_data_weight_name(NULL));
    assert_null(qn_data_class_name(NULL, 0));
    assert_null(qn_data_note(NULL));
    assert_int_equal(qn_data_dates(NULL, 0, parts, sizeof parts), QN_DATE_NONE);
    assert_string_equal(parts, "");
    assert_int_equal(qn_data_dates(have.data, 0, NULL, 0), QN_DATE_NONE);
    assert_null(qn_data_date_format(NULL));
    assert_null(qn_data_tokens(NULL));
    assert_null(qn_data_tokenizer(NULL));
    assert_int_equal(qn_data_context(NULL), 0);
    assert_null(qn_data_item(NULL, 0));
    assert_null(qn_data_moments(NULL, 0));
    assert_null(qn_data_moments(have.data, 0));
    parts[0] = 'x';
    qn_data_date(NULL, 0, 0, parts, sizeof parts);
    assert_string_equal(parts, "");
    qn_data_date(have.data, 0, 0, NULL, 0);
    qn_data_rules(NULL, rules, sizeof rules);
    assert_string_equal(rules, "");
    qn_data_rules(NULL, NULL, 0);
    qn_data_image_size(NULL, &rows, &columns);
    assert_int_equal(rows + columns, 0);
    qn_data_image_size(have.data, NULL, NULL);
    assert_int_equal(qn_data_image_channels(NULL), 0);
    assert_null(qn_data_item_name(NULL, 0));
    assert_null(qn_data_item_words(NULL, 0, NULL));
    assert_null(qn_data_item_words(have.data, 0, &rows));
    assert_int_equal(rows, 0);
    qn_data_original_size(NULL, 0, NULL, NULL);
    REFUSED(qn_data_original_mask, "data", NULL, 0, NULL, 1, 1, NULL);
    REFUSED(qn_data_original_mask, "mask", have.data, 0, NULL, 1, 1, NULL);
    assert_string_equal(qn_data_image_library(NULL), "");
    qn_description *description;
    REFUSED(qn_description_read, "paths", NULL, 1, &description);
    REFUSED(qn_description_read, "out", &(const char *){"a.parquet"}, 1, NULL);
    qn_description_free(NULL);
    assert_string_equal(qn_description_format(NULL), "");
    assert_string_equal(qn_description_name(NULL, 0), "");
    assert_string_equal(qn_description_type(NULL, 0), "");
    assert_int_equal(qn_description_files(NULL) + qn_description_items(NULL), 0);
    assert_int_equal((int)qn_description_columns(NULL) + qn_description_may_miss(NULL, 0), 0);
}

static void test_models(void **state) {
    char layers[64];
    (void)state;
    qn_model *out = have.model;
    qn_train_options options;
    qn_train_options_init(&options);
    REFUSED(qn_model_load, "path", NULL, &out);
    assert_null(out);
    REFUSED(qn_model_load, "out", "a", NULL);
    REFUSED(qn_model_share, "path", NULL, 0, NULL, &out);
    REFUSED(qn_model_share, "out", NULL, 0, "a", NULL);
    REFUSED(qn_model_merge, "model", NULL, &out);
    REFUSED(qn_model_merge, "out", have.model, NULL);
    REFUSED(qn_model_adapt, "adapter", NULL, 0, NULL, NULL, &out);
    REFUSED(qn_model_adapt, "base", NULL, 0, "a", NULL, &out);
    REFUSED(qn_model_adapt, "out", NULL, 0, "a", NULL, NULL);
    REFUSED(qn_model_save, "model", NULL, "a");
    REFUSED(qn_model_save, "path", have.model, NULL);
    REFUSED(qn_model_save_among, "model", NULL, "a", NULL);
    REFUSED(qn_model_save_among, "path", have.model, NULL, NULL);
    qn_import_found found = {.size = sizeof found};
    REFUSED(qn_model_recognise, "path", NULL, &found);
    REFUSED(qn_model_recognise, "found", "a", NULL);
    char type[32];
    REFUSED(qn_model_import_pretrained, "path", NULL, NULL, NULL, NULL, &out);
    REFUSED(qn_model_import_pretrained, "out", "a", NULL, NULL, NULL, NULL);
    REFUSED(qn_pretrained_type, "path", NULL, NULL, type);
    REFUSED(qn_pretrained_type, "type", "a", NULL, NULL);
    REFUSED(qn_model_write_peft, "model", NULL, "a");
    REFUSED(qn_model_write_peft, "folder", have.model, NULL);
    REFUSED(qn_model_import_peft, "folder", have.model, NULL, &out);
    REFUSED(qn_model_write_pretrained, "model", NULL, "a");
    REFUSED(qn_model_write_pretrained, "folder", have.model, NULL);
    qn_import_config *config = NULL;
    qn_import_about about = {.size = sizeof about};
    REFUSED(qn_import_config_open, "path", NULL, NULL, &config);
    REFUSED(qn_import_config_open, "out", "a", NULL, NULL);
    REFUSED(qn_import_labels_open, "path", NULL, &config);
    REFUSED(qn_import_labels_open, "out", "a", NULL);
    REFUSED(qn_import_config_get, "config", NULL, &about);
    qn_import_config_free(NULL);
    REFUSED(qn_model_import, "path", NULL, &options, have.data, NULL, NULL, &out);
    assert_null(out);
    REFUSED(qn_model_import, "job", "a", NULL, have.data, NULL, NULL, &out);
    REFUSED(qn_model_import, "like", "a", &options, NULL, NULL, NULL, &out);
    REFUSED(qn_model_import, "out", "a", &options, have.data, NULL, NULL, NULL);
    qn_run_info info = {.size = sizeof info};
    qn_runs *runs;
    uint64_t index;
    REFUSED(qn_runs_open, "path", NULL, &runs);
    assert_null(runs);
    REFUSED(qn_runs_open, "out", "a", NULL);
    REFUSED(qn_runs_get, "runs", NULL, 0, &info);
    REFUSED(qn_runs_find, "runs", NULL, "a", &index);
    assert_int_equal(qn_runs_count(NULL), 0);
    assert_null(qn_runs_key(NULL, 0, 0));
    assert_null(qn_runs_value(NULL, 0, 0));
    qn_runs_close(NULL);
    qn_search *search;
    qn_search_result result;
    qn_search_mean mean;
    uint32_t order;
    qn_search_options_init(NULL);
    REFUSED(qn_search_open, "options", NULL, have.data, &search);
    qn_search_options searched;
    qn_search_options_init(&searched);
    REFUSED(qn_search_open, "data", &searched, NULL, &search);
    REFUSED(qn_search_open, "out", &searched, have.data, NULL);
    REFUSED(qn_search_open, "options->setting", &searched, have.data, &search);
    REFUSED(qn_search_run, "search", NULL);
    REFUSED(qn_search_get, "search", NULL, 0, 0, &result);
    REFUSED(qn_search_mean_get, "search", NULL, 0, &mean);
    REFUSED(qn_search_order, "search", NULL, QN_SEARCH_LOSS, &order);
    qn_lr_range *range;
    qn_lr_range_options ranged;
    qn_lr_range_options_init(NULL);
    qn_lr_range_options_init(&ranged);
    REFUSED(qn_lr_range_find, "options", NULL, have.data, &range);
    REFUSED(qn_lr_range_find, "data", &ranged, NULL, &range);
    REFUSED(qn_lr_range_find, "out", &ranged, have.data, NULL);
    REFUSED(qn_lr_range_find, "options->train", &ranged, have.data, &range);
    qn_lr_range_free(NULL);
    assert_null(qn_search_metric_name(QN_SEARCH_METRICS));
    assert_int_equal(qn_search_done(NULL), 0);
    qn_search_stop(NULL);
    qn_search_close(NULL);
    qn_report_options_init(NULL);
    REFUSED(qn_report_write, "options", NULL);
    REFUSED(qn_report_write, "options->run",
            &(qn_report_options){.size = sizeof(qn_report_options)});
    REFUSED(qn_run_write_tensorboard, "run_dir", NULL, "a");
    REFUSED(qn_run_write_tensorboard, "folder", "a", NULL);
    REFUSED(qn_run_write_mlflow, "run_dir", NULL, "a", NULL, NULL);
    REFUSED(qn_run_write_mlflow, "folder", "a", NULL, NULL, NULL);
    REFUSED(qn_model_write_onnx, "model", NULL, "a");
    REFUSED(qn_model_write_onnx, "path", have.model, NULL);
    REFUSED(qn_model_write_state, "model", NULL, "timm", "a");
    REFUSED(qn_model_write_state, "library", have.model, NULL, "a");
    REFUSED(qn_model_write_state, "path", have.model, "timm", NULL);
    REFUSED(qn_train_options_from_model, "model", NULL, have.data, &options);
    REFUSED(qn_train_options_from_model, "data", have.model, NULL, &options);
    REFUSED(qn_train_options_from_model, "options", have.model, have.data, NULL);
    REFUSED(qn_train_options_settle, "options", NULL, have.data);
    REFUSED(qn_train_options_settle, "data", &options, NULL);
    REFUSED(qn_train_model_text, "options", NULL, have.data, layers, sizeof layers);
    REFUSED(qn_train_model_text, "data", &options, NULL, layers, sizeof layers);
    REFUSED(qn_train_model_text, "text", &options, have.data, NULL, 0);
}

static void test_questions_of_models(void **state) {
    (void)state;
    char text[8] = "x";
    qn_model_free(NULL);
    assert_string_equal(qn_model_recipe(NULL), "");
    assert_string_equal(qn_model_digest(NULL), "");
    assert_null(qn_model_adapts(NULL));
    assert_int_equal(qn_model_inputs(NULL) + qn_model_outputs(NULL) + qn_model_layers(NULL), 0);
    assert_int_equal(qn_model_classes(NULL), 0);
    assert_int_equal(qn_model_answers(NULL, NULL, NULL), 0);
    assert_int_equal(qn_model_parameters(NULL), 0);
    assert_null(qn_model_feature_name(NULL, 0));
    assert_int_equal(qn_model_categories(NULL, 0), 0);
    assert_int_equal(qn_model_text_inputs(NULL, 0), 0);
    qn_model_text_features(NULL, 0, text, sizeof text);
    assert_string_equal(text, "");
    qn_model_text_features(have.model, 0, NULL, 0);
    assert_null(qn_model_class_name(NULL, 0));
    assert_null(qn_model_label_name(NULL));
    assert_null(qn_model_weight_name(NULL));
    assert_null(qn_model_resize(NULL));
    assert_string_equal(qn_model_rules(NULL), "");
    assert_null(qn_model_date_format(NULL));
    assert_null(qn_model_tokens(NULL));
    assert_null(qn_model_tokenizer(NULL));
    assert_int_equal(qn_model_context(NULL), 0);
    qn_model_layer_text(NULL, 0, text, sizeof text);
    assert_string_equal(text, "");
    qn_model_layer_text(have.model, 0, NULL, 8);
    assert_null(qn_model_tensor(NULL, "layer0.weight", NULL, NULL));
    assert_null(qn_model_tensor(have.model, NULL, NULL, NULL));
    assert_non_null(qn_model_tensor(have.model, "layer0.weight", NULL, NULL));
    assert_null(qn_choice_near(QN_CHOICE_LOSS, NULL));
    assert_int_equal(qn_choice_lacks(QN_CHOICE_LOSS, NULL), 0);
    assert_int_equal(qn_choice_takes(QN_CHOICE_LOSS, NULL, "delta"), 0);
    assert_int_equal(qn_choice_takes(QN_CHOICE_LOSS, "huber", NULL), 0);
    assert_int_equal(qn_default_text(NULL, text, sizeof text), 0);
    assert_int_equal(qn_default_text("train.batch", NULL, sizeof text), 0);
    assert_int_equal(qn_default_model(10, NULL, sizeof text), 0);
}

static void test_files(void **state) {
    (void)state;
    const qn_file nameless = {.size = sizeof(qn_file), .path = "a", .use = QN_FILE_READ},
                  none = {.size = sizeof(qn_file), .use = QN_FILE_WRITE};
    REFUSED(qn_files_check, "files", NULL, 1);
    REFUSED(qn_files_compare, "files", NULL, 1);
    REFUSED(qn_files_check, "files[0].name", &nameless, 1);
    REFUSED(qn_files_compare, "files[0].name", &nameless, 1);
    assert_int_equal(qn_files_check(NULL, 0, NULL), QN_OK);
    assert_int_equal(qn_files_check(&none, 1, NULL), QN_OK);
    qn_files_abandon();
    char *bytes = NULL;
    size_t size;
    REFUSED(qn_file_read, "path", NULL, 1, &bytes, &size);
    REFUSED(qn_file_read, "bytes", "a", 1, NULL, &size);
    REFUSED(qn_file_read, "size", "a", 1, &bytes, NULL);
    qn_file_bytes_free(NULL);
    assert_int_equal(qn_path_is_folder(NULL), 0);
}

static void test_devices(void **state) {
    (void)state;
    REFUSED(qn_device_get, "info", 0, NULL);
    REFUSED(qn_device_measure, "rates", 0, NULL, NULL);
    REFUSED(qn_compute_check, "compute", NULL);
    assert_true(*qn_device_absence(NULL));
    assert_int_equal(qn_device_note(NULL, 8), 0);
    const qn_compute zero = {.size = sizeof(qn_compute), .threads = 0};
    assert_int_equal(qn_compute_check(&zero, NULL), QN_OK);
}

static void test_training(void **state) {
    (void)state;
    qn_train *out = have.train;
    qn_model *model;
    qn_train_report report = {.size = sizeof(qn_train_report)};
    qn_saved saved = {.size = sizeof saved};
    const char *const place[] = {"a", NULL};
    REFUSED(qn_train_open, "options", NULL, have.data, NULL, NULL, &out);
    assert_null(out);
    REFUSED(qn_train_open, "train", &have.options, NULL, NULL, NULL, &out);
    REFUSED(qn_train_open, "out", &have.options, have.data, NULL, NULL, NULL);
    REFUSED(qn_train_run, "train", NULL);
    REFUSED(qn_train_checkpoint, "train", NULL, "folder");
    REFUSED(qn_train_checkpoint, "dir", have.train, NULL);
    REFUSED(qn_train_model, "train", NULL, &model);
    REFUSED(qn_train_model, "out", have.train, NULL);
    REFUSED(qn_train_save, "train", NULL, place, 1, &saved);
    REFUSED(qn_train_save, "place", have.train, NULL, 1, &saved);
    REFUSED(qn_train_save, "place[1]", have.train, place, 2, &saved);
    REFUSED(qn_train_save, "saved", have.train, place, 1, NULL);
    REFUSED(qn_train_report_get, "train", NULL, &report);
    REFUSED(qn_train_report_get, "report", have.train, NULL);
    qn_train_options_init(NULL);
    qn_train_stop(NULL);
    qn_epoch_keep(NULL, NULL);
    qn_train_close(NULL);
    qn_memory memory = {.size = sizeof memory};
    REFUSED(qn_train_memory, "train", NULL, &memory);
    REFUSED(qn_train_memory, "memory", have.train, NULL);
    assert_null(qn_train_workers(NULL, NULL));
    assert_non_null(qn_train_workers(have.train, NULL));
}

/* Texts of the options that are NULL: each has a default. */
static void test_texts_of_options(void **state) {
    (void)state;
    qn_error err;
    qn_train *out;
    qn_train_options o = have.options;
    o.model = o.arith = o.loss = o.optimizer = o.init = o.scale = o.schedule = NULL;
    assert_int_equal(qn_train_open(&o, have.data, NULL, NULL, &out, &err), QN_OK);
    qn_train_close(out);
}

static void test_prediction(void **state) {
    (void)state;
    qn_predictions *out = have.predictions;
    REFUSED(qn_predict, "model", NULL, have.data, NULL, NULL, NULL, NULL);
    assert_int_equal(qn_model_body(NULL), 0);
    REFUSED(qn_model_find_layer, "text", have.model, NULL, NULL);
    assert_int_equal(qn_summary_find(NULL, NULL), 0);
    REFUSED(qn_model_layer_shape, "shape", have.model, 0, QN_SUMMARY_NONE, NULL, NULL);
    REFUSED(qn_predict_layer, "data", have.model, NULL, NULL, 0, QN_SUMMARY_NONE, (float[1]){0});
    REFUSED(qn_layer_write, "model", NULL, have.data, NULL, NULL);
    REFUSED(qn_layer_write, "order", have.model, have.data, NULL, NULL);
    REFUSED(qn_predict_next, "model", NULL, have.data, NULL, NULL, NULL, NULL, NULL);
    REFUSED(qn_predict_next, "data", have.model, NULL, NULL, NULL, NULL, NULL, NULL);
    REFUSED(qn_predict_several, "model", NULL, have.data, NULL, NULL, NULL);
    REFUSED(qn_predict_several, "data", have.model, NULL, NULL, NULL, NULL);
    REFUSED(qn_predict, "data", have.model, NULL, NULL, NULL, NULL, NULL);
    REFUSED(qn_predictions_make, "model", NULL, have.data, NULL, 0, &out);
    assert_null(out);
    REFUSED(qn_predictions_make, "data", have.model, NULL, NULL, 0, &out);
    REFUSED(qn_predictions_make, "out", have.model, have.data, NULL, 0, NULL);
    REFUSED(qn_predict_flipped, "model", NULL, have.data, NULL, NULL, NULL, NULL);
    REFUSED(qn_predict_flipped, "data", have.model, NULL, NULL, NULL, NULL, NULL);
    REFUSED(qn_predictions_make_flipped, "model", NULL, have.data, NULL, 0, &out);
    assert_null(out);
    REFUSED(qn_predictions_make_flipped, "data", have.model, NULL, NULL, 0, &out);
    REFUSED(qn_predictions_make_flipped, "out", have.model, have.data, NULL, 0, NULL);
    REFUSED(qn_predictions_columns, "predictions", NULL, 0, 1);
    REFUSED(qn_predictions_mask_size, "predictions", NULL, 0);
    REFUSED(qn_predictions_check, "model", NULL, have.data, "a", 0, 1);
    REFUSED(qn_predictions_check, "data", have.model, NULL, "a", 0, 1);
    REFUSED(qn_predictions_check, "path", have.model, have.data, NULL, 0, 1);
    REFUSED(qn_predictions_write, "predictions", NULL, "a");
    REFUSED(qn_predictions_write, "path", have.predictions, NULL);
    REFUSED(qn_predict_csv, "model", NULL, have.data, NULL, "a", 0, NULL);
    REFUSED(qn_predict_csv, "data", have.model, NULL, NULL, "a", 0, NULL);
    REFUSED(qn_predict_csv, "path", have.model, have.data, NULL, NULL, 0, NULL);
    qn_score score;
    REFUSED(qn_predictions_score, "predictions", NULL, &score);
    REFUSED(qn_predictions_score, "score", have.predictions, NULL);
    assert_int_equal(qn_predictions_correct(NULL), 0);
    assert_int_equal(qn_predictions_items(NULL), 0);
    assert_string_equal(qn_predictions_run(NULL, NULL), "");
    assert_int_equal(qn_writes_to_database(NULL), 0);
    qn_predictions_free(NULL);
}

static void test_linear(void **state) {
    double w[784];
    qn_linear_result result = {.size = sizeof result};
    (void)state;
    qn_linear_options_init(NULL);
    REFUSED(qn_ridge_fit, "data", NULL, NULL, w, &result);
    REFUSED(qn_ridge_fit, "coefficients", have.data, NULL, NULL, &result);
    REFUSED(qn_ridge_fit, "out", have.data, NULL, w, NULL);
    REFUSED(qn_lasso_fit, "data", NULL, NULL, w, &result);
    REFUSED(qn_lasso_fit, "coefficients", have.data, NULL, NULL, &result);
    REFUSED(qn_lasso_fit, "out", have.data, NULL, w, NULL);
    assert_int_equal(qn_ridge_fit(have.data, NULL, w, &result, NULL), QN_USAGE); /* no numbers */
}

/* Those of a generator itself are in predict/generate/generator_test.c. */
static void test_generation(void **state) {
    const char *const prompt = "a";
    qn_generate_options o;
    qn_answer answer = {.size = sizeof answer};
    qn_generator *out = NULL;
    int more = 1;
    (void)state;
    qn_generate_options_init(NULL);
    qn_generate_options_init(&o);
    REFUSED(qn_generator_open, "model", NULL, &prompt, 1, &o, &out);
    REFUSED(qn_generator_open, "prompts", have.model, NULL, 1, &o, &out);
    REFUSED(qn_generator_open, "out", have.model, &prompt, 1, &o, NULL);
    assert_int_equal(qn_generator_open(have.model, &prompt, 1, NULL, &out, NULL), QN_USAGE);
    REFUSED(qn_generator_reopen, "model", NULL, "answers.json", NULL, &out);
    REFUSED(qn_generator_reopen, "path", have.model, NULL, NULL, &out);
    REFUSED(qn_generator_reopen, "out", have.model, "answers.json", NULL, NULL);
    REFUSED(qn_generator_compare, "generator", NULL, "answers.json");
    REFUSED(qn_generator_step, "generator", NULL, &more);
    REFUSED(qn_generator_answer, "generator", NULL, 0, &answer);
    REFUSED(qn_generator_write, "generator", NULL, "answers.json");
    assert_int_equal(qn_generator_answers(NULL), 0);
    qn_generator_close(NULL);
}

static void test_fits(void **state) {
    qn_model *out = NULL;
    qn_fit_kind kind = {.size = sizeof kind};
    qn_fit_parameter parameter = {.size = sizeof parameter};
    const qn_fit_options o = {.size = sizeof o, .kind = "kmeans"}, none = {.size = sizeof none};
    (void)state;
    REFUSED(qn_fit, "data", NULL, &o, &out, NULL);
    REFUSED(qn_fit, "options", have.data, NULL, &out, NULL);
    REFUSED(qn_fit, "out", have.data, &o, NULL, NULL);
    assert_int_equal(qn_fit(have.data, &none, &out, NULL, NULL), QN_USAGE);
    REFUSED(qn_fit_again, "model", NULL, have.data, NULL, &out);
    REFUSED(qn_fit_again, "data", have.model, NULL, NULL, &out);
    REFUSED(qn_fit_again, "out", have.model, have.data, NULL, NULL);
    assert_int_equal(qn_fit_again(have.model, have.data, NULL, &out, NULL), QN_UNSUPPORTED);
    REFUSED(qn_fit_kind_get, "out", 0, NULL);
    REFUSED(qn_fit_parameter_get, "out", 0, 0, NULL);
    assert_int_equal(qn_fit_kind_get(qn_fit_kind_count(), &kind, NULL), QN_USAGE);
    assert_int_equal(qn_fit_parameter_get(0, 100, &parameter, NULL), QN_USAGE);
    assert_string_equal(qn_model_kind(NULL), "");
    assert_string_equal(qn_model_title(NULL), "");
    assert_int_equal(qn_model_predicts(NULL), QN_PREDICTS_LABELS);
    assert_null(qn_model_real_tensor(NULL, "mean", NULL, NULL));
    assert_null(qn_model_real_tensor(have.model, NULL, NULL, NULL));
}

static void test_structure(void **state) {
    double one[784];
    uint32_t cluster[64];
    qn_kmeans_result result = {.size = sizeof result};
    (void)state;
    qn_kmeans_options_init(NULL);
    qn_pca_options_init(NULL);
    REFUSED(qn_pca_fit, "data", NULL, NULL, one, one, one);
    REFUSED(qn_pca_fit, "axes", have.data, NULL, NULL, one, one);
    REFUSED(qn_pca_fit, "variances", have.data, NULL, one, NULL, one);
    REFUSED(qn_pca_fit, "means", have.data, NULL, one, one, NULL);
    const qn_pca_options many = {.size = sizeof many, .components = 785};
    assert_int_equal(qn_pca_fit(have.data, &many, one, one, one, NULL), QN_USAGE);
    REFUSED(qn_kmeans_fit, "data", NULL, NULL, one, cluster, &result);
    REFUSED(qn_kmeans_fit, "centres", have.data, NULL, NULL, cluster, &result);
    REFUSED(qn_kmeans_fit, "cluster", have.data, NULL, one, NULL, &result);
    REFUSED(qn_kmeans_fit, "out", have.data, NULL, one, cluster, NULL);
    REFUSED(qn_kmeans_assign, "data", NULL, 1, one, 1, cluster);
    REFUSED(qn_kmeans_assign, "centres", have.data, 1, NULL, 1, cluster);
    REFUSED(qn_kmeans_assign, "cluster", have.data, 1, one, 1, NULL);
    assert_int_equal(qn_kmeans_assign(have.data, 0, one, 1, cluster, NULL), QN_USAGE);
}

static void test_statistics(void **state) {
    (void)state;
    qn_statistics *out = NULL;
    qn_column_statistics column = {.size = sizeof column};
    qn_statistics_options_init(NULL);
    REFUSED(qn_statistics_make, "data", NULL, NULL, &out);
    REFUSED(qn_statistics_make, "out", have.data, NULL, NULL);
    REFUSED(qn_statistics_column, "statistics", NULL, 0, QN_ALL_CLASSES, &column);
    uint32_t bins = 1;
    assert_int_equal(qn_statistics_columns(NULL), 0);
    assert_null(qn_statistics_quantiles(NULL, 0, QN_ALL_CLASSES));
    assert_null(qn_statistics_categories(NULL, 0, QN_ALL_CLASSES));
    assert_null(qn_statistics_histogram(NULL, 0, QN_ALL_CLASSES));
    assert_null(qn_statistics_edges(NULL, 0, &bins));
    assert_int_equal(bins, 0);
    char date[40] = "x";
    qn_statistics_date(NULL, 0, QN_ALL_CLASSES, QN_STATISTIC_MEAN, 0, date, sizeof date);
    assert_string_equal(date, "");
    qn_statistics_date(NULL, 0, QN_ALL_CLASSES, QN_STATISTIC_MEAN, 0, NULL, 0);
    assert_null(qn_statistics_covariance(NULL));
    assert_null(qn_statistics_correlation(NULL));
    qn_statistics_free(NULL);
    assert_int_equal(qn_statistics_make(have.data, NULL, &out, NULL), QN_OK);
    REFUSED(qn_statistics_column, "out", out, 0, QN_ALL_CLASSES, NULL);
    assert_int_equal(qn_statistics_column(out, 784, QN_ALL_CLASSES, &column, NULL), QN_USAGE);
    assert_int_equal(qn_statistics_column(out, 0, 0, &column, NULL), QN_USAGE);
    assert_null(qn_statistics_edges(out, 0, NULL));
    assert_null(qn_statistics_histogram(out, 0, QN_ALL_CLASSES));
    qn_statistics_free(out);
}

static void test_plans(void **state) {
    (void)state;
    uint32_t count;
    qn_plan *out;
    qn_plan_cost cost = {.size = sizeof cost};
    qn_advice advice = {.size = sizeof advice};
    const char *const team[] = {NULL};
    qn_plan_options o;
    qn_plan_options_init(NULL);
    qn_plan_options_init(&o);
    REFUSED(qn_plan_make, "options", NULL, &out);
    REFUSED(qn_plan_make, "out", &o, NULL);
    REFUSED(qn_plan_make, "options->job", &o, &out);
    o = (qn_plan_options){.size = sizeof o,
                          .job = &have.options,
                          .features = 1,
                          .items = 1,
                          .team = team,
                          .teams = 1};
    REFUSED(qn_plan_make, "options->team[0]", &o, &out);
    assert_null(out);
    assert_null(qn_plan_report_of(NULL));
    qn_plan_free(NULL);
    REFUSED(qn_plan_measure, "job", NULL, NULL, 1, 1, 0.1, &cost, 1, &count);
    REFUSED(qn_plan_measure, "cost", &have.options, NULL, 1, 1, 0.1, NULL, 1, &count);
    REFUSED(qn_plan_measure, "count", &have.options, NULL, 1, 1, 0.1, &cost, 1, NULL);
    REFUSED(qn_advise, "options", NULL, 1, 0.1, &advice, 1, &count, NULL);
    REFUSED(qn_advise, "advice", &have.options, 1, 0.1, NULL, 1, &count, NULL);
    REFUSED(qn_advise, "count", &have.options, 1, 0.1, &advice, 1, NULL, NULL);
}

static void test_networks(void **state) {
    (void)state;
    qn_network *out;
    qn_layer_info info = {.size = sizeof info};
    REFUSED(qn_network_open, "job", NULL, 0, 1, &out);
    assert_null(out);
    REFUSED(qn_network_open, "out", &have.options, 0, 1, NULL);
    assert_int_equal(qn_network_open(&have.options, 4, 1, &out, NULL), QN_OK);
    REFUSED(qn_network_layer, "network", NULL, 0, &info);
    REFUSED(qn_network_layer, "info", out, 0, NULL);
    REFUSED(qn_network_write_svg, "network", NULL, "a");
    REFUSED(qn_network_write_svg, "path", out, NULL);
    assert_int_equal(qn_network_layer(out, 1, &info, NULL), QN_USAGE);
    qn_network_free(out);
    qn_network_free(NULL);
    assert_string_equal(qn_network_text(NULL), "");
    assert_null(qn_network_ready(NULL));
    assert_int_equal(qn_network_layers(NULL) + qn_network_parameters(NULL), 0);
    REFUSED(qn_ready_get, "model", 0, NULL);
}

static void test_evaluations(void **state) {
    (void)state;
    qn_evaluation *out;
    qn_evaluation_input in = {.size = sizeof in, .items = 2, .classes = 2, .outputs = 2};
    REFUSED(qn_evaluation_make, "input", NULL, &out);
    assert_null(out);
    REFUSED(qn_evaluation_make, "out", &in, NULL);
    assert_int_equal(qn_evaluation_make(&in, &out, NULL), QN_USAGE); /* no labels, no outputs */
    in.outputs = 3;
    assert_int_equal(qn_evaluation_make(&in, &out, NULL), QN_USAGE);
    in = (qn_evaluation_input){.size = sizeof in, .items = 1};
    assert_int_equal(qn_evaluation_make(&in, &out, NULL), QN_USAGE);
    REFUSED(qn_predictions_evaluate, "predictions", NULL, &out);
    assert_null(out);
    REFUSED(qn_predictions_evaluate, "out", NULL, NULL);
    REFUSED(qn_evaluation_check, "path", NULL);
    REFUSED(qn_evaluation_write, "evaluation", NULL, have.model, "a", NULL, "a", NULL);
    qn_evaluation_free(NULL);
}

static void test_clusters(void **state) {
    (void)state;
    qn_cluster *out;
    qn_cluster_options o;
    qn_agreement item[] = {{sizeof *item, "name", NULL, NULL}, {sizeof *item, NULL, "value", NULL}};
    qn_cluster_options_init(NULL);
    qn_cluster_options_init(&o);
    REFUSED(qn_cluster_join, "options", NULL, &out);
    REFUSED(qn_cluster_join, "out", &o, NULL);
    REFUSED(qn_cluster_agree, "item", NULL, NULL, NULL, 1);
    REFUSED(qn_cluster_agree, "item[0].value", NULL, NULL, item, 1);
    item[0].value = "value";
    REFUSED(qn_cluster_agree, "item[1].name", NULL, NULL, item, 2);
    assert_int_equal(qn_cluster_agree(NULL, NULL, NULL, 0, NULL), QN_OK);
    assert_int_equal(qn_cluster_rank(NULL), 0);
    assert_int_equal(qn_cluster_ranks(NULL) + qn_cluster_alive(NULL), 2);
    qn_cluster_local(NULL, NULL, NULL);
    assert_string_equal(qn_cluster_name(NULL, 0), "rank 0");
    assert_int_equal(qn_cluster_is_writer(NULL), 1);
    assert_int_equal(qn_cluster_over(NULL, NULL), 0);
    qn_cluster_finish(NULL, 0);
    qn_cluster_stop(NULL);
    qn_cluster_leave(NULL);
    REFUSED(qn_cluster_library_get, "library", NULL);
}

static void test_kernels(void **state) {
    (void)state;
    static const char text[] = "INDEX(i); INPUT(float, x); OUTPUT(float, y); KERNEL { y = x; }";
    qn_kernel *k = NULL;
    qn_kernel_part part = {.size = sizeof part};
    qn_kernel_report report = {.size = sizeof report};
    qn_kernel_result result = {.size = sizeof result};
    const uint64_t shape[1] = {1};
    float x = 1;
    REFUSED(qn_kernel_open, "path", NULL, &k);
    REFUSED(qn_kernel_open, "out", "a.c", NULL);
    REFUSED(qn_kernel_read, "text", NULL, "a.c", &k);
    REFUSED(qn_kernel_read, "name", text, NULL, &k);
    REFUSED(qn_kernel_read, "out", text, "a.c", NULL);
    REFUSED(qn_kernel_allow_path, "kernel", NULL, "a");
    REFUSED(qn_kernel_from_recipe, "path", NULL, &k);
    REFUSED(qn_kernel_from_recipe, "out", "a.json", NULL);
    assert_int_equal(qn_kernel_dimensions(NULL) + qn_kernel_parts(NULL), 0);
    qn_kernel_options_init(NULL);
    qn_kernel_free(NULL);
    qn_kernel_stop(NULL);
    assert_int_equal(qn_kernel_read(text, "a.c", &k, NULL), QN_OK);
    REFUSED(qn_kernel_allow_path, "path", k, NULL);
    REFUSED(qn_kernel_part_get, "kernel", NULL, 0, &part);
    REFUSED(qn_kernel_part_get, "part", k, 0, NULL);
    REFUSED(qn_kernel_set, "kernel", NULL, "a", "1");
    REFUSED(qn_kernel_set, "name", k, NULL, "1");
    REFUSED(qn_kernel_set, "value", k, "a", NULL);
    REFUSED(qn_kernel_bind_file, "kernel", NULL, "x", "x.npy");
    REFUSED(qn_kernel_bind_file, "name", k, NULL, "x.npy");
    REFUSED(qn_kernel_bind_file, "path", k, "x", NULL);
    REFUSED(qn_kernel_bind, "kernel", NULL, "x", &x, shape, 1);
    REFUSED(qn_kernel_bind, "name", k, NULL, &x, shape, 1);
    REFUSED(qn_kernel_bind, "data", k, "x", NULL, shape, 1);
    REFUSED(qn_kernel_bind, "shape", k, "x", &x, NULL, 1);
    REFUSED(qn_kernel_set_shape, "kernel", NULL, shape, 1);
    REFUSED(qn_kernel_set_shape, "shape", k, NULL, 1);
    REFUSED(qn_kernel_series, "kernel", NULL, "y", NULL);
    REFUSED(qn_kernel_series, "name", k, NULL, NULL);
    REFUSED(qn_kernel_set_seed, "kernel", NULL, 1);
    REFUSED(qn_kernel_run, "kernel", NULL, NULL);
    REFUSED(qn_kernel_replay, "kernel", NULL, NULL);
    REFUSED(qn_kernel_report_get, "kernel", NULL, &report);
    REFUSED(qn_kernel_report_get, "report", k, NULL);
    REFUSED(qn_kernel_result_get, "kernel", NULL, "y", &result);
    REFUSED(qn_kernel_result_get, "name", k, NULL, &result);
    REFUSED(qn_kernel_result_get, "result", k, "y", NULL);
    qn_kernel_free(k);
}

static void test_tokenizers(void **state) {
    (void)state;
    qn_tokenizer *out, *bytes;
    qn_tokens *tokens;
    size_t size = 1;
    const uint32_t number = 0;
    REFUSED(qn_tokenizer_open, "which", NULL, NULL, 0, 1, &out);
    qn_corpus *corpus;
    REFUSED(qn_corpus_open, "paths", NULL, 1, NULL, 1, &corpus);
    REFUSED(qn_corpus_open, "out", NULL, 1, NULL, 1, NULL);
    assert_int_equal(qn_corpus_documents(NULL), 0);
    qn_corpus_close(NULL);
    REFUSED(qn_tokenizer_from_corpus, "corpus", "chars", NULL, 1, &out);
    REFUSED(qn_tokenizer_write_corpus, "tokenizer", NULL, NULL, 1, "a.npy", &(uint64_t){0});
    REFUSED(qn_tokenizer_open, "out", "bytes", NULL, 0, 1, NULL);
    REFUSED(qn_tokenizer_learn, "which", NULL, "a", 1, 1, &out);
    REFUSED(qn_tokenizer_learn, "corpus", "chars", NULL, 1, 1, &out);
    REFUSED(qn_tokenizer_learn, "out", "bytes", NULL, 0, 1, NULL);
    REFUSED(qn_tokenizer_from_json, "json", NULL, 0, &out);
    REFUSED(qn_tokenizer_from_json, "out", "{}", 2, NULL);
    assert_int_equal(qn_tokenizer_open("bytes", NULL, 0, 1, &bytes, NULL), QN_OK);
    REFUSED(qn_tokenizer_encode, "tokenizer", NULL, "a", 1, 1, &tokens);
    REFUSED(qn_tokenizer_encode, "text", bytes, NULL, 1, 1, &tokens);
    REFUSED(qn_tokenizer_encode, "out", bytes, "a", 1, 1, NULL);
    REFUSED(qn_tokenizer_decode, "tokenizer", NULL, &number, 1, NULL, 0, &size);
    REFUSED(qn_tokenizer_decode, "tokens", bytes, NULL, 1, NULL, 0, &size);
    REFUSED(qn_tokenizer_decode, "text", bytes, &number, 1, NULL, 1, &size);
    REFUSED(qn_tokenizer_decode, "size", bytes, &number, 1, NULL, 0, NULL);
    uint64_t count;
    const char *const path = "a";
    REFUSED(qn_tokenizer_save, "tokenizer", NULL, "a");
    REFUSED(qn_tokenizer_save, "path", bytes, NULL);
    REFUSED(qn_tokenizer_write, "tokenizer", NULL, &path, 1, 1, "a.npy", &count);
    REFUSED(qn_tokenizer_write, "paths", bytes, NULL, 1, 1, "a.npy", &count);
    REFUSED(qn_tokenizer_write, "path", bytes, &path, 1, 1, NULL, &count);
    REFUSED(qn_tokenizer_write, "tokens", bytes, &path, 1, 1, "a.npy", NULL);
    REFUSED(qn_tokenizer_write_text, "tokenizer", NULL, "a.npy", "a", &count);
    REFUSED(qn_tokenizer_write_text, "tokens_path", bytes, NULL, "a", &count);
    REFUSED(qn_tokenizer_write_text, "path", bytes, "a.npy", NULL, &count);
    REFUSED(qn_tokenizer_write_text, "bytes", bytes, "a.npy", "a", NULL);
    assert_int_equal(qn_tokenizer_encode(bytes, NULL, 0, 1, &tokens, NULL), QN_OK);
    assert_int_equal(qn_tokens_count(tokens), 0);
    qn_tokens_free(tokens);
    qn_tokens_free(NULL);
    qn_tokenizer_free(bytes);
    qn_tokenizer_free(NULL);
    assert_string_equal(qn_tokenizer_kind(NULL), "");
    assert_string_equal(qn_tokenizer_digest(NULL), "");
    assert_null(qn_tokenizer_frame(NULL, NULL, NULL));
    assert_string_equal(qn_tokenizer_json(NULL, &size), "");
    assert_int_equal(size, 0);
    assert_int_equal(qn_tokenizer_size(NULL) + qn_tokenizer_unknown(NULL), 0);
    assert_int_equal(qn_tokens_count(NULL), 0);
    assert_null(qn_tokens_numbers(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),    cmocka_unit_test(test_data),
        cmocka_unit_test(test_tokenizers), cmocka_unit_test(test_questions_of_data),
        cmocka_unit_test(test_models),     cmocka_unit_test(test_questions_of_models),
        cmocka_unit_test(test_files),      cmocka_unit_test(test_devices),
        cmocka_unit_test(test_training),   cmocka_unit_test(test_texts_of_options),
        cmocka_unit_test(test_prediction), cmocka_unit_test(test_plans),
        cmocka_unit_test(test_clusters),   cmocka_unit_test(test_networks),
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_evaluations),
        cmocka_unit_test(test_linear),     cmocka_unit_test(test_fits),
        cmocka_unit_test(test_generation), cmocka_unit_test(test_structure),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
