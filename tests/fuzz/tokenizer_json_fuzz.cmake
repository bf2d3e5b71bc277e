gannet_fuzz(tokenizer_json text)
