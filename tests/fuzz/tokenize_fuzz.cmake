gannet_fuzz(tokenize text)
target_compile_definitions(tokenize_fuzz PRIVATE GANNET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
