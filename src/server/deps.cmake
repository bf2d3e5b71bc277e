# The web page's parts as a header.
set(web ${PROJECT_SOURCE_DIR}/src/server/web)
set(web_parts ${PROJECT_BINARY_DIR}/generated/server/web_parts.h)
add_custom_command(
  OUTPUT ${web_parts}
  COMMAND ${CMAKE_COMMAND} -DHTML=${web}/page.html -DSTYLE=${web}/style.css -DSCRIPT=${web}/script.js -DOUT=${web_parts} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${web}/page.html ${web}/style.css ${web}/script.js ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/server/web_page.cc PROPERTIES
  OBJECT_DEPENDS ${web_parts} INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/generated)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/server/server.cc PROPERTIES
  COMPILE_DEFINITIONS GANNET_VERSION="${PROJECT_VERSION}")
