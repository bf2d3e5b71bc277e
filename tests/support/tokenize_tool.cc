// Runs a tokenizer over many texts for tests/golden/tokenizer/compare.py.
//
//   tokenize_tool MODEL < requests > replies      MODEL: a folder, a tokenizer.json or a GGUF file
//   tokenize_tool MODEL --map N                   the Engram map of ids 0..N-1, one number a line
//
// A request is: op u8, size u32, that many bytes. Ops: 'e' encode as the template's text, 'c' as a client's, 'b' as
// 'e' with special tokens added, 'd' decode int32 ids, 'k' the same without special tokens. A reply is: size u32 in
// bytes, then int32 ids or text. All little-endian.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "text/token_map.h"
#include "text/tokenizer_file.h"

namespace {

using namespace gannet;

void write_reply(const void* data, size_t size_bytes) {
  const auto size = static_cast<uint32_t>(size_bytes);
  std::fwrite(&size, sizeof(size), 1, stdout);
  std::fwrite(data, 1, size_bytes, stdout);
}

bool serve_one(const Tokenizer& tokenizer) {
  const int op = std::fgetc(stdin);
  uint32_t size = 0;
  if (op == EOF || std::fread(&size, sizeof(size), 1, stdin) != 1) return false;
  std::string payload(size, '\0');
  if (std::fread(payload.data(), 1, size, stdin) != size) return false;
  if (op == 'd' || op == 'k') {
    std::vector<int32_t> ids(size / sizeof(int32_t));
    std::memcpy(ids.data(), payload.data(), ids.size() * sizeof(int32_t));
    const std::string text = tokenizer.decode(ids, op == 'k');
    write_reply(text.data(), text.size());
    return true;
  }
  const auto ids = tokenizer.encode(payload, {.add_special = op == 'b', .parse_special = op != 'c'});
  write_reply(ids.data(), ids.size() * sizeof(int32_t));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 2 ? argv[2] : "";
  if (argc != 2 && !(argc == 4 && mode == "--map")) {
    fmt::print(stderr, "usage: tokenize_tool MODEL [--map N]\n");
    return 2;
  }
  const auto tokenizer = load_tokenizer(argv[1]);
  if (!tokenizer) return fmt::print(stderr, "{}\n", tokenizer.error().message), 1;
  if (mode == "--map") {
    const auto map = engram_token_map(*tokenizer, std::atoi(argv[3]), 0);
    if (!map) return fmt::print(stderr, "{}\n", map.error().message), 1;
    fmt::print(stderr, "{} compressed ids\n", map->n_compressed);
    for (const int32_t id : map->compressed) fmt::print("{}\n", id);
    return 0;
  }
  while (serve_one(*tokenizer)) {
  }
  return 0;
}
