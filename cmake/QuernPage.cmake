# try_page_text.h: the page of the server, src/serve/page/try_page.html, as one string literal.

set(_page_path "${CMAKE_CURRENT_SOURCE_DIR}/src/serve/page/try_page.html")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_page_path}")
file(READ "${_page_path}" _page)
set(_page_text "/* Made by cmake/QuernPage.cmake. */\n"
    "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n")
string(JOIN "" _page_text ${_page_text})
quern_kernel_literal(_page_text try_page "${_page}")
string(APPEND _page_text "#pragma GCC diagnostic pop\n")
file(GENERATE OUTPUT "${QUERN_GENERATED_DIR}/try_page_text.h" CONTENT "${_page_text}")
