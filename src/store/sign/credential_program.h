/* Credentials that a program prints: credential_process of a profile. */
#ifndef QN_STORE_SIGN_CREDENTIAL_PROGRAM_H
#define QN_STORE_SIGN_CREDENTIAL_PROGRAM_H

#include "store/sign/credentials.h"

/* *found is 0 where the profile has no such setting. The program runs in a shell; what it prints to
 * the standard error is not touched. Fails with QN_IO (it fails, hangs or prints something else) or
 * QN_MEMORY. */
qn_status qn__credentials_of_program(const char *profile, qn__credentials *key, int *found,
                                     qn_error *err);

#endif
