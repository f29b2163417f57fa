/* Parts of manifests for Kubernetes, which several kinds of jobs have. */
#ifndef APP_JOB_YAML_H
#define APP_JOB_YAML_H

#include "job.h"

/* A line `key: "text"` with that indentation. */
void job_yaml_line(FILE *to, int indent, const char *key, const char *text);
/* A list of texts: `first` up to its NULL, then `rest`. */
void job_yaml_list(FILE *to, int indent, const char *key, const char *const *first,
                   char *const *rest, int count);
/* The resources of a rank. Requests and limits are equal, so that the pod is evicted last. */
void job_yaml_resources(const job *j, FILE *to, int indent);
/* The folder that all pods share. */
void job_yaml_mounts(const job *j, FILE *to, int indent);
void job_yaml_volumes(const job *j, FILE *to, int indent);
/* Up to the line `labels:` and what is in it. */
void job_yaml_head(const job *j, FILE *to, const char *version, const char *kind);
/* Hints that pods should be near one another, in the metadata of a pod and in its spec. */
void job_yaml_near(const job *j, FILE *to, int indent);
void job_yaml_affinity(const job *j, FILE *to, int indent);

/* In job_indexed.c: ranks that meet by a name of a service: an indexed Job, a JobSet, a TrainJob.
 */
void job_write_indexed(const job *j, FILE *to);

#endif
