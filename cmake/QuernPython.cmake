# The Python package, complete in python/quern of the build directory: the modules, the shared library,
# and the types of its functions, which are read from the public headers. pyproject.toml makes a wheel
# of the same parts.

if(NOT BUILD_SHARED_LIBS)
    message(FATAL_ERROR "QUERN_PYTHON needs a shared library: add -DBUILD_SHARED_LIBS=ON.")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(_package "${PROJECT_BINARY_DIR}/python/quern")
set(_abi "${PROJECT_BINARY_DIR}/generated/_abi.py")
set(_generate "${PROJECT_SOURCE_DIR}/python/generate_abi.py")
file(GLOB _headers CONFIGURE_DEPENDS include/quern/*.h)
file(GLOB _modules CONFIGURE_DEPENDS python/quern/*)
list(FILTER _modules EXCLUDE REGEX "__pycache__")

add_custom_command(OUTPUT "${_abi}"
    COMMAND Python3::Interpreter "${_generate}" "${PROJECT_SOURCE_DIR}" "${_abi}"
    DEPENDS "${_generate}" ${_headers} app/fields.c src/model/recipe/option_rows.c
    COMMENT "Reading the public headers for Python" VERBATIM)
add_custom_target(python
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${_package}"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different ${_modules} "${_abi}" "${_package}"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different $<TARGET_FILE:quern> "${_package}/libquern.so"
    DEPENDS "${_abi}" ${_modules} quern VERBATIM)

install(FILES "${_abi}" DESTINATION quern COMPONENT python EXCLUDE_FROM_ALL)
install(FILES $<TARGET_FILE:quern> RENAME libquern.so DESTINATION quern COMPONENT python
    EXCLUDE_FROM_ALL)
