# 32-bit Arm, version 7 with VFP and without NEON, as Debian's armhf.

set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(QUERN_TRIPLE arm-linux-gnueabihf)
set(QUERN_QEMU qemu-arm)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
