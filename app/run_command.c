/* quern run: a kernel of the user's over arrays. */

#include "command.h"
#include "format.h"
#include "interrupt.h"
#include "job_options.h"
#include "kernel.h"
#include "message.h"
#include "progress.h"
#include "ranks.h"
#include "run_job.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <quern/device.h>
#include <quern/files.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct run_flags {
    const char *kernel, *shape, *recipe, *devices, *trace, *checkpoint, *checkpoint_every, *timeout;
    text_list in, in_parts, out, set, series;
    uint64_t threads, grain, iterations, seed;
    ranks_flags ranks;
    int quiet, verbose, json, resume;
} run_flags;

#define AT(member) .place = offsetof(run_flags, member)

static const option run_options[] = {
    {.heading = "Kernel",
     ROW_TEXT("kernel", kernel, "FILE",
              "the kernel, a C file as docs/kernels.md describes; required")},
    {ROW_TEXTS("in", in, "NAME=FILE",
               "NPY file of an input (INPUT, WHOLE, HALO); can be given several times")},
    {ROW_TEXTS("in-parts", in_parts, "NAME=LIST",
               "the same of which each rank has some rows: a file, a folder or a pattern; can be "
               "given several times")},
    {ROW_TEXTS(
        "out", out, "NAME=FILE",
        "file to which an OUTPUT, a SCAN or an array of totals is written: NPY; .raw, its "
        "numbers alone; or .png, a picture of a uint8_t OUTPUT. With %r in the name each rank "
        "writes its rows. Can be given several times")},
    {ROW_TEXTS("set", set, "NAME=VALUE", "value of a SCALAR; can be given several times"),
     .fallback = "the kernel's own"},
    {ROW_TEXT("shape", shape, "SHAPE", "lengths of the index space, such as 600x800"),
     .fallback = "those of the arrays"},
    {ROW_COUNT("iterations", iterations, 1, (uint64_t)1 << 48,
               "run the kernel N times; the outputs that NEXT names are what the next one reads"),
     .fallback = "1"},
    {ROW_SEED(seed, "seed of the random numbers of a kernel that declares RANDOM")},

    {.heading = "Output",
     ROW_TEXTS("series", series, "NAME=FILE",
               "NPY file for a SUM, MIN, MAX or COUNT of every iteration; can be given several "
               "times")},
    {ROW_TEXT("recipe", recipe, "FILE",
              "file for the recipe, with which quern replay computes the results again"),
     .fallback = "NAME.recipe.json beside the first --out NAME.npy"},
    {ROW_QUIET(quiet)},
    {ROW_VERBOSE(verbose, "report more: what each device did, every core, bytes moved")},
    {ROW_JSON(json, "print one JSON object instead")},
    {ROW_TRACE(trace)},

    {.heading = "Checkpoints",
     ROW_TEXT("checkpoint", checkpoint, "FILE",
              "save the state from time to time in this file, to continue from it")},
    {ROW_TEXT("checkpoint-every", checkpoint_every, "TIME|N",
              "how often: every 30 seconds (30s), 5 minutes (5m), 2 hours (2h) or 500 iterations "
              "(500)"),
     .fallback = "60s"},
    {ROW_FLAG("resume", resume, "continue from the file of --checkpoint, if it is there")},

    {.heading = "Devices (they do not change the result)",
     ROW_TEXT("devices", devices, "LIST",
              "auto, or a list of cpu, cpu:4 (cores), KIND:0 or KIND:all, as in cpu,cuda:0"),
     .fallback = "auto: all cores, and GPUs if there are 4 million items or more"},
    {ROW_TIMEOUT(timeout)},
    {ROW_COUNT("threads", threads, 0, 4096, "the number of cores; instead of --devices"),
     .fallback = "0: all"},
    {ROW_COUNT("grain", grain, 1, UINT32_MAX, "items that a core takes at once"),
     .fallback = "by their number"},
    {.heading = RANKS_HEADING, .more = RANKS_OPTIONS_ALONE, AT(ranks)},
    {.name = NULL}};

/* ------------------------------------------------------------------ the command line */

/* An error of an option, which the file of options may give: QN_USAGE, with its line. */
__attribute__((format(printf, 3, 4))) static int refuse(const char *word, const char *remedy,
                                                        const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return message_fail(QN_USAGE, what, job_options_place(word, NULL), remedy);
}

/* "600x800". */
static int set_shape(qn_kernel *kernel, const char *text) {
    uint64_t shape[QN_KERNEL_DIMENSIONS];
    uint32_t count = 0;
    char number[24];
    qn_error err;
    for (const char *at = text;; at++) {
        const size_t size = strcspn(at, "x");
        snprintf(number, sizeof number, "%.*s", (int)(size < 23 ? size : 23), at);
        if (count == QN_KERNEL_DIMENSIONS || size > 20 || !read_count(number, &shape[count]))
            return refuse("shape", "write one to three lengths, such as 1000000 or 600x800",
                          "--shape cannot be \"%s\"", text);
        count++;
        at += size;
        if (*at == '\0')
            break;
    }
    if (qn_kernel_set_shape(kernel, shape, count, &err) == QN_OK)
        return -1;
    const char *place = job_options_place("shape", NULL);
    return message_fail(err.status, err.what, *place ? place : err.where, err.remedy);
}

/* The recipe's file: as given, or beside the first output; NULL: none. */
static const char *recipe_path(const run_flags *f, char path[PATH_MAX]) {
    if (f->recipe || f->out.count == 0)
        return f->recipe;
    const char *equals = strchr(f->out.at[0], '='), *file = equals ? equals + 1 : f->out.at[0];
    const size_t size =
        strlen(file) -
        (ends_with(file, ".npy") || ends_with(file, ".png") || ends_with(file, ".raw") ? 4 : 0);
    if (size + sizeof ".recipe.json" > PATH_MAX)
        return NULL;
    snprintf(path, PATH_MAX, "%.*s", (int)size, file);
    for (char *mark; (mark = strstr(path, "%r"));) {
        const char *rest = mark + 2;
        if (strchr(mark, '/')) /* a folder: that of rank 0 */
            *mark++ = '0';
        else if (mark > path && strchr("-_.", mark[-1])) /* "out-%r" becomes "out" */
            mark--;
        memmove(mark, rest, strlen(rest) + 1);
    }
    snprintf(path + strlen(path), PATH_MAX - strlen(path), ".recipe.json");
    return path;
}

enum { MOST_LISTS = 3, MOST_CHECKED = MOST_LISTS * MOST_TEXTS + 7 };

typedef struct files {
    qn_file at[MOST_CHECKED];
    char name[MOST_LISTS * MOST_TEXTS][80];
    uint32_t count, names;
} files;

/* What reads a file refuses a folder. */
static void add(files *all, const char *name, const char *path, qn_file_use use) {
    struct stat about;
    if (use == QN_FILE_READ && path && stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return;
    all->at[all->count++] =
        (qn_file){.size = sizeof(qn_file), .path = path, .name = name, .use = use};
}

static void add_list(files *all, const char *word, const text_list *list, qn_file_use use) {
    for (uint32_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->at[i], '=');
        char *name = all->name[all->names++];
        if (!equals)
            continue; /* kernel_each says so */
        if (use == QN_FILE_WRITE && strstr(equals, "%r"))
            continue; /* the run itself tries the name of this rank */
        snprintf(name, sizeof all->name[0], "--%s %.*s", word,
                 (int)(equals - list->at[i] < 60 ? equals - list->at[i] : 60), list->at[i]);
        add(all, name, equals + 1, use);
    }
}

/* No output may be another file of the command. Inputs may be one file. */
static int check_files(const run_flags *f, const arguments *given, const char *recipe) {
    static files all;
    qn_error err;
    all.count = all.names = 0;
    add(&all, "JOB.toml", given->operands > 0 ? given->operand[0] : NULL, QN_FILE_READ);
    add(&all, "--kernel", f->kernel, QN_FILE_READ);
    add_list(&all, "in", &f->in, QN_FILE_READ);
    add_list(&all, "out", &f->out, QN_FILE_WRITE);
    add_list(&all, "series", &f->series, QN_FILE_WRITE);
    add(&all, "--recipe", recipe, QN_FILE_WRITE);
    add(&all, "--checkpoint", f->checkpoint, QN_FILE_WRITE);
    add(&all, "--trace", f->trace, QN_FILE_WRITE);
    add(&all, "--key-file", ranks_key_path(&f->ranks), QN_FILE_READ);
    return qn_files_check(all.at, all.count, &err) == QN_OK ? -1 : message_error(&err);
}

static int set_seed(qn_kernel *kernel, uint64_t seed) {
    qn_error err;
    return qn_kernel_set_seed(kernel, seed, &err) == QN_OK ? -1 : message_error(&err);
}

/* With %r in the name each rank has a file for its rows. */
static qn_status bind_output(qn_kernel *kernel, const char *name, const char *path, qn_error *err) {
    return strstr(path, "%r") ? qn_kernel_bind_parts(kernel, name, path, err)
                              : qn_kernel_bind_file(kernel, name, path, err);
}

static int bind(const run_flags *f, qn_kernel *kernel) {
    int code = kernel_each(kernel, "set", &f->set, qn_kernel_set);
    if (code < 0)
        code = kernel_each(kernel, "in", &f->in, qn_kernel_bind_file);
    if (code < 0)
        code = kernel_each(kernel, "in-parts", &f->in_parts, qn_kernel_bind_parts);
    if (code < 0)
        code = kernel_each(kernel, "out", &f->out, bind_output);
    if (code < 0)
        code = kernel_each(kernel, "series", &f->series, qn_kernel_series);
    if (code < 0 && f->shape)
        code = set_shape(kernel, f->shape);
    return code;
}

/* ------------------------------------------------------------------ the run */

static int refuse_use(const qn_kernel_part *p, const char *word) {
    const int written = strcmp(word, "out") != 0;
    char what[200];
    snprintf(what, sizeof what, "\"%s\" is an %s of the kernel, and --%s names it", p->name,
             written ? "output" : "input", word);
    return message_fail(QN_USAGE, what, job_options_place(word, p->name),
                        written ? "write --out" : "write --in");
}

static int names(const text_list *list, const char *name) {
    const size_t size = strlen(name);
    for (uint32_t k = 0; k < list->count; k++)
        if (strncmp(list->at[k], name, size) == 0 && list->at[k][size] == '=')
            return 1;
    return 0;
}

/* --in of an output and --out of an input would be mistaken for each other by the library. */
static int check_uses(const run_flags *f, qn_kernel *kernel) {
    for (uint32_t i = 0; i < qn_kernel_parts(kernel); i++) {
        qn_kernel_part p = {.size = sizeof p};
        if (qn_kernel_part_get(kernel, i, &p, NULL) != QN_OK ||
            (p.use > QN_KERNEL_OUTPUT && p.dimensions == 0))
            continue;
        const int written = p.use >= QN_KERNEL_OUTPUT;
        if (names(written ? &f->in : &f->out, p.name))
            return refuse_use(&p, written ? "in" : "out");
        if (written && names(&f->in_parts, p.name))
            return refuse_use(&p, "in-parts");
        if (names(&f->in, p.name) && names(&f->in_parts, p.name))
            return message_usage("leave one of them out", "--in and --in-parts name %s", p.name);
    }
    return -1;
}

/* What is printed; any rank may have to do it. */
typedef struct ending {
    const run_flags *f;
    const qn_kernel *kernel;
    const char *recipe;
} ending;

static int print_all(void *user) {
    const ending *e = user;
    qn_kernel_report r = {.size = sizeof r};
    if (qn_kernel_report_get(e->kernel, &r, NULL) == QN_OK && *r.note)
        message_note("note: %s", r.note);
    if (r.checkpoint_note && *r.checkpoint_note)
        message_warning("note: the last checkpoint could not be written: %s", r.checkpoint_note);
    if (!e->f->quiet || e->f->json)
        kernel_print(e->kernel, e->f->json, e->f->verbose, e->recipe);
    return EXIT_DONE;
}

static progress bar;

/* Every rank has notes of its own; of the progress one tells. */
static void on_note(void *user, const char *text) {
    (void)user;
    progress_make_way();
    message_aside(text, "");
}

static void on_progress(void *user, const qn_kernel_progress *p) {
    (void)user;
    if (ranks_is_writer())
        progress_kernel(&bar, p);
}

static const char stopping[] = "\nstopping all ranks; once more ends this one at once\n";

static const char tracing[] = "\nstopping after the items in progress; once more ends at once\n";

static const char saving[] = "\nstopping after a checkpoint; once more ends at once\n";

/* A process alone without a checkpoint or a trace is ended by an interruption: all that it leaves
 * is memory. */
static qn_status compute_among(const qn_kernel_options *o, qn_kernel *kernel, qn_error *err) {
    if (ranks_cluster())
        interrupt_watch_kernel(kernel, ranks_is_writer() ? stopping : NULL);
    else if (o->checkpoint || o->trace)
        interrupt_watch_kernel(kernel, o->checkpoint ? saving : tracing);
    const qn_status status = qn_kernel_run(kernel, o, err);
    char text[512];
    while (qn_device_note(text, sizeof text))
        message_note("note: %s", text);
    interrupt_watch_kernel(NULL, NULL);
    return status;
}

static int compute(const run_flags *f, qn_kernel *kernel, const char *recipe) {
    float timeout = 0;
    if (f->timeout)
        read_float(f->timeout, &timeout);
    const qn_compute over = {
        .size = sizeof over, .cluster = ranks_cluster(), .device_timeout = (double)timeout};
    ending e = {f, kernel, recipe};
    qn_kernel_options o;
    qn_error err = {0};
    qn_kernel_options_init(&o);
    o.threads = (int)f->threads;
    o.devices = f->devices;
    o.grain = f->grain;
    o.recipe = recipe;
    if (f->iterations > 0)
        o.iterations = f->iterations;
    o.checkpoint = f->checkpoint;
    o.resume = f->resume;
    if (f->checkpoint_every)
        read_interval(f->checkpoint_every, &o.checkpoint_seconds, &o.checkpoint_iterations);
    o.compute = &over;
    o.trace = f->trace;
    o.on_note = on_note;
    o.on_progress = on_progress;
    progress_init(&bar, f->quiet || f->json);
    const qn_status status = compute_among(&o, kernel, &err);
    progress_clear(&bar);
    return status == QN_OK ? ranks_conclude(&err, print_all, &e) : ranks_failed(&err);
}

/* Options from the operand, a file. */
static int read_job(const command *self, run_flags *f, arguments *given, job_options *kept) {
    char remedy[400];
    if (given->operands == 0)
        return -1;
    const char *job = given->operand[0];
    snprintf(remedy, sizeof remedy, "write --kernel %.300s", job);
    if (ends_with(job, ".c"))
        return message_usage(remedy, "%s is a kernel, not a file of options", job);
    const int code = job_options_read(self, job, RANKS_OPTIONS_ALONE, f, given, kept);
    if (code < 0)
        message_setup(self->name, f->quiet, f->json);
    return code;
}

static int check_flags(const run_flags *f) {
    double seconds = 0;
    uint64_t count = 0;
    if (!f->kernel)
        return message_usage("add --kernel FILE.c, or name a file of options",
                             "--kernel FILE is required");
    if (f->json && f->quiet)
        return message_usage("leave one of them out", "--quiet does nothing with --json");
    if (f->quiet && f->verbose)
        return message_usage("leave one of them out", "--quiet contradicts --verbose");
    float timeout;
    if (f->timeout && !(read_float(f->timeout, &timeout) && timeout > 0))
        return refuse("device-timeout", "it is a number of seconds, such as 60 or 0.5",
                      "--device-timeout cannot be \"%s\"", f->timeout);
    if (f->threads > 0 && f->devices)
        return refuse("devices", "leave one of them out", "--threads and --devices say the same");
    if ((f->resume || f->checkpoint_every) && !f->checkpoint)
        return refuse(f->resume ? "resume" : "checkpoint-every", "add --checkpoint FILE",
                      "--%s needs --checkpoint", f->resume ? "resume" : "checkpoint-every");
    if (f->checkpoint_every && !read_interval(f->checkpoint_every, &seconds, &count))
        return refuse("checkpoint-every",
                      "write seconds (30s), minutes (5m), hours (1h), at most 365 days of "
                      "them, or iterations (500)",
                      "--checkpoint-every cannot be \"%s\"", f->checkpoint_every);
    if (f->checkpoint_every && count > 0 && f->iterations <= 1)
        return refuse("checkpoint-every", "give a time there, such as 60s",
                      "the kernel runs once, so no number of iterations is between two "
                      "checkpoints");
    return -1;
}

/* Opens the kernel and gives it its arrays and numbers. */
static int open_kernel(const command *self, const run_flags *f, const arguments *given,
                       const char *recipe, qn_kernel **kernel) {
    qn_error err;
    int code = check_flags(f);
    if (code < 0)
        code = check_files(f, given, recipe);
    if (code < 0 && qn_kernel_open(f->kernel, kernel, &err) != QN_OK)
        code = message_error(&err);
    if (code < 0)
        code = check_uses(f, *kernel);
    if (code < 0)
        code = bind(f, *kernel);
    if (code < 0 && options_given(self, given, "seed"))
        code = set_seed(*kernel, f->seed);
    return code;
}

static int has_parts(const run_flags *f) {
    for (uint32_t i = 0; i < f->out.count; i++)
        if (strstr(f->out.at[i], "%r"))
            return 1;
    return f->in_parts.count > 0;
}

int run_job_read(int count, char **words, int opens, run_job *out) {
    char added[PATH_MAX + 16];
    run_flags f = {0};
    qn_kernel *kernel = NULL;
    qn_error err;
    int code = options_read(&run_command, count, words, &f, &out->given);
    if (code < 0)
        code = read_job(&run_command, &f, &out->given, &out->kept);
    if (code >= 0)
        return code;
    if (has_parts(&f))
        return message_usage("start it with srun or mpirun in a script of your own",
                             "a run with arrays in parts writes no checkpoint, which a job needs");
    out->result = recipe_path(&f, out->path);
    out->checkpoint = f.checkpoint;
    out->resume = f.resume;
    if (!f.checkpoint && out->result) { /* submit adds it */
        snprintf(added, sizeof added, "%s.checkpoint", out->result);
        f.checkpoint = added;
    }
    if (opens) {
        code = open_kernel(&run_command, &f, &out->given, out->result, &kernel);
    } else {
        code = check_flags(&f);
        if (code < 0)
            code = check_files(&f, &out->given, out->result);
        if (code < 0 && access(f.kernel, R_OK) == 0)
            code = qn_kernel_open(f.kernel, &kernel, &err) == QN_OK ? check_uses(&f, kernel)
                                                                    : message_error(&err);
    }
    qn_kernel_free(kernel);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    static char path[PATH_MAX];
    run_flags f = {0};
    arguments given;
    qn_kernel *kernel = NULL;
    job_options kept = {.count = 0};
    const char *recipe = NULL;
    const qn_agreement same = {sizeof same, "the command", self->name,
                               "start all ranks with the same command"};
    int code = ranks_join(argc - 2, argv + 2, 0);
    if (code >= 0)
        return code;
    code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code < 0) {
        message_setup(self->name, f.quiet, f.json);
        code = read_job(self, &f, &given, &kept);
    }
    if (code < 0) {
        recipe = recipe_path(&f, path);
        code = open_kernel(self, &f, &given, recipe, &kernel);
    }
    code = ranks_agree(code, &same, 1, 0);
    if (code < 0)
        code = compute(&f, kernel, recipe);
    qn_kernel_free(kernel);
    job_options_free(&kept);
    return ranks_leave(code);
}

const command run_command = {
    .name = "run",
    .summary = "run a kernel of your own over arrays",
    .usage = "quern run [JOB.toml] [--kernel FILE.c] [--in NAME=FILE] [--out NAME=FILE] [options]",
    .operand = "JOB.toml",
    .optional = 1,
    .about =
        "Computes a kernel, a function of an index in C, for all items of its arrays. The "
        "results depend on the kernel's text, the inputs and the scalars alone: not on the number "
        "of cores or machines, the devices, the compiler or its options. A recipe is written "
        "beside the "
        "results; quern "
        "replay computes them again from it and compares. The system's C compiler (CC, cc, gcc "
        "or clang) compiles each kernel once.\n"
        "JOB.toml is a file with such options: kernel = \"call.c\", and below the line [set] a "
        "line "
        "sigma = 0.2. Options of the command line override it.",
    .options = run_options,
    .examples = "quern run --kernel call.c --in price=p.npy --out call=c.npy --set sigma=0.2\n"
                "quern run --kernel mandelbrot.c --shape 600x800 --out steps=steps.npy\n"
                "quern run --kernel heat.c --in u=u.npy --out u_new=end.npy --iterations 1000\n"
                "quern run call.toml --threads 4\n"
                "quern replay steps.recipe.json",
    .run = run};
