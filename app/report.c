#include "report.h"
#include "confusion.h"
#include "evaluation.h"
#include "fields.h"
#include "format.h"
#include "jsonline.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The main score of the run: of the test set, or the validation set, or the last training epoch. */
static const qn_score *best_score(const qn_train_report *r, const char **name) {
    const qn_score *s = r->test.items ? &r->test : r->valid.items ? &r->valid : &r->train;
    *name = s == &r->test ? "test" : s == &r->valid ? "validation" : "training";
    return s;
}

static double percent(uint64_t part, uint64_t whole) {
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

static uint64_t all_grains(const qn_worker_report *const *worker, uint32_t workers) {
    uint64_t grains = 0;
    for (uint32_t i = 0; i < workers; i++)
        grains += worker[i]->grains;
    return grains;
}

static void print_cores(const qn_worker_report *w) {
    int is_cpu =
        strcmp(w->name, "cpu") == 0; /* a GPU's single core is the device itself, printed above */
    if (!w->core_busy || w->cores < 1 || (w->cores == 1 && !is_cpu))
        return;
    printf("  %-12s", "  core busy");
    for (int i = 0; i < w->cores; i++)
        printf("%s%3.0f %%", i > 0 && i % 12 == 0 ? "\n              " : " ",
               100 * w->core_busy[i]);
    putchar('\n');
}

static int has_joules(const qn_worker_report *w) { return w->joules > 0; }

static void print_worker(const qn_worker_report *w, uint64_t grains, int ranks, int verbose) {
    char note[320];
    char rate[16], up[24], down[24], joules[32], each[32], name[96];
    double part = percent(w->grains, grains);
    snprintf(name, sizeof name, "%s", w->name);
    if (ranks)
        snprintf(name, sizeof name, "%" PRIu32 "/%s", w->rank, w->name);
    printf("  %-12s ", name);
    if (w->grains > 0)
        printf("%s%.1f %% of the items, %s items/s, computing %.0f %% of the time",
               part < 0.05 ? "under " : "", part < 0.05 ? 0.1 : part,
               format_rate(w->items_per_second, rate), 100 * w->busy);
    else
        printf("no items");
    if (w->lost)
        printf(", failed");
    putchar('\n');
    if (*w->note)
        printf("  %-12s %s\n", "", fields_spell(w->note, note, sizeof note));
    if (w->grains > 0 && verbose)
        print_cores(w);
    if (verbose && (w->bytes_up > 0 || w->bytes_down > 0))
        printf("  %-12s sent %s in %.1f ms, received %s in %.1f ms\n", "",
               format_bytes(w->bytes_up, up), 1e3 * w->seconds_up,
               format_bytes(w->bytes_down, down), 1e3 * w->seconds_down);
    if (has_joules(w) && w->items > 0)
        printf("  %-12s energy %s, %s an item\n", "", format_joules(w->joules, joules),
               format_joules(w->joules / (double)w->items, each));
}

/* Joules of all devices that measure them, and how many do; NaN if none does. */
static double all_joules(const qn_train_report *r, int *devices) {
    double sum = 0;
    *devices = 0;
    for (uint32_t i = 0; i < r->workers; i++) {
        *devices += has_joules(r->worker[i]);
        sum += has_joules(r->worker[i]) ? r->worker[i]->joules : 0;
    }
    return sum > 0 ? sum : (double)NAN;
}

static void print_energy(const qn_train_report *r) {
    char joules[32], each[32];
    int devices;
    double all = all_joules(r, &devices);
    if (devices > 1 && r->items > 0)
        printf("energy %s, %s an item, of the %d devices that measure it\n",
               format_joules(all, joules), format_joules(all / (double)r->items, each), devices);
}

void report_bound(double bound, double seconds) {
    printf("lower bound %.3f s, %.1f %% of the time: all devices at their measured speed, no "
           "waiting\n",
           bound, seconds > 0 ? 100 * bound / seconds : 0);
}

/* Where the time was spent, for tuning. */
static void print_times(const qn_train_report *r) {
    printf("first step after %.3f s\nsteps %.3f s, the rest is evaluation and checkpoints\n",
           r->seconds_to_first_step, r->seconds_training);
    report_bound(r->bound, r->seconds);
    if (r->workers > 1)
        printf("choosing the devices took %.3f s\n", r->seconds_choosing);
}

/* Network traffic of this rank; nothing for a single rank on a machine. */
static void print_traffic(const qn_rank_report *k) {
    char out[24], in[24], must_out[24], must_in[24], shared[24];
    if (k->bytes_out > 0 || k->bytes_in > 0 || k->counted_out > 0 || k->counted_in > 0)
        printf("    sent %s, received %s; 8 bytes for each number of the sums were %s and %s\n",
               format_bytes(k->bytes_out, out), format_bytes(k->bytes_in, in),
               format_bytes(k->counted_out, must_out), format_bytes(k->counted_in, must_in));
    if (k->bytes_early > 0)
        printf("    %.0f %% of what was sent left while the rank was computing\n",
               100 * (double)k->bytes_early / (double)k->bytes_out);
    if (k->bytes_shared > 0)
        printf("    read %s from the memory of other ranks\n",
               format_bytes(k->bytes_shared, shared));
    if (k->recoveries > 0)
        printf("    recovered from the loss of a rank %" PRIu32 " time%s, in at most %.1f ms\n",
               k->recoveries, k->recoveries == 1 ? "" : "s", 1e3 * k->longest_recovery);
}

/* The ranks, if there are several: their names and times. */
void report_ranks(const qn_rank_report *const *rank, uint32_t ranks, int verbose) {
    char rate[16];
    int width = 4;
    if (ranks < 2)
        return;
    for (uint32_t i = 0; i < ranks; i++) {
        int length = (int)strlen(rank[i]->host);
        width = length > width ? length : width;
    }
    printf("ranks\n  %4s  %-*s  %8s  %9s  %7s  %s\n", "rank", width, "host", "items/s", "computing",
           "waiting", "devices");
    for (uint32_t i = 0; i < ranks; i++) {
        const qn_rank_report *k = rank[i];
        printf("  %4" PRIu32 "  %-*s  %8s  %7.0f %%  %5.0f %%  %s%s", k->rank, width, k->host,
               format_rate(k->items_per_second, rate), 100 * k->busy, 100 * k->waiting,
               *k->worker_names ? k->worker_names : "-",
               !k->lost   ? ""
               : *k->host ? ", failed"
                          : ", never came");
        if (k->joined_after > 0)
            printf(", joined after step %" PRIu64, k->joined_after);
        putchar('\n');
        if (verbose)
            print_traffic(k);
    }
}

void report_devices(const qn_worker_report *const *worker, uint32_t workers, uint32_t ranks,
                    int verbose) {
    printf("devices\n");
    for (uint32_t i = 0; i < workers; i++)
        print_worker(worker[i], all_grains(worker, workers), ranks > 1, verbose);
}

/* ", name 1.2 %": a share of values that became 0; nothing if there are no such values. */
static void print_zeroed(const char *name, double zeroed, int *printed) {
    if (isnan(zeroed))
        return;
    printf("%s%s ", (*printed)++ ? ", " : "", name);
    if (zeroed <= 0)
        printf("none");
    else if (zeroed < 5e-5)
        printf("under 0.01 %%");
    else
        printf("%.2f %%", 100 * zeroed);
}

/* The rounding of integers with few bits. */
static void print_rounding(const qn_rounding *r) {
    int printed = 0;
    if (r->bits == 0)
        return;
    printf("nonzero values that i%d rounds to 0, in a sample of %" PRIu32
           " item%s\n  forward and backward: ",
           r->bits, r->items, r->items == 1 ? "" : "s");
    print_zeroed("inputs", r->inputs, &printed);
    print_zeroed("activations", r->activations, &printed);
    print_zeroed("weights", r->weights, &printed);
    print_zeroed("errors", r->errors, &printed);
    printed = 0;
    printf("\n  gradients of weights: ");
    print_zeroed("inputs", r->grain_inputs, &printed);
    print_zeroed("activations", r->grain_activations, &printed);
    print_zeroed("errors", r->grain_errors, &printed);
    putchar('\n');
}

static const char *loss_of(const qn_train_report *r, const qn_score *s) {
    const int weighted = s == &r->train ? r->weighted : s == &r->valid && r->valid_weighted;
    return weighted ? "weighted loss" : "loss";
}

/* Errors of predicted numbers, those that are known. */
static void print_errors(const char *name, const char *loss, const qn_score *s) {
    printf("\n%s ", name);
    report_errors(stdout, s);
    printf("%s %.6g\n", loss, s->loss);
}

void report_errors(FILE *to, const qn_score *s) {
    char number[32];
    if (isfinite(s->mae))
        fprintf(to, "MAE %s, ", format_quantity(s->mae, number));
    if (isfinite(s->rmse))
        fprintf(to, "RMSE %s, ", format_quantity(s->rmse, number));
    if (isfinite(s->r2))
        fprintf(to, "R2 %.4f, ", s->r2);
}

void report_print(const qn_train_report *r, int verbose) {
    const char *name;
    const qn_score *s = best_score(r, &name);
    char number[32];
    /* Progress went to stderr; a blank line separates the two on a terminal. */
    if (r->real)
        print_errors(name, loss_of(r, s), s);
    else
        printf("\n%s accuracy %.2f %% (%" PRIu64 " of %" PRIu64 "), %s %.6g", name,
               percent(s->correct, s->items), s->correct, s->items, loss_of(r, s), s->loss);
    if (r->next)
        printf(", perplexity %.6g", exp(s->loss));
    if (!r->real)
        putchar('\n');
    const qn_evaluation *e = r->test.items ? r->test_evaluation : r->valid_evaluation;
    evaluation_line(stdout, e, 0);
    confusion_print(r);
    if (verbose) {
        evaluation_table(stdout, e);
        evaluation_bins(stdout, e);
    }
    double rate = r->seconds_training > 0 ? (double)r->items / r->seconds_training : 0;
    printf("\ntime %.3f s, %s items/s", r->seconds, format_count((uint64_t)(rate + 0.5), number));
    if (r->resumed_from > 0)
        printf("; resumed from step %" PRIu64, r->resumed_from);
    if (r->steps_repeated > 0)
        printf("; %" PRIu64 " steps computed again after a loss", r->steps_repeated);
    putchar('\n');
    if (r->iterations > 0)
        printf("%s after %" PRIu64 " iterations: the largest component of the gradient is %.3g\n",
               r->converged ? "converged" : "not converged", r->iterations, r->largest_slope);
    if (verbose)
        print_times(r);
    print_rounding(r->rounding);
    print_energy(r);
    report_ranks(r->rank, r->ranks, verbose);
    report_devices(r->worker, r->workers, r->ranks, verbose);
}

static void rounding_field(const qn_rounding *r) {
    if (r->bits == 0) {
        json_text("rounding", NULL);
        return;
    }
    json_open("rounding", '{');
    json_count("bits", (uint64_t)r->bits);
    json_count("items", r->items);
    json_number("inputs", r->inputs);
    json_number("activations", r->activations);
    json_number("weights", r->weights);
    json_number("errors", r->errors);
    json_number("grain_inputs", r->grain_inputs);
    json_number("grain_activations", r->grain_activations);
    json_number("grain_errors", r->grain_errors);
    json_close('}');
}

static void worker_field(const qn_worker_report *w, uint64_t grains) {
    json_open(NULL, '{');
    json_count("rank", w->rank);
    json_text("name", w->name);
    json_text("device", w->device);
    json_count("grains", w->grains);
    json_count("items", w->items);
    json_count("steps", w->steps);
    json_number("share", percent(w->grains, grains) / 100);
    json_number("items_per_s", w->items_per_second);
    json_number("busy", w->busy);
    json_count("bytes_up", w->bytes_up);
    json_count("bytes_down", w->bytes_down);
    json_number("seconds_up", w->seconds_up);
    json_number("seconds_down", w->seconds_down);
    json_number("joules", has_joules(w) ? w->joules : (double)NAN);
    json_flag("lost", w->lost);
    json_message("note", w->note);
    json_open("core_busy", '[');
    for (int i = 0; w->core_busy && i < w->cores; i++)
        json_number(NULL, w->core_busy[i]);
    json_close(']');
    json_close('}');
}

static void rank_field(const qn_rank_report *k) {
    json_open(NULL, '{');
    json_count("rank", k->rank);
    json_text("host", k->host);
    json_flag("lost", k->lost);
    json_count("first_worker", k->first_worker);
    json_count("workers", k->workers);
    json_text("worker_names", k->worker_names);
    json_count("items", k->items);
    json_number("items_per_s", k->items_per_second);
    json_number("busy", k->busy);
    json_number("waiting", k->waiting);
    json_count("bytes_out", k->bytes_out);
    json_count("bytes_in", k->bytes_in);
    json_count("bytes_early", k->bytes_early);
    json_count("counted_out", k->counted_out);
    json_count("counted_in", k->counted_in);
    json_count("bytes_shared", k->bytes_shared);
    json_count("recoveries", k->recoveries);
    json_number("longest_recovery", k->longest_recovery);
    json_count("joined_after", k->joined_after);
    json_close('}');
}

void report_device_fields(const qn_worker_report *const *worker, uint32_t workers) {
    json_open("workers", '[');
    for (uint32_t i = 0; i < workers; i++)
        worker_field(worker[i], all_grains(worker, workers));
    json_close(']');
}

void report_rank_fields(const qn_rank_report *const *rank, uint32_t ranks) {
    json_open("ranks", '[');
    for (uint32_t i = 0; i < ranks; i++)
        rank_field(rank[i]);
    json_close(']');
}

void report_error_fields(const qn_score *s) {
    json_number("mae", s->mae);
    json_number("rmse", s->rmse);
    json_number("r2", s->r2);
}

void report_fields(const qn_train_report *r) {
    const char *name;
    const qn_score *s = best_score(r, &name);
    int devices;
    json_number("seconds", r->seconds);
    json_number("seconds_training", r->seconds_training);
    json_number("seconds_to_first_step", r->seconds_to_first_step);
    json_count("items", r->items);
    json_count("steps", r->steps);
    json_count("resumed_from", r->resumed_from);
    if (r->iterations > 0) {
        json_count("iterations", r->iterations);
        json_flag("converged", r->converged);
        json_number("largest_slope", r->largest_slope);
    }
    json_number("items_per_s",
                r->seconds_training > 0 ? (double)r->items / r->seconds_training : 0);
    json_number("bound", r->bound);
    json_number("bound_over_T", r->seconds > 0 ? r->bound / r->seconds : 0);
    json_number("seconds_choosing", r->seconds_choosing);
    json_count("steps_repeated", r->steps_repeated);
    json_number("joules", all_joules(r, &devices));
    json_text(r->real ? "errors_of" : "accuracy_of", name);
    if (r->real)
        report_error_fields(s);
    else
        json_number("accuracy", s->items ? (double)s->correct / (double)s->items : (double)NAN);
    json_number("loss", s->items ? s->loss : (double)NAN);
    if (r->next)
        json_number("perplexity", s->items ? exp(s->loss) : (double)NAN);
    json_open("evaluation", '{');
    evaluation_field("valid", r->valid_evaluation);
    evaluation_field("test", r->test_evaluation);
    json_close('}');
    confusion_fields(r);
    rounding_field(r->rounding);
    json_open("busy", '[');
    for (uint32_t i = 0; i < r->workers; i++)
        json_number(NULL, r->worker[i]->busy);
    json_close(']');
    report_device_fields(r->worker, r->workers);
    report_rank_fields(r->rank, r->ranks);
}
