add_executable(v41_identity_tool ${PROJECT_SOURCE_DIR}/tests/support/v41_identity_tool.cc)
gannet_target_options(v41_identity_tool)
target_include_directories(v41_identity_tool PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/model/deepseek_v41)
target_link_libraries(v41_identity_tool PRIVATE gannet_model)
