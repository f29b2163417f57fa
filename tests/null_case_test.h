/* A call with NULL in one place, for null_test.c and its like. */
#ifndef NULL_CASE_TEST_H
#define NULL_CASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <quern/status.h>

static inline void refused(const char *function, const char *argument, qn_status status,
                           const qn_error *err) {
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s: the argument %s is NULL", function, argument);
    if (strpbrk(argument, "[>"))
        snprintf(wanted, sizeof wanted, "%s: %s%s is NULL", function,
                 strchr(argument, '[') ? "" : "the argument ", argument);
    assert_int_equal(status, QN_USAGE);
    assert_int_equal(err->status, QN_USAGE);
    assert_string_equal(err->what, wanted);
    assert_true(*err->remedy);
}

/* The call as written, once with a place for the message and once without. */
#define REFUSED(function, argument, ...)                                                           \
    do {                                                                                           \
        qn_error own, *err = &own;                                                                 \
        const qn_status status = function(__VA_ARGS__, err);                                       \
        refused(#function, argument, status, &own);                                                \
        err = NULL;                                                                                \
        assert_int_equal(function(__VA_ARGS__, err), QN_USAGE);                                    \
    } while (0)

#endif
