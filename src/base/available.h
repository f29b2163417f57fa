/* Memory that a process may still use. */
#ifndef QN_BASE_AVAILABLE_H
#define QN_BASE_AVAILABLE_H

#include <stdint.h>

/* Bytes, the least of what the system has, what the control group leaves and what the limit of the
 * address space leaves; UINT64_MAX where none of them is known. An estimate: other processes take
 * and release memory at any moment. */
uint64_t qn__available_memory(void);

#endif
