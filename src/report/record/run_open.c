#include "report/record/run_open.h"

#include "base/memory.h"
#include "data/bytes/server_address.h"
#include "report/record/store.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Where "FILE:RUN" or "postgresql://HOST/DATABASE:RUN" is cut; NULL when it is no such name. A
 * folder of that name comes first. */
static const char *cut_of(const char *run) {
    struct stat about;
    const char *cut = strrchr(run, ':');
    char path[4096];
    if (cut && qn__is_server(run)) { /* the host's port is before the name of the database */
        const char *name = strchr(strstr(run, "://") + 3, '/');
        return name && name < cut ? cut : NULL;
    }
    if (!cut || stat(run, &about) == 0 || (size_t)(cut - run) >= sizeof path)
        return NULL;
    memcpy(path, run, (size_t)(cut - run));
    path[cut - run] = '\0';
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) ? cut : NULL;
}

static qn_status read_store(const char *run, const char *cut, qn__past_run *out, qn_error *err) {
    qn__text about = {0}, metrics = {0};
    qn__store store = {0};
    char *path = qn__copy_unquoted(run, (size_t)(cut - run), 0, err);
    qn_status status = path ? qn__store_open(path, 0, &store, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn__store_get(&store, cut + 1, &about, &metrics, err);
    if (status == QN_OK)
        status = qn__past_run_parse(run, &about, &metrics, out, err);
    qn__store_close(&store);
    qn__text_release(&about);
    qn__text_release(&metrics);
    qn__free(path);
    return status;
}

/* The last part of a folder's path. */
static char *name_of(const char *folder, qn_error *err) {
    char *whole = realpath(folder, NULL);
    const char *last = whole ? strrchr(whole, '/') : NULL;
    char *name = qn__copy_text(last && last[1] ? last + 1 : folder, err);
    free(whole);
    return name;
}

qn_status qn__run_open(const char *run, qn__past_run *out, char **name, qn_error *err) {
    const char *cut = cut_of(run);
    *out = (qn__past_run){0};
    qn_status status = cut ? read_store(run, cut, out, err) : qn__past_run_read(run, out, err);
    if (status == QN_OK && name && !(*name = cut ? qn__copy_text(cut + 1, err) : name_of(run, err)))
        status = QN_MEMORY;
    return status;
}
