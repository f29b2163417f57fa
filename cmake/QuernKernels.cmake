# kernel_text.h: the kernel text for each language as an array of characters, made when configuring
# from src/kernels/program.cl and the files that it names, for OpenCL also program_opencl.cl. An
# array, because compilers need not take string literals of such a length.
#
# A line `#include "FOLDER/FILE"` of these stands for the file, and conditions stay as they are; files
# themselves include nothing, except that a header shared with C may name the system's, and such
# lines are left out.

set(_kernels "${PROJECT_SOURCE_DIR}/src/kernels")

# Sets `variable` to the hexadecimal bytes of a file, behind a line that tells compilers its name.
function(quern_kernel_file file variable)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        "${PROJECT_SOURCE_DIR}/src/${file}")
    get_filename_component(name "${file}" NAME)
    string(HEX "#line 1 \"${name}\"\n" line)
    file(READ "${PROJECT_SOURCE_DIR}/src/${file}" text HEX)
    # "#include", then anything but the end of the line.
    string(REGEX REPLACE "23696e636c756465([1-9a-f][0-9a-f]|0[0-9b-f])*0a" "0a" text "${text}")
    set(${variable} "${line}${text}" PARENT_SCOPE)
endfunction()

# Sets `variable` to the files that a list of them names, one behind the other, with its conditions.
function(quern_kernel_files list variable)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_kernels}/${list}")
    file(STRINGS "${_kernels}/${list}" lines REGEX "^#(include \"[a-z0-9_/.]+\"|if .*|endif)$")
    set(all "")
    foreach(line IN LISTS lines)
        if(line MATCHES "^#include \"(.*)\"$")
            quern_kernel_file("${CMAKE_MATCH_1}" text)
        else()
            string(HEX "${line}\n" text)
        endif()
        string(APPEND all "${text}")
    endforeach()
    set(${variable} "${all}" PARENT_SCOPE)
endfunction()

quern_kernel_files(program.cl _program_cuda)
quern_kernel_files(program_opencl.cl _program_opencl)
set(_program_opencl "${_program_cuda}${_program_opencl}")

set(_header "/* Made by cmake/QuernKernels.cmake. */\n")
foreach(_language opencl cuda)
    quern_kernel_file("kernels/prelude_${_language}.cl" _text)
    string(REGEX REPLACE "(..)" "0x\\1," _text "${_text}${_program_${_language}}")
    string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n"
        _text "${_text}")
    string(APPEND _header "static const char qn__text_${_language}[] = {\n${_text}0};\n")
endforeach()
file(GENERATE OUTPUT "${QUERN_GENERATED_DIR}/kernel_text.h" CONTENT "${_header}")
