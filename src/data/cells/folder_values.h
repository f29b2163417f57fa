/* The values of columns from names of folders (folder_keys.h), as numbers. */
#ifndef QN_DATA_CELLS_FOLDER_VALUES_H
#define QN_DATA_CELLS_FOLDER_VALUES_H

#include "data/bytes/file_list.h"

/* What the values of a key are, where columns have types: words such as NA are texts. */
typedef enum qn__key_kind { QN__HIVE_WHOLE, QN__HIVE_NUMBER, QN__HIVE_TEXT } qn__key_kind;
qn__key_kind qn__file_list_key_kind(const qn__file_list *list, size_t key);
/* The value of a key of the first two kinds. */
int64_t qn__key_whole(const char *value);
float qn__key_number(const char *value);

#endif
