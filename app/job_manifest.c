/* The manifest of a job for Kubernetes: an MPIJob of the MPI operator (kubeflow.org/v2beta1) for
 * several ranks, a plain Job for one, a Deployment for serve and watch. */

#include "job_yaml.h"
#include <inttypes.h>

static void put_plain_job(const job *j, FILE *to) {
    const char *command[] = {j->program, NULL};
    job_yaml_head(j, to, "batch/v1", "Job");
    fprintf(to,
            "spec:\n"
            "  # A pod that fails is replaced by another, which continues from the checkpoint.\n"
            "  backoffLimit: 20\n"
            "  podFailurePolicy:\n"
            "    rules:\n"
            "    - action: FailJob # a wrong option stays wrong\n"
            "      onExitCodes:\n"
            "        operator: In\n"
            "        values: [2]\n"
            "    - action: Ignore # evicted, or its node was drained: counts as no failure\n"
            "      onPodConditions:\n"
            "      - type: DisruptionTarget\n"
            "        status: \"True\"\n"
            "  template:\n"
            "    spec:\n"
            "      restartPolicy: Never\n"
            "      # Time to finish a step and write a checkpoint.\n"
            "      terminationGracePeriodSeconds: 120\n"
            "      containers:\n"
            "      - name: quern\n");
    job_yaml_line(to, 8, "image", j->image);
    job_yaml_line(to, 8, "workingDir", j->mount);
    job_yaml_list(to, 8, "command", command, NULL, 0);
    job_yaml_list(to, 8, "args", (const char *const[]){NULL}, j->words, j->count);
    job_yaml_resources(j, to, 8);
    job_yaml_mounts(j, to, 8);
    job_yaml_volumes(j, to, 6);
}

static void put_replica(const job *j, FILE *to, const char *role, uint64_t count,
                        const char *policy) {
    fprintf(to,
            "    %s:\n"
            "      replicas: %" PRIu64 "\n"
            "      restartPolicy: %s\n"
            "      template:\n"
            "        spec:\n"
            "          terminationGracePeriodSeconds: 120\n"
            "          containers:\n"
            "          - name: quern\n",
            role, count, policy);
    job_yaml_line(to, 12, "image", j->image);
    job_yaml_line(to, 12, "workingDir", j->mount);
}

static void put_mpi_job(const job *j, FILE *to) {
    const char *command[] = {"quern-mpirun", j->result, j->program, NULL};
    job_yaml_head(j, to, "kubeflow.org/v2beta1", "MPIJob");
    fprintf(to,
            "spec:\n"
            "  slotsPerWorker: 1 # one rank a pod: it takes all cores and GPUs of the pod\n"
            "  mpiImplementation: OpenMPI\n"
            "  launcherCreationPolicy: WaitForWorkersReady\n"
            "  runPolicy:\n"
            "    cleanPodPolicy: Running\n"
            "    backoffLimit: 20\n"
            "  mpiReplicaSpecs:\n"
            "    # mpirun. It ends when a worker's pod fails. It is then started again, and the "
            "run continues\n"
            "    # from its checkpoint as soon as the operator has brought the worker back.\n");
    put_replica(j, to, "Launcher", 1, "OnFailure");
    job_yaml_list(to, 12, "command", command, NULL, 0);
    job_yaml_list(to, 12, "args", (const char *const[]){NULL}, j->words, j->count);
    job_yaml_mounts(j, to, 12);
    job_yaml_volumes(j, to, 10);
    fprintf(to, "    # The ranks; the operator starts sshd in them, through which mpirun comes.\n");
    put_replica(j, to, "Worker", j->ranks, "OnFailure");
    job_yaml_resources(j, to, 12);
    job_yaml_mounts(j, to, 12);
    job_yaml_volumes(j, to, 10);
}

/* ---------------------------------------------------------------- what does not end */

/* The pods of this name. */
static void put_selector(const job *j, FILE *to, int indent) {
    job_yaml_line(to, indent, "app.kubernetes.io/instance", j->name);
}

static void put_probe(const job *j, FILE *to, const char *kind, const char *path, int period,
                      int failures) {
    fprintf(to, "        %s:\n          httpGet:\n            path: %s\n            port: %u\n",
            kind, path, j->serve_port);
    if (j->serve_tls)
        fprintf(to, "            scheme: HTTPS\n");
    fprintf(to, "          periodSeconds: %d\n          failureThreshold: %d\n", period, failures);
}

static void put_server(const job *j, FILE *to) {
    fprintf(to, "        ports:\n        - containerPort: %u\n", j->serve_port);
    put_probe(j, to, "startupProbe", "/readyz", 2, 150);
    put_probe(j, to, "readinessProbe", "/readyz", 5, 2);
    put_probe(j, to, "livenessProbe", "/healthz", 10, 3);
    fprintf(to, "        lifecycle:\n"
                "          preStop: # until all nodes know that this pod takes no more requests\n"
                "            exec:\n"
                "              command: [\"sleep\", \"5\"]\n");
}

static void put_port(const job *j, FILE *to) {
    fprintf(to, "---\n");
    job_yaml_head(j, to, "v1", "Service");
    fprintf(to, "spec:\n  selector:\n");
    put_selector(j, to, 4);
    fprintf(to, "  ports:\n  - port: %u\n", j->serve_port);
}

static void put_deployment(const job *j, FILE *to) {
    const char *command[] = {j->program, NULL};
    job_yaml_head(j, to, "apps/v1", "Deployment");
    fprintf(to, "spec:\n  replicas: 1\n  selector:\n    matchLabels:\n");
    put_selector(j, to, 6);
    if (j->watches)
        fprintf(to, "  strategy:\n    type: Recreate # two would compute the same answers\n");
    fprintf(to, "  template:\n    metadata:\n      labels:\n");
    put_selector(j, to, 8);
    fprintf(to, "    spec:\n"
                "      # Time for requests and answers in progress.\n"
                "      terminationGracePeriodSeconds: 60\n"
                "      containers:\n"
                "      - name: quern\n");
    job_yaml_line(to, 8, "image", j->image);
    job_yaml_line(to, 8, "workingDir", j->mount);
    job_yaml_list(to, 8, "command", command, NULL, 0);
    job_yaml_list(to, 8, "args", (const char *const[]){NULL}, j->words, j->count);
    if (j->serves)
        put_server(j, to);
    job_yaml_resources(j, to, 8);
    job_yaml_mounts(j, to, 8);
    job_yaml_volumes(j, to, 6);
    if (j->serves)
        put_port(j, to);
}

void job_write_kubernetes(const job *j, FILE *to) {
    if (j->serves || j->watches)
        put_deployment(j, to);
    else if (j->key)
        job_write_indexed(j, to);
    else if (j->ranks == 1)
        put_plain_job(j, to);
    else
        put_mpi_job(j, to);
}
