# Cross build with Debian's compiler for QUERN_TRIPLE; included by the files beside this one. The
# program is linked statically, so qemu runs it without a system root of that machine.

set(CMAKE_SYSTEM_NAME Linux)
# QUERN_CROSS=clang: clang in the place of GCC. It takes two thirds of the time.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES QUERN_CROSS)
if(QUERN_CROSS STREQUAL "clang")
    set(CMAKE_C_COMPILER clang)
    set(CMAKE_C_COMPILER_TARGET ${QUERN_TRIPLE})
else()
    set(CMAKE_C_COMPILER ${QUERN_TRIPLE}-gcc)
endif()
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR ${QUERN_QEMU})

# Libraries of this machine are of no use there; programs are.
set(CMAKE_FIND_ROOT_PATH /usr/${QUERN_TRIPLE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
