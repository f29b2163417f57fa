/* Credentials that a service hands out for a time: AWS IAM Identity Center (SSO), the agent of a
 * container, the metadata of an instance. */
#ifndef QN_STORE_SIGN_ROLES_H
#define QN_STORE_SIGN_ROLES_H

#include "store/sign/credentials.h"

/* A place where credentials may be. `profile` is the name of a profile. Each fills the key and sets
 * *found, or leaves it 0 where this machine or profile does not have such credentials. Fails with
 * QN_IO (the service does not answer as it should) or QN_INPUT (the login has ended). */
typedef qn_status qn__credentials_source(const char *profile, qn__credentials *key, int *found,
                                         qn_error *err);
qn__credentials_source qn__role_sso, qn__role_container, qn__role_instance;

#endif
