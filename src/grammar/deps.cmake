set(GANNET_DEPS xgrammar)
