/* quern version: the program, the contract it keeps, and what was built in. */

#include "command.h"
#include <quern/version.h>
#include <stdio.h>

static const option version_options[] = {{.name = NULL}};

static int run(const command *self, int argc, char **argv) {
    arguments given;
    int code = options_read(self, argc - 2, argv + 2, NULL, &given);
    if (code >= 0)
        return code;
    printf("quern %s\nexactness contract: %d\n%s", qn_version(), QN_CONTRACT, qn_build_info());
    return EXIT_DONE;
}

const command version_command = {.name = "version",
                                 .summary = "the version and what was built in",
                                 .usage = "quern version",
                                 .about = "Prints the program's version, the version of the "
                                          "exactness contract, and how it was built.",
                                 .options = version_options,
                                 .examples = "quern version",
                                 .run = run};
