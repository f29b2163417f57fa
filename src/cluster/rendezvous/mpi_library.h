/* The MPI library of this machine, opened at run time. Quern uses little of MPI: size and rank, one
 * all-gather of endpoints, messages between two ranks, and finalisation. */
#ifndef QN_CLUSTER_RENDEZVOUS_MPI_LIBRARY_H
#define QN_CLUSTER_RENDEZVOUS_MPI_LIBRARY_H

#include "cluster/rendezvous/launcher.h"
#include "cluster/transport/carrier.h"
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
    /* Messages of bytes that do not wait, as qn__carrier has them. Only after qn__mpi_can_carry. */
    int (*send)(const qn__mpi *mpi, const void *from, int bytes, int to, int tag,
                qn__carried *transfer);
    int (*receive)(const qn__mpi *mpi, void *into, int bytes, int from, int tag,
                   qn__carried *transfer);
    int (*test)(const qn__mpi *mpi, qn__carried *transfer, int *done);
} qn__mpi_abi;

extern const qn__mpi_abi qn__mpi_open_mpi, qn__mpi_mpich;

/* The address of a function, as a generic type, for the files of the two kinds. */
typedef void (*qn__mpi_function)(void);

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
    qn__mpi_function isend, irecv, ask; /* of messages between two ranks */
    void *world, *byte;                 /* handles of Open MPI */
    int survives;                       /* it has the extensions for lost ranks (ULFM) */
};

enum { QN__MPI_FUNNELED = 1 };

/* Searches for the launcher's library: the file in the environment variable QUERN_MPI, libraries
 * that are loaded already, next to the launcher, the loader's path. The library stays loaded for
 * the life of the process, because MPI libraries do not support unloading. QN_UNSUPPORTED, with a
 * remedy, if none matches the launcher. */
qn_status qn__mpi_open(const qn__launcher *launcher, qn__mpi *mpi, qn_error *err);

/* Looks up what messages between two ranks need; 0: it is not there. */
int qn__mpi_can_carry(qn__mpi *mpi);

qn__mpi_function qn__mpi_symbol(const qn__mpi *mpi, const char *name);

#endif
