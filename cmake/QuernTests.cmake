# One test program for each *_test.c under src/ and tests/. src/base/error_test.c is the program
# tests/base.error and the ctest test base.error; tests/foo_test.c is tests.foo.
#
# Nothing of this is built by default. The target `tests` builds all of it, `fakes` the libraries that
# stand in for a GPU's; ctest builds `tests` first.

file(GLOB_RECURSE _tests CONFIGURE_DEPENDS src/*_test.c)
file(GLOB _more CONFIGURE_DEPENDS tests/*_test.c)
list(APPEND _tests ${_more})

if(_tests AND NOT TARGET quern_CMOCKA)
    message(STATUS "cmocka was not found, so the C tests are left out. "
        "Install it (Debian: libcmocka-dev) and configure again.")
endif()

# What `make gpu-check` runs; it must not ask a user for cmocka.
set(_of_gpu_check device.conformance tests.gpu_kernels)
add_library(quern_plain_cmocka INTERFACE)
target_include_directories(quern_plain_cmocka SYSTEM INTERFACE
    "${PROJECT_SOURCE_DIR}/tests/plain_cmocka")

add_custom_target(fakes)
add_custom_target(tests DEPENDS fakes)

# GPUs for machines that have none; any test may run the kernels in them.
add_subdirectory("${PROJECT_SOURCE_DIR}/tests/emulated_gpu" emulated_gpu EXCLUDE_FROM_ALL)

# Two hundred programs hold the library. GNU ld takes twice as long for them as gold, and so does lld.
include(CheckLinkerFlag)
set(_linker "")
foreach(_name gold lld)
    check_linker_flag(C "-fuse-ld=${_name}" QUERN_LINKER_${_name})
    if(QUERN_LINKER_${_name})
        set(_linker "-fuse-ld=${_name}")
        break()
    endif()
endforeach()

foreach(_source IN LISTS _tests)
    file(RELATIVE_PATH _name "${PROJECT_SOURCE_DIR}" "${_source}")
    string(REGEX REPLACE "^src/|_test\\.c$" "" _name "${_name}")
    string(REPLACE "/" "." _name "${_name}")
    set(_target "test.${_name}")
    set(_cmocka quern_CMOCKA)
    if(NOT TARGET quern_CMOCKA AND _name IN_LIST _of_gpu_check)
        set(_cmocka quern_plain_cmocka)
    elseif(NOT TARGET quern_CMOCKA)
        add_custom_target(${_target}) # tests/builds.py asks for some by name and finds no program
        continue()
    endif()

    add_executable(${_target} EXCLUDE_FROM_ALL "${_source}")
    add_dependencies(tests ${_target})
    quern_use_house_rules(${_target})
    # A test's own assert() must speak in a Release build too.
    target_compile_options(${_target} PRIVATE -UNDEBUG)
    # Half of the time to compile them went into optimising them; what is tested is in the library.
    if(CMAKE_BUILD_TYPE STREQUAL "Debug")
        target_compile_options(${_target} PRIVATE -O0)
    else()
        target_compile_options(${_target} PRIVATE -O1)
    endif()
    # The address sanitizer sees what a test does with memory of the library. What the test computes is
    # its own.
    if(QUERN_SANITIZE MATCHES "undefined")
        target_compile_options(${_target} PRIVATE -fno-sanitize=undefined)
    endif()
    target_include_directories(${_target} PRIVATE "${PROJECT_SOURCE_DIR}/src"
        "${PROJECT_SOURCE_DIR}/tests" "${QUERN_GENERATED_DIR}")
    target_compile_definitions(${_target} PRIVATE ${QUERN_FEATURE_DEFINITIONS})
    target_link_libraries(${_target} PRIVATE quern-fake-device quern-internal quern-emulated-gpu ${_cmocka}
        ${QUERN_FEATURE_LIBRARIES})
    target_link_options(${_target} PRIVATE ${_linker})
    quern_link_peers(${_target})
    set_target_properties(${_target} PROPERTIES OUTPUT_NAME "${_name}"
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")

    add_test(NAME "${_name}" COMMAND ${_target})
    # 77 is how a whole program says that what it tests is not on this machine.
    set_tests_properties("${_name}" PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600
        FIXTURES_REQUIRED built
        ENVIRONMENT "QN_SOURCE_DIR=${PROJECT_SOURCE_DIR};QUERN=${PROJECT_BINARY_DIR}/quern")
endforeach()
if(TARGET test.tests.cuda_fake AND TARGET quern_CMOCKA)
    add_dependencies(test.tests.cuda_fake fakes)
endif()

add_custom_target(gpu-check-tools DEPENDS quern-program bench.gpu_matmul)
foreach(_name IN LISTS _of_gpu_check)
    add_dependencies(gpu-check-tools "test.${_name}")
endforeach()

add_test(NAME build COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target tests)
set_tests_properties(build PROPERTIES FIXTURES_SETUP built)

add_subdirectory("${PROJECT_SOURCE_DIR}/tests/fuzz" fuzz_build EXCLUDE_FROM_ALL)

# The AVX-512 kernels, run through plain C on machines that lack AVX-512.
add_subdirectory("${PROJECT_SOURCE_DIR}/tests/avx512_emulated" avx512_emulated EXCLUDE_FROM_ALL)

# An OpenCL library with faults, where shared objects can be loaded.
if(NOT CMAKE_CROSSCOMPILING)
    add_subdirectory("${PROJECT_SOURCE_DIR}/tests/fake_opencl" fake_opencl_build EXCLUDE_FROM_ALL)
endif()
