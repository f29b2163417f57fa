# One test program for each *_test.c under src/ and tests/. src/base/error_test.c is the program
# tests/base.error and the ctest test base.error; tests/foo_test.c is tests.foo.

file(GLOB_RECURSE _tests CONFIGURE_DEPENDS src/*_test.c)
file(GLOB _more CONFIGURE_DEPENDS tests/*_test.c)
list(APPEND _tests ${_more})

if(_tests AND NOT TARGET quern_CMOCKA)
    message(STATUS "cmocka was not found, so the C tests are left out. "
        "Install it (Debian: libcmocka-dev) and configure again.")
    set(_tests "")
endif()

# GPUs for machines that have none; any test may run the kernels in them.
add_subdirectory("${PROJECT_SOURCE_DIR}/tests/emulated_gpu" emulated_gpu)

foreach(_source IN LISTS _tests)
    file(RELATIVE_PATH _name "${PROJECT_SOURCE_DIR}" "${_source}")
    string(REGEX REPLACE "^src/|_test\\.c$" "" _name "${_name}")
    string(REPLACE "/" "." _name "${_name}")
    set(_target "test.${_name}")

    add_executable(${_target} "${_source}")
    quern_use_house_rules(${_target})
    # A test's own assert() must speak in a Release build too.
    target_compile_options(${_target} PRIVATE -UNDEBUG)
    target_include_directories(${_target} PRIVATE "${PROJECT_SOURCE_DIR}/src"
        "${PROJECT_SOURCE_DIR}/tests" "${QUERN_GENERATED_DIR}")
    target_compile_definitions(${_target} PRIVATE ${QUERN_FEATURE_DEFINITIONS})
    target_link_libraries(${_target} PRIVATE quern quern-emulated-gpu quern_CMOCKA
        ${QUERN_FEATURE_LIBRARIES})
    quern_link_peers(${_target})
    set_target_properties(${_target} PROPERTIES OUTPUT_NAME "${_name}"
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")

    add_test(NAME "${_name}" COMMAND ${_target})
    # 77 is how a whole program says that what it tests is not on this machine.
    set_tests_properties("${_name}" PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600
        ENVIRONMENT "QN_SOURCE_DIR=${PROJECT_SOURCE_DIR};QUERN=${PROJECT_BINARY_DIR}/quern")
endforeach()

# The AVX-512 kernels, run through plain C on machines that lack AVX-512.
add_subdirectory("${PROJECT_SOURCE_DIR}/tests/avx512_emulated" avx512_emulated)

# An OpenCL library with faults, where shared objects can be loaded.
if(NOT CMAKE_CROSSCOMPILING)
    add_subdirectory("${PROJECT_SOURCE_DIR}/tests/fake_opencl" fake_opencl_build)
endif()
