add_executable(tokenize_tool ${PROJECT_SOURCE_DIR}/tests/support/tokenize_tool.cc)
gannet_target_options(tokenize_tool)
target_link_libraries(tokenize_tool PRIVATE gannet_text)
