/* The MPI library of this machine, opened at run time. Quern uses little of MPI: size and rank, one
 * all-gather of endpoints, and finalisation. */
#ifndef QN_CLUSTER_RENDEZVOUS_MPI_LIBRARY_H
#define QN_CLUSTER_RENDEZVOUS_MPI_LIBRARY_H

#include "cluster/rendezvous/launcher.h"
#include <stddef.h>

typedef struct qn__mpi qn__mpi;

/* The differences between MPI libraries: handles are pointers in one, integers in the other. All
 * functions return MPI's codes; 0 is success. */
typedef struct qn__mpi_abi {
    const char *name;     /* "Open MPI" */
    const char *evidence; /* a symbol that only this kind of library has */
    int (*size)(const qn__mpi *mpi, int *size);
    int (*rank)(const qn__mpi *mpi, int *rank);
    /* Makes errors return a code instead of ending the process. */
    int (*return_errors)(const qn__mpi *mpi);
    int (*allgather)(const qn__mpi *mpi, const void *own, int bytes, void *all);
    int (*broadcast)(const qn__mpi *mpi, void *bytes, int count);
} qn__mpi_abi;

extern const qn__mpi_abi qn__mpi_open_mpi, qn__mpi_mpich;

struct qn__mpi {
    const qn__mpi_abi *abi;
    void *handle;
    char name[128], path[256];
    int major;
    int own; /* the process had loaded it before */
    int (*init)(int *count, char ***arguments, int wanted, int *provided);
    int (*initialized)(int *flag);
    int (*finalized)(int *flag);
    int (*finalize)(void);
};

enum { QN__MPI_FUNNELED = 1 };

/* Searches for the launcher's library: the file in the environment variable QUERN_MPI, libraries
 * that are loaded already, next to the launcher, the loader's path. The library stays loaded for
 * the life of the process, because MPI libraries do not support unloading. QN_UNSUPPORTED, with a
 * remedy, if none matches the launcher. */
qn_status qn__mpi_open(const qn__launcher *launcher, qn__mpi *mpi, qn_error *err);

/* The address of a function, as a generic type, for the files of the two kinds. */
typedef void (*qn__mpi_function)(void);
qn__mpi_function qn__mpi_symbol(const qn__mpi *mpi, const char *name);

#endif
