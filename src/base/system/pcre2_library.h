/* PCRE2's library for bytes, opened at run time: the parts of pcre2.h in use, which are stable
 * since version 10. A `code` is a pcre2_code_8 *, a `match` a pcre2_match_data_8 *. */
#ifndef QN_BASE_SYSTEM_PCRE2_LIBRARY_H
#define QN_BASE_SYSTEM_PCRE2_LIBRARY_H

#include "base/system/library.h"
#include <stddef.h>
#include <stdint.h>

#define QN__PCRE2_UTF 0x00080000u
#define QN__PCRE2_UCP 0x00020000u
#define QN__PCRE2_NEVER_BACKSLASH_C 0x00100000u
#define QN__PCRE2_NO_UTF_CHECK 0x40000000u
enum { QN__PCRE2_JIT_COMPLETE = 1, QN__PCRE2_NO_MATCH = -1 };

typedef struct qn__pcre2 {
    void *(*compile)(const uint8_t *pattern, size_t size, uint32_t options, int *error,
                     size_t *place, void *context);
    void (*code_free)(void *code);
    int (*jit_compile)(void *code, uint32_t options);
    void *(*match_create)(const void *code, void *general);
    void (*match_free)(void *match);
    int (*match)(const void *code, const uint8_t *text, size_t size, size_t from, uint32_t options,
                 void *match, void *context);
    size_t *(*places)(void *match);
    int (*message)(int error, uint8_t *text, size_t size);
    int (*config)(uint32_t what, void *where);
} qn__pcre2;

/* Its functions, once qn__optional_need or qn__optional_open has found the library. */
extern qn__pcre2 qn__pcre2_functions;
extern qn__optional_library qn__pcre2_library;

#endif
