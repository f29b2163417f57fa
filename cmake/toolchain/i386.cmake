# 32-bit x86. Quern itself adds the flags for SSE2.

set(CMAKE_SYSTEM_PROCESSOR i686)
set(QUERN_TRIPLE i686-linux-gnu)
set(QUERN_QEMU qemu-i386)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
