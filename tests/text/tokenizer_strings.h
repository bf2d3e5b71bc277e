// Random and adversarial strings, the same as those of tests/golden/tokenizer/strings.py.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/tokenizer_file.h"
#include "text/unicode.h"

namespace gannet::testing {

inline std::string golden_path(std::string_view name) {
  return std::string(GANNET_SOURCE_DIR) + "/tests/golden/tokenizer/" + std::string(name);
}

inline std::string read_golden(std::string_view name) {
  auto text = read_file(golden_path(name));
  EXPECT_TRUE(text.has_value()) << (text ? "" : text.error().message);
  return text ? *text : std::string();
}

inline Tokenizer load_golden(std::string_view name) {
  auto tokenizer = load_tokenizer(golden_path(name));
  EXPECT_TRUE(tokenizer.has_value()) << (tokenizer ? "" : tokenizer.error().message);
  return std::move(*tokenizer);
}

class Strings {
 public:
  Strings() {
    const auto data = Json::parse(read_golden("fragments.json"));
    for (const Json& fragment : data->find("fragments")->items()) fragments_.push_back(*fragment.as_string());
    for (const Json& range : data->find("ranges")->items())
      ranges_.emplace_back(*range.items()[0].as_int(), *range.items()[1].as_int());
  }

  std::string make(uint64_t seed, uint64_t index) const {
    uint64_t state = seed * 0x9E3779B97F4A7C15ull + index + 1;
    const auto draw = [&state](uint64_t n) {  // splitmix64
      state += 0x9E3779B97F4A7C15ull;
      uint64_t z = state;
      z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
      z = (z ^ z >> 27) * 0x94D049BB133111EBull;
      return (z ^ z >> 31) % n;
    };
    std::string out;
    const uint64_t n_parts = 1 + draw(20);
    for (uint64_t part = 0; part < n_parts; ++part) {
      const uint64_t kind = draw(16);
      if (kind < 10) {
        out += fragments_[draw(fragments_.size())];
      } else if (kind < 14) {
        const auto [low, high] = ranges_[draw(ranges_.size())];
        append_utf8(out,
                    static_cast<char32_t>(low + static_cast<int64_t>(draw(static_cast<uint64_t>(high - low + 1)))));
      } else if (kind < 15) {
        const std::string& fragment = fragments_[draw(fragments_.size())];
        const uint64_t times = 1 + draw(12);
        for (uint64_t i = 0; i < times; ++i) out += fragment;
      } else {
        const uint64_t length = 1 + draw(8);
        for (uint64_t i = 0; i < length; ++i) out += static_cast<char>(32 + draw(95));
      }
    }
    return out;
  }

 private:
  std::vector<std::string> fragments_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

// SHA-256, shortened, over rows of ids (four little-endian bytes each) or of bytes, each behind its length.
class RowHash {
 public:
  template <class Row>
  void add(const Row& row) {
    const auto size = static_cast<uint32_t>(row.size());
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes_.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(row[0]));
  }
  std::string hex() const {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size(), digest);
    std::string out;
    for (int i = 0; i < 8; ++i) out += fmt::format("{:02x}", digest[i]);
    return out;
  }

 private:
  std::string bytes_;
};

}  // namespace gannet::testing
