/* quern jobs: the submitted jobs and their states. */

#include "command.h"
#include "job_file.h"
#include "jsonline.h"
#include "message.h"
#include "output.h"
#include "plain.h"
#include "program.h"
#include "shared_rows.h"
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct jobs_flags {
    int forget, json;
} jobs_flags;

#define AT(member) .place = offsetof(jobs_flags, member)

static const option jobs_options[] = {
    {.heading = "Options",
     ROW_FLAG("forget", forget,
              "remove jobs that have ended from the list, with their scripts and local logs")},
    {ROW_JSON(json, "one JSON object a line on stdout: job")},
    {.name = NULL}};

/* `state` is one of: queued, running, done, failed, stopped, lost, unknown. */
typedef struct job_state {
    const char *state;
    char detail[160]; /* the engine's own description */
} job_state;

static int has_ended(const job_state *s) {
    return strcmp(s->state, "done") == 0 || strcmp(s->state, "failed") == 0 ||
           strcmp(s->state, "stopped") == 0 || strcmp(s->state, "lost") == 0;
}

/* The exit code recorded by the job, or -1. */
static int left_code(const char *folder, const job_record *r) {
    char *path = job_path(folder, r, ".ended");
    char *text = path ? job_read(path, 64) : NULL;
    uint64_t code = 0;
    if (text)
        text[strcspn(text, "\r\n")] = '\0';
    int known = text && read_count(text, &code) && code <= 255;
    free(text);
    free(path);
    return known ? (int)code : -1;
}

static void state_by_code(job_state *s, int code) {
    s->state = code == EXIT_DONE ? "done" : code == EXIT_INTERRUPTED ? "stopped" : "failed";
    if (code != EXIT_DONE)
        snprintf(s->detail, sizeof s->detail, "exit code %d", code);
}

static void query_local(const char *folder, const job_record *r, job_state *s) {
    uint64_t process = 0, began = 0;
    int known = r->text[JOB_PROCESS] && read_count(r->text[JOB_PROCESS], &process) &&
                r->text[JOB_BEGAN] && read_count(r->text[JOB_BEGAN], &began);
    int alive = known && began > 0 && program_began((pid_t)process) == began;
    int code = left_code(folder, r);
    if (code >= 0) {
        state_by_code(s, code);
    } else if (alive) {
        s->state = "running";
        snprintf(s->detail, sizeof s->detail, "process %llu", (unsigned long long)process);
    } else {
        s->state = "lost";
        snprintf(s->detail, sizeof s->detail, "it was killed, or the machine was restarted");
    }
}

/* Slurm's states, about two dozen, mapped to those for the user. */
static const char *state_of_slurm(const char *word) {
    static const struct {
        const char *word, *state;
    } words[] = {{"PENDING", "queued"},     {"REQUEUE", "queued"},    {"SUSPENDED", "queued"},
                 {"CONFIGURING", "queued"}, {"RUNNING", "running"},   {"COMPLETING", "running"},
                 {"COMPLETED", "done"},     {"CANCELLED", "stopped"}, {"PREEMPTED", "stopped"},
                 {"RESIZING", "running"},   {"SIGNALING", "running"}, {"STAGE_OUT", "running"},
                 {"SPECIAL_EXIT", "queued"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(word, words[i].word, strlen(words[i].word)) == 0)
            return words[i].state;
    return "failed"; /* FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, BOOT_FAIL, DEADLINE, ... */
}

/* The first word of a program's output, 0 if there is none. */
static int query_word(const char *const *argv, char *word, size_t size) {
    program_result r;
    if (program_run(argv, 10, &r) != PROGRAM_ENDED || r.code != 0)
        return 0;
    snprintf(word, size, "%.*s", (int)strcspn(r.out, " \r\n+"), r.out);
    return *word != '\0';
}

static void query_slurm(const char *folder, const job_record *r, job_state *s) {
    const char *id = r->text[JOB_ID];
    const char *queue[] = {"squeue", "-h", "-t", "all", "-o", "%T", "-j", id, NULL};
    const char *account[] = {"sacct", "-n", "-X", "-P", "-o", "State", "-j", id, NULL};
    char word[40];
    int code;
    /* An exit code recorded by the job takes precedence: Slurm forgets a job after some minutes. */
    if (query_word(queue, word, sizeof word)) {
        s->state = state_of_slurm(word);
        snprintf(s->detail, sizeof s->detail, "%s", word);
        for (char *p = s->detail; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        if (!has_ended(s))
            return;
    }
    if ((code = left_code(folder, r)) >= 0) {
        state_by_code(s, code);
    } else if (!s->detail[0] && query_word(account, word, sizeof word)) {
        s->state = state_of_slurm(word);
        snprintf(s->detail, sizeof s->detail, "%s, by sacct", word);
    } else if (!s->detail[0]) {
        snprintf(s->detail, sizeof s->detail,
                 "Slurm does not know it, or does not answer: run \"squeue\"");
    }
}

static void query_kubernetes(const job_record *r, job_state *s) {
    const char *argv[12] = {"kubectl", "get"};
    int n = 2;
    program_result answer;
    argv[n++] = r->text[JOB_KIND] ? r->text[JOB_KIND] : "job";
    argv[n++] = r->text[JOB_NAME] ? r->text[JOB_NAME] : r->text[JOB_ID];
    if (r->text[JOB_SPACE]) {
        argv[n++] = "-n";
        argv[n++] = r->text[JOB_SPACE];
    }
    argv[n++] = "--request-timeout=8s";
    argv[n++] = "-o";
    argv[n] = "jsonpath={range .status.conditions[?(@.status==\"True\")]}{.type} {end}";
    if (program_run(argv, 10, &answer) != PROGRAM_ENDED || answer.code != 0) {
        answer.err[strcspn(answer.err, "\n")] = '\0';
        snprintf(s->detail, sizeof s->detail, "%.150s",
                 answer.end == PROGRAM_ENDED ? answer.err : "kubectl does not answer");
        if (strstr(answer.err, "NotFound"))
            s->state = "lost";
        return;
    }
    int done = strstr(answer.out, "Complete") || strstr(answer.out, "Succeeded");
    s->state = done                              ? "done"
               : strstr(answer.out, "Failed")    ? "failed"
               : strstr(answer.out, "Suspended") ? "stopped"
               : strstr(answer.out, "Running")   ? "running"
               : strcmp(argv[2], "mpijob") == 0  ? "queued"
                                                 : "running";
    snprintf(s->detail, sizeof s->detail, "%.150s", answer.out);
}

static job_state query(const char *folder, const job_record *r) {
    job_state s = {.state = "unknown", .detail = ""};
    const char *engine = r->text[JOB_ENGINE];
    if (strcmp(engine, "local") == 0)
        query_local(folder, r, &s);
    else if (strcmp(engine, "slurm") == 0)
        query_slurm(folder, r, &s);
    else if (strcmp(engine, "kubernetes") == 0)
        query_kubernetes(r, &s);
    else
        snprintf(s.detail, sizeof s.detail, "another version of Quern submitted it");
    return s;
}

static void print_text(const char *text, int width) {
    plain_cell(text ? text : "", INT_MAX, width);
}

static void print_job(const job_record *r, const job_state *s) {
    char id[96];
    snprintf(id, sizeof id, "%s %s", r->text[JOB_ENGINE], r->text[JOB_ID]);
    print_text(id, 26);
    putchar(' ');
    print_text(r->text[JOB_NAME], 16);
    putchar(' ');
    print_text(s->state, 8);
    putchar(' ');
    print_text(r->text[JOB_SUBMITTED], 21);
    putchar(' ');
    print_text(r->text[JOB_MODEL], 0);
    if (s->detail[0]) {
        fputs("\n  ", stdout);
        print_text(s->detail, 0);
    }
    if (r->text[JOB_LOG]) {
        fputs(s->detail[0] ? "; log: " : "\n  log: ", stdout);
        print_text(r->text[JOB_LOG], 0);
    }
    putchar('\n');
}

static void job_event(const job_record *r, const job_state *s) {
    json_begin("job");
    for (int i = 0; i < JOB_FIELDS; i++)
        if (r->text[i])
            json_text(job_field_names[i], r->text[i]);
    json_text("state", s->state);
    json_text("detail", s->detail);
    json_end();
}

static void forget(const char *folder, const job_record *r) {
    static const char *const endings[] = {".json", ".ended", ".sh", ".yaml", ".log"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *path = job_path(folder, r, endings[i]);
        if (path)
            unlink(path);
        free(path);
    }
}

static int run(const command *self, int argc, char **argv) {
    jobs_flags f = {0};
    arguments given;
    job_record *list = NULL;
    size_t count = 0;
    int code = options_read(self, argc - 2, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    char *folder = job_folder();
    if (!folder)
        return EXIT_FAILED;
    code = job_list(folder, &list, &count);
    for (size_t i = 0; i < count && code < 0; i++) {
        job_state s = query(folder, &list[i]);
        if (f.json)
            job_event(&list[i], &s);
        else
            print_job(&list[i], &s);
        output_flush(); /* each as soon as it is known: engines may be slow */
        if (f.forget && has_ended(&s))
            forget(folder, &list[i]);
    }
    if (code < 0 && count == 0 && !f.json)
        printf("there are no jobs; \"quern submit --help\" explains how to submit one\n");
    job_list_free(list, count);
    free(folder);
    return code < 0 ? EXIT_DONE : code;
}

const command jobs_command = {
    .name = "jobs",
    .summary = "list submitted jobs and their state",
    .usage = "quern jobs [options]",
    .about = "Lists the jobs of \"quern\tsubmit\", oldest first. Slurm, Kubernetes or this machine "
             "is asked for the state: queued, running, done, failed, stopped, lost or unknown.",
    .options = jobs_options,
    .examples = "quern jobs\nquern jobs --json",
    .run = run};
