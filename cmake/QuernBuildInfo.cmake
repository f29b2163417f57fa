# build_info.h: with what this was built, for `quern version`. No path and no time goes in, so
# that two builds of one source are equal.

set(QUERN_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

set(QUERN_BUILD_COMPILER "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
set(QUERN_BUILD_TYPE "${CMAKE_BUILD_TYPE}")
if(NOT QUERN_BUILD_TYPE)
    set(QUERN_BUILD_TYPE "several")  # a generator that chooses when building
endif()

string(TOUPPER "${CMAKE_BUILD_TYPE}" _type)
separate_arguments(_flags NATIVE_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${_type}}")
list(APPEND _flags -std=c17 ${QUERN_ARITHMETIC_FLAGS})
if(QUERN_SANITIZE)
    list(APPEND _flags "-fsanitize=${QUERN_SANITIZE}")
endif()
list(FILTER _flags EXCLUDE REGEX "[/\"\\\\]")
list(JOIN _flags " " QUERN_BUILD_FLAGS)

list(JOIN QUERN_FEATURES " " QUERN_BUILD_FEATURES)
configure_file("${CMAKE_CURRENT_LIST_DIR}/build_info.h.in"
               "${QUERN_GENERATED_DIR}/build_info.h" @ONLY)
