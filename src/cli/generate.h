// One answer from an engine, with its timings.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace gannet::cli {

struct Answer {
  std::vector<int32_t> token_ids;  // sampled, the stop token left out
  std::string text;
  std::string finish_reason;  // "stop", "length", "interrupted"
  int32_t n_prompt = 0, n_cached = 0;
  double ttft_ms = 0;       // from the call to the first sampled token
  double tokens_per_s = 0;  // of the tokens after the first; 0 for fewer than two
};

// Runs one request to its end. `on_text` receives the answer's text as it becomes complete characters; `stop` is
// asked after each token and ends the answer when it returns true.
Result<Answer> generate(
    Loaded& loaded, std::vector<int32_t> prompt, sample::SamplingParams sampling, int32_t max_tokens,
    const std::function<void(std::string_view)>& on_text, const std::function<bool()>& stop = [] { return false; });

// "41 tokens at 212 tokens/s, first after 38 ms, prompt 35 (16 cached)".
std::string speed_line(const Answer& answer);

// The answer as one JSON object; `load_ms` beside it, because loading is not part of the answer.
Json answer_json(const Answer& answer, double load_ms);

}  // namespace gannet::cli
