/* quern submit: passes a training or the run of a kernel to Slurm, to Kubernetes or to the
 * background. */

#include "command.h"
#include "format.h"
#include "interrupt.h"
#include "job.h"
#include "job_file.h"
#include "jsonline.h"
#include "launch_hosts.h"
#include "message.h"
#include "program.h"
#include "shared_rows.h"
#include "submit.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Stands in a manifest that is only printed, where no image was named. */
static const char NO_IMAGE[] = "NAME-OF-THE-IMAGE";

#define AT(member) .place = offsetof(submit_flags, member)

static const option_word launchers[] = {
    {"auto", "srun under Slurm, mpirun with --hostfile, else none"},
    {"srun", "Slurm's"},
    {"mpirun", "that of Open MPI or MPICH"},
    {"none", "the job starts one process"},
    {NULL, NULL}};

static const option_word kinds[] = {
    {"auto", "a Job for one rank, an MPIJob for several"},
    {"mpijob", "of the MPI operator: mpirun starts the ranks"},
    {"indexed", "a Job with indexed pods, without an operator; Kubernetes 1.31 or later"},
    {"jobset", "a JobSet: the same, started again as a whole"},
    {"trainjob", "of Kubeflow Trainer v2, with the runtime quern"},
    {NULL, NULL}};

static const option submit_options[] = {
    {.heading = "Where (one of these is required)",
     ROW_FLAG("slurm", slurm, "a batch job of Slurm, by sbatch")},
    {ROW_FLAG("kubernetes", kubernetes, "a job of Kubernetes, by kubectl; --kind says which")},
    {ROW_FLAG("local", local, "this machine, in the background")},
    {ROW_FLAG("dry-run", dry_run, "print what would be submitted; change nothing")},

    {.heading = "Resources",
     ROW_COUNT("ranks", ranks, 1, 1024, "processes: one a node, or N on this machine"),
     .fallback = "1"},
    {ROW_COUNT("cpus", cpus, 1, 1 << 16, "cores of each rank"),
     .fallback = "Slurm: whole nodes; Kubernetes: 4"},
    {ROW_COUNT("gpus", gpus, 0, 1 << 10, "GPUs of each rank"), .fallback = "0"},
    {ROW_TEXT("memory", memory, "SIZE",
              "memory of each rank, as Slurm or Kubernetes writes it: 8G, 8Gi"),
     .fallback = "Slurm: its default; Kubernetes: 4Gi"},
    {ROW_COUNT("array", array, 1, 10000,
               "Slurm: tasks of a job array, among which a search is divided")},
    {ROW_TEXT("time", time, "LIMIT",
              "Slurm: time limit, as minutes, hours:minutes:seconds, days-hours or another form of "
              "Slurm; before the limit the job stops and queues again"),
     .fallback = "the partition's"},

    {.heading = "Job",
     ROW_TEXT("name", name, "NAME", "name of the job: lower-case letters, digits and dashes"),
     .fallback = "from the name of the model file or recipe"},
    {ROW_JSON(json, "one JSON object on stdout: submitted")},

    {.heading = "Advanced",
     ROW_TEXT("partition", partition, "NAME", "Slurm: partition to run in"),
     .fallback = "Slurm's default"},
    {ROW_TEXT("account", account, "NAME", "Slurm: account to charge"),
     .fallback = "Slurm's default"},
    {ROW_TEXT("sbatch", sbatch, "OPTIONS",
              "Slurm: further options of sbatch, such as \"--constraint=avx512 --qos=long\""),
     .dashes = 1},
    {ROW_TEXT("image", image, "NAME",
              "Kubernetes: container image, made with deploy/Containerfile")},
    {ROW_TEXT("claim", claim, "NAME", "Kubernetes: persistent volume claim with the data"),
     .fallback = "quern-data"},
    {ROW_TEXT("mount", mount, "DIR", "Kubernetes: where pods mount it; relative paths begin there"),
     .fallback = "/data"},
    {ROW_TEXT("namespace", space, "NAME", "Kubernetes: namespace of the job"),
     .fallback = "kubectl's"},
    {ROW_CHOICE("kind", kind, "NAME", "Kubernetes: resource that starts the ranks"), .words = kinds,
     .fallback = "auto"},
    {ROW_TEXT("queue", queue, "NAME", "Kubernetes: local queue of Kueue that admits the job"),
     .fallback = "none"},
    {ROW_TEXT("topology", topology, "LABEL",
              "Kubernetes: label of nodes, such as that of a rack; ranks prefer nodes with one "
              "value of it"),
     .fallback = "none"},
    {ROW_CHOICE("launcher", launcher, "NAME", "program that starts the ranks"), .words = launchers,
     .fallback = "auto"},
    {ROW_TEXT("hostfile", hostfile, "FILE",
              "with --local: mpirun starts the ranks on the hosts in this file")},
    {ROW_TEXT("program", program, "FILE", "path of quern where the job runs"),
     .fallback = "this program; Kubernetes: quern"},
    {.name = NULL}};

/* ---------------------------------------------------------------- the command line */

/* Restricts a name to characters that are valid in any engine's file. */
static int is_plain(const char *text, const char *also) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char allowed[128];
    snprintf(allowed, sizeof allowed, "%s%s", plain, also);
    return strspn(text, allowed) == strlen(text);
}

static const char upper_and_signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.,:+@/=[]&*|!";

/* A name derived from the result's file: "Runs/My Digits.safetensors" is "my-digits". */
static void name_of(const char *model, char name[48]) {
    const char *slash = strrchr(model, '/'), *from = slash ? slash + 1 : model;
    size_t n = 0;
    for (; *from && *from != '.' && n < 40; from++) {
        char c = *from >= 'A' && *from <= 'Z' ? (char)(*from + 32) : *from;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            name[n++] = c;
        else if (n > 0 && name[n - 1] != '-')
            name[n++] = '-';
    }
    while (n > 0 && name[n - 1] == '-')
        n--;
    name[n] = '\0';
    if (n == 0)
        snprintf(name, 48, "quern");
}

/* A number of at most `digits` digits below `limit`; moves *text after it. */
static int is_number(const char **text, size_t digits, unsigned long limit) {
    const size_t count = strspn(*text, "0123456789");
    if (count < 1 || count > digits || strtoul(*text, NULL, 10) >= limit)
        return 0;
    *text += count;
    return 1;
}

/* One of Slurm's forms of a time limit: of MM, MM:SS and HH:MM:SS the first number may be large, of
 * D-HH, D-HH:MM and D-HH:MM:SS the days. Zero would mean no limit. */
static int is_time_limit(const char *text) {
    const char *p = text;
    int colons = 0;
    if (!is_number(&p, 7, 10000000) || strspn(text, "0:-") == strlen(text))
        return 0;
    if (*p == '-') {
        p++;
        if (!is_number(&p, 2, 24))
            return 0;
    }
    for (; *p == ':' && colons < 2; colons++) {
        p++;
        if (!is_number(&p, 2, 60))
            return 0;
    }
    return *p == '\0';
}

static int check_time(const char *text) {
    if (!text || is_time_limit(text))
        return -1;
    return message_usage("write minutes, minutes:seconds, hours:minutes:seconds, days-hours, "
                         "days-hours:minutes or days-hours:minutes:seconds, as in 90 or 04:00:00",
                         "--time cannot be \"%s\"", text);
}

static int check_texts(const submit_flags *f) {
    const struct {
        const char *flag, *text;
    } plain[] = {{"memory", f->memory},   {"partition", f->partition}, {"account", f->account},
                 {"namespace", f->space}, {"queue", f->queue},         {"topology", f->topology}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i].text && !is_plain(plain[i].text, upper_and_signs))
            return message_usage("write letters, digits and the signs of such values only",
                                 "--%s cannot be \"%s\"", plain[i].flag, plain[i].text);
    if (f->sbatch && strpbrk(f->sbatch, "\r\n"))
        return message_usage("write them in one line", "--sbatch has a line break in it");
    if (f->name && (!is_plain(f->name, "-") || *f->name == '-' || strlen(f->name) > 48 ||
                    f->name[strlen(f->name) - 1] == '-'))
        return message_usage("write at most 48 small letters, digits and dashes, none at the ends",
                             "--name cannot be \"%s\"", f->name);
    if (f->mount && *f->mount != '/')
        return message_usage("write a path that begins with /", "--mount cannot be \"%s\"",
                             f->mount);
    return -1;
}

static const char *engine_of(const submit_flags *f) {
    return f->slurm ? "slurm" : f->kubernetes ? "kubernetes" : "local";
}

/* Options of one engine would be ignored silently by another. */
static int check_belonging(const command *self, const submit_flags *f, const arguments *given) {
    static const struct {
        const char *flag, *engine;
    } theirs[] = {{"time", "slurm"},         {"array", "slurm"},      {"partition", "slurm"},
                  {"account", "slurm"},      {"sbatch", "slurm"},     {"image", "kubernetes"},
                  {"claim", "kubernetes"},   {"mount", "kubernetes"}, {"namespace", "kubernetes"},
                  {"hostfile", "local"},     {"kind", "kubernetes"},  {"queue", "kubernetes"},
                  {"topology", "kubernetes"}};
    const char *engine = engine_of(f);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (options_given(self, given, theirs[i].flag) && strcmp(engine, theirs[i].engine) != 0)
            return message_usage("leave it out", "--%s belongs to --%s, not to --%s",
                                 theirs[i].flag, theirs[i].engine, engine);
    if (f->local && (f->cpus || f->gpus || f->memory))
        return message_usage("write options of train after it: --threads, --devices",
                             "--cpus, --gpus and --memory are for batch systems");
    return -1;
}

/* 1: the ranks meet by a name of the cluster, with a key. */
static int has_key(const submit_flags *f) {
    return f->kubernetes && f->kind[0] != 'a' && strcmp(f->kind, "mpijob") != 0;
}

static int check_kind(const command *self, const submit_flags *f, const arguments *given) {
    if (strcmp(f->kind, "mpijob") == 0 && f->ranks == 1)
        return message_usage("add --ranks N, or leave --kind out", "an mpijob has several ranks");
    if (f->topology && !has_key(f))
        return message_usage("add --kind indexed or --kind jobset",
                             "--topology needs pods that are ranks");
    if (strcmp(f->kind, "trainjob") != 0)
        return -1;
    static const char *const theirs[] = {"claim", "mount", "topology"};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (options_given(self, given, theirs[i]))
            return message_usage("leave it out, and change deploy/kubernetes/training_runtime.yaml",
                                 "--%s of a trainjob is part of its runtime", theirs[i]);
    return -1;
}

static int check_flags(const command *self, const submit_flags *f, const arguments *given) {
    int places = f->slurm + f->kubernetes + f->local;
    if (places > 1)
        return message_usage("keep only one of --slurm, --kubernetes and --local",
                             "a job runs in one place, not in %d", places);
    if (places < 1)
        return message_usage("add one of --slurm, --kubernetes and --local",
                             "--slurm, --kubernetes or --local is required");
    int code = check_belonging(self, f, given);
    if (code < 0)
        code = check_texts(f);
    if (code < 0)
        code = check_time(f->time);
    if (code >= 0)
        return code;
    if (f->kubernetes && !f->image && !f->dry_run)
        return message_usage("add --image NAME; deploy/Containerfile makes one",
                             "--kubernetes needs an image");
    if (f->launcher[0] != 'a' && f->kubernetes)
        return message_usage("leave --launcher out", "on Kubernetes the operator brings mpirun");
    code = check_kind(self, f, given);
    if (code >= 0)
        return code;
    if (strcmp(f->launcher, "srun") == 0 && !f->slurm)
        return message_usage("use --launcher mpirun", "srun starts ranks under Slurm only");
    if (strcmp(f->launcher, "none") == 0 && ((f->slurm && f->ranks > 1) || f->hostfile))
        return message_usage("use --launcher mpirun", "several ranks need a launcher");
    if (f->hostfile && !f->dry_run && access(f->hostfile, R_OK) != 0)
        return message_usage("give the path of a file with the name of a host on each line",
                             "cannot read the hostfile %s: %s", f->hostfile, strerror(errno));
    return -1;
}

/* ---------------------------------------------------------------- the job */

static const char *launcher_of(const submit_flags *f) {
    if (f->launcher[0] != 'a')
        return f->launcher;
    return f->slurm ? "srun" : f->hostfile ? "mpirun" : "none";
}

static int make_job(const submit_flags *f, char **words, int count, making *m) {
    int code = submit_words(f, words, count, m);
    if (code >= 0)
        return code;
    job *j = &m->j;
    ssize_t n = readlink("/proc/self/exe", m->program, sizeof m->program - 1);
    snprintf(m->program + (n > 0 ? n : 0), 8, "%s", n > 0 ? "" : "quern");
    if (!getcwd(m->directory, sizeof m->directory))
        return message_fail(QN_IO, strerror(errno), "the current folder", "go to another one");
    name_of(m->j.folder ? m->j.folder : m->j.result, m->name);
    j->engine = engine_of(f);
    j->name = f->name ? f->name : m->name;
    j->program = f->program ? f->program : f->kubernetes ? "quern" : m->program;
    j->directory = m->directory;
    j->ranks = f->ranks;
    j->cpus = f->cpus || !f->kubernetes ? f->cpus : 4;
    j->gpus = f->gpus;
    j->launcher = launcher_of(f);
    j->hostfile = f->hostfile;
    j->port = f->local && f->ranks > 1 && !f->hostfile ? launch_free_port() : 0;
    j->partition = f->partition;
    j->account = f->account;
    j->time = f->time;
    j->memory = f->memory || !f->kubernetes ? f->memory : "4Gi";
    j->more = f->sbatch;
    j->image = f->image;
    if (f->kubernetes && !f->image) {
        j->image = NO_IMAGE;
        message_note("note: the image is \"%s\" because --image is not given; deploy/Containerfile "
                     "makes one",
                     NO_IMAGE);
    }
    j->kind = f->kind;
    j->queue = f->queue;
    j->topology = f->topology;
    if (has_key(f) && !j->serves && !j->watches) {
        if (secret_make(m->key) != 0)
            return message_fail(QN_IO, "the system gives no random numbers for the key", "", "");
        j->key = m->key;
    }
    j->claim = f->claim;
    j->mount = f->mount;
    j->space = f->space;
    return -1;
}

/* ----------------------------------------------------------------------------------- submission */

static int no_program(const char *program, const char *remedy) {
    char what[128];
    snprintf(what, sizeof what, "there is no command \"%s\" here", program);
    return message_fail(QN_UNSUPPORTED, what, "", remedy);
}

/* Runs the engine's command on the file. Returns -1, or an exit code after a message. */
static int hand_over(const char *const *argv, const char *remedy, program_result *r) {
    char what[256];
    program_run(argv, 120, r);
    if (r->end == PROGRAM_ENDED && r->code == 0)
        return -1;
    if (r->end == PROGRAM_ABSENT)
        return no_program(argv[0], remedy);
    r->err[strcspn(r->err, "\n")] = '\0';
    if (r->end == PROGRAM_SLOW)
        snprintf(what, sizeof what, "%s did not answer within two minutes", argv[0]);
    else
        snprintf(what, sizeof what, "%s did not take the job (exit code %d)", argv[0], r->code);
    return message_fail(QN_CLUSTER, what, r->err,
                        "\"quern submit ... --dry-run\" shows what was submitted");
}

static void set(job_record *record, job_field field, const char *text) {
    free(record->text[field]);
    record->text[field] = text ? strdup(text) : NULL;
}

/* Task 0 of an array follows when all others have ended; it merges their results. */
static int give_merge(const char *file, program_result *result, job_record *r) {
    static const char remedy[] = "the tasks of the array are submitted; \"scancel\" ends them";
    char after[64];
    result->out[strspn(result->out, "0123456789")] = '\0';
    set(r, JOB_ARRAY, result->out);
    snprintf(after, sizeof after, "--dependency=afterany:%.20s", result->out);
    const char *argv[] = {"sbatch", "--parsable", "--array=0", after, file, NULL};
    return hand_over(argv, remedy, result);
}

static int give_to_slurm(const char *file, const char *folder, const making *m, job_record *r) {
    const char *argv[] = {"sbatch", "--parsable", file, NULL};
    char log[4400];
    program_result result;
    if (setenv("QUERN_JOBS", folder, 1) != 0) /* the job writes its exit code there */
        return message_fail(QN_MEMORY, "out of memory", "", "");
    int code = hand_over(argv, "Slurm's programs are not on the PATH; --local needs none of them",
                         &result);
    if (code < 0 && m->j.tasks > 0)
        code = give_merge(file, &result, r);
    if (code >= 0)
        return code;
    result.out[strspn(result.out, "0123456789")] = '\0'; /* "12;cluster" */
    set(r, JOB_ID, result.out);
    snprintf(log, sizeof log, "%.4200s/%s-%.20s%s.log", m->directory, m->j.name, result.out,
             m->j.tasks > 0 ? "_0" : "");
    set(r, JOB_LOG, log);
    return -1;
}

static int give_to_kubernetes(const char *file, const making *m, job_record *r) {
    const char *argv[] = {"kubectl", "create", "-f", file, NULL};
    char text[256];
    program_result result;
    const job *j = &m->j;
    int code = hand_over(argv, "kubectl is not on the PATH; --local needs nothing", &result);
    if (code >= 0)
        return code;
    if (j->space)
        snprintf(text, sizeof text, "%s/%s", j->space, j->name);
    else
        snprintf(text, sizeof text, "%s", j->name);
    set(r, JOB_ID, text);
    set(r, JOB_SPACE, j->space);
    const int is_service = j->serves || j->watches;
    const char *kind = is_service                                  ? "deployment"
                       : j->key && strcmp(j->kind, "indexed") != 0 ? j->kind
                       : j->key || j->ranks == 1                   ? "job"
                                                                   : "mpijob";
    const char *ending = strcmp(kind, "jobset") == 0     ? "-rank-0"
                         : strcmp(kind, "trainjob") == 0 ? "-node-0"
                         : strcmp(kind, "mpijob") == 0   ? "-launcher"
                                                         : "";
    set(r, JOB_KIND, kind);
    snprintf(text, sizeof text, "kubectl logs %s%s%s%s/%s%s", j->space ? "-n " : "",
             j->space ? j->space : "", j->space ? " " : "", is_service ? "deployment" : "job",
             j->name, ending);
    set(r, JOB_LOG, text);
    return -1;
}

static int give_to_background(const char *file, const char *folder, job_record *r) {
    char *log = job_path(folder, r, ".log"), *ended = job_path(folder, r, ".ended");
    const char *argv[] = {"bash", file, NULL};
    char number[32];
    int code = -1;
    if (!log || !ended || setenv("QUERN_ENDED", ended, 1) != 0) {
        code = message_fail(QN_MEMORY, "out of memory", "", "");
    } else {
        pid_t process = program_leave(argv, log);
        if (process < 0)
            code = errno == ENOENT ? no_program("bash", "install it; the job's script needs it")
                                   : message_fail(QN_IO, strerror(errno), log, "");
        snprintf(number, sizeof number, "%ld", (long)process);
        set(r, JOB_PROCESS, number);
        snprintf(number, sizeof number, "%llu", program_began(process));
        set(r, JOB_BEGAN, number);
        set(r, JOB_LOG, log);
    }
    free(log);
    free(ended);
    return code;
}

/* Submits the file to the engine, with interruptions blocked. While an engine's command runs, an
 * interruption removes the file; once the engine has the job, it waits until the job is
 * recorded. */
static int give(const submit_flags *f, const making *m, const char *file, const char *folder,
                job_record *r) {
    if (f->local)
        return give_to_background(file, folder, r);
    interrupt_removes(file, NULL);
    interrupt_release();
    const int code = f->slurm ? give_to_slurm(file, folder, m, r) : give_to_kubernetes(file, m, r);
    interrupt_hold();
    return code;
}

static void tell(const making *m, const submit_flags *f, const job_record *r) {
    if (f->json) {
        json_begin("submitted");
        for (int i = 0; i < JOB_FIELDS; i++)
            if (r->text[i])
                json_text(job_field_names[i], r->text[i]);
        json_end();
        return;
    }
    printf("submitted %s job %s (%s)\n", m->j.engine, r->text[JOB_ID], m->j.name);
    if (!m->j.serves && !m->j.watches)
        printf("  writes   %s\n", m->j.result);
    printf("  log      %s\n", r->text[JOB_LOG]);
    if (f->slurm)
        printf("  end it   scancel %s%s%s\n", r->text[JOB_ARRAY] ? r->text[JOB_ARRAY] : "",
               r->text[JOB_ARRAY] ? " " : "", r->text[JOB_ID]);
    else if (m->j.key)
        printf(
            "  end it   kubectl delete %s%s%s%s,service,secret -l app.kubernetes.io/instance=%s\n",
            m->j.space ? "-n " : "", m->j.space ? m->j.space : "", m->j.space ? " " : "",
            r->text[JOB_KIND], m->j.name);
    else if (f->kubernetes)
        printf("  end it   kubectl delete %s%s%s/%s\n", m->j.space ? "-n " : "",
               m->j.space ? m->j.space : "", m->j.space ? " " : "", r->text[JOB_KIND]);
    else
        printf("  end it   kill %s\n", r->text[JOB_PROCESS]);
    printf("\"quern jobs\" shows its state.\n");
}

/* Renames the file by the number that the engine assigned. After a failure it keeps its first name,
 * which is harmless. */
static void rename_file(const char *folder, const job_record *r, const char *file,
                        const char *ending) {
    char *last = job_path(folder, r, ending);
    if (last && strcmp(last, file) != 0)
        (void)rename(file, last);
    free(last);
}

/* Writes the file, submits it and records it. */
static int submit(const submit_flags *f, const making *m, const char *text) {
    job_record r = {{NULL}};
    char stamp[40], first[64];
    time_t t = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
    snprintf(first, sizeof first, "%lld-%ld", (long long)t, (long)getpid());
    char *folder = job_folder();
    if (!folder)
        return EXIT_FAILED;
    char *command_line = format_shell(m->j.count, m->j.words, NULL, 0);
    set(&r, JOB_ENGINE, m->j.engine);
    set(&r, JOB_ID, first);
    set(&r, JOB_NAME, m->j.name);
    set(&r, JOB_SUBMITTED, stamp);
    set(&r, JOB_DIRECTORY, m->directory);
    set(&r, JOB_MODEL, m->j.result);
    set(&r, JOB_COMMAND, command_line);
    char *file = job_path(folder, &r, f->kubernetes ? ".yaml" : ".sh");
    int code = -1;
    interrupt_hold(); /* until the engine is called, and from its answer on */
    if (!file || job_write(file, text) != 0)
        code = message_fail(QN_IO, strerror(errno), file ? file : "",
                            "let QUERN_JOBS name a folder that can be written");
    else
        code = give(f, m, file, folder, &r);
    interrupt_removes(NULL, NULL);
    if (code >= 0 && file)
        unlink(file);
    if (code < 0)
        rename_file(folder, &r, file, f->kubernetes ? ".yaml" : ".sh");
    if (code < 0)
        code = job_remember(folder, &r);
    interrupt_release();
    if (code < 0)
        tell(m, f, &r);
    job_record_free(&r);
    free(command_line);
    free(file);
    free(folder);
    return code < 0 ? EXIT_DONE : code;
}

static int run(const command *self, int argc, char **argv) {
    submit_flags f = {
        .ranks = 1, .launcher = "auto", .kind = "auto", .claim = "quern-data", .mount = "/data"};
    arguments given;
    making m = {.words = NULL};
    int begin;
    const int own = options_before(submit_options, argc - 2, argv + 2, &begin);
    int code = options_read(self, own, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    code = check_flags(self, &f, &given);
    if (code < 0)
        code = make_job(&f, argv + 2 + begin, argc - 2 - begin, &m);
    if (code < 0) {
        char *text = job_text(&m.j, f.slurm        ? job_write_slurm
                                    : f.kubernetes ? job_write_kubernetes
                                                   : job_write_local);
        if (!text)
            code = message_fail(QN_MEMORY, "out of memory", "", "");
        else if (f.dry_run)
            fputs(text, stdout);
        else
            code = submit(&f, &m, text);
        free(text);
    }
    free(m.words);
    job_options_free(&m.run.kept);
    return code < 0 ? EXIT_DONE : code;
}

const command submit_command = {
    .name = "submit",
    .summary = "train or run as a job of Slurm, Kubernetes or this machine",
    .usage = "quern submit --slurm|--kubernetes|--local [options] COMMAND ARGUMENTS",
    .about =
        "Takes the command line of \"quern\ttrain\", \"quern\trun\" or \"quern\tsearch\" and "
        "submits it as a job. A "
        "job that a time limit, a failed node or a kill has stopped continues from its last "
        "checkpoint. The files are those that the command itself would write. The options "
        "--checkpoint MODEL.checkpoint and --resume are added unless they are given; for a kernel, "
        "--checkpoint NAME.checkpoint. A search becomes an array of Slurm's jobs, and one more "
        "that "
        "merges their results. With --kubernetes also \"quern\tserve\" and "
        "\"quern\twatch\", which do not end: as a Deployment, and a Service of the server.\n\n"
        "\"quern\tjobs\" lists what was submitted; docs/cluster.md has the details.",
    .options = submit_options,
    .examples = "quern submit --local train --data train.csv -o m.safetensors\n"
                "quern submit --slurm --ranks 4 --time 60 train --data t.csv -o m.safetensors\n"
                "quern submit --slurm --dry-run train -o m.safetensors\n"
                "quern submit --slurm --ranks 4 run heat.toml\n"
                "quern submit --slurm --array 8 --cpus 4 search --data t.csv --run-dir tries \\\n"
                "      --grid \"lr 0.01,0.1 batch 32,64\"\n"
                "quern submit --kubernetes --ranks 4 --image quern \\\n"
                "      train --data t.csv -o m.safetensors\n"
                "quern submit --kubernetes --kind jobset --ranks 4 --image quern \\\n"
                "      train --data t.csv -o m.safetensors\n"
                "quern submit --kubernetes --image quern --dry-run serve models --insecure",
    .run = run};
