# Cross build with Debian's compiler for QUERN_TRIPLE; included by the files beside this one. The
# program is linked statically, so qemu runs it without a system root of that machine.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${QUERN_TRIPLE}-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR ${QUERN_QEMU})

# Libraries of this machine are of no use there; programs are.
set(CMAKE_FIND_ROOT_PATH /usr/${QUERN_TRIPLE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
