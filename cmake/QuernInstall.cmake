# Installation: the library, its headers, the program, a CMake package and a pkg-config file. Manual
# pages and completions: QuernManual.cmake.

include(CMakePackageConfigHelpers)
if(QUERN_AMX)
    install(CODE "message(FATAL_ERROR \"QUERN_AMX is ${QUERN_AMX}: such a build is for tests and profiles, not to be installed\")")
endif()
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/quern")

install(TARGETS quern EXPORT quernTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET quern-program)
    if(BUILD_SHARED_LIBS)
        file(RELATIVE_PATH _libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
        set_target_properties(quern-program PROPERTIES INSTALL_RPATH "$ORIGIN/${_libraries}")
    endif()
    install(TARGETS quern-program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY include/quern DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h")
install(EXPORT quernTargets NAMESPACE quern:: DESTINATION "${_package}")

# A static library leaves zlib to whoever links it.
set(QUERN_NEEDS_ZLIB "")
if(ZLIB::ZLIB IN_LIST QUERN_FEATURE_LIBRARIES AND NOT BUILD_SHARED_LIBS)
    set(QUERN_NEEDS_ZLIB 1)
endif()
configure_file(cmake/quernConfig.cmake.in quernConfig.cmake @ONLY)
write_basic_package_version_file(quernConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/quernConfig.cmake"
              "${PROJECT_BINARY_DIR}/quernConfigVersion.cmake" DESTINATION "${_package}")

# The prefix is found from the place of the file itself, so that the tree can be moved.
file(RELATIVE_PATH QUERN_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/+$" "" QUERN_PC_PREFIX "${QUERN_PC_PREFIX}")
# A static library needs the rest named to everybody, not only to those who think of --static.
set(_private "")
if(BUILD_SHARED_LIBS)
    set(_private _PRIVATE)
endif()
set(QUERN_PC_LIBS "")
set(QUERN_PC_LIBS_PRIVATE "")
set(QUERN_PC_REQUIRES "")
set(QUERN_PC_REQUIRES_PRIVATE "")
set(QUERN_PC_LIBS${_private} " -lm -pthread")
if(ZLIB::ZLIB IN_LIST QUERN_FEATURE_LIBRARIES)
    set(QUERN_PC_REQUIRES${_private} zlib)
endif()
configure_file(cmake/quern.pc.in quern.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/quern.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
