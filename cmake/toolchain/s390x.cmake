# IBM Z: 64 bits, big-endian.

set(CMAKE_SYSTEM_PROCESSOR s390x)
set(QUERN_TRIPLE s390x-linux-gnu)
set(QUERN_QEMU qemu-s390x)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
