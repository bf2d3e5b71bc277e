gannet_fuzz(config files)
# The configs alone, not the libraries of all models.
foreach(source model/deepseek_v41/config model/deepseek_v41/config_rules model/deepseek_v41/inventory model/llama/config
               model/llama/config_gguf model/llama/config_rules model/llama/inventory weights/spec)
  target_sources(config_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/src/${source}.cc)
endforeach()
