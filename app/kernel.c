#include "kernel.h"

#include "command.h"
#include "format.h"
#include "job_options.h"
#include "jsonline.h"
#include "message.h"
#include "ranks.h"
#include "report.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int kernel_each(qn_kernel *kernel, const char *word, const text_list *list, kernel_use *use) {
    char name[64];
    qn_error err;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->at[i], '=');
        const size_t size = equals ? (size_t)(equals - list->at[i]) : 0;
        if (size == 0 || size >= sizeof name || equals[1] == '\0')
            return message_usage("write the name that the kernel declares, = and the value",
                                 "--%s %s is not NAME=VALUE", word, list->at[i]);
        memcpy(name, list->at[i], size);
        name[size] = '\0';
        for (uint32_t j = 0; j < i; j++)
            if (strncmp(list->at[j], list->at[i], size + 1) == 0)
                return message_usage("leave one of them out", "--%s %s is given twice", word, name);
        if (use(kernel, name, equals + 1, &err) != QN_OK) {
            const char *place = job_options_place(word, name);
            char where[1200];
            snprintf(where, sizeof where, *place && *err.where ? "%s (%s)" : "%s%s", err.where,
                     place);
            return message_fail(err.status, err.what, where, err.remedy);
        }
    }
    return -1;
}

/* ------------------------------------------------------------------ results */

static int is_extreme(qn_kernel_use use) { return use == QN_KERNEL_MIN || use == QN_KERNEL_MAX; }

/* "(3, 5)", or "3" in one dimension. */
static const char *item_text(const qn_kernel_result *r, uint32_t dimensions, char text[80]) {
    size_t used = (size_t)snprintf(text, 80, dimensions > 1 ? "(" : "");
    for (uint32_t d = 0; d < dimensions; d++)
        used +=
            (size_t)snprintf(text + used, 80 - used, "%s%" PRIu64, d > 0 ? ", " : "", r->item[d]);
    snprintf(text + used, 80 - used, dimensions > 1 ? ")" : "");
    return text;
}

static void print_result(const qn_kernel_part *p, const qn_kernel_result *r, uint32_t dimensions) {
    char item[80];
    if (p->dimensions > 0 && !r->path && !*r->digest)
        return; /* nobody wants it: the next iteration had it */
    if (p->dimensions > 0)
        printf("%-16s %s\n", p->name, r->path ? r->path : r->digest);
    else if (!r->value)
        printf("%-16s no item gave a number\n", p->name);
    else if (r->series && r->path)
        printf("%-16s %s at the end, all in %s\n", p->name, r->value, r->path);
    else if (is_extreme(p->use))
        printf("%-16s %s at item %s\n", p->name, r->value, item_text(r, dimensions, item));
    else
        printf("%-16s %s\n", p->name, r->value);
}

/* Numbers are texts: a reader of JSON might round them. */
static void result_field(const qn_kernel_part *p, const qn_kernel_result *r, uint32_t dimensions) {
    json_open(p->name, '{');
    if (p->dimensions > 0) {
        json_text("file", r->path);
        json_text("digest", *r->digest ? r->digest : NULL);
    } else {
        json_text("value", r->value);
        if (r->series) {
            json_text("series", r->path);
            json_text("digest", *r->digest ? r->digest : NULL);
        }
    }
    if (is_extreme(p->use) && r->value) {
        json_open("item", '[');
        for (uint32_t d = 0; d < dimensions; d++)
            json_count(NULL, r->item[d]);
        json_close(']');
    }
    json_close('}');
}

static void print_results(const qn_kernel *kernel, int json) {
    for (uint32_t i = 0; i < qn_kernel_parts(kernel); i++) {
        qn_kernel_part p = {.size = sizeof p};
        qn_kernel_result r = {.size = sizeof r};
        if (qn_kernel_part_get(kernel, i, &p, NULL) != QN_OK ||
            qn_kernel_result_get(kernel, p.name, &r, NULL) != QN_OK)
            continue; /* an input or a scalar */
        if (json)
            result_field(&p, &r, qn_kernel_dimensions(kernel));
        else
            print_result(&p, &r, qn_kernel_dimensions(kernel));
    }
}

/* "1,000 iterations of 4,096 items in 0.1 s, ...": without what a checkpoint had. */
static void print_times(const qn_kernel_report *r) {
    char text[27], rate[16];
    const int several = r->iterations > 1;
    const uint64_t iterations = several ? r->iterations - r->resumed_from : 1;
    const uint64_t items = several ? r->items : r->items - r->resumed_from;
    const double all = (double)items * (double)iterations;
    if (several)
        printf("%s iteration%s of ", format_count(iterations, text), iterations == 1 ? "" : "s");
    printf("%s items in %.3g s, %s items/s on ", format_count(items, text), r->seconds,
           format_rate(r->seconds > 0 ? all / r->seconds : 0, rate));
    if (strcmp(r->devices, "cpu") != 0)
        printf("%s", r->devices);
    else
        printf("%d core%s", r->threads, r->threads == 1 ? "" : "s");
    if (*r->compiler)
        printf("; %s in %.2g s", r->cached ? "found compiled" : "compiled", r->compile_seconds);
    printf("\n");
}

void kernel_print(const qn_kernel *kernel, int json, int verbose, const char *recipe) {
    qn_kernel_report r = {.size = sizeof r};
    if (qn_kernel_report_get(kernel, &r, NULL) != QN_OK)
        return;
    if (!json) {
        print_results(kernel, 0);
        if (recipe)
            printf("%-16s %s\n", "recipe", recipe);
        print_times(&r);
        if (verbose)
            report_bound(r.bound, r.seconds);
        report_ranks(r.rank, r.ranks, verbose);
        if (verbose)
            report_devices(r.worker, r.workers, r.ranks, 1);
        return;
    }
    json_begin("kernel");
    json_count("items", r.items);
    json_count("iterations", r.iterations);
    json_number("seconds", r.seconds);
    json_number("compile_s", r.compile_seconds);
    json_flag("cached", r.cached);
    json_text("compiler", *r.compiler ? r.compiler : NULL);
    json_text("devices", r.devices);
    json_count("threads", (uint64_t)r.threads);
    json_text("recipe", recipe);
    json_number("bound", r.bound);
    json_number("bound_over_T", r.seconds > 0 ? r.bound / r.seconds : 0);
    report_device_fields(r.worker, r.workers);
    report_rank_fields(r.rank, r.ranks);
    json_open("results", '{');
    print_results(kernel, 1);
    json_close('}');
    json_end();
}

/* ------------------------------------------------------------------ replay */

int kernel_is_recipe(const char *path) {
    char first[64] = "";
    FILE *file = fopen(path, "re");
    const size_t size = file ? fread(first, 1, sizeof first - 1, file) : 0;
    if (file)
        fclose(file);
    first[size] = '\0';
    return ends_with(path, ".json") || first[strspn(first, " \t\r\n")] == '{';
}

/* What is printed; any rank may have to do it. */
typedef struct ending {
    const kernel_replay *f;
    const qn_kernel *kernel;
} ending;

static int print_replay(void *user) {
    const ending *e = user;
    if (!e->f->quiet || e->f->json)
        kernel_print(e->kernel, e->f->json, 0, e->f->recipe);
    if (!e->f->json)
        printf("replay: identical, %s\n", e->f->recipe);
    return EXIT_DONE;
}

static int replay(qn_kernel *kernel, const kernel_replay *f) {
    const qn_compute over = {.size = sizeof over, .cluster = ranks_cluster()};
    ending e = {f, kernel};
    qn_kernel_options o;
    qn_error err = {0};
    qn_kernel_options_init(&o);
    o.threads = (int)f->threads;
    o.devices = f->devices;
    o.compute = &over;
    const qn_status status = qn_kernel_replay(kernel, &o, &err);
    return status == QN_OK ? ranks_conclude(&err, print_replay, &e) : ranks_failed(&err);
}

int kernel_replay_run(const kernel_replay *f, int code) {
    qn_kernel *kernel = NULL;
    const qn_agreement same = {sizeof same, "the command", "replay of a kernel",
                               "start all ranks with the same command"};
    qn_error err;
    if (code < 0 && qn_kernel_from_recipe(f->recipe, &kernel, &err) != QN_OK)
        code = message_error(&err);
    if (code < 0)
        code = kernel_each(kernel, "in", f->in, qn_kernel_bind_file);
    if (code < 0)
        code = kernel_each(kernel, "in-parts", f->in_parts, qn_kernel_bind_parts);
    for (uint32_t i = 0; code < 0 && i < f->allowed->count; i++)
        if (qn_kernel_allow_path(kernel, f->allowed->at[i], &err) != QN_OK)
            code = message_error(&err);
    code = ranks_agree(code, &same, 1, 0);
    if (code < 0)
        code = replay(kernel, f);
    qn_kernel_free(kernel);
    return code;
}
