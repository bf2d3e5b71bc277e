// A model that answers with what the prompt tells it to: the text behind the last "SAY " of the last user turn,
// then the end of text. So a client over HTTP decides byte by byte what the parsers and streams of the server meet.
#pragma once

#include <string>

#include "support/toy_model.h"
#include "text/tokenizer.h"

namespace gannet::test {

class SayModel : public ToyModel {
 public:
  // Borrows the tokenizer, which must know DeepSeek's turn markers.
  explicit SayModel(const Tokenizer& tokenizer)
      : ToyModel(tokenizer.n_vocab(), 4),
        tokenizer_(tokenizer),
        assistant_(tokenizer.token_id("<｜Assistant｜>").value_or(-1)),
        end_(tokenizer.eos_ids().at(0)) {}

  void forward(const Step& step, kv::KvStore& store, View logits, Exec& exec) override {
    ToyModel::forward(step, store, logits, exec);
    const PagedRows plane = store.plane(0, step.block_table, step.max_blocks);
    for (int32_t i = 0; i < step.n_logit_rows; ++i) {
      const int32_t row = step.logit_rows[i], seq = step.row_seq[row];
      std::vector<int32_t> ids;
      for (int32_t pos = 0; pos <= step.row_pos[row]; ++pos) {
        const int32_t block = plane.block_table[seq * plane.max_blocks + pos / plane.rows_per_block];
        int32_t id = 0;
        std::memcpy(
            &id, plane.base + block * plane.block_bytes + plane.codes_offset + pos % plane.rows_per_block * 4, 4);
        ids.push_back(id);
      }
      logits.row(i).as<float>()[next(ids, step.seq_end[seq])] = 1e4f;
    }
  }

 private:
  // The prompt ends one token behind the last turn marker (<think> or </think>), or where the step says.
  int32_t next(const std::vector<int32_t>& ids, int32_t declared_end) const {
    auto n_prompt = static_cast<size_t>(declared_end), n_asked = n_prompt;
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == assistant_) {
        n_asked = i;
        n_prompt = i + 2;
      }
    std::string text = tokenizer_.decode(std::span(ids).first(std::min(n_asked, ids.size())), false);
    const size_t at = text.rfind("SAY ");
    text = at == std::string::npos ? "ok" : text.substr(at + 4);
    text = text.substr(0, text.find("</tool_result>"));
    const std::vector<int32_t> script = tokenizer_.encode(text, {.parse_special = true});
    const size_t index = ids.size() - std::min(n_prompt, ids.size());
    return index < script.size() ? script[index] : end_;
  }

  const Tokenizer& tokenizer_;
  int32_t assistant_, end_;
};

}  // namespace gannet::test
