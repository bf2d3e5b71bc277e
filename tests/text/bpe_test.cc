#include "text/bpe.h"

#include <chrono>
#include <map>

#include "text/tokenizer_strings.h"

namespace gannet {
namespace {

// Merges as the definition says: look through all pairs, merge the one of lowest rank that stands leftmost, repeat.
std::vector<int32_t> naive(const std::map<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>>& merges,
                           std::vector<int32_t> ids) {
  for (;;) {
    size_t best = ids.size();
    int32_t rank = INT32_MAX, result = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found != merges.end() && found->second.first < rank)
        best = i, rank = found->second.first, result = found->second.second;
    }
    if (best == ids.size()) return ids;
    ids[best] = result;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

// Random vocabularies over three letters, so that ties and chains are common; pieces on both sides of the change
// from scanning to a heap.
TEST(Bpe, EqualsTheDefinition) {
  uint64_t state = 7;
  const auto draw = [&](uint64_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
  };
  for (int round = 0; round < 300; ++round) {
    Vocabulary vocabulary(true);
    std::vector<std::string> tokens = {"a", "b", "c"};
    for (int32_t i = 0; i < 3; ++i) ASSERT_TRUE(vocabulary.add(tokens[static_cast<size_t>(i)], i).has_value());
    std::vector<std::pair<std::string, std::string>> rules;
    for (int i = 0; i < 20; ++i) {
      const std::string left = tokens[draw(tokens.size())], right = tokens[draw(tokens.size())];
      if (vocabulary.find_model(left + right) < 0) {
        ASSERT_TRUE(vocabulary.add(left + right, static_cast<int32_t>(tokens.size())).has_value());
        tokens.push_back(left + right);
      }
      if (std::find(rules.begin(), rules.end(), std::pair(left, right)) == rules.end())
        rules.emplace_back(left, right);
    }
    RankedBpe bpe(&vocabulary, {});
    std::map<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>> merges;
    for (const auto& [left, right] : rules) {
      ASSERT_TRUE(bpe.add_merge(left, right).has_value());
      merges[{vocabulary.find_model(left), vocabulary.find_model(right)}] = {static_cast<int32_t>(merges.size()),
                                                                             vocabulary.find_model(left + right)};
    }
    for (const size_t size : {1ul, 2ul, 7ul, 47ul, 48ul, 49ul, 130ul}) {
      std::string piece;
      std::vector<int32_t> symbols;
      for (size_t i = 0; i < size; ++i) {
        const auto letter = static_cast<int32_t>(draw(3));
        piece += tokens[static_cast<size_t>(letter)];
        symbols.push_back(letter);
      }
      const auto want = naive(merges, symbols);
      for (int again = 0; again < 2; ++again) {  // the second time from what the first one remembered
        std::vector<int32_t> got;
        bpe.encode(piece, got);
        ASSERT_EQ(got, want) << piece;
      }
    }
  }
}

// A million bytes without a place to cut take a time that grows with n log n: ten times the bytes, not a hundred
// times the time.
TEST(Bpe, LongPiecesAreNotQuadratic) {
  const testing::Strings strings;
  for (const std::string name : {"families/deepseek-v3.json", "families/llama-spm.json", "families/gemma.json"}) {
    const Tokenizer tokenizer = testing::load_golden(name);
    const auto seconds = [&](const std::string& unit, size_t n_bytes) {
      std::string text;
      while (text.size() < n_bytes) text += unit;
      const auto start = std::chrono::steady_clock::now();
      const auto ids = tokenizer.encode(text);
      EXPECT_GT(ids.size(), 0u);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (const std::string unit : {"a", "abcdefgh", "世界", "the", "\xCC\x81\xCC\xA3", "=", "\n", "\t "}) {
      const double small = seconds(unit, 100'000), large = seconds(unit, 1'000'000);
      EXPECT_LT(large, std::max(small * 60, 5.0)) << name << ' ' << unit;
    }
  }
}

TEST(Vocabulary, FindsEveryTokenAgain) {
  // Many tokens, so that the table grows; each is found again.
  Vocabulary vocabulary(false);
  for (int32_t i = 0; i < 100'000; ++i) ASSERT_TRUE(vocabulary.add("token" + std::to_string(i * 7), i).has_value());
  for (int32_t i = 0; i < 100'000; ++i) ASSERT_EQ(vocabulary.find_model("token" + std::to_string(i * 7)), i);
  EXPECT_EQ(vocabulary.find_model("token1"), -1);
}

}  // namespace
}  // namespace gannet
