/* Texts that are dates or times: as categories they say nothing of other days. */
#ifndef QN_DATA_DATES_H
#define QN_DATA_DATES_H

/* 1 for a date (2024-02-29, 2024/2/29, 29.2.2024, 2/29/2024), a time (8:30, 08:30:15.25), or a date
 * and a time with a blank or a T between them; a zone may follow a time (Z, +01:00). Months and
 * days are not checked. */
int qn__is_date(const char *text);

#endif
