#include "data/table/token_names.h"
#include <string.h>

int qn__tokens_are_known(const char *text) { return strcmp(text, QN__TOKENS_IDS) == 0; }

qn_status qn__tokens_choose(const char *given, const char *expected, const char **out,
                            qn_error *err) {
    *out = given ? given : expected;
    if (*out && !qn__tokens_are_known(*out)) {
        qn__fail(err, QN_USAGE, "\"%.40s\" does not say how tokens are made", *out);
        return qn__remedy(err, QN_USAGE, "`data.tokens` is ids, for arrays of numbers of tokens");
    }
    if (!given || !expected || strcmp(given, expected) == 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the model was trained on tokens \"%s\", and \"%s\" is asked for",
             expected, given);
    return qn__remedy(err, QN_USAGE, "leave `data.tokens` out: it is known from the model");
}
