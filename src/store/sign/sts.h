/* Roles that AWS Security Token Service lets a caller assume, for a time. */
#ifndef QN_STORE_SIGN_STS_H
#define QN_STORE_SIGN_STS_H

#include "store/sign/credentials.h"

/* The credentials of the role of a profile (role_arn), asked for with those of `by`. Fails with
 * QN_INPUT (the role needs a code that a person types), QN_IO (it is refused) or QN_MEMORY. */
qn_status qn__sts_assume(const char *profile, const qn__credentials *by, qn__credentials *key,
                         qn_error *err);

/* The credentials of a role for whom the token of a file belongs to, as pods have it. The role and
 * the file are those of AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or of the profile. *found is
 * 0 where they do not name any. Fails as above. */
qn_status qn__sts_web_identity_here(const char *profile, qn__credentials *key, int *found,
                                    qn_error *err);
qn_status qn__sts_web_identity(const char *profile, qn__credentials *key, int *found,
                               qn_error *err);

#endif
