// One random case of bit-identity: sequences that run together in random pieces, with drafts that are taken back,
// over a model that trims its decoder half or not, against each sequence alone, in one piece, untrimmed.
#pragma once

#include <cstring>
#include <string>

#include "kernels/compressor.h"
#include "random_model.h"
#include "runner.h"

namespace gannet::deepseek_v41::test {

struct IdentityCase {
  RandomModel& m;
  Random random;
  uint64_t seed;
  std::string failure;
  int64_t n_rows = 0, n_decoder_rows_saved = 0;

  struct Sequence {
    Text text;
    int32_t prompt = 0;       // tokens of the prompt
    int32_t n_logits = 1;     // logits wanted for the prompt's last ones
    int32_t done = 0;         // rows that are settled
    std::vector<float> want;  // [tokens, V]
    std::vector<std::byte> want_taps;
    std::unique_ptr<Runner> alone;
    int32_t end() const { return prompt - n_logits + 1; }
  };
  std::vector<Sequence> sequences;

  IdentityCase(RandomModel& model, uint64_t case_seed) : m(model), random(case_seed), seed(case_seed) {}

  // Empty when all bits agree.
  std::string run() {
    const int32_t n = pick(random, 1, 3);
    for (int32_t i = 0; i < n; ++i) make_sequence();
    DeepseekV41& model = pick(random, 0, 3) == 0 ? *m.full : *m.trimmed;
    Runner together(model, n, 64, 3 * 64, pick(random, 0, 39) == 0 ? 2 : 1, static_cast<uint32_t>(random()));
    while (failure.empty() && unfinished()) step(together);
    for (int32_t i = 0; i < n && failure.empty(); ++i) compare_state(together, i);
    return failure;
  }

 private:
  bool unfinished() const {
    return std::any_of(sequences.begin(), sequences.end(),
                       [](const Sequence& s) { return s.done < s.text.size(); });
  }

  Text random_text(int32_t n) {
    Text text;
    const bool images = pick(random, 0, 3) == 0;
    for (int32_t i = 0; i < n; ++i) {
      text.tokens.push_back(pick(random, 0, m.config.vocab - 1));
      text.is_image.push_back(images && pick(random, 0, 3) == 0);
    }
    const auto n_images = std::count(text.is_image.begin(), text.is_image.end(), 1);
    for (int64_t i = 0; i < n_images * m.config.hidden; ++i)
      text.embeds.push_back(static_cast<float>(pick(random, -1000, 1000)) / 500.0f);
    return text;
  }

  size_t tap_bytes() const {
    return m.config.dspark.target_layers.size() * static_cast<size_t>(m.config.hidden) * sizeof(float);
  }
  View taps_view(std::vector<std::byte>& memory, int32_t rows) const {
    const bool exact = m.full->kv_spec().rings[0].format == RowFormat::f32;
    memory.assign(static_cast<size_t>(rows) * tap_bytes(), std::byte{0});
    return {memory.data(),
            exact ? DType::f32 : DType::bf16,
            {rows, static_cast<int64_t>(m.config.dspark.target_layers.size()) * m.config.hidden}};
  }

  void make_sequence() {
    Sequence& s = sequences.emplace_back();
    const int32_t n = pick(random, 1, pick(random, 0, 3) == 0 ? 60 : 24);
    s.text = random_text(n);
    s.prompt = pick(random, 1, n);
    s.n_logits = pick(random, 1, std::min(s.prompt, 3));
    s.alone = std::make_unique<Runner>(*m.full, 1, 64, 64, 1, static_cast<uint32_t>(random()));
    const Piece all{0, &s.text, 0, n, n, n};
    s.want = s.alone->run(std::span(&all, 1), taps_view(s.want_taps, n));
  }

  // A step over some of the unfinished sequences.
  void step(Runner& together) {
    struct Planned {
      int32_t seq, n_right;
    };
    std::vector<Planned> planned;
    std::vector<Piece> pieces;
    std::vector<Text> texts(sequences.size());  // right tokens, then drafts
    for (size_t i = 0; i < sequences.size(); ++i) {
      Sequence& s = sequences[i];
      if (s.done == s.text.size() || pick(random, 0, 2) == 0) continue;
      const bool prefill = s.done < s.prompt;
      const int32_t left = (prefill ? s.prompt : s.text.size()) - s.done;
      const int32_t most = prefill ? left : std::min(left, 6);
      const int32_t right = pick(random, 0, 1) == 0 ? pick(random, 1, most) : std::min(most, pick(random, 1, 3));
      const int32_t wrong = prefill ? 0 : std::min(pick(random, 0, 5), 6 - right);
      texts[i] = s.text;
      texts[i].tokens.resize(static_cast<size_t>(s.done + right));
      texts[i].is_image.resize(static_cast<size_t>(s.done + right));
      for (int32_t j = 0; j < wrong; ++j) {
        texts[i].tokens.push_back(pick(random, 0, m.config.vocab - 1));
        texts[i].is_image.push_back(0);
      }
      const int32_t n = right + wrong, last = s.done + n;
      const int32_t logits = prefill ? std::max(0, last - std::max(s.done, s.prompt - s.n_logits)) : n;
      pieces.push_back({static_cast<int32_t>(i), &texts[i], s.done, n, s.end(), logits});
      planned.push_back({static_cast<int32_t>(i), right});
    }
    if (pieces.empty()) return;
    int32_t rows = 0;
    for (const Piece& piece : pieces) rows += piece.n;
    n_rows += rows;
    std::vector<std::byte> taps;
    const std::vector<float> logits = together.run(pieces, taps_view(taps, rows));
    compare_step(pieces, logits, taps);
    for (const Planned& p : planned) sequences[static_cast<size_t>(p.seq)].done += p.n_right;
  }

  void compare_step(const std::vector<Piece>& pieces, const std::vector<float>& logits,
                    const std::vector<std::byte>& taps) {
    const auto V = static_cast<size_t>(m.config.vocab);
    const bool exact = m.full->kv_spec().rings[0].format == RowFormat::f32;
    const size_t tap_row = tap_bytes() / (exact ? 1 : 2);
    size_t logit_row = 0, row = 0;
    for (const Piece& piece : pieces) {
      const Sequence& s = sequences[static_cast<size_t>(piece.seq)];
      for (int32_t i = 0; i < piece.n; ++i, ++row) {
        const int32_t pos = piece.first_pos + i;
        const bool has_logits = i >= piece.n - piece.n_logits;
        const bool right =
            pos < s.text.size() &&
            piece.text->tokens[static_cast<size_t>(pos)] == s.text.tokens[static_cast<size_t>(pos)] &&
            piece.text->is_image[static_cast<size_t>(pos)] == s.text.is_image[static_cast<size_t>(pos)] &&
            !past_wrong(piece, s, pos);
        const float* got = logits.data() + logit_row * V;
        if (has_logits) ++logit_row;
        if (!right) continue;
        if (has_logits && std::memcmp(got, s.want.data() + static_cast<size_t>(pos) * V, V * sizeof(float)) != 0)
          return fail("logits", piece.seq, pos);
        // The draft model reads the last W positions before the prompt's end and everything behind.
        if (pos >= s.end() - m.config.window &&
            std::memcmp(taps.data() + row * tap_row, s.want_taps.data() + static_cast<size_t>(pos) * tap_row,
                        tap_row) != 0)
          return fail("taps", piece.seq, pos);
      }
    }
  }
  static bool past_wrong(const Piece& piece, const Sequence& s, int32_t pos) {
    for (int32_t p = piece.first_pos; p < pos; ++p)
      if (piece.text->tokens[static_cast<size_t>(p)] != s.text.tokens[static_cast<size_t>(p)] ||
          piece.text->is_image[static_cast<size_t>(p)] != s.text.is_image[static_cast<size_t>(p)])
        return true;
    return false;
  }

  // Every persistent byte that a later step can read.
  void compare_state(Runner& together, int32_t seq) {
    const Sequence& s = sequences[static_cast<size_t>(seq)];
    const int32_t n = s.text.size();
    const kv::KvSpec& spec = m.full->kv_spec();
    for (size_t i = 0; i < spec.planes.size(); ++i) {
      const PagedRows a = s.alone->store().plane(static_cast<int>(i), s.alone->table(0).data(), 0);
      const PagedRows b = together.store().plane(static_cast<int>(i), together.table(seq).data(), 0);
      for (int32_t row = 0; row < n / spec.planes[i].tokens_per_row; ++row)
        if (!same(paged_row(a, 0, row), paged_row(b, 0, row), a)) return fail(spec.planes[i].name, seq, row);
    }
    const int32_t slot_a = 0, slot_b = seq;
    for (size_t i = 0; i < spec.rings.size(); ++i) {
      if (spec.rings[i].name.starts_with("mtp.")) continue;  // written by the draft model
      const RingRows a = s.alone->store().ring(static_cast<int>(i), &slot_a);
      const RingRows b = together.store().ring(static_cast<int>(i), &slot_b);
      const int32_t reach = std::min(n, reach_of(spec.rings[i].name));
      for (int32_t pos = n - reach; pos < n; ++pos)
        if (!same(ring_row(a, pos), ring_row(b, pos), a)) return fail(spec.rings[i].name, seq, pos);
    }
  }
  int32_t reach_of(const std::string& ring) const {
    if (ring == "engram.ids") return m.config.engram.max_ngram - 1;
    if (ring.ends_with(".pending")) return 1;
    return m.config.window;
  }
  static PagedRowBytes ring_row(const RingRows& ring, int32_t pos) {
    std::byte* base = ring.base + *ring.ring_slot * ring.ring_bytes;
    const int64_t slot = pos % ring.capacity;
    if (reinterpret_cast<const int32_t*>(base + ring.tags_offset)[slot] != pos) return {};
    return {base + ring.codes_offset + slot * row_code_bytes(ring.format, ring.width),
            base + ring.scales_offset + slot * row_scale_bytes(ring.format, ring.width)};
  }
  template <class Rows>
  static bool same(const PagedRowBytes& a, const PagedRowBytes& b, const Rows& rows) {
    return a.codes != nullptr && b.codes != nullptr &&
           std::memcmp(a.codes, b.codes, static_cast<size_t>(row_code_bytes(rows.format, rows.width))) == 0 &&
           std::memcmp(a.scales, b.scales, static_cast<size_t>(row_scale_bytes(rows.format, rows.width))) == 0;
  }

  void fail(const std::string& what, int32_t seq, int32_t at) {
    failure = fmt::format("case {}: {} of sequence {} differ at {} (prompt {}, tokens {}, window {}, layers {})",
                          seed, what, seq, at, sequences[static_cast<size_t>(seq)].prompt,
                          sequences[static_cast<size_t>(seq)].text.size(), m.config.window, m.config.n_layers);
  }
};

constexpr int32_t kCasesPerModel = 25;

// Cases [begin, end), numbered so that any one can be run again alone. Returns the first failure, or nothing.
inline std::string run_identity_cases(int64_t begin, int64_t end, int64_t* n_rows) {
  constexpr Numerics kModes[] = {Numerics::precise, Numerics::reference, Numerics::float32};
  std::unique_ptr<RandomModel> model;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t group = i / kCasesPerModel;
    if (model == nullptr || i % kCasesPerModel == 0) {
      Random random(static_cast<uint64_t>(group) * 7919 + 17);
      model = std::make_unique<RandomModel>(random_model(random, kModes[group % 3]));
    }
    IdentityCase one(*model, static_cast<uint64_t>(i) + 1000003);
    const std::string failure = one.run();
    *n_rows += one.n_rows;
    if (!failure.empty()) return fmt::format("number {}, mode {}: {}", i, group % 3, failure);
  }
  return {};
}

}  // namespace gannet::deepseek_v41::test
