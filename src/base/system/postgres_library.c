#include "base/system/postgres_library.h"

#include <stdio.h>

qn__pq qn__pq_functions;

static const qn__library_symbol symbols[] = {{"PQconninfoParse", &qn__pq_functions.parse},
                                             {"PQconninfoFree", &qn__pq_functions.forget},
                                             {"PQconnectdbParams", &qn__pq_functions.connect},
                                             {"PQfinish", &qn__pq_functions.close},
                                             {"PQstatus", &qn__pq_functions.status},
                                             {"PQerrorMessage", &qn__pq_functions.text},
                                             {"PQsendQuery", &qn__pq_functions.send},
                                             {"PQsetSingleRowMode", &qn__pq_functions.single},
                                             {"PQgetResult", &qn__pq_functions.result},
                                             {"PQclear", &qn__pq_functions.clear},
                                             {"PQresultStatus", &qn__pq_functions.kind},
                                             {"PQresultErrorField", &qn__pq_functions.field},
                                             {"PQnfields", &qn__pq_functions.columns},
                                             {"PQfname", &qn__pq_functions.name},
                                             {"PQftype", &qn__pq_functions.type},
                                             {"PQntuples", &qn__pq_functions.rows},
                                             {"PQgetisnull", &qn__pq_functions.is_null},
                                             {"PQgetvalue", &qn__pq_functions.value},
                                             {"PQgetlength", &qn__pq_functions.length},
                                             {"PQexec", &qn__pq_functions.exec},
                                             {"PQexecParams", &qn__pq_functions.exec_values},
                                             {"PQputCopyData", &qn__pq_functions.copy},
                                             {"PQputCopyEnd", &qn__pq_functions.copy_end},
                                             {"PQlibVersion", &qn__pq_functions.version},
                                             {NULL, NULL}};

static void version(char text[32]) {
    const int number = qn__pq_functions.version();
    snprintf(text, 32, "%d.%d", number / 10000, number % 10000);
}

qn__optional_library qn__pq_library = {.name = "libpq",
                                       .file = "libpq.so.5",
                                       .debian = "libpq5",
                                       .fedora = "libpq",
                                       .symbol = symbols,
                                       .version = version};
