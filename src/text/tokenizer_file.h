// Tokenizers from model files.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "files/gguf.h"
#include "text/tokenizer.h"

namespace gannet {

// From the `tokenizer.*` metadata of an open GGUF file: the tokenizer.json inside it where there is one, else its
// arrays. Fails with the file's name.
Result<Tokenizer> tokenizer_from_gguf(const files::Gguf& gguf);

// From a path: a directory with tokenizer.json (and, where there is one, tokenizer_config.json), a tokenizer.json,
// or a GGUF file. Fails with the path.
Result<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace gannet
