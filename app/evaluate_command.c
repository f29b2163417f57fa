/* quern evaluate: how well a model predicts labelled data. */

#include "adapter.h"
#include "predict.h"
#include "shared_rows.h"
#include <stddef.h>

#define AT(member) .place = offsetof(predict_flags, member)
#define AGAIN(member) .again = offsetof(predict_flags, member)

static const option evaluate_options[] = {
    {.heading = "Data",
     ROW_DATA(from.data, "labelled data, in any format that train reads; required")},
    {.more = source_parts_options, AT(from)},
    {.more = source_label_options, AT(from)},
    {.more = source_task_options, AT(from)},
    {.more = source_column_options, AT(from)},
    {.more = source_token_options, AT(from)},
    {.more = source_item_options, AT(from)},
    {.more = source_image_options, AT(from)},
    {.heading = "Model", ROW_ADAPTER(adapter)},

    {.heading = "Output",
     ROW_OUTPUT(out, "FILE",
                "also write all numbers to a JSON file; sqlite:FILE?table=NAME or "
                "postgresql://USER@HOST/DATABASE?table=NAME adds a row to a table")},
    {ROW_FLAG("flips", flips,
              "of images: means of the outputs for each image and its mirror image, left and right "
              "exchanged")},
    {ROW_VERBOSE(verbose,
                 "print all classes, also if there are many, and the table of calibration")},
    {ROW_JSON(json, "all numbers as one JSON object")},

    {.heading = "Devices (they do not change the output)", .more = compute_options, AT(compute)},
    {.heading = "Advanced devices", .more = compute_expert_options, AT(compute)},
    {.heading = RANKS_HEADING, .more = ranks_options, AT(ranks)},
    {.name = NULL}};

static int run(const command *self, int argc, char **argv) {
    predict_flags f = {.out = "-", .evaluate = 1, .outputs = 1};
    return predict_run(self, argc, argv, &f);
}

const command evaluate_command = {
    .name = "evaluate",
    .summary = "measure how well a model predicts labelled data",
    .usage = "quern evaluate MODEL (--data FILE | FILE...) [options]",
    .about = "Prints accuracy, precision, recall, F1, the area under the ROC curve, log loss and "
             "calibration error; of real labels MAE, RMSE and R2; of a k-means model the inertia; "
             "of masks the IoU of each class; of several labels exact match and micro F1. "
             "Every number is rounded once from "
             "exact sums: devices, threads, ranks and the order of items do not change it. Columns "
             "and classes are found as predict finds them.",
    .operand = "MODEL",
    .most_operands = MOST_FILES + 1,
    .options = evaluate_options,
    .examples = "quern evaluate digits.safetensors --data test.csv\n"
                "quern evaluate m.safetensors --data test.csv --json > numbers.json\n"
                "quern evaluate m.safetensors --data test.csv -o sqlite:results.db",
    .run = run};
