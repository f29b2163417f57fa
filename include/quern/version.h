/* The version of the library and what was built into it. */
#ifndef QUERN_VERSION_H
#define QUERN_VERSION_H

#include <quern/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QN_VERSION_MAJOR 0
#define QN_VERSION_MINOR 1
#define QN_VERSION_PATCH 0

/* The version of docs/exactness.md that this library keeps. A recipe names the lowest version that
 * has all it uses. */
#define QN_CONTRACT 2

/* "0.1.0" */
QN_API const char *qn_version(void);

/* Facts of the build, one "name: value" a line: compiler, flags, build type, optional parts. */
QN_API const char *qn_build_info(void);

#ifdef __cplusplus
}
#endif
#endif
