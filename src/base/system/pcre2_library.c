#include "base/system/pcre2_library.h"

#include <stdio.h>

qn__pcre2 qn__pcre2_functions;

static const qn__library_symbol symbols[] = {
    {"pcre2_compile_8", &qn__pcre2_functions.compile},
    {"pcre2_code_free_8", &qn__pcre2_functions.code_free},
    {"pcre2_jit_compile_8", &qn__pcre2_functions.jit_compile},
    {"pcre2_match_data_create_from_pattern_8", &qn__pcre2_functions.match_create},
    {"pcre2_match_data_free_8", &qn__pcre2_functions.match_free},
    {"pcre2_match_8", &qn__pcre2_functions.match},
    {"pcre2_get_ovector_pointer_8", &qn__pcre2_functions.places},
    {"pcre2_get_error_message_8", &qn__pcre2_functions.message},
    {"pcre2_config_8", &qn__pcre2_functions.config},
    {NULL, NULL}};

enum { CONFIG_VERSION = 11 };

static void version(char text[32]) {
    char whole[64] = "";
    if (qn__pcre2_functions.config(CONFIG_VERSION, NULL) <= (int)sizeof whole)
        qn__pcre2_functions.config(CONFIG_VERSION, whole);
    snprintf(text, 32, "%.16s", whole);
}

qn__optional_library qn__pcre2_library = {.name = "PCRE2",
                                          .file = "libpcre2-8.so.0",
                                          .debian = "libpcre2-8-0",
                                          .fedora = "pcre2",
                                          .symbol = symbols,
                                          .version = version};
