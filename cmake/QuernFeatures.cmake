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
