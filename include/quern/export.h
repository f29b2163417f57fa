/* What the shared library exports: every function marked QN_API, and nothing else. */
#ifndef QUERN_EXPORT_H
#define QUERN_EXPORT_H

#if defined(__GNUC__)
#define QN_API __attribute__((visibility("default")))
#else
#define QN_API
#endif

#endif
