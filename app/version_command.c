/* quern version: the program, its exactness contract, and its optional parts. */

#include "command.h"
#include "fields.h"
#include "message.h"
#include <quern/cluster.h>
#include <quern/data.h>
#include <quern/serve.h>
#include <quern/version.h>
#include <stdio.h>

static const option version_options[] = {{.name = NULL}};

/* The MPI library and launcher for runs of several processes; a single process needs none. */
static void print_cluster(void) {
    qn_cluster_library mpi = {.size = sizeof mpi};
    char reason[sizeof mpi.reason];
    qn_error err;
    if (qn_cluster_library_get(&mpi, &err) != QN_OK) {
        message_error(&err);
        return;
    }
    if (*mpi.name)
        printf("MPI: %s, %s (starts ranks, carries sums if faster)\n", mpi.name, mpi.path);
    else
        printf("MPI: none%s%s (it starts ranks, and carries sums if faster)\n",
               *mpi.reason ? ", " : "", fields_spell(mpi.reason, reason, sizeof reason));
    if (*mpi.deaths)
        printf("failed ranks: the run continues with %s\n", mpi.deaths);
    else if (*mpi.name)
        puts("failed ranks: end the run under the launcher of this MPI; start it again from its "
             "checkpoint (train --checkpoint DIR --resume)");
    if (*mpi.launcher)
        printf("started by: %s\n", mpi.launcher);
}

/* Opened when the first file of their kind is read. */
static void print_libraries(void) {
    static const struct {
        const char *kind, *name, *missing;
    } kinds[] = {{"jpeg", "JPEG images", "none (Debian: libturbojpeg0)"},
                 {"png", "PNG images", "none (Debian: libpng16-16)"},
                 {"webp", "WebP images", "none (Debian: libwebp7)"},
                 {"gif", "GIF images", "none (Debian: libgif7)"},
                 {"tiff", "TIFF images", "none (Debian: libtiff6)"},
                 {"zstd", "zstd data", "none (Debian: libzstd1)"},
                 {"bzip2", "bzip2 data", "none (Debian: libbz2-1.0)"},
                 {"xz", "xz data", "none (Debian: liblzma5)"},
                 {"sqlite", "SQLite", "none (Debian: libsqlite3-0)"},
                 {"postgresql", "PostgreSQL", "none (Debian: libpq5)"},
                 {"http", "addresses", "none (Debian: libcurl4)"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *about = qn_data_image_library(kinds[i].kind);
        printf("%s: %s\n", kinds[i].name, *about ? about : kinds[i].missing);
    }
    const char *server = qn_server_library();
    printf("HTTP server: %s\n", *server ? server : "none (Debian: libmicrohttpd12)");
}

static int run(const command *self, int argc, char **argv) {
    arguments given;
    int code = options_read(self, argc - 2, argv + 2, NULL, &given);
    if (code >= 0)
        return code;
    printf("quern %s\nexactness contract: %d\n%s", qn_version(), QN_CONTRACT, qn_build_info());
    print_libraries();
    print_cluster();
    return EXIT_DONE;
}

const command version_command = {
    .name = "version",
    .summary = "print the version and what was built in",
    .usage = "quern version",
    .about = "Prints the versions of the program and of the exactness contract, how the program "
             "was built, the libraries that read files and serve models, and the MPI library that "
             "can start ranks.",
    .options = version_options,
    .examples = "quern version",
    .run = run};
