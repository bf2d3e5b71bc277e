# Writes OUT, a header with the text of HTML, STYLE and SCRIPT as string views. Run with cmake -P.
set(text "// Made by cmake/embed.cmake.\n#pragma once\n#include <string_view>\nnamespace gannet::server {\n")
foreach(part HTML STYLE SCRIPT)
  string(SUBSTRING ${part} 0 1 first)
  string(SUBSTRING ${part} 1 -1 rest)
  string(TOLOWER ${rest} rest)
  file(READ ${${part}} content)
  # A string literal may hold 64 KiB; the delimiter cannot occur in the files.
  string(APPEND text "inline constexpr std::string_view k${first}${rest} = R\"=gannet=(${content})=gannet=\";\n")
endforeach()
string(APPEND text "}  // namespace gannet::server\n")
file(WRITE ${OUT} "${text}")
