/* Memory for secrets: it is not in a core file, and it is wiped when it is released. */
#ifndef QN_STORE_SIGN_SECRET_H
#define QN_STORE_SIGN_SECRET_H

#include "base/error.h"
#include <stddef.h>

/* Zeroed bytes. NULL, with `err` set, where memory is short. */
void *qn__secret_make(size_t bytes, qn_error *err);
/* Accepts NULL. */
void qn__secret_free(void *secret);

/* The value of a variable of the environment, or NULL where it is not set or empty. The pages that
 * hold it are left out of core files from now on. */
const char *qn__secret_variable(const char *name);

#endif
