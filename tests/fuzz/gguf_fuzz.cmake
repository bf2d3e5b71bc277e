gannet_fuzz(gguf files)
