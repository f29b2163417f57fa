#include "cluster/rendezvous/mpi_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_BYTES = 8192 /* larger than that of any known library */ };

static const char *const OPEN_MPI_FILES[] = {"libmpi.so.40", NULL};
static const char *const MPICH_FILES[] = {"libmpich.so.12", "libmpi.so.12", NULL};
static const qn__mpi_abi *const KINDS[] = {&qn__mpi_open_mpi, &qn__mpi_mpich};

/* ----------------------------------------------------------------------------- kind and version */

static void read_version(qn__mpi *mpi) {
    char text[VERSION_BYTES] = "";
    int size = 0;
    int (*const get)(char *, int *) =
        (int (*)(char *, int *))qn__mpi_symbol(mpi, "MPI_Get_library_version");
    if (!get || get(text, &size) != 0)
        text[0] = 0;
    text[sizeof text - 1] = 0;
    /* "Open MPI v5.0.11, package: ..." or "MPICH Version:\t4.0.2\nMPICH ..." */
    const char *digit = text;
    text[strcspn(text, ",\n")] = 0;
    while (*digit && (*digit < '0' || *digit > '9'))
        ++digit;
    mpi->major = *digit ? *digit - '0' : 0;
    if (strncmp(text, "Open MPI", 8) == 0 || strncmp(text, "MPICH Version", 13) == 0)
        snprintf(mpi->name, sizeof mpi->name, "%s %.40s", mpi->abi->name, digit);
    else
        snprintf(mpi->name, sizeof mpi->name, "%.100s", text[0] ? text : mpi->abi->name);
}

static void note_path(qn__mpi *mpi) {
    Dl_info info;
    void *const inside = dlsym(mpi->handle, "MPI_Init_thread");
    if (inside && dladdr(inside, &info) && info.dli_fname)
        snprintf(mpi->path, sizeof mpi->path, "%s", info.dli_fname);
}

/* Whether all required functions are present. */
static int complete(qn__mpi *mpi) {
    static const char *const names[] = {"MPI_Comm_size", "MPI_Comm_rank", "MPI_Comm_set_errhandler",
                                        "MPI_Allgather", "MPI_Bcast"};
    int whole = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        whole &= dlsym(mpi->handle, names[i]) != NULL;
    mpi->init = (int (*)(int *, char ***, int, int *))qn__mpi_symbol(mpi, "MPI_Init_thread");
    mpi->initialized = (int (*)(int *))qn__mpi_symbol(mpi, "MPI_Initialized");
    mpi->finalized = (int (*)(int *))qn__mpi_symbol(mpi, "MPI_Finalized");
    mpi->finalize = (int (*)(void))qn__mpi_symbol(mpi, "MPI_Finalize");
    return whole && mpi->init && mpi->initialized && mpi->finalized && mpi->finalize;
}

int qn__mpi_can_carry(qn__mpi *mpi) {
    mpi->isend = qn__mpi_symbol(mpi, "MPI_Isend");
    mpi->irecv = qn__mpi_symbol(mpi, "MPI_Irecv");
    mpi->ask = qn__mpi_symbol(mpi, "MPI_Test");
    mpi->world = dlsym(mpi->handle, "ompi_mpi_comm_world");
    mpi->byte = dlsym(mpi->handle, "ompi_mpi_byte");
    mpi->survives = dlsym(mpi->handle, "MPIX_Comm_revoke") != NULL;
    return mpi->isend && mpi->irecv && mpi->ask;
}

/* Fills mpi from its handle; 0: not an MPI library of a known kind. */
static int recognise(qn__mpi *mpi) {
    mpi->abi = NULL;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS && !mpi->abi; ++i)
        if (dlsym(mpi->handle, KINDS[i]->evidence))
            mpi->abi = KINDS[i];
    if (!mpi->abi || !complete(mpi))
        return 0;
    note_path(mpi);
    read_version(mpi);
    return 1;
}

/* --------------------------------------------------------------------------------------- search */

typedef struct search {
    const qn__launcher *launcher;
    qn__mpi *mpi;
    char unfit[400]; /* the last library that was found and does not match */
    int old;         /* it is too old */
} search;

static int wanted_kind(const search *s, const qn__mpi_abi *abi) {
    return s->launcher->kind == QN__LAUNCHED_OPEN_MPI ? abi == &qn__mpi_open_mpi
           : s->launcher->kind == QN__LAUNCHED_MPICH  ? abi == &qn__mpi_mpich
                                                      : 1;
}

/* The functions declared here exist since Open MPI 4.0 and MPICH 3.1. */
static int is_old(const qn__mpi *mpi) {
    return mpi->major > 0 && mpi->major < (mpi->abi == &qn__mpi_open_mpi ? 4 : 3);
}

/* Whether the library matches the launcher. One of another kind or generation would not find the
 * launcher, and each rank would believe that it is alone. */
static int fits(search *s, const qn__mpi *mpi) {
    const int wanted = s->launcher->major, generation = wanted > 4 ? 5 : 4;
    const int kind = wanted_kind(s, mpi->abi);
    s->old = is_old(mpi);
    if (!s->old && kind &&
        (s->launcher->kind != QN__LAUNCHED_OPEN_MPI || wanted == 0 ||
         (mpi->major > 4 ? 5 : 4) == generation))
        return 1;
    snprintf(s->unfit, sizeof s->unfit, "%s (%s)", mpi->name, mpi->path);
    return 0;
}

/* 1 if the file is a matching library. It is first opened with local symbols, so that a library
 * that does not match leaves no symbols behind. The matching one needs global symbols for its
 * plugins. */
static int try_file(search *s, const char *path) {
    qn__mpi look = {.handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL)};
    if (!look.handle)
        return 0;
    const int good = recognise(&look) && fits(s, &look);
    if (good) {
        *s->mpi = look;
        s->mpi->handle = dlopen(look.path[0] ? look.path : path, RTLD_NOW | RTLD_GLOBAL);
        if (s->mpi->handle && recognise(s->mpi)) {
            dlclose(look.handle); /* drops one of two references */
            return 1;
        }
    }
    dlclose(look.handle);
    return 0;
}

static int try_folder(search *s, const char *folder, const char *below) {
    const char *const *const lists[] = {OPEN_MPI_FILES, MPICH_FILES};
    char path[PATH_MAX];
    for (size_t kind = 0; kind < 2; ++kind)
        for (const char *const *name = lists[kind]; wanted_kind(s, KINDS[kind]) && *name; ++name)
            if ((size_t)snprintf(path, sizeof path, "%s%s/%s", folder, below, *name) <
                    sizeof path &&
                access(path, R_OK) == 0 && try_file(s, path))
                return 1;
    return 0;
}

/* The real path of a program in PATH; 0 if there is none. */
static int find_program(const char *name, char real[PATH_MAX]) {
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    while (path && *path) {
        const size_t size = strcspn(path, ":");
        if ((size_t)snprintf(file, sizeof file, "%.*s/%s", (int)size, path, name) < sizeof file &&
            access(file, X_OK) == 0 && realpath(file, real))
            return 1;
        path += size + (path[size] == ':');
    }
    return 0;
}

/* Next to the launcher: PREFIX/bin/mpirun belongs to PREFIX/lib/libmpi.so.40. */
static int try_beside(search *s, const char *program) {
    static const char *const below[] = {"/lib", "/lib64", "/lib/openmpi"};
    char real[PATH_MAX];
    if (!find_program(program, real))
        return 0;
    for (int up = 0; up < 2; ++up) {
        char *slash = strrchr(real, '/');
        if (!slash)
            return 0;
        *slash = 0;
    }
    for (size_t i = 0; i < sizeof below / sizeof *below; ++i)
        if (try_folder(s, real, below[i]))
            return 1;
    return 0;
}

/* In the loader's search path, first the kind that `mpirun` belongs to. */
static int try_loader(search *s) {
    const char *const *const lists[] = {OPEN_MPI_FILES, MPICH_FILES};
    char real[PATH_MAX];
    const int mpich =
        find_program("mpirun", real) && (strstr(real, "hydra") || strstr(real, "mpich"));
    for (size_t i = 0; i < 2; ++i) {
        const size_t kind = mpich ? 1 - i : i;
        for (const char *const *name = lists[kind]; wanted_kind(s, KINDS[kind]) && *name; ++name)
            if (try_file(s, *name))
                return 1;
    }
    return 0;
}

/* A program that is linked with MPI has loaded it already. */
static int try_own(search *s) {
    qn__mpi look = {.handle = dlopen(NULL, RTLD_LAZY), .own = 1};
    if (look.handle && recognise(&look) && fits(s, &look)) {
        *s->mpi = look;
        return 1;
    }
    if (look.handle)
        dlclose(look.handle);
    return 0;
}

static int search_all(search *s) {
    const char *const prefix = getenv("OPAL_PREFIX");
    return try_own(s) || (prefix && try_folder(s, prefix, "/lib")) || try_beside(s, "mpirun") ||
           try_beside(s, "mpiexec") || try_loader(s);
}

static qn_status named_file(search *s, const char *path, qn_error *err) {
    if (try_file(s, path))
        return QN_OK;
    if (s->unfit[0]) {
        qn__fail(err, QN_UNSUPPORTED, "QUERN_MPI is %s, which %s%s", s->unfit,
                 s->old ? "is too old" : "does not go with ", s->old ? "" : s->launcher->name);
    } else {
        void *const handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        const char *const why = handle ? NULL : dlerror();
        qn__fail(err, QN_UNSUPPORTED, "%s is not an MPI library that can be used: %s", path,
                 why ? why
                     : "it is neither of Open MPI nor of MPICH, or does not have all required "
                       "functions");
        if (handle)
            dlclose(handle);
    }
    return qn__remedy(
        err, QN_UNSUPPORTED,
        "let the environment variable QUERN_MPI name the launcher's own libmpi.so.40 "
        "(Open MPI 4.0 or later) or libmpich.so.12 (MPICH 3.1 or later), or unset it");
}

qn_status qn__mpi_open(const qn__launcher *launcher, qn__mpi *mpi, qn_error *err) {
    search s = {.launcher = launcher, .mpi = mpi};
    const char *const named = getenv("QUERN_MPI");
    memset(mpi, 0, sizeof *mpi);
    if (named && *named)
        return named_file(&s, named, err);
    if (search_all(&s))
        return QN_OK;
    const char *const by = launcher->name[0] ? launcher->name : "mpirun";
    if (s.unfit[0])
        qn__fail(err, QN_UNSUPPORTED, "no MPI library goes with %s; found was %s%s", by, s.unfit,
                 s.old ? ", which is too old" : "");
    else
        qn__fail(err, QN_UNSUPPORTED, "there is no MPI library here that goes with %s", by);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "use the mpirun of the library, install Open MPI (4.1 or later) or MPICH, or "
                      "let the environment variable QUERN_MPI name the library's file");
}
