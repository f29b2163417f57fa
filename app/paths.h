/* The files that a command line names, checked before any long work: quern/files.h defines what is
 * refused. */
#ifndef APP_PATHS_H
#define APP_PATHS_H

#include "ranks.h"
#include "sources.h"
#include <quern/files.h>

enum { MOST_PATHS = 24 + 6 * MOST_FILES };

typedef struct paths {
    qn_file file[MOST_PATHS];
    uint32_t count;
} paths;

/* Whether this machine has such a folder; 0 for NULL and for addresses, where a file may have the
 * same name as a folder. qn_path_is_folder asks the store. */
int paths_is_folder(const char *path);

/* Adds a path; NULL adds nothing. `name` is its option. */
void paths_add(paths *p, qn_file_use use, const char *name, const char *path);

/* Adds the files of a data set and of its labels, also those of folders, patterns and lists.
 * `name` is the option of the former. */
void paths_add_files(paths *p, const char *name, const char *labels_name, source_files files);

/* Adds the data sets, and the key file of the ranks. */
void paths_add_sources(paths *p, const source_flags *from, const ranks_flags *ranks);

/* Checks all of them, and the targets of stdout and stderr. If another rank writes the files, they
 * are only compared. Returns -1, or an exit code after a message. */
int paths_check(paths *p, int writes);

#endif
