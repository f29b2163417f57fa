/* Trains a network on handwriting-like digits, from C, in one screen.
 *
 *     cc train_digits.c $(pkg-config --cflags --libs quern) -o train_digits && ./train_digits
 *
 * Run it anywhere, with any number of cores: the digest in its last line is always the same. */

#include <inttypes.h>
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>

/* Every library function that can fail fills a qn_error: what, where and remedy. */
static void check(qn_status status, const qn_error *err) {
    if (status == QN_OK)
        return;
    fprintf(stderr, "%s\n  at %s\n  %s\n", err->what, err->where, err->remedy);
    exit(EXIT_FAILURE);
}

static void on_epoch(void *user, const qn_epoch_event *e) {
    (void)user;
    printf("epoch %" PRIu32 ": loss %.4f, %.0f items/s\n", e->epoch, e->train.loss,
           e->items_per_second);
}

int main(void) {
    qn_data *digits = NULL, *unseen = NULL;
    qn_train *run = NULL;
    qn_model *model = NULL;
    qn_train_report report = {.size = sizeof(qn_train_report)};
    qn_error err;

    /* Item i of a seed is the same on every machine; no file is needed. */
    check(qn_data_synth_digits(1, 0, 6000, &digits, &err), &err);
    check(qn_data_synth_digits(1, 6000, 1000, &unseen, &err), &err);

    qn_train_options options; /* the recipe, then how to run it */
    qn_train_options_init(&options);
    options.model = "dense 100 tanh; dense 10 softmax";
    options.momentum = 0.9f;
    options.epochs = 3;
    options.on_epoch = on_epoch;

    check(qn_train_open(&options, digits, NULL, unseen, &run, &err), &err);
    check(qn_train_run(run, &err), &err);
    check(qn_train_report_get(run, &report, &err), &err);
    check(qn_train_model(run, &model, &err), &err);
    check(qn_model_save(model, "train_digits.safetensors", &err), &err);

    printf("accuracy %.2f %% on unseen digits\n",
           100.0 * (double)report.test.correct / (double)report.test.items);
    printf("digest %s\n", qn_model_digest(model));

    /* The run uses the data until it is closed, so the data is closed last. */
    qn_model_free(model);
    qn_train_close(run);
    qn_data_close(unseen);
    qn_data_close(digits);
    return EXIT_SUCCESS;
}
