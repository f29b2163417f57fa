/* Opening the OpenCL library loads all OpenCL drivers of the machine. PoCL alone takes 60 MiB and
 * 50 ms, for devices that "auto" does not use. So the library is not opened if no device file
 * suggests another device. */
#include "device/opencl/opencl_likely.h"

#include <dirent.h>
#include <string.h>

/* Prefixes of the names of such files. */
static const char *const beginnings[] = {
    "dri",        "kfd",  "nvidia", "nvhost",  "nvmap", "mali", "kgsl", "pvr",
    "galcore",    "dxg",  "accel",  "xcl",     "xdma",  "xocl", "ama_", "habana",
    "intel-fpga", "dfl-", "aclpci", "davinci", "qaic",  "vipx", "apex", "tenstorrent",
};

int qn__cl_likely_in(const char *folder) {
    int likely = 0;
    DIR *files = opendir(folder);
    if (!files)
        return 1;
    for (const struct dirent *f; !likely && (f = readdir(files));)
        for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; ++i)
            likely |= strncmp(f->d_name, beginnings[i], strlen(beginnings[i])) == 0;
    closedir(files);
    return likely;
}
