/* Texts are written as JSON strings, which are valid YAML for any content. */

#include "job_yaml.h"
#include <inttypes.h>
#include <string.h>

static void put_text(FILE *to, const char *text) {
    fputc('"', to);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(to, "\\u%04x", *p);
        else
            fputc(*p, to);
    }
    fputc('"', to);
}

void job_yaml_line(FILE *to, int indent, const char *key, const char *text) {
    fprintf(to, "%*s%s: ", indent, "", key);
    put_text(to, text);
    fputc('\n', to);
}

void job_yaml_list(FILE *to, int indent, const char *key, const char *const *first,
                   char *const *rest, int count) {
    fprintf(to, "%*s%s:\n", indent, "", key);
    for (; *first; first++) {
        fprintf(to, "%*s- ", indent, "");
        put_text(to, *first);
        fputc('\n', to);
    }
    for (int i = 0; i < count; i++) {
        fprintf(to, "%*s- ", indent, "");
        put_text(to, rest[i]);
        fputc('\n', to);
    }
}

void job_yaml_resources(const job *j, FILE *to, int indent) {
    static const char *const parts[] = {"requests", "limits"};
    fprintf(to, "%*sresources:\n", indent, "");
    for (int i = 0; i < 2; i++) {
        fprintf(to, "%*s%s:\n", indent + 2, "", parts[i]);
        fprintf(to, "%*scpu: %" PRIu64 "\n", indent + 4, "", j->cpus);
        job_yaml_line(to, indent + 4, "memory", j->memory);
        if (j->gpus)
            fprintf(to, "%*snvidia.com/gpu: %" PRIu64 "\n", indent + 4, "", j->gpus);
    }
}

void job_yaml_mounts(const job *j, FILE *to, int indent) {
    fprintf(to, "%*svolumeMounts:\n", indent, "");
    fprintf(to, "%*s- name: data\n", indent, "");
    job_yaml_line(to, indent + 2, "mountPath", j->mount);
}

void job_yaml_volumes(const job *j, FILE *to, int indent) {
    fprintf(to, "%*svolumes:\n", indent, "");
    fprintf(to, "%*s- name: data\n", indent, "");
    fprintf(to, "%*spersistentVolumeClaim:\n", indent + 2, "");
    job_yaml_line(to, indent + 4, "claimName", j->claim);
}

void job_yaml_head(const job *j, FILE *to, const char *version, const char *kind) {
    fprintf(to, "apiVersion: %s\nkind: %s\nmetadata:\n", version, kind);
    job_yaml_line(to, 2, "name", j->name);
    if (j->space)
        job_yaml_line(to, 2, "namespace", j->space);
    fprintf(to, "  labels:\n    app.kubernetes.io/name: quern\n");
    if (j->serves || j->watches || j->key)
        job_yaml_line(to, 4, "app.kubernetes.io/instance", j->name);
    if (j->queue && strcmp(kind, "Service") != 0)
        job_yaml_line(to, 4, "kueue.x-k8s.io/queue-name", j->queue);
}

void job_yaml_near(const job *j, FILE *to, int indent) {
    if (!j->topology || !j->queue)
        return;
    fprintf(to, "%*smetadata:\n%*sannotations:\n", indent, "", indent + 2, "");
    job_yaml_line(to, indent + 4, "kueue.x-k8s.io/podset-preferred-topology", j->topology);
}

/* Without Kueue the scheduler itself prefers nodes near one another. */
void job_yaml_affinity(const job *j, FILE *to, int indent) {
    if (!j->topology || j->queue)
        return;
    fprintf(to,
            "%*saffinity:\n"
            "%*spodAffinity:\n"
            "%*spreferredDuringSchedulingIgnoredDuringExecution:\n"
            "%*s- weight: 100\n"
            "%*spodAffinityTerm:\n",
            indent, "", indent + 2, "", indent + 4, "", indent + 4, "", indent + 6, "");
    job_yaml_line(to, indent + 8, "topologyKey", j->topology);
    fprintf(to, "%*slabelSelector:\n%*smatchLabels:\n", indent + 8, "", indent + 10, "");
    const int is_set = j->kind && strcmp(j->kind, "jobset") == 0;
    job_yaml_line(to, indent + 12,
                  is_set ? "jobset.sigs.k8s.io/jobset-name" : "batch.kubernetes.io/job-name",
                  j->name);
}
