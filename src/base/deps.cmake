set(GANNET_DEPS fmt::fmt simdjson::simdjson Threads::Threads OpenSSL::Crypto)
