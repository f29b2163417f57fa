#include "cluster/rendezvous/mpi_library.h"

#include <dlfcn.h>
#include <string.h>

qn__mpi_function qn__mpi_symbol(const qn__mpi *mpi, const char *name) {
    /* dlsym returns a function's address as void *; memcpy is the portable conversion. */
    qn__mpi_function function;
    void *const address = dlsym(mpi->handle, name);
    memcpy(&function, &address, sizeof function);
    return function;
}
