# 64-bit Arm.

set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(QUERN_TRIPLE aarch64-linux-gnu)
set(QUERN_QEMU qemu-aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
