# Small helpers that make every target the same way.

# Flags that every target of the project is built with.
function(quern_use_house_rules target)
    # 64 bits for sizes of files and for times also where addresses have 32.
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE _FILE_OFFSET_BITS=64 _TIME_BITS=64)
    target_compile_options(${target} PRIVATE ${QUERN_WARNING_FLAGS} ${QUERN_SANITIZE_FLAGS}
        ${QUERN_ARITHMETIC_FLAGS}
        # __FILE__ in a message must not carry the place of the source tree.
        "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
    target_link_options(${target} PRIVATE ${QUERN_SANITIZE_FLAGS})
endfunction()

# A library of quern-objects; further arguments as for add_library.
function(quern_library target)
    add_library(${target} ${ARGN} $<TARGET_OBJECTS:quern-objects> ${QUERN_TAKEN})
    target_include_directories(${target} PUBLIC
        "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_link_libraries(${target} PUBLIC Threads::Threads m)
    target_link_libraries(${target} PRIVATE ${QUERN_FEATURE_LIBRARIES})
    target_link_options(${target} PRIVATE ${QUERN_SANITIZE_FLAGS})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
endfunction()

# Symbol versions for a shared library, where the linker knows them (GNU ld, lld, gold, mold). The
# others export the same functions without versions, because what is not marked QN_API is hidden.
include(CheckLinkerFlag)
function(quern_export target map)
    set(map "${PROJECT_SOURCE_DIR}/${map}")
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/probe.map" "QUERN { global: main; local: *; };\n")
    check_linker_flag(C "LINKER:--version-script=${CMAKE_CURRENT_BINARY_DIR}/probe.map"
        QUERN_LINKER_HAS_VERSIONS)
    if(QUERN_LINKER_HAS_VERSIONS)
        target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
        set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
    endif()
endfunction()

# Commands, files, messages, ranks, plans: an optimiser has nothing to change there that reaches a
# result. QUERN_PLAIN_FLAGS=-O0 builds them in less than half of the time. Hashes are left as they are,
# for their speed.
function(quern_build_plainly)
    set(plain ${ARGN})
    list(FILTER plain INCLUDE REGEX "/(app|src/(base|cluster|team|data|model|predict|report|train|search\
|plan|serve|userkernel/(language|compiler|run)|device))/")
    list(FILTER plain EXCLUDE REGEX "/src/device/cpu/")
    list(FILTER plain EXCLUDE REGEX
        "/(sha256|siphash|fill|scale|synth|write|arrow_data|npy_values|label_values|initial)[a-z_0-9]*\\.c$")
    if(QUERN_PLAIN_FLAGS AND plain)
        set_property(SOURCE ${plain} APPEND PROPERTY COMPILE_OPTIONS "${QUERN_PLAIN_FLAGS}")
    endif()
    if(plain)
        set_property(SOURCE ${plain} PROPERTY QUERN_PLAIN ON)
    endif()
    # A shared library of another tree may take these objects, and those of the sets of instructions that
    # take longest to compile. No instruction of a loop changes by it.
    set(taken ${ARGN})
    list(FILTER taken INCLUDE REGEX "_(avx512|vnni|amx)\\.c$")
    if(taken)
        set_property(SOURCE ${taken} PROPERTY QUERN_PLAIN ON)
    endif()
    list(APPEND taken ${plain})
    if(taken AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CROSSCOMPILING)
        set_property(SOURCE ${taken} APPEND PROPERTY COMPILE_OPTIONS -fPIC -fno-semantic-interposition)
    endif()
endfunction()

# QUERN_OBJECTS=TREE, a build of the same sources: its objects of what is built plainly are used in the
# place of a compilation. What depends on an option of the build is compiled here. `taken` becomes the
# objects.
function(quern_take_objects variable target taken)
    set(objects "")
    set(sources ${${variable}})
    if(QUERN_OBJECTS)
        foreach(source IN LISTS ${variable})
            get_source_file_property(plain "${source}" QUERN_PLAIN)
            file(STRINGS "${source}" own REGEX "QN_HAVE_|build_info\\.h" LIMIT_COUNT 1)
            file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
            set(object "${QUERN_OBJECTS}/CMakeFiles/${target}.dir/${name}.o")
            if(plain STREQUAL "ON" AND NOT own AND EXISTS "${object}")
                list(APPEND objects "${object}")
                list(REMOVE_ITEM sources "${source}")
            endif()
        endforeach()
    endif()
    set(${taken} "${objects}" PARENT_SCOPE)
    set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# Headers are half of what compiling without optimisation costs. QUERN_GROUPS=FILE, lines of sources
# that tests/groups.py found fit to be read together, makes one compilation of each line. Those with
# other flags are apart.
function(quern_group variable)
    if(NOT QUERN_GROUPS OR NOT EXISTS "${QUERN_GROUPS}")
        return()
    endif()
    set(files ${${variable}})
    set(made 0)
    file(STRINGS "${QUERN_GROUPS}" lines)
    foreach(line IN LISTS lines)
        string(REPLACE " " ";" line "${line}")
        set(kinds "")
        foreach(source IN LISTS line)
            if(source IN_LIST files)
                get_source_file_property(flags "${source}" COMPILE_OPTIONS)
                string(MAKE_C_IDENTIFIER "${flags}" kind)
                list(APPEND kinds ${kind})
                set(flags_${kind} ${flags})
                list(APPEND sources_${kind} "${source}")
            endif()
        endforeach()
        list(REMOVE_DUPLICATES kinds)
        foreach(kind IN LISTS kinds)
            list(LENGTH sources_${kind} length)
            if(length EQUAL 1)
                set(sources_${kind} "")
                continue()
            endif()
            math(EXPR made "${made} + 1")
            set(group "${QUERN_GENERATED_DIR}/groups/${variable}_${made}.c")
            list(REMOVE_ITEM files ${sources_${kind}})
            list(TRANSFORM sources_${kind} REPLACE "(.+)" "#include \"\\1\"\n")
            string(JOIN "" text ${sources_${kind}})
            file(CONFIGURE OUTPUT "${group}" CONTENT "${text}" @ONLY)
            if(NOT flags_${kind})
                set(flags_${kind} "")
            endif()
            # The local names of one file may be functions in a header of another.
            set_source_files_properties("${group}" PROPERTIES
                COMPILE_OPTIONS "${flags_${kind}};-Wno-shadow")
            list(APPEND files "${group}")
            set(sources_${kind} "")
        endforeach()
    endforeach()
    set(${variable} ${files} PARENT_SCOPE)
endfunction()

# The test and benchmark programs of the elementary functions compare with MPFR, and the
# benchmarks run SLEEF beside Quern, where these are installed.
function(quern_link_peers target)
    if(target MATCHES "elementary|functions_full" AND TARGET quern_MPFR)
        target_link_libraries(${target} PRIVATE quern_MPFR)
    endif()
    if(target MATCHES "^bench" AND TARGET quern_SLEEF)
        target_link_libraries(${target} PRIVATE quern_SLEEF)
    endif()
endfunction()

# FOLDER/*.c: one program each, in FOLDER of the build directory, and a target FOLDER for all.
# Examples are a user's programs and see the public headers alone.
function(quern_add_programs folder by_default)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.c")
    list(FILTER sources EXCLUDE REGEX "_test\\.c$")
    set(programs "")
    foreach(source IN LISTS sources)
        get_filename_component(name "${source}" NAME_WE)
        set(program "${folder}.${name}")
        add_executable(${program} "${source}")
        quern_use_house_rules(${program})
        if(NOT folder STREQUAL "bench")
            target_link_libraries(${program} PRIVATE quern)
        else()
            target_link_libraries(${program} PRIVATE quern-internal quern-fake-device)
            target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/src"
                "${PROJECT_SOURCE_DIR}/bench" "${QUERN_GENERATED_DIR}")
            quern_link_peers(${program})
        endif()
        set_target_properties(${program} PROPERTIES OUTPUT_NAME "${name}"
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
        if(NOT by_default)
            set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
        list(APPEND programs ${program})
    endforeach()
    if(programs)
        add_custom_target(${folder} DEPENDS ${programs})
    endif()
endfunction()
