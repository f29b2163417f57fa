# kernel_text.h: the kernel text for each language as one string literal, made when configuring from
# src/kernels/training/program.cl and the files that it names, for OpenCL also program_opencl.cl; and the text of
# the functions of user kernels, from math.cl and random.cl. GCC and clang take literals of any length, and read them a
# hundred times as quickly as numbers of characters.
#
# A line `#include "FOLDER/FILE"` of these stands for the file, and conditions stay as they are. A file
# program_NAME.cl is a list of files, too. Others include nothing, except that a header shared with C may name the system's, and such
# lines are left out.

set(_kernels "${PROJECT_SOURCE_DIR}/src/kernels")

# Sets `variable` to the text of a file, after a line that tells compilers its name.
function(quern_kernel_file file variable)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        "${PROJECT_SOURCE_DIR}/src/${file}")
    get_filename_component(name "${file}" NAME)
    file(READ "${PROJECT_SOURCE_DIR}/src/${file}" text)
    string(REGEX REPLACE "#include[^\n]*\n" "\n" text "${text}")
    set(${variable} "#line 1 \"${name}\"\n${text}" PARENT_SCOPE)
endfunction()

# Sets `variable` to the files that a list of them names, one after the other, with its conditions.
function(quern_kernel_files list variable)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_kernels}/${list}")
    file(STRINGS "${_kernels}/${list}" lines REGEX "^#(include \"[a-z0-9_/.]+\"|if .*|endif)$")
    set(all "")
    foreach(line IN LISTS lines)
        if(line MATCHES "^#include \"kernels/(.*/program_.*)\"$")
            quern_kernel_files("${CMAKE_MATCH_1}" text)
        elseif(line MATCHES "^#include \"(.*)\"$")
            quern_kernel_file("${CMAKE_MATCH_1}" text)
        else()
            set(text "${line}\n")
        endif()
        string(APPEND all "${text}")
    endforeach()
    set(${variable} "${all}" PARENT_SCOPE)
endfunction()

quern_kernel_files(training/program.cl _text_cuda)
quern_kernel_files(training/program_opencl.cl _text_opencl)
set(_text_opencl "${_text_cuda}${_text_opencl}")
quern_kernel_files(runtime/math.cl _text_math_cuda)
quern_kernel_files(runtime/random.cl _text_random)
set(_text_math_opencl "${_text_math_cuda}")
quern_kernel_file(kernels/runtime/exact.cl _text_exact_cuda)
set(_text_exact_opencl "${_text_exact_cuda}")

set(_header "/* Made by cmake/QuernKernels.cmake. */\n"
    "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n")
string(JOIN "" _header ${_header})

# Adds `text` to `header` as the literal qn__text_NAME.
function(quern_kernel_literal header name text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}") # no trigraphs
    string(REPLACE "\n" "\\n\"\n\"" text "${text}")
    set(${header} "${${header}}static const char qn__text_${name}[] =\n\"${text}\";\n" PARENT_SCOPE)
endfunction()

set(_kernel_text "${_header}")
foreach(_language opencl cuda)
    quern_kernel_file("kernels/runtime/prelude_${_language}.cl" _prelude)
    foreach(_name exact_${_language} math_${_language} ${_language})
        quern_kernel_literal(_kernel_text ${_name} "${_prelude}${_text_${_name}}")
    endforeach()
endforeach()
set(_operations "")
foreach(_part operations_device operations)
    quern_kernel_file("kernels/runtime/${_part}.inc" _text)
    string(APPEND _operations "${_text}")
endforeach()
quern_kernel_literal(_kernel_text operations "${_operations}")
foreach(_part operation_trials operation_trials_device)
    quern_kernel_file("kernels/runtime/${_part}.inc" _text)
    string(APPEND _operations "${_text}")
endforeach()
quern_kernel_literal(_kernel_text operation_trials "${_operations}")
quern_kernel_file("kernels/runtime/totals.cl" _totals)
quern_kernel_literal(_kernel_text totals "${_totals}")
quern_kernel_file("kernels/runtime/cells.cl" _cells)
foreach(_part pairs columns)
    quern_kernel_file("kernels/runtime/${_part}.cl" _text)
    quern_kernel_literal(_kernel_text ${_part} "${_cells}${_text}")
endforeach()
string(APPEND _kernel_text "#pragma GCC diagnostic pop\n")
file(GENERATE OUTPUT "${QUERN_GENERATED_DIR}/kernel_text.h" CONTENT "${_kernel_text}")

# user_text.h: what user kernels are compiled with as C, with the headers that these files include.
set(_text "")
foreach(_part kernels/runtime/operations_c kernels/runtime/operations userkernel/compiler/user_prelude)
    set(_file "${PROJECT_SOURCE_DIR}/src/${_part}.inc")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_file}")
    file(READ "${_file}" _part_text)
    string(APPEND _text "${_part_text}")
endforeach()
set(_user_text "${_header}")
quern_kernel_literal(_user_text user_prelude "${_text}")
quern_kernel_file("kernels/runtime/prelude_c.h" _prelude)
quern_kernel_literal(_user_text user_words "${_prelude}")
quern_kernel_literal(_user_text user_math "${_text_math_cuda}")
quern_kernel_literal(_user_text user_random "${_text_random}")
quern_kernel_file("kernels/runtime/math_common.inc" _common)
quern_kernel_file("userkernel/compiler/user_common.inc" _user_common)
quern_kernel_literal(_user_text user_math_common "${_common}")
quern_kernel_literal(_user_text user_common "${_user_common}")
string(APPEND _user_text "#pragma GCC diagnostic pop\n")
file(GENERATE OUTPUT "${QUERN_GENERATED_DIR}/user_text.h" CONTENT "${_user_text}")

# user_lanes_text.h: what such kernels need to compute several items in the lanes of vectors.
set(_file "${PROJECT_SOURCE_DIR}/src/userkernel/compiler/user_lanes.inc")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_file}")
file(READ "${_file}" _text)
set(_lanes_text "${_header}")
quern_kernel_literal(_lanes_text user_lanes "${_text}")
string(APPEND _lanes_text "#pragma GCC diagnostic pop\n")
file(GENERATE OUTPUT "${QUERN_GENERATED_DIR}/user_lanes_text.h" CONTENT "${_lanes_text}")
