set(GANNET_DEPS utf8proc)
