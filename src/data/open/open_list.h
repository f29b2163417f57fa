/* A table of files that were found already. */
#ifndef QN_DATA_OPEN_OPEN_LIST_H
#define QN_DATA_OPEN_OPEN_LIST_H

#include "data/bytes/file_list.h"
#include "data/table/data.h"
#include "data/table/part_reading.h"

/* As qn_data_open_files, for options that were taken (data_options.h). A share of images
 * (qn__listed_file) may have no items. `part`: the files are a part of a whole; NULL: they are all
 * of it. */
qn_status qn__data_open_list(const qn__file_list *list, const qn_data_options *options,
                             qn__part_reading *part, qn_data **out, qn_error *err);

/* Whether the files are folders or archives of images, each of which can be read in shares
 * (qn__listed_file); 0 also where that cannot be told. */
int qn__data_list_encloses(const qn__file_list *list, const qn_data_options *options);

#endif
