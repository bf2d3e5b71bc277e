// What a client asks a generation for, in no protocol's shape. Protocol adapters fill it; Generation runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sample/params.h"
#include "text/output_format.h"

namespace gannet::server {

// How the answer of a chat is read. Without it (plain completions) all text is content.
struct OutputSpec {
  OutputFormat format = OutputFormat::plain;
  OutputStart start = OutputStart::content;
  bool continues = false;      // the prompt ends inside the answer
  std::vector<Json> tools;     // declared to the model
  bool parallel_calls = true;  // false: the first call ends the answer
};

struct GenerationRequest {
  std::string id;                             // for logs
  std::vector<std::vector<int32_t>> prompts;  // choice p * n + j is the j-th of prompt p
  int32_t n = 1;
  sample::SamplingParams sampling;
  std::optional<int32_t> max_tokens;  // absent: what the context holds; 0: nothing is generated
  std::vector<std::string> stop;      // matched in content only, not in reasoning or calls
  bool include_stop = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  int32_t priority = 0;    // higher goes first
  std::string cache_salt;  // tenant of the prefix cache
  std::optional<OutputSpec> output;
};

}  // namespace gannet::server
