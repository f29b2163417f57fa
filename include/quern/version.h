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

/* The version of docs/exactness.md that this library implements. A recipe names the lowest version
 * that has all it uses. */
#define QN_CONTRACT 9

/* The version of the library in use, such as "0.1.0". The text is static. */
QN_API const char *qn_version(void);

/* How the library was built: lines "name: value" with the compiler, flags, build type and optional
 * parts. The text is static. */
QN_API const char *qn_build_info(void);

#ifdef __cplusplus
}
#endif
#endif
