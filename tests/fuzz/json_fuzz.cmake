gannet_fuzz(json base)
