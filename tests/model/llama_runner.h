// Runs steps of a model by hand: the rows of any pieces of any sequences, over blocks in random order.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/model.h"

namespace gannet::test {

// The next tokens of one sequence.
struct Piece {
  int32_t seq = 0, first_pos = 0;
  std::span<const int32_t> tokens;
};

class LlamaRunner {
 public:
  // `seed` shuffles which block of the pool belongs to whom.
  LlamaRunner(Model& model, int32_t n_seqs, int32_t max_tokens, int n_threads, uint32_t seed)
      : model_(model),
        blocks_per_seq_((max_tokens + model.kv_spec().block_tokens - 1) / model.kv_spec().block_tokens),
        store_(std::move(*kv::KvStore::create(model.kv_spec(), n_seqs * blocks_per_seq_ + 3, n_seqs))),
        arena_(model.workspace_bytes(n_seqs * max_tokens, n_seqs * max_tokens, max_tokens)),
        pool_(n_threads, false),
        table_(static_cast<size_t>(n_seqs) * static_cast<size_t>(blocks_per_seq_)) {
    std::vector<int32_t> order(static_cast<size_t>(n_seqs * blocks_per_seq_ + 3));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::copy_n(order.begin(), table_.size(), table_.begin());
    for (int32_t b = 0; b < store_.n_blocks(); ++b)  // what is read before it is written shows
      std::fill(store_.block_bytes(b).begin(), store_.block_bytes(b).end(), std::byte{0xFF});
  }

  // Logits f32 [rows that want them, V] in the order of rows: all rows, or the last of each piece.
  std::vector<float> run(std::span<const Piece> pieces, bool last_only = false) {
    return run_in(arena_, pieces, last_only);
  }
  std::vector<float> run_in(Arena& arena, std::span<const Piece> pieces, bool last_only) {
    std::vector<int32_t> row_seq, pos, token, first_row, first_pos, n_rows, end, slot, logit_rows, table;
    std::vector<uint8_t> flags;
    Step step;
    for (const Piece& piece : pieces) {
      const auto n = static_cast<int32_t>(piece.tokens.size());
      first_row.push_back(static_cast<int32_t>(token.size()));
      first_pos.push_back(piece.first_pos);
      n_rows.push_back(n);
      end.push_back(piece.first_pos + n);
      const auto* blocks = table_.data() + int64_t{piece.seq} * blocks_per_seq_;
      table.insert(table.end(), blocks, blocks + blocks_per_seq_);
      for (int32_t i = 0; i < n; ++i) {
        const bool wants = !last_only || i == n - 1;
        if (wants) logit_rows.push_back(static_cast<int32_t>(token.size()));
        flags.push_back(wants ? row_wants_logits : 0);
        row_seq.push_back(static_cast<int32_t>(slot.size()));
        pos.push_back(piece.first_pos + i);
        token.push_back(piece.tokens[static_cast<size_t>(i)]);
        step.max_pos = std::max(step.max_pos, piece.first_pos + i);
      }
      slot.push_back(piece.seq);
    }
    step.n_rows = static_cast<int32_t>(token.size());
    step.n_seqs = static_cast<int32_t>(slot.size());
    step.row_seq = row_seq.data();
    step.row_pos = pos.data();
    step.row_token = token.data();
    step.row_flags = flags.data();
    step.seq_first_row = first_row.data();
    step.seq_first_pos = first_pos.data();
    step.seq_n_rows = n_rows.data();
    step.seq_end = end.data();
    step.seq_ring_slot = slot.data();
    step.block_table = table.data();
    step.max_blocks = blocks_per_seq_;
    step.logit_rows = logit_rows.data();
    step.n_logit_rows = static_cast<int32_t>(logit_rows.size());
    std::vector<float> logits(logit_rows.size() * static_cast<size_t>(model_.info().vocab), -12345.0f);
    Exec exec{pool_, arena};
    model_.forward(step, store_, View(logits.data(), DType::f32, {step.n_logit_rows, model_.info().vocab}), exec);
    return logits;
  }

  // The greedy continuation, one token a step, after prefilling `prompt` in one.
  std::vector<int32_t> greedy(std::span<const int32_t> prompt, int32_t n_tokens,
                              std::vector<float>* all_logits = nullptr) {
    std::vector<int32_t> text(prompt.begin(), prompt.end());
    int32_t done = 0;
    for (int32_t i = 0; i < n_tokens; ++i) {
      const Piece piece{0, done, std::span<const int32_t>(text).subspan(static_cast<size_t>(done))};
      done = static_cast<int32_t>(text.size());
      const std::vector<float> logits = run(std::span(&piece, 1), true);
      if (all_logits != nullptr) all_logits->insert(all_logits->end(), logits.begin(), logits.end());
      text.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    return {text.begin() + static_cast<int64_t>(prompt.size()), text.end()};
  }

 private:
  Model& model_;
  int32_t blocks_per_seq_;
  kv::KvStore store_;
  Arena arena_;
  ThreadPool pool_;
  std::vector<int32_t> table_;
};

}  // namespace gannet::test
