#include <quern/version.h>

#if __has_include("build_info.h")
#include "build_info.h"
#else
/* Built without CMake: only the compiler is known. */
#define QN_BUILD_COMPILER __VERSION__
#define QN_BUILD_FLAGS "unknown"
#define QN_BUILD_TYPE "unknown"
#define QN_BUILD_FEATURES ""
#endif

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *qn_version(void) {
    return TEXT(QN_VERSION_MAJOR) "." TEXT(QN_VERSION_MINOR) "." TEXT(QN_VERSION_PATCH);
}

const char *qn_build_info(void) {
    if (sizeof QN_BUILD_FEATURES > 1)
        return "compiler: " QN_BUILD_COMPILER "\n"
               "flags: " QN_BUILD_FLAGS "\n"
               "build type: " QN_BUILD_TYPE "\n"
               "optional parts: " QN_BUILD_FEATURES "\n";
    return "compiler: " QN_BUILD_COMPILER "\n"
           "flags: " QN_BUILD_FLAGS "\n"
           "build type: " QN_BUILD_TYPE "\n"
           "optional parts: none\n";
}
