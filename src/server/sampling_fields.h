// Fields that several protocols share, read and checked: sampling, stopping, choices, streaming.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/generation_request.h"

namespace gannet::server {

struct CommonFields {
  GenerationRequest generation;
  bool stream = false;
  bool include_usage = false;  // a last chunk with the totals
  bool timings = false;        // where the time went, beside usage
};

// The member if it is there and not null.
const Json* present(const Json& body, std::string_view key);

// One optional field of an object; null counts as absent. `param` names it in errors (the key, or a path).
ApiResult<std::optional<double>> number_field(const Json& body, std::string_view key, double low, double high);
ApiResult<std::optional<int64_t>> integer_field(const Json& body, std::string_view key, int64_t low, int64_t high);
ApiResult<std::optional<bool>> bool_field(const Json& body, std::string_view key);
ApiResult<std::optional<std::string>> string_field(const Json& body, std::string_view key);

// A member that must be there and a string: into `out`, or the error that names `field`.`key`.
std::optional<ApiError> need_string(const Json& object, std::string_view key, std::string_view field,
                                    std::string& out);

// Stop strings under `key`: one, or a list of at most 32, each of 1 to 256 bytes.
std::optional<ApiError> read_stops(const Json& body, std::string_view key, std::vector<std::string>& out);

// Reads the shared fields and checks their ranges. `vocab` bounds token ids.
ApiResult<CommonFields> read_common(const Json& body, int32_t vocab);

}  // namespace gannet::server
