# A Debian package, by CPack: `make deb` configures a build for it (prefix /usr, a shared library).
# What is opened at run time (docs/dependencies.md) is recommended or suggested, never needed.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME quern)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The developers of Quern <quern@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "neural networks with reproducible bytes")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Trains and applies networks on all cores, GPUs and hosts.
The result is the same file, byte for byte, whichever machines took part.
This package has the command, the shared library and its headers.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "libturbojpeg0, libpng16-16, libwebp7, libgif7, libtiff6, libzstd1, libbz2-1.0, liblzma5, "
    "ocl-icd-libopencl1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "libcurl4, libmicrohttpd12, libsqlite3-0, libpq5, openmpi-bin, slurm-client, libmunge2, "
    "pocl-opencl-icd")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/cmake/debian/triggers")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian/files.cmake")
# The components of the Python package are not part of it.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};quern;Unspecified;/")
include(CPack)
