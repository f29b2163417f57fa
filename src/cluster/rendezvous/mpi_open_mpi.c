/* Open MPI: handles are addresses of objects in the library. */
#include "cluster/rendezvous/mpi_library.h"

#include <dlfcn.h>

/* Own declarations of the parts in use: MPI 3.1, as in libmpi.so.40. */
typedef void *comm;
typedef void *type;
typedef void *handler;

static comm world(const qn__mpi *mpi) { return dlsym(mpi->handle, "ompi_mpi_comm_world"); }

static int query(const qn__mpi *mpi, const char *what, int *answer) {
    int (*const function)(comm, int *) = (int (*)(comm, int *))qn__mpi_symbol(mpi, what);
    return function(world(mpi), answer);
}

static int size(const qn__mpi *mpi, int *answer) { return query(mpi, "MPI_Comm_size", answer); }
static int rank(const qn__mpi *mpi, int *answer) { return query(mpi, "MPI_Comm_rank", answer); }

static int return_errors(const qn__mpi *mpi) {
    int (*const set)(comm, handler) =
        (int (*)(comm, handler))qn__mpi_symbol(mpi, "MPI_Comm_set_errhandler");
    return set(world(mpi), dlsym(mpi->handle, "ompi_mpi_errors_return"));
}

static int allgather(const qn__mpi *mpi, const void *own, int bytes, void *all) {
    int (*const call)(const void *, int, type, void *, int, type, comm) =
        (int (*)(const void *, int, type, void *, int, type, comm))qn__mpi_symbol(mpi,
                                                                                  "MPI_Allgather");
    const type byte = dlsym(mpi->handle, "ompi_mpi_byte");
    return call(own, bytes, byte, all, bytes, byte, world(mpi));
}

static int broadcast(const qn__mpi *mpi, void *bytes, int count) {
    int (*const call)(void *, int, type, int, comm) =
        (int (*)(void *, int, type, int, comm))qn__mpi_symbol(mpi, "MPI_Bcast");
    return call(bytes, count, dlsym(mpi->handle, "ompi_mpi_byte"), 0, world(mpi));
}

static int send(const qn__mpi *mpi, const void *from, int bytes, int to, int tag,
                qn__carried *transfer) {
    int (*const call)(const void *, int, type, int, int, comm, void **) =
        (int (*)(const void *, int, type, int, int, comm, void **))mpi->isend;
    return call(from, bytes, mpi->byte, to, tag, mpi->world, &transfer->pointer);
}

static int receive(const qn__mpi *mpi, void *into, int bytes, int from, int tag,
                   qn__carried *transfer) {
    int (*const call)(void *, int, type, int, int, comm, void **) =
        (int (*)(void *, int, type, int, int, comm, void **))mpi->irecv;
    return call(into, bytes, mpi->byte, from, tag, mpi->world, &transfer->pointer);
}

static int test(const qn__mpi *mpi, qn__carried *transfer, int *done) {
    int (*const call)(void **, int *, void *) = (int (*)(void **, int *, void *))mpi->ask;
    return call(&transfer->pointer, done, NULL); /* MPI_STATUS_IGNORE */
}

const qn__mpi_abi qn__mpi_open_mpi = {.name = "Open MPI",
                                      .evidence = "ompi_mpi_comm_world",
                                      .size = size,
                                      .rank = rank,
                                      .return_errors = return_errors,
                                      .allgather = allgather,
                                      .broadcast = broadcast,
                                      .send = send,
                                      .receive = receive,
                                      .test = test};
