/* The library that asks PostgreSQL's servers. */
#ifndef QN_DATA_SQL_POSTGRES_H
#define QN_DATA_SQL_POSTGRES_H

/* Its name and version; "" where it is not installed. Static. */
const char *qn__postgres_library(void);

#endif
