/* The files of the AWS command: ~/.aws/credentials and ~/.aws/config, or those that
 * AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name. */
#ifndef QN_STORE_SIGN_PROFILE_H
#define QN_STORE_SIGN_PROFILE_H

#include <stddef.h>

typedef enum qn__profile_file {
    QN__PROFILE_CREDENTIALS,
    QN__PROFILE_CONFIG,
    QN__PROFILE_FILES
} qn__profile_file;

/* The variable that names the profile: AWS_DEFAULT_PROFILE, else AWS_PROFILE, as the AWS command
 * has them; NULL: neither is set. */
const char *qn__profile_variable(void);
/* The profile in use: that of the variable, else "default". */
const char *qn__profile_name(void);

/* Writes a setting of the profile and returns 1; 0: the file does not have it, or it is longer. The
 * file's text was only in secret memory. */
int qn__profile_get(const char *name, qn__profile_file file, const char *key, char *value,
                    size_t capacity);
/* The same of the first file that has it. */
int qn__profile_setting(const char *name, const char *key, char *value, size_t capacity);

/* The region of the environment or the profile; 0: there is none. */
int qn__profile_region(const char *name, char *region, size_t capacity);
/* The address of a service, such as "s3": that of its variable, of AWS_ENDPOINT_URL, of the section
 * [services ...] that the profile names, or of the profile; 0: none. */
int qn__profile_endpoint(const char *name, const char *service, char *endpoint, size_t capacity);

/* The same of the section [KIND NAME] of the config file, such as [sso-session work]. */
int qn__profile_section_get(const char *kind, const char *name, const char *key, char *value,
                            size_t capacity);

/* Whether one of the files has the profile. */
int qn__profile_exists(const char *name);

/* Finds "KEY = value" in the section of a text such as these files; 0: not there. `above`: the
 * setting that it belongs to, by its larger indent; NULL: to none. */
int qn__profile_find(const char *text, const char *section, const char *above, const char *key,
                     char *value, size_t capacity);

/* A path below the home folder; 0: it is too long, or there is none. */
int qn__profile_home(const char *below, char *path, size_t capacity);

/* A file of at most 1 MiB as text in secret memory, or NULL. */
char *qn__secret_file(const char *path);

#endif
