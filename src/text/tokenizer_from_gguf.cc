// Tokenizer::from_gguf: a tokenizer out of the metadata of a GGUF file.
#include <fmt/format.h>

#include <cmath>

#include "text/tokenizer_impl.h"

namespace gannet {
namespace {

enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

Error bad(std::string message) { return {Errc::bad_file, "GGUF tokenizer: " + std::move(message)}; }

// How the text of a `pre` name is cut; and what else the name stands for.
struct Pre {
  std::string_view name;
  std::vector<PatternMatch> patterns;
  bool nfc = false, ignore_merges = false, add_bos = false;
};

const Pre* find_pre(std::string_view name) {
  using namespace patterns;
  const auto from = [](std::string_view regex) { return find_pattern(regex); };
  static const std::vector<Pre> kPres = {
      {"gpt-2", {gpt2}},
      {"phi-2", {gpt2}},
      {"smollm", {from(R"(\p{N})"), gpt2}},
      {"starcoder", {from(R"(\p{N})"), gpt2}},
      {"refact", {from(R"(\p{N})"), gpt2}},
      {"llama-bpe", {llama3}, false, true, true},
      {"llama3", {llama3}, false, true, true},
      {"llama-v3", {llama3}, false, true, true},
      {"dbrx", {llama3}},
      {"smaug-bpe", {llama3}},
      {"qwen2", {qwen2}, true},
      {"deepseek-r1-qwen", {qwen2}, true},
      {"deepseek-v3", {numbers_to_three, deepseek_cjk, deepseek_words}},
      {"deepseek-coder",
       {from(R"([\r\n])"), from(R"(\s?\p{L}+)"), from(R"(\s?\p{P}+)"), from("[一-龥ࠀ-一가-퟿]+"),
        from(R"(\p{N})")}},
  };
  for (const Pre& pre : kPres)
    if (pre.name == name) return &pre;
  return nullptr;
}

Status check_arrays(const GgufVocab& vocab) {
  const size_t n = vocab.tokens.size();
  if (n == 0 || n > (size_t{1} << 22)) return bad(fmt::format("tokenizer.ggml.tokens has {} entries", n));
  if (!vocab.token_types.empty() && vocab.token_types.size() != n)
    return bad(fmt::format("{} tokens but {} token types", n, vocab.token_types.size()));
  if (!vocab.scores.empty() && vocab.scores.size() != n)
    return bad(fmt::format("{} tokens but {} scores", n, vocab.scores.size()));
  const std::pair<std::string_view, std::optional<int64_t>> ids[] = {
      {"bos", vocab.bos_id}, {"eos", vocab.eos_id},     {"eot", vocab.eot_id},
      {"eom", vocab.eom_id}, {"unknown", vocab.unk_id}, {"padding", vocab.pad_id}};
  for (const auto& [name, id] : ids)
    if (id && (*id < 0 || *id >= static_cast<int64_t>(n)))
      return bad(fmt::format("{}_token_id {} is not one of {} tokens", name, *id, n));
  return ok();
}

int32_t type_of(const GgufVocab& vocab, size_t id) {
  return vocab.token_types.empty() ? int32_t{kNormal} : vocab.token_types[id];
}

Status fill_vocabulary(const GgufVocab& vocab, Tokenizer::Impl& impl) {
  size_t n_bytes = 0;
  for (const std::string_view token : vocab.tokens) n_bytes += token.size();
  impl.vocabulary.reserve(vocab.tokens.size(), n_bytes);
  std::vector<Tokenizer::Impl::Added> added;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const int32_t type = type_of(vocab, i);
    const bool outside = type == kControl || type == kUserDefined || type == kUnknown;
    if (outside && !vocab.tokens[i].empty()) {
      added.push_back({.entry = {.id = id, .content = std::string(vocab.tokens[i])},
                       .special = type == kControl || type == kUnknown,
                       .verbatim = true});
    } else {
      GANNET_TRY(impl.vocabulary.add(vocab.tokens[i], id));
      if (type == kUnused) impl.vocabulary.set(id, Token::kControl);  // neither searched nor produced
    }
  }
  return impl.set_added(std::move(added));
}

void set_ids(const GgufVocab& vocab, bool add_bos, Tokenizer::Impl& impl) {
  const auto id = [](std::optional<int64_t> value) { return static_cast<int32_t>(*value); };
  if (vocab.bos_id) impl.bos = id(vocab.bos_id);
  if (vocab.pad_id) impl.pad = id(vocab.pad_id);
  for (const auto& end : {vocab.eos_id, vocab.eot_id, vocab.eom_id})
    if (end) impl.eos.push_back(id(end));
  if (impl.bos && vocab.add_bos.value_or(add_bos)) impl.prefix.push_back(*impl.bos);
  if (vocab.eos_id && vocab.add_eos.value_or(false)) impl.suffix.push_back(id(vocab.eos_id));
}

Status load_ranked(const GgufVocab& vocab, const Pre& pre, Tokenizer::Impl& impl) {
  std::vector<PreTokenizer::Step> steps;
  for (const PatternMatch match : pre.patterns)
    steps.push_back({.kind = PreTokenizer::Step::Kind::pattern, .match = match});
  impl.pre_tokenizer = PreTokenizer::from_steps(std::move(steps), true);
  if (pre.nfc) impl.normalizer = Normalizer::from_steps({{.kind = Normalizer::Step::Kind::form}});
  impl.decode.byte_level = true;
  GANNET_TRY(fill_vocabulary(vocab, impl));
  BpeOptions options{.ignore_merges = pre.ignore_merges};
  impl.ranked = std::make_unique<RankedBpe>(&impl.vocabulary, options);
  impl.ranked->reserve(vocab.merges.size());
  if (vocab.merges.empty()) return bad("model gpt2 needs tokenizer.ggml.merges");
  for (size_t rank = 0; rank < vocab.merges.size(); ++rank) {
    const std::string_view merge = vocab.merges[rank];
    const size_t blank = merge.find(' ', 1);
    if (blank == std::string_view::npos)
      return bad(fmt::format("merge {} '{}' is not two tokens with a blank between", rank, merge));
    GANNET_TRY(impl.ranked->add_merge(merge.substr(0, blank), merge.substr(blank + 1)));
  }
  set_ids(vocab, pre.add_bos, impl);
  return ok();
}

Status load_scored(const GgufVocab& vocab, Tokenizer::Impl& impl) {
  constexpr std::string_view kMark = "\xE2\x96\x81";
  if (vocab.scores.empty()) return bad("model llama needs tokenizer.ggml.scores");
  for (size_t i = 0; i < vocab.scores.size(); ++i)
    if (!std::isfinite(vocab.scores[i])) return bad(fmt::format("token {} has score {}", i, vocab.scores[i]));
  const bool prefix = vocab.add_space_prefix.value_or(true);
  std::vector<Normalizer::Step> steps;
  if (prefix) steps.push_back({.kind = Normalizer::Step::Kind::prepend, .content = std::string(kMark)});
  steps.push_back({.kind = Normalizer::Step::Kind::replace, .pattern = " ", .content = std::string(kMark)});
  impl.normalizer = Normalizer::from_steps(std::move(steps));
  impl.decode.replace.emplace_back(kMark, " ");
  impl.decode.byte_tokens = true;
  if (prefix) impl.decode.strip = " ", impl.decode.strip_count = 1;
  GANNET_TRY(fill_vocabulary(vocab, impl));
  const int32_t unk = vocab.unk_id ? static_cast<int32_t>(*vocab.unk_id) : -1;
  impl.unk = unk;
  impl.scored = std::make_unique<ScoredBpe>(&impl.vocabulary, vocab.scores, unk);
  set_ids(vocab, true, impl);
  return ok();
}

}  // namespace

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocab& vocab) {
  GANNET_TRY(check_arrays(vocab));
  const bool ranked = vocab.model == "gpt2";
  if (!ranked && vocab.model != "llama")
    return Error{Errc::unsupported,
                 fmt::format("GGUF tokenizer: tokenizer.ggml.model '{}' is not implemented, only gpt2 and "
                             "llama",
                             vocab.model)};
  auto impl = std::make_unique<Impl>(ranked);
  if (ranked) {
    const Pre* pre = find_pre(vocab.pre);
    if (pre == nullptr)
      return Error{
          Errc::unsupported,
          fmt::format("GGUF tokenizer: tokenizer.ggml.pre '{}' is not known; give the model's tokenizer.json "
                      "(guessing would give wrong ids)",
                      vocab.pre)};
    GANNET_TRY(load_ranked(vocab, *pre, *impl));
  } else {
    GANNET_TRY(load_scored(vocab, *impl));
  }
  impl->add_known_eos();
  impl->finish();
  return Tokenizer(std::unique_ptr<const Impl>(std::move(impl)));
}

}  // namespace gannet
