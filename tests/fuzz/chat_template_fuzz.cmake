gannet_fuzz(chat_template text)
