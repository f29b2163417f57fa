# Refuses a compiler or flags that change arithmetic, by what they do: a small program is built as the
# library is and run. Flags have many names and come in by many ways (CMAKE_C_FLAGS, a build type of
# the user's, linker flags, CC, the environment), and wrong bytes would come out without a word.

# What a user gave, for messages and so that an unchanged configuration is not probed again.
function(_quern_flags_of config variable)
    string(TOUPPER "${config}" upper)
    get_directory_property(options COMPILE_OPTIONS)
    get_directory_property(link_options LINK_OPTIONS)
    list(FILTER options EXCLUDE REGEX "[$]<")
    list(FILTER link_options EXCLUDE REGEX "[$]<")
    list(JOIN options " " options)
    list(JOIN link_options " " link_options)
    string(STRIP "${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${upper}} ${options}" compile)
    set(program "${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_EXE_LINKER_FLAGS_${upper}} ${link_options}")
    set(shared "${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS_${upper}} ${link_options}")
    string(STRIP "${program}" program)
    string(STRIP "${shared}" shared)
    set(${variable}_COMPILE "${compile}" PARENT_SCOPE)
    set(${variable}_PROGRAM "${program}" PARENT_SCOPE)
    set(${variable}_SHARED "${shared}" PARENT_SCOPE)
endfunction()

# Runs the probe with these flags. The flag that takes fast arithmetic back is left out: what it cannot
# take back in one compiler or at the link, another one would let through.
function(_quern_run_probe compile link variable)
    set(CMAKE_C_FLAGS "${compile}")
    set(CMAKE_C_FLAGS_DEBUG "") # what try_run adds to it
    set(CMAKE_EXE_LINKER_FLAGS "${link}")
    set(place "${PROJECT_BINARY_DIR}/CMakeFiles/arithmetic")
    set(source "${PROJECT_SOURCE_DIR}/cmake/arithmetic_probe.c")
    set(said "")
    # A launcher may add flags as well.
    string(REPLACE ";" "\\;" launcher "${CMAKE_C_COMPILER_LAUNCHER}")
    set(launcher CMAKE_FLAGS "-DCMAKE_C_COMPILER_LAUNCHER=${launcher}")
    if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
        set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
        try_compile(built "${place}" "${source}" ${launcher} COMPILE_DEFINITIONS -DPROBE_MARKERS
            OUTPUT_VARIABLE log COPY_FILE "${place}/markers.a")
        if(built)
            file(STRINGS "${place}/markers.a" markers REGEX "quern_keeps_")
            foreach(marker the_order_of_sums the_sign_of_zero nan double_constants float)
                if(NOT "${markers}" MATCHES "quern_keeps_${marker}" AND said STREQUAL "")
                    string(REPLACE "_" " " said "the compiler does not keep ${marker}")
                endif()
            endforeach()
        endif()
    else()
        try_run(ended built "${place}" "${source}" ${launcher} COMPILE_OUTPUT_VARIABLE log
            RUN_OUTPUT_VARIABLE said)
        if(built AND NOT "${ended}" STREQUAL "0" AND "${said}" STREQUAL "")
            set(said "the program that looks at it cannot be run (${ended})")
        endif()
        unset(ended CACHE)
    endif()
    if(NOT built)
        set(said "not built:\n${log}")
    endif()
    unset(built CACHE)
    string(STRIP "${said}" said)
    set(${variable} "${said}" PARENT_SCOPE)
endfunction()

function(_quern_refuse_arithmetic config fault what flags)
    string(STRIP "${flags}" flags)
    message(FATAL_ERROR "This compiler would change results: ${fault}.\n"
        "  Compiler: ${CMAKE_C_COMPILER}\n  Build type: ${config}\n  ${what}: ${flags}\n"
        "Quern promises the same bytes everywhere. Take out the flags that allow it: of "
        "CMAKE_C_FLAGS and of those for the build type, of the linker's flags, and of the "
        "environment variables CC, CFLAGS and LDFLAGS. Then configure in an empty folder.")
endfunction()

set(_arithmetic "${QUERN_ARITHMETIC_FLAGS}")
list(REMOVE_ITEM _arithmetic -fno-fast-math)
list(JOIN _arithmetic " " _arithmetic)
if(CMAKE_CONFIGURATION_TYPES)
    set(_configs ${CMAKE_CONFIGURATION_TYPES})
else()
    set(_configs "${CMAKE_BUILD_TYPE}")
endif()
file(SHA256 "${PROJECT_SOURCE_DIR}/cmake/arithmetic_probe.c" _seen)
foreach(_config IN LISTS _configs)
    _quern_flags_of("${_config}" _flags)
    string(JOIN " " _seen "${_seen}" "${CMAKE_C_COMPILER}" "${CMAKE_C_COMPILER_VERSION}"
        "${_arithmetic}" "${_flags_COMPILE}" "${_flags_PROGRAM}" "${_flags_SHARED}"
        "${CMAKE_C_COMPILER_LAUNCHER}")
endforeach()
if(NOT QUERN_ARITHMETIC_SEEN STREQUAL _seen)
    foreach(_config IN LISTS _configs)
        _quern_flags_of("${_config}" _flags)
        _quern_run_probe("${_flags_COMPILE} ${_arithmetic}" "${_flags_PROGRAM}" _fault)
        if(_fault)
            _quern_refuse_arithmetic("${_config}" "${_fault}" "Flags"
                "${_flags_COMPILE} ${_flags_PROGRAM}")
        endif()
        if(_flags_SHARED STREQUAL _flags_PROGRAM)
            continue()
        endif()
        # Flags of a shared object change the whole process that loads it. Those that no program can be
        # linked with are the linker's own and none of the compiler's.
        _quern_run_probe("${_flags_COMPILE} ${_arithmetic}" "${_flags_PROGRAM} ${_flags_SHARED}"
            _fault)
        if(_fault AND NOT _fault MATCHES "^not built")
            _quern_refuse_arithmetic("${_config}" "${_fault}" "Flags of shared objects"
                "${_flags_COMPILE} ${_flags_SHARED}")
        endif()
    endforeach()
    set(QUERN_ARITHMETIC_SEEN "${_seen}" CACHE INTERNAL "Flags that were probed")
endif()
