#include "serve/http/microhttpd_library.h"

#include <stdio.h>

qn__mhd qn__mhd_functions;

static const qn__library_symbol symbols[] = {
    {"MHD_start_daemon", &qn__mhd_functions.start},
    {"MHD_quiesce_daemon", &qn__mhd_functions.quiesce},
    {"MHD_stop_daemon", &qn__mhd_functions.stop},
    {"MHD_get_connection_values", &qn__mhd_functions.values},
    {"MHD_lookup_connection_value", &qn__mhd_functions.value},
    {"MHD_queue_response", &qn__mhd_functions.queue},
    {"MHD_suspend_connection", &qn__mhd_functions.suspend},
    {"MHD_resume_connection", &qn__mhd_functions.resume},
    {"MHD_create_response_from_buffer_with_free_callback", &qn__mhd_functions.from_bytes},
    {"MHD_create_response_from_callback", &qn__mhd_functions.from_reader},
    {"MHD_add_response_header", &qn__mhd_functions.header},
    {"MHD_destroy_response", &qn__mhd_functions.release},
    {"MHD_get_connection_info", &qn__mhd_functions.fact},
    {"MHD_get_version", &qn__mhd_functions.version},
    {NULL, NULL}};

static void version(char text[32]) { snprintf(text, 32, "%.16s", qn__mhd_functions.version()); }

qn__optional_library qn__mhd_library = {.name = "libmicrohttpd",
                                        .file = "libmicrohttpd.so.12",
                                        .debian = "libmicrohttpd12",
                                        .fedora = "libmicrohttpd",
                                        .symbol = symbols,
                                        .version = version};
