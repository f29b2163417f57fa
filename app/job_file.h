/* The records of submitted jobs: one small JSON file each, in $QUERN_JOBS, or quern/jobs in
 * $XDG_STATE_HOME or ~/.local/state. Next to it are the script or manifest, the log of a local job,
 * and in ENGINE-ID.ended the exit code of a job that has ended. */
#ifndef APP_JOB_FILE_H
#define APP_JOB_FILE_H

#include <stddef.h>

typedef enum job_field {
    JOB_ENGINE,    /* "local", "slurm", "kubernetes" */
    JOB_ID,        /* of the engine */
    JOB_NAME,      /* given by the user */
    JOB_SPACE,     /* Kubernetes: the namespace */
    JOB_KIND,      /* Kubernetes: "job", "mpijob", "jobset", "trainjob", "deployment" */
    JOB_SUBMITTED, /* "2026-11-21T12:00:00Z" */
    JOB_DIRECTORY, /* where it was submitted */
    JOB_MODEL,     /* the file to be written */
    JOB_LOG,       /* its log, or how to show it */
    JOB_COMMAND,   /* the command line of train */
    JOB_PROCESS,   /* local: its process */
    JOB_ARRAY,     /* of a search: the array of its parts */
    JOB_BEGAN,     /* local: program_began of it */
    JOB_FIELDS
} job_field;

extern const char *const job_field_names[JOB_FIELDS];

/* Texts; unknown ones are NULL. */
typedef struct job_record {
    char *text[JOB_FIELDS];
} job_record;

void job_record_free(job_record *record);

/* The folder, created if missing: a text that the caller frees. NULL after a message. */
char *job_folder(void);

/* "FOLDER/ENGINE-ID.json", or with another ending: a text that the caller frees, or NULL. */
char *job_path(const char *folder, const job_record *record, const char *ending);

/* Returns -1, or an exit code after a message. */
int job_remember(const char *folder, const job_record *record);

/* All records, oldest first; *count of them, in an array that job_list_free frees. Other files are
 * ignored. Returns -1, or an exit code after a message. */
int job_list(const char *folder, job_record **list, size_t *count);
void job_list_free(job_record *list, size_t count);

/* A whole text file of at most `limit` bytes, which the caller frees; NULL if there is none. */
char *job_read(const char *path, size_t limit);
/* Writes a file atomically. Returns 0, or -1 with errno set. */
int job_write(const char *path, const char *text);

#endif
