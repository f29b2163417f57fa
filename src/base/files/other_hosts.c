#include "base/files/other_hosts.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

void qn__boot_id(char id[QN__BOOT_ID]) {
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, id, QN__BOOT_ID - 1);
    id[size > 0 ? size : 0] = '\0';
    id[strcspn(id, "\n")] = '\0';
    if (file >= 0)
        close(file);
}

/* File systems that only one kernel uses, by their numbers in statfs(2): ext2 to ext4, XFS, Btrfs,
 * tmpfs, overlayfs, F2FS, ZFS, bcachefs. */
int qn__folder_is_shared(int folder) {
    static const uint32_t local[] = {0xEF53,     0x58465342, 0x9123683E, 0x01021994,
                                     0x794C7630, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E};
    struct statfs info;
    if (fstatfs(folder, &info) != 0)
        return 1;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; ++i)
        if ((uint32_t)info.f_type == local[i])
            return 0;
    return 1;
}
