#include "store/sign/secret.h"
#include "store/http/wiped_memory.h"
#include <stdlib.h>
#include <string.h>

void *qn__secret_make(size_t bytes, qn_error *err) {
    void *memory = qn__wiped_make(bytes);
    if (!memory)
        qn__fail_memory(err, bytes, 1);
    return memory;
}

void qn__secret_free(void *secret) { qn__wiped_free(secret); }

const char *qn__secret_variable(const char *name) {
    char *value = getenv(name);
    if (!value || !*value)
        return NULL;
    qn__wiped_keep_from_core(value, strlen(value));
    return value;
}
