gannet_fuzz(chat_json text)
