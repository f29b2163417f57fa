#include "base/argument.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "cluster/rendezvous/mpi_library.h"
#include <quern/cluster.h>

#include <stdio.h>
#include <string.h>

/* The launcher's option that keeps the other ranks alive when one dies. Empty where there is none,
 * as for MPICH's (4.0.2). Tested; see docs/cluster.md. */
static const char *how_to_survive(const qn__mpi *mpi) {
    if (mpi->abi == &qn__mpi_mpich)
        return "";
    return mpi->major > 4 ? "mpirun --with-ft ulfm" : "mpirun --enable-recovery";
}

/* Fills the description; without a library only `launcher` and `reason`. */
static void look(qn_cluster_library *library) {
    qn__launcher launcher;
    qn__mpi mpi;
    qn_error err;
    memset(library, 0, sizeof *library);
    if (qn__launcher_find(&launcher, &err) != QN_OK)
        memset(&launcher, 0, sizeof launcher); /* qn_cluster_join reports the error */
    snprintf(library->launcher, sizeof library->launcher, "%s", launcher.name);
    /* A single rank needs no library, but the description says which one several ranks would
     * use. */
    if (launcher.kind == QN__LAUNCHED_ALONE && strstr(launcher.name, "Open MPI"))
        launcher.kind = QN__LAUNCHED_OPEN_MPI;
    else if (launcher.kind == QN__LAUNCHED_ALONE && strstr(launcher.name, "MPICH"))
        launcher.kind = QN__LAUNCHED_MPICH;
    else if (launcher.kind == QN__LAUNCHED_SLURM || launcher.kind == QN__LAUNCHED_TORCHRUN)
        /* needs none: describe the library that mpirun would use */
        launcher = (qn__launcher){.kind = QN__LAUNCHED_ALONE};
    if (qn__mpi_open(&launcher, &mpi, &err) != QN_OK) {
        snprintf(library->reason, sizeof library->reason, "%.240s; %.240s", err.what, err.remedy);
        return;
    }
    snprintf(library->name, sizeof library->name, "%s", mpi.name);
    snprintf(library->path, sizeof library->path, "%s", mpi.path);
    snprintf(library->deaths, sizeof library->deaths, "%s", how_to_survive(&mpi));
}

qn_status qn_cluster_library_get(qn_cluster_library *library, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(library, err);
    const qn__sized *what = QN__SIZED("library", qn_cluster_library);
    qn_cluster_library own;
    const qn_status status = qn__sized_check(what, library, err);
    if (status != QN_OK)
        return status;
    look(&own);
    qn__sized_give(what, &own, library, library->size);
    return QN_OK;
}
