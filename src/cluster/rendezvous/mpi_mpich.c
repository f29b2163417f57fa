/* MPICH and libraries derived from it, which have shared one ABI since 2013: handles are integers
 * with fixed values. */
#include "cluster/rendezvous/mpi_library.h"

enum { WORLD = 0x44000000, BYTE = 0x4c00010d, ERRORS_RETURN = 0x54000001 };

static int query(const qn__mpi *mpi, const char *what, int *answer) {
    int (*const function)(int, int *) = (int (*)(int, int *))qn__mpi_symbol(mpi, what);
    return function(WORLD, answer);
}

static int size(const qn__mpi *mpi, int *answer) { return query(mpi, "MPI_Comm_size", answer); }
static int rank(const qn__mpi *mpi, int *answer) { return query(mpi, "MPI_Comm_rank", answer); }

static int return_errors(const qn__mpi *mpi) {
    int (*const set)(int, int) = (int (*)(int, int))qn__mpi_symbol(mpi, "MPI_Comm_set_errhandler");
    return set(WORLD, ERRORS_RETURN);
}

static int allgather(const qn__mpi *mpi, const void *own, int bytes, void *all) {
    int (*const call)(const void *, int, int, void *, int, int, int) =
        (int (*)(const void *, int, int, void *, int, int, int))qn__mpi_symbol(mpi,
                                                                               "MPI_Allgather");
    return call(own, bytes, BYTE, all, bytes, BYTE, WORLD);
}

static int broadcast(const qn__mpi *mpi, void *bytes, int count) {
    int (*const call)(void *, int, int, int, int) =
        (int (*)(void *, int, int, int, int))qn__mpi_symbol(mpi, "MPI_Bcast");
    return call(bytes, count, BYTE, 0, WORLD);
}

static int send(const qn__mpi *mpi, const void *from, int bytes, int to, int tag,
                qn__carried *transfer) {
    int (*const call)(const void *, int, int, int, int, int, int *) =
        (int (*)(const void *, int, int, int, int, int, int *))mpi->isend;
    return call(from, bytes, BYTE, to, tag, WORLD, &transfer->number);
}

static int receive(const qn__mpi *mpi, void *into, int bytes, int from, int tag,
                   qn__carried *transfer) {
    int (*const call)(void *, int, int, int, int, int, int *) =
        (int (*)(void *, int, int, int, int, int, int *))mpi->irecv;
    return call(into, bytes, BYTE, from, tag, WORLD, &transfer->number);
}

/* Asks with room for a status: its layout differs between versions, and its address 1 means none.
 */
static int test(const qn__mpi *mpi, qn__carried *transfer, int *done) {
    long status[16];
    int (*const call)(int *, int *, void *) = (int (*)(int *, int *, void *))mpi->ask;
    return call(&transfer->number, done, status);
}

const qn__mpi_abi qn__mpi_mpich = {.name = "MPICH",
                                   .evidence = "MPIR_Dup_fn",
                                   .size = size,
                                   .rank = rank,
                                   .return_errors = return_errors,
                                   .allgather = allgather,
                                   .broadcast = broadcast,
                                   .send = send,
                                   .receive = receive,
                                   .test = test};
