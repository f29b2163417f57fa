# Manual pages and completions: the program writes them from its tables of options.
#
# A program that cannot run on the machine that builds it, or that runs only with care (sanitizers),
# writes none; its installation has none then.

set(QUERN_MANUAL_PAGES "")
set(QUERN_COMPLETIONS "")
set(QUERN_MANUAL_DIR "${PROJECT_BINARY_DIR}/manual")
file(MAKE_DIRECTORY "${QUERN_MANUAL_DIR}")
set(_runs ON)
if(QUERN_SANITIZE)
    set(_runs OFF)
elseif(CMAKE_CROSSCOMPILING)
    set(_runs OFF)
    if(CMAKE_CROSSCOMPILING_EMULATOR)
        list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 _emulator)
        find_program(QUERN_EMULATOR "${_emulator}")
        mark_as_advanced(QUERN_EMULATOR)
        if(QUERN_EMULATOR)
            set(_runs ON)
        endif()
    endif()
endif()

# What `quern help ARGUMENTS` prints, as `file` of QUERN_MANUAL_DIR; its path is added to `list`.
function(quern_write_manual list file)
    set(path "${QUERN_MANUAL_DIR}/${file}")
    add_custom_command(OUTPUT "${path}" COMMAND quern-program help ${ARGN} > "${path}"
        DEPENDS quern-program VERBATIM)
    set(${list} "${${list}}" "${path}" PARENT_SCOPE)
endfunction()

if(_runs)
    quern_write_manual(QUERN_MANUAL_PAGES quern.1 --man)
    # A command has a file of its name, and the words of that name joined by a sign.
    foreach(source IN LISTS QUERN_COMMAND_SOURCES)
        if(source MATCHES "/([a-z_]+)_command\\.c$")
            string(REPLACE "_" ";" _words "${CMAKE_MATCH_1}")
            string(REPLACE "_" "-" _name "${CMAKE_MATCH_1}")
            quern_write_manual(QUERN_MANUAL_PAGES "quern-${_name}.1" --man ${_words})
        endif()
    endforeach()
    quern_write_manual(QUERN_COMPLETIONS quern --completion bash)
    quern_write_manual(QUERN_COMPLETIONS _quern --completion zsh)
    quern_write_manual(QUERN_COMPLETIONS quern.fish --completion fish)
    add_custom_target(quern-manual ALL DEPENDS ${QUERN_MANUAL_PAGES} ${QUERN_COMPLETIONS})

    install(FILES ${QUERN_MANUAL_PAGES} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
    install(FILES "${QUERN_MANUAL_DIR}/quern"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    install(FILES "${QUERN_MANUAL_DIR}/_quern"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
    install(FILES "${QUERN_MANUAL_DIR}/quern.fish"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
