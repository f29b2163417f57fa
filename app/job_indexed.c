/* Manifests of ranks without MPI. Each pod has an index, which is the number of its rank. The ranks
 * meet at the pod with index 0, by a name that a headless service or JobSet gives it, and get their
 * key from a Secret. */

#include "job_yaml.h"
#include <inttypes.h>
#include <string.h>

enum { PORT = 29400 };

/* The pod of rank 0, as the others reach it. */
static void put_meeting(const job *j, char place[200]) {
    const char *set = strcmp(j->kind, "jobset") == 0     ? "-rank-0"
                      : strcmp(j->kind, "trainjob") == 0 ? "-node-0"
                                                         : "";
    snprintf(place, 200, "%s%s-0.%s:%d", j->name, set, j->name, PORT);
}

static void put_secret(const job *j, FILE *to) {
    char name[80];
    snprintf(name, sizeof name, "%s-key", j->name);
    fprintf(to, "# Only processes with this key can join the run.\n"
                "apiVersion: v1\nkind: Secret\nmetadata:\n");
    job_yaml_line(to, 2, "name", name);
    if (j->space)
        job_yaml_line(to, 2, "namespace", j->space);
    fprintf(to, "  labels:\n    app.kubernetes.io/name: quern\n");
    job_yaml_line(to, 4, "app.kubernetes.io/instance", j->name);
    fprintf(to, "stringData:\n");
    job_yaml_line(to, 2, "key", j->key);
    fprintf(to, "---\n");
}

static void put_environment(const job *j, FILE *to, int indent) {
    char name[80];
    snprintf(name, sizeof name, "%s-key", j->name);
    fprintf(to, "%*senv:\n%*s- name: QUERN_KEY\n%*svalueFrom:\n%*ssecretKeyRef:\n%*skey: key\n",
            indent, "", indent, "", indent + 2, "", indent + 4, "", indent + 6, "");
    job_yaml_line(to, indent + 6, "name", name);
}

static void put_command(const job *j, FILE *to, int indent) {
    char place[200], ranks[24];
    put_meeting(j, place);
    snprintf(ranks, sizeof ranks, "%" PRIu64, j->ranks);
    const char *command[] = {"quern-rank", j->result, place, ranks, j->program, NULL};
    job_yaml_list(to, indent, "command", command, NULL, 0);
    job_yaml_list(to, indent, "args", (const char *const[]){NULL}, j->words, j->count);
}

/* The spec of a Job whose pods are ranks. */
static void put_job_spec(const job *j, FILE *to, int indent) {
    const int n = indent;
    fprintf(to,
            "%*scompletionMode: Indexed\n"
            "%*scompletions: %" PRIu64 "\n"
            "%*sparallelism: %" PRIu64 "\n"
            "%*s# The others go on without a pod that fails. It is started again, and takes part\n"
            "%*s# when all start again, from their checkpoint.\n"
            "%*sbackoffLimitPerIndex: 20\n"
            "%*ssuccessPolicy:\n"
            "%*srules:\n"
            "%*s- succeededCount: 1 # a rank ends with 0 when the result is written\n"
            "%*spodFailurePolicy:\n"
            "%*srules:\n"
            "%*s- action: FailJob # a wrong option stays wrong\n"
            "%*sonExitCodes:\n"
            "%*soperator: In\n"
            "%*svalues: [2]\n"
            "%*s- action: Ignore # evicted, or its node was drained: counts as no failure\n"
            "%*sonPodConditions:\n"
            "%*s- type: DisruptionTarget\n"
            "%*sstatus: \"True\"\n"
            "%*stemplate:\n",
            n, "", n, "", j->ranks, n, "", j->ranks, n, "", n, "", n, "", n, "", n + 2, "", n + 2,
            "", n, "", n + 2, "", n + 2, "", n + 4, "", n + 6, "", n + 6, "", n + 2, "", n + 4, "",
            n + 4, "", n + 6, "", n, "");
    job_yaml_near(j, to, n + 2);
    fprintf(to, "%*sspec:\n%*srestartPolicy: Never\n", n + 2, "", n + 4, "");
    if (strcmp(j->kind, "indexed") == 0)
        job_yaml_line(to, n + 4, "subdomain", j->name);
    fprintf(to,
            "%*s# Time to finish a step and write a checkpoint.\n"
            "%*sterminationGracePeriodSeconds: 120\n",
            n + 4, "", n + 4, "");
    job_yaml_affinity(j, to, n + 4);
    fprintf(to, "%*scontainers:\n%*s- name: quern\n", n + 4, "", n + 4, "");
    job_yaml_line(to, n + 6, "image", j->image);
    job_yaml_line(to, n + 6, "workingDir", j->mount);
    put_command(j, to, n + 6);
    put_environment(j, to, n + 6);
    job_yaml_resources(j, to, n + 6);
    job_yaml_mounts(j, to, n + 6);
    job_yaml_volumes(j, to, n + 4);
}

/* Gives pods the names by which they meet, also before they are ready. */
static void put_service(const job *j, FILE *to) {
    job_yaml_head(j, to, "v1", "Service");
    fprintf(to, "spec:\n"
                "  clusterIP: None\n"
                "  publishNotReadyAddresses: true\n"
                "  selector:\n");
    job_yaml_line(to, 4, "batch.kubernetes.io/job-name", j->name);
    fprintf(to, "---\n");
}

static void put_job_set(const job *j, FILE *to) {
    job_yaml_head(j, to, "jobset.x-k8s.io/v1alpha2", "JobSet");
    fprintf(to, "spec:\n"
                "  network:\n"
                "    enableDNSHostnames: true\n"
                "    publishNotReadyAddresses: true\n"
                "  failurePolicy:\n"
                "    maxRestarts: 20 # of all pods, from the checkpoint\n"
                "    rules:\n"
                "    - name: wrong-option\n"
                "      action: FailJobSet\n"
                "      onJobFailureReasons: [PodFailurePolicy]\n"
                "  replicatedJobs:\n"
                "  - name: rank\n"
                "    template:\n"
                "      spec:\n");
    put_job_spec(j, to, 8);
}

/* The pods are those of the runtime "quern" (deploy/kubernetes/training_runtime.yaml). */
static void put_train_job(const job *j, FILE *to) {
    job_yaml_head(j, to, "trainer.kubeflow.org/v1alpha1", "TrainJob");
    fprintf(to,
            "spec:\n"
            "  runtimeRef:\n"
            "    name: quern # deploy/kubernetes/training_runtime.yaml\n"
            "  trainer:\n"
            "    numNodes: %" PRIu64 "\n",
            j->ranks);
    job_yaml_line(to, 4, "image", j->image);
    put_command(j, to, 4);
    put_environment(j, to, 4);
    fprintf(to, "    resourcesPerNode:\n");
    static const char *const parts[] = {"requests", "limits"};
    for (int i = 0; i < 2; i++) {
        fprintf(to, "      %s:\n        cpu: %" PRIu64 "\n", parts[i], j->cpus);
        job_yaml_line(to, 8, "memory", j->memory);
        if (j->gpus)
            fprintf(to, "        nvidia.com/gpu: %" PRIu64 "\n", j->gpus);
    }
}

void job_write_indexed(const job *j, FILE *to) {
    put_secret(j, to);
    if (strcmp(j->kind, "jobset") == 0) {
        put_job_set(j, to);
    } else if (strcmp(j->kind, "trainjob") == 0) {
        put_train_job(j, to);
    } else {
        put_service(j, to);
        job_yaml_head(j, to, "batch/v1", "Job");
        fprintf(to, "spec:\n");
        put_job_spec(j, to, 2);
    }
}
