/* A table of files that were found already. */
#ifndef QN_DATA_OPEN_OPEN_LIST_H
#define QN_DATA_OPEN_OPEN_LIST_H

#include "data/bytes/file_list.h"
#include "data/table/data.h"

/* As qn_data_open_files, for options that were taken (data_options.h). Texts that become tokens or
 * documents are not read so. A share of images (qn__listed_file) may have no items. */
qn_status qn__data_open_list(const qn__file_list *list, const qn_data_options *options,
                             qn_data **out, qn_error *err);

/* Whether the files are folders or archives of images, each of which can be read in shares
 * (qn__listed_file); 0 also where that cannot be told. */
int qn__data_list_encloses(const qn__file_list *list, const qn_data_options *options);

#endif
