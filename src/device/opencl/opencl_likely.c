/* Opening the OpenCL library opens all drivers of the machine: PoCL's alone takes 60 MiB and a
 * twentieth of a second, for devices that "auto" leaves out. Where no device file could lead to
 * another device, that is saved. */
#include "device/opencl/opencl_likely.h"

#include <dirent.h>
#include <string.h>

/* What the names of such files begin with. */
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
