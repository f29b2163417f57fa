#include "store/write/write_kind.h"
#include <string.h>

static const qn__write_kind *const kinds[] = {&qn__write_s3,      &qn__write_s3a,
                                              &qn__write_gs,      &qn__write_hdfs,
                                              &qn__write_webhdfs, &qn__write_swebhdfs};

const qn__write_kind *qn__write_kind_of(const char *address, qn_error *err) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(address, kinds[i]->scheme, strlen(kinds[i]->scheme)) == 0)
            return kinds[i];
    qn__fail(err, QN_UNSUPPORTED, "addresses of this kind can only be read");
    qn__at(err, "%.*s", (int)strcspn(address, "?#"), address);
    qn__remedy(err, QN_UNSUPPORTED, "write to a file, or to s3://, gs:// or hdfs://");
    return NULL;
}
