// The fields that all OpenAI-shaped routes share: sampling, stopping, choices, streaming.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sample/params.h"
#include "server/api_error.h"

namespace gannet::server {

struct CommonFields {
  sample::SamplingParams sampling;
  std::optional<int32_t> max_tokens;
  int32_t n = 1;
  std::vector<std::string> stop;
  bool include_stop = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  bool stream = false;
  bool include_usage = false;
  int32_t priority = 0;
  std::string cache_salt;
};

// One optional field of an object; null counts as absent. `param` names it in errors (the key, or a path).
ApiResult<std::optional<double>> number_field(const Json& body, std::string_view key, double low, double high);
ApiResult<std::optional<int64_t>> integer_field(const Json& body, std::string_view key, int64_t low, int64_t high);
ApiResult<std::optional<bool>> bool_field(const Json& body, std::string_view key);
ApiResult<std::optional<std::string>> string_field(const Json& body, std::string_view key);

// Reads the shared fields and checks their ranges. `vocab` bounds token ids.
ApiResult<CommonFields> read_common(const Json& body, int32_t vocab);

}  // namespace gannet::server
