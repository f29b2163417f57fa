/* The MPI library of this machine, opened at run time. Quern asks little of MPI: who is there, one
 * gathering of addresses, and goodbye. */
#ifndef QN_CLUSTER_RENDEZVOUS_MPI_LIBRARY_H
#define QN_CLUSTER_RENDEZVOUS_MPI_LIBRARY_H

#include "cluster/rendezvous/launcher.h"
#include <stddef.h>

typedef struct qn__mpi qn__mpi;

/* What differs between MPI libraries: handles are pointers in one, integers in the other. All
 * functions return MPI's codes, 0 being success. */
typedef struct qn__mpi_abi {
    const char *name;     /* "Open MPI" */
    const char *evidence; /* a symbol that only libraries of this kind have */
    int (*size)(const qn__mpi *mpi, int *size);
    int (*rank)(const qn__mpi *mpi, int *rank);
    /* Errors are returned from now on, not fatal. */
    int (*careful)(const qn__mpi *mpi);
    int (*allgather)(const qn__mpi *mpi, const void *own, int bytes, void *all);
    int (*broadcast)(const qn__mpi *mpi, void *bytes, int count);
} qn__mpi_abi;

extern const qn__mpi_abi qn__mpi_open_mpi, qn__mpi_mpich;

struct qn__mpi {
    const qn__mpi_abi *abi;
    void *handle;
    char name[128], path[256];
    int major;
    int own; /* the process had it before */
    int (*init)(int *count, char ***arguments, int wanted, int *provided);
    int (*initialized)(int *flag);
    int (*finalized)(int *flag);
    int (*finalize)(void);
};

enum { QN__MPI_FUNNELED = 1 };

/* Looks where the launcher's library should be: the file that the environment variable QUERN_MPI
 * names, what the process holds already, beside the launcher, where the loader looks. It stays
 * open for the life of the process: MPI libraries do not like to be closed. QN_UNSUPPORTED, with a
 * remedy, when there is none that fits the launcher. */
qn_status qn__mpi_open(const qn__launcher *launcher, qn__mpi *mpi, qn_error *err);

/* The address of a function, for the files of the two kinds; of a type that fits all. */
typedef void (*qn__mpi_function)(void);
qn__mpi_function qn__mpi_symbol(const qn__mpi *mpi, const char *name);

#endif
