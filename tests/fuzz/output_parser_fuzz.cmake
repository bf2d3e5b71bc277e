gannet_fuzz(output_parser text)
