#include "base/system/sqlite_library.h"

#include <stdio.h>

qn__sqlite qn__sqlite_functions;

static const qn__library_symbol symbols[] = {
    {"sqlite3_open_v2", &qn__sqlite_functions.open},
    {"sqlite3_close", &qn__sqlite_functions.close},
    {"sqlite3_errmsg", &qn__sqlite_functions.text},
    {"sqlite3_exec", &qn__sqlite_functions.exec},
    {"sqlite3_prepare_v2", &qn__sqlite_functions.prepare},
    {"sqlite3_step", &qn__sqlite_functions.step},
    {"sqlite3_reset", &qn__sqlite_functions.reset},
    {"sqlite3_finalize", &qn__sqlite_functions.finalize},
    {"sqlite3_column_count", &qn__sqlite_functions.columns},
    {"sqlite3_column_name", &qn__sqlite_functions.name},
    {"sqlite3_column_type", &qn__sqlite_functions.type},
    {"sqlite3_column_int64", &qn__sqlite_functions.whole},
    {"sqlite3_column_double", &qn__sqlite_functions.number},
    {"sqlite3_column_text", &qn__sqlite_functions.words},
    {"sqlite3_column_bytes", &qn__sqlite_functions.bytes},
    {"sqlite3_bind_text", &qn__sqlite_functions.bind_text},
    {"sqlite3_bind_int64", &qn__sqlite_functions.bind_whole},
    {"sqlite3_bind_double", &qn__sqlite_functions.bind_number},
    {"sqlite3_bind_null", &qn__sqlite_functions.bind_null},
    {"sqlite3_libversion", &qn__sqlite_functions.version},
    {NULL, NULL}};

static void version(char text[32]) { snprintf(text, 32, "%.16s", qn__sqlite_functions.version()); }

qn__optional_library qn__sqlite_library = {.name = "SQLite",
                                           .file = "libsqlite3.so.0",
                                           .debian = "libsqlite3-0",
                                           .fedora = "sqlite-libs",
                                           .symbol = symbols,
                                           .version = version};
