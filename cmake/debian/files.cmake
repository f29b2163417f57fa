# Run by CPack on the installed tree: what Debian's policy asks for beside the files that
# `make install` installs. Pages are compressed without time and name, so a package of the same
# build has the same pages.

set(tree "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr")
file(GLOB pages "${tree}/share/man/man*/*.[1-9]")
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)

set(folder "${tree}/share/doc/quern")
file(WRITE "${folder}/copyright" "Quern, by its developers. The sources state no licence.\n")
file(WRITE "${folder}/changelog"
    "quern (${CPACK_PACKAGE_VERSION}) unstable; urgency=low\n\n"
    "  * Built from the sources of this version.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000\n")
execute_process(COMMAND gzip -9nf "${folder}/changelog" COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD_RECURSE "${folder}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
    DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
