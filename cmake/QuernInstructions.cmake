# The instruction sets of the CPU that have files of their own: their compilers' flags, and which of
# them this build has. src/device/cpu/cpu_isa.c has their rows.

set(QUERN_ISAS_x86 avx2 avx512 vnni amx)
set(QUERN_ISAS_arm neon dotprod)
set(QUERN_ISAS ${QUERN_ISAS_x86} ${QUERN_ISAS_arm})
# A file named for an instruction set is built with that set and left out elsewhere. Nothing
# else is: what runs on any machine must not contain an instruction that some lack.
set(QUERN_FLAGS_avx2 -mavx2 -mfma)
set(QUERN_FLAGS_avx512 -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma)
set(QUERN_FLAGS_vnni ${QUERN_FLAGS_avx512} -mavx512vnni)
set(QUERN_FLAGS_amx ${QUERN_FLAGS_avx512} -mavx512vbmi -mamx-tile -mamx-int8)
if(QUERN_AMX)
    if(NOT QUERN_AMX MATCHES "^(emulated|idle)$")
        message(FATAL_ERROR "QUERN_AMX is ${QUERN_AMX}: it can be emulated, idle or empty")
    endif()
    string(TOUPPER "QN_AMX_${QUERN_AMX}=1" _amx)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/device/cpu/cpu_isa.c"
        "${PROJECT_SOURCE_DIR}/src/device/cpu/integer/intgemm_trust.c"
        APPEND PROPERTY COMPILE_DEFINITIONS ${_amx})
    list(APPEND QUERN_FLAGS_amx "-D${_amx}" -include
        "${PROJECT_SOURCE_DIR}/tests/amx_emulated/tiles_stand_in.h")
endif()
set(QUERN_FLAGS_neon "")
set(QUERN_FLAGS_dotprod -march=armv8.2-a+dotprod)
# GCC's address sanitizer moves the locals of a function to a "fake stack" when use after return is
# looked for, and GCC 12 then places locals of 64 bytes at multiples of 32 while it still reads them
# with aligned instructions: the program dies at the first one. (Seen in the disassembly: vmovaps
# from an address that ends in 20.) So these files, and no others, are built without that check.
if(QUERN_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU"
        AND CMAKE_C_COMPILER_VERSION VERSION_LESS 14)
    list(APPEND QUERN_FLAGS_avx512 "--param=asan-use-after-return=0")
    list(APPEND QUERN_FLAGS_vnni "--param=asan-use-after-return=0")
    list(APPEND QUERN_FLAGS_amx "--param=asan-use-after-return=0")
endif()
# Instrumented, a kernel of many registers takes GCC twenty seconds and more; with fewer passes, and
# registers chosen for a whole function at once, five.
if(QUERN_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    foreach(isa avx2 avx512 amx)
        list(APPEND QUERN_FLAGS_${isa} -Og -fira-region=one)
    endforeach()
    # Two thirds of the rest are checks of addresses, which the address sanitizer makes as well.
    if(QUERN_SANITIZE MATCHES "address")
        foreach(isa IN LISTS QUERN_ISAS_x86)
            list(APPEND QUERN_FLAGS_${isa}
                -fno-sanitize=null,object-size,alignment,pointer-overflow)
        endforeach()
        # Calls in the place of checks take half of the time to compile. Kernels of floats would run four
        # times as long with them; these do not.
        list(APPEND QUERN_FLAGS_amx --param=asan-instrumentation-with-call-threshold=0)
    endif()
endif()
# Each of these takes ten seconds and more. Where the plain sources are built plainly, what this machine
# cannot run is, too.
if((QUERN_SANITIZE OR QUERN_PLAIN_FLAGS) AND EXISTS /proc/cpuinfo)
    set(_flag_avx512 avx512bw)
    set(_flag_vnni avx512_vnni)
    set(_flag_amx amx_int8)
    foreach(isa avx512 vnni amx)
        file(STRINGS /proc/cpuinfo _here REGEX " ${_flag_${isa}}( |$)" LIMIT_COUNT 1)
        if(NOT _here AND QUERN_SANITIZE)
            list(APPEND QUERN_FLAGS_${isa} -fno-sanitize=all)
        endif()
        if(NOT _here AND QUERN_PLAIN_FLAGS)
            list(APPEND QUERN_FLAGS_${isa} -O0)
        endif()
    endforeach()
    list(TRANSFORM QUERN_FLAGS_amx REPLACE "^-O0$" -O1) # -O0 takes four times as long there
endif()
# Without the instruction, a function of libm is called for each fused multiplication: five times as long
# under a sanitizer. The release build calls it.
set(_flags_scalar "")
if(QUERN_SANITIZE AND NOT QUERN_FUZZ AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo _here REGEX "^flags.* fma( |$)" LIMIT_COUNT 1)
    if(_here)
        set(_flags_scalar -mfma)
    endif()
endif()
# clang takes minutes for them, and no fuzz target computes.
if(QUERN_FUZZ)
    foreach(isa IN LISTS QUERN_ISAS)
        list(APPEND QUERN_FLAGS_${isa} -O0 -fno-sanitize=all)
    endforeach()
endif()

# Not every compiler that knows AVX-512 knows VNNI and AMX, nor every one for Arm the dot product: a
# set with a flag here is left out where the compiler does not know it, else QN_HAVE_* is defined.
set(_ask_vnni -mavx512vnni)
set(_ask_amx -mamx-int8)
set(_ask_dotprod -march=armv8.2-a+dotprod)
set(QUERN_ISAS_HERE "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(QUERN_ISAS_HERE ${QUERN_ISAS_x86})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(QUERN_ISAS_HERE ${QUERN_ISAS_arm})
endif()
include(CheckCCompilerFlag)
foreach(isa IN LISTS QUERN_ISAS_HERE)
    if(DEFINED _ask_${isa})
        check_c_compiler_flag("${_ask_${isa}}" QUERN_COMPILER_HAS_${isa})
        string(TOUPPER "QN_HAVE_${isa}=1" _have)
        if(QUERN_COMPILER_HAS_${isa})
            list(APPEND QUERN_FEATURE_DEFINITIONS ${_have})
        else()
            list(REMOVE_ITEM QUERN_ISAS_HERE ${isa})
        endif()
    endif()
endforeach()

function(quern_for_this_machine variable)
    set(files ${${variable}})
    foreach(isa IN LISTS QUERN_ISAS)
        if(NOT isa IN_LIST QUERN_ISAS_HERE)
            list(FILTER files EXCLUDE REGEX "_${isa}\\.c$")
            continue()
        endif()
        set(own ${files})
        list(FILTER own INCLUDE REGEX "_${isa}\\.c$")
        if(own)
            set_source_files_properties(${own} PROPERTIES
                COMPILE_OPTIONS "${QUERN_FLAGS_${isa}}")
        endif()
    endforeach()
    set(own ${files})
    list(FILTER own INCLUDE REGEX
        "/(layer|num)/|_scalar\\.c$|/elementary_functions\\.c$|/device/cpu/(worker|layers)/")
    if(own AND _flags_scalar)
        set_property(SOURCE ${own} APPEND PROPERTY COMPILE_OPTIONS "${_flags_scalar}")
    endif()
    set(${variable} ${files} PARENT_SCOPE)
endfunction()
