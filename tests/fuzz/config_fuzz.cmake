gannet_fuzz(config weights)
# The configs alone, not the whole model library.
foreach(source deepseek_v41/config deepseek_v41/config_rules deepseek_v41/inventory llama/config llama/config_gguf llama/config_rules llama/inventory)
  target_sources(config_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/src/model/${source}.cc)
endforeach()
