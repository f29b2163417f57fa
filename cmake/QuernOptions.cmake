# What can be chosen when building, and the flags that the exactness contract asks for.

option(BUILD_SHARED_LIBS "Build the library as a shared object" OFF)
option(QUERN_WERROR "Treat warnings as errors" OFF)
option(QUERN_EXAMPLES "Build examples/ by default (target: examples)" OFF)
option(QUERN_BENCH "Build bench/ by default (target: bench)" OFF)
option(QUERN_PYTHON "Make the Python package (target: python); needs BUILD_SHARED_LIBS" OFF)
option(QUERN_FUZZ "Link tests/fuzz with libFuzzer (clang)" OFF)
set(QUERN_SANITIZE "" CACHE STRING "Sanitizers: empty, address,undefined or thread")
set(QUERN_PLAIN_FLAGS "" CACHE STRING "Last flags of the sources that compute nothing of a result")
set(QUERN_GROUPS "" CACHE FILEPATH "Sources to be compiled together, a group a line")
set(QUERN_OBJECTS "" CACHE PATH "A build tree whose objects are used for sources that compute nothing of a result")
set(QUERN_AMX "" CACHE STRING "Tiles of AMX: of the processor (empty), emulated, or idle: for times only")
set(QUERN_ZLIB AUTO CACHE STRING "Read .gz through zlib: AUTO, ON or OFF")
set_property(CACHE QUERN_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")
set_property(CACHE QUERN_AMX PROPERTY STRINGS "" emulated idle)
set_property(CACHE QUERN_ZLIB PROPERTY STRINGS AUTO ON OFF)

get_property(_multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT _multi)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

# QuernArithmetic.cmake looks at what a compiler makes of these and of the flags that a user gives.
# errno after a math call is never read; without it sqrtf is one instruction with the same bits.
set(QUERN_ARITHMETIC_FLAGS -ffp-contract=off -fno-fast-math -fno-math-errno)

set(QUERN_WARNING_FLAGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wstrict-prototypes -Wmissing-prototypes)
# Counts have 64 bits everywhere, and memory for them is asked for with 64 bits (qn__alloc), which fails
# where addresses are shorter. What lies in memory has sizes that fit, so there this only makes noise.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    list(REMOVE_ITEM QUERN_WARNING_FLAGS -Wconversion)
endif()
if(QUERN_WERROR)
    list(APPEND QUERN_WARNING_FLAGS -Werror)
endif()

set(QUERN_SANITIZE_FLAGS "")
if(QUERN_SANITIZE)
    set(QUERN_SANITIZE_FLAGS "-fsanitize=${QUERN_SANITIZE}" -fno-sanitize-recover=all
        -fno-omit-frame-pointer -g1)
    if(QUERN_FUZZ)
        list(APPEND QUERN_SANITIZE_FLAGS -fsanitize=fuzzer-no-link)
    elseif(QUERN_SANITIZE MATCHES "address")
        # These look at each access once more. Where memory is read or written wrongly, the address
        # sanitizer ends the program, too. An address made from NULL and never used is found by the
        # fuzz targets only, which keep these checks.
        list(APPEND QUERN_SANITIZE_FLAGS -fno-sanitize=null,object-size)
    endif()
    # Instrumented code makes GCC warn of what is not there; the other builds are the strict ones, and
    # to look for warnings takes a tenth of the time.
    list(APPEND QUERN_SANITIZE_FLAGS -w)
endif()

# float must be computed as float: the x87 unit of 32-bit x86 would round twice, so SSE2 takes its
# place, and GCC for IBM Z makes double of float under -std=c17 unless it is told not to.
include(CheckCSourceCompiles)
set(_plain "")
set(_sse -msse2 -mfpmath=sse)
set(_fast_precision -fexcess-precision=fast)
foreach(_flags plain sse fast_precision)
    list(JOIN _${_flags} " " CMAKE_REQUIRED_FLAGS)
    check_c_source_compiles("
        #include <float.h>
        _Static_assert(FLT_EVAL_METHOD == 0, \"float is not evaluated as float\");
        int main(void) { return 0; }" QUERN_FLOAT_IS_FLOAT_${_flags})
    unset(CMAKE_REQUIRED_FLAGS)
    set(_float_is_float ${QUERN_FLOAT_IS_FLOAT_${_flags}})
    if(_float_is_float)
        list(APPEND QUERN_ARITHMETIC_FLAGS ${_${_flags}})
        break()
    endif()
endforeach()
if(NOT _float_is_float)
    message(FATAL_ERROR "This compiler evaluates float in another precision (FLT_EVAL_METHOD is "
        "not 0), so results would differ. Set CMAKE_C_FLAGS to the flags with which it does not.")
endif()
