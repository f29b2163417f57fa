# What is there beside libc. Each finding is a definition for the code that uses it and a word
# for `quern version`.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(QUERN_FEATURES "")             # words for `quern version`
set(QUERN_FEATURE_LIBRARIES "")    # what the library links
set(QUERN_FEATURE_DEFINITIONS "")  # what the library is told

if(QUERN_ZLIB STREQUAL "AUTO")
    find_package(ZLIB QUIET)
elseif(QUERN_ZLIB)
    find_package(ZLIB REQUIRED)
endif()
if(QUERN_ZLIB AND ZLIB_FOUND)
    list(APPEND QUERN_FEATURES zlib)
    list(APPEND QUERN_FEATURE_LIBRARIES ZLIB::ZLIB)
    list(APPEND QUERN_FEATURE_DEFINITIONS QN_HAVE_ZLIB=1)
endif()

# Not every compiler that knows AVX-512 knows VNNI and AMX, nor every one for Arm the dot product; what
# it does not know is left out.
include(CheckCCompilerFlag)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    check_c_compiler_flag("-mavx512vnni" QUERN_COMPILER_HAS_vnni)
    check_c_compiler_flag("-mamx-int8" QUERN_COMPILER_HAS_amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    check_c_compiler_flag("-march=armv8.2-a+dotprod" QUERN_COMPILER_HAS_dotprod)
endif()
if(QUERN_COMPILER_HAS_vnni)
    list(APPEND QUERN_FEATURE_DEFINITIONS QN_HAVE_VNNI=1)
endif()
if(QUERN_COMPILER_HAS_amx)
    list(APPEND QUERN_FEATURE_DEFINITIONS QN_HAVE_AMX=1)
endif()
if(QUERN_COMPILER_HAS_dotprod)
    list(APPEND QUERN_FEATURE_DEFINITIONS QN_HAVE_DOTPROD=1)
endif()

# The three that follow are for tests and benchmarks alone; the library never sees them.
function(quern_find_tool_library name header)
    find_path(QUERN_${name}_INCLUDE ${header})
    set(libraries "")
    foreach(library IN LISTS ARGN)
        find_library(QUERN_LIB_${library} ${library})
        list(APPEND libraries "${QUERN_LIB_${library}}")
    endforeach()
    mark_as_advanced(QUERN_${name}_INCLUDE)
    if(QUERN_${name}_INCLUDE AND NOT "${libraries}" MATCHES "NOTFOUND")
        add_library(quern_${name} INTERFACE)
        target_include_directories(quern_${name} SYSTEM INTERFACE "${QUERN_${name}_INCLUDE}")
        target_link_libraries(quern_${name} INTERFACE ${libraries})
        target_compile_definitions(quern_${name} INTERFACE QN_HAVE_${name}=1)
    endif()
endfunction()

quern_find_tool_library(CMOCKA cmocka.h cmocka)
quern_find_tool_library(MPFR mpfr.h mpfr gmp)
quern_find_tool_library(SLEEF sleef.h sleef)
