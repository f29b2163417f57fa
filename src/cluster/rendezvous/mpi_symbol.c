#include "cluster/rendezvous/mpi_library.h"

#include <dlfcn.h>
#include <string.h>

qn__mpi_function qn__mpi_symbol(const qn__mpi *mpi, const char *name) {
    /* What dlsym returns is a function's address in the wrong type; C has no better way. */
    qn__mpi_function function;
    void *const address = dlsym(mpi->handle, name);
    memcpy(&function, &address, sizeof function);
    return function;
}
