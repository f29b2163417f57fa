#include "base/argument.h"

qn_status qn__fail_null(qn_error *err, const char *function, const char *argument) {
    qn__fail(err, QN_USAGE, "%s: the argument %s is NULL", function, argument);
    return qn__remedy(err, QN_USAGE, "pass an address; the header says where NULL is allowed");
}

qn_status qn__fail_null_at(qn_error *err, const char *function, const char *array, uint32_t index,
                           const char *member) {
    qn__fail(err, QN_USAGE, "%s: %s[%u]%s is NULL", function, array, index, member);
    return qn__remedy(err, QN_USAGE, "pass an address; the header says where NULL is allowed");
}
