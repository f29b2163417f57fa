/* The library that reads SQLite's files. */
#ifndef QN_DATA_SQL_SQLITE_H
#define QN_DATA_SQL_SQLITE_H

/* Its name and version; "" where it is not installed. Static. */
const char *qn__sqlite_library(void);

#endif
