# 64-bit RISC-V.

set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(QUERN_TRIPLE riscv64-linux-gnu)
set(QUERN_QEMU qemu-riscv64)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
