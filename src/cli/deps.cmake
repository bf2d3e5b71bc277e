set(GANNET_DEPS edit)
