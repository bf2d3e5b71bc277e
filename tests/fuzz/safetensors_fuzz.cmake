gannet_fuzz(safetensors files)
