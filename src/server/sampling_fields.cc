#include "server/sampling_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <random>

namespace gannet::server {
namespace {

constexpr size_t kMaxStops = 32, kMaxStopBytes = 256;

// Moves the value of an optional field into `out`, or leaves it.
template <class T, class Field>
std::optional<ApiError> take(T& out, Field field) {
  if (!field) return field.error();
  if (*field) out = static_cast<T>(**field);
  return std::nullopt;
}

std::optional<ApiError> read_ids(const Json& body, std::string_view key, int32_t vocab, std::vector<int32_t>& out) {
  const Json* value = present(body, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return invalid_type(std::string(key), "a list of token ids", *value);
  for (const Json& item : value->items()) {
    const auto id = item.as_int();
    if (!id) return invalid_type(std::string(key), "a list of token ids", item);
    if (*id < 0 || *id >= vocab)
      return invalid_value(std::string(key),
                           fmt::format("{} has token id {}, the vocabulary is 0..{}", key, *id, vocab - 1));
    out.push_back(static_cast<int32_t>(*id));
  }
  return std::nullopt;
}

std::optional<ApiError> read_bias(const Json& body, int32_t vocab, sample::SamplingParams& params) {
  const Json* value = present(body, "logit_bias");
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) return invalid_type("logit_bias", "an object of token id and bias", *value);
  for (const auto& [key, bias] : value->members()) {
    int32_t id = -1;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    if (parsed.ec != std::errc{} || parsed.ptr != key.data() + key.size() || id < 0 || id >= vocab)
      return invalid_value("logit_bias",
                           fmt::format("logit_bias has key '{}', keys are token ids 0..{}", key, vocab - 1));
    const auto number = bias.as_double();
    if (!number || *number < -100 || *number > 100)
      return invalid_value(
          "logit_bias",
          fmt::format("logit_bias of token {} is {}, it must be a number from -100 to 100", id, bias.dump()));
    params.logit_bias.emplace_back(id, static_cast<float>(*number));
  }
  return std::nullopt;
}

}  // namespace

const Json* present(const Json& body, std::string_view key) {
  const Json* value = body.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<ApiError> need_string(const Json& object, std::string_view key, std::string_view field,
                                    std::string& out) {
  const Json* value = present(object, key);
  const std::string where = fmt::format("{}.{}", field, key);
  if (value == nullptr) return missing(where);
  if (value->as_string() == nullptr) return invalid_type(where, "a string", *value);
  out = *value->as_string();
  return std::nullopt;
}

std::optional<ApiError> read_stops(const Json& body, std::string_view key, std::vector<std::string>& out) {
  const Json* value = present(body, key);
  if (value == nullptr) return std::nullopt;
  const std::string param(key);
  std::vector<const Json*> items;
  if (value->is_string())
    items.push_back(value);
  else if (value->is_array()) {
    for (const Json& item : value->items()) items.push_back(&item);
  } else {
    return invalid_type(param, "a string or a list of strings", *value);
  }
  if (items.size() > kMaxStops)
    return invalid_value(param,
                         fmt::format("{} has {} strings, at most {} are allowed", key, items.size(), kMaxStops));
  for (const Json* item : items) {
    const std::string* text = item->as_string();
    if (text == nullptr) return invalid_type(param, "a string or a list of strings", *item);
    if (text->empty()) return invalid_value(param, fmt::format("{} holds an empty string", key));
    if (text->size() > kMaxStopBytes)
      return invalid_value(param, fmt::format("{} holds a string of {} bytes, at most {} are allowed", key,
                                              text->size(), kMaxStopBytes));
    out.push_back(*text);
  }
  return std::nullopt;
}

ApiResult<std::optional<double>> number_field(const Json& body, std::string_view key, double low, double high) {
  const Json* value = present(body, key);
  if (value == nullptr) return std::optional<double>();
  const auto number = value->as_double();
  if (!number) return tl::make_unexpected(invalid_type(std::string(key), "a finite number", *value));
  if (*number < low || *number > high)
    return tl::make_unexpected(invalid_value(
        std::string(key), fmt::format("{} is {}, it must be from {} to {}", key, value->dump(), low, high)));
  return number;
}

ApiResult<std::optional<int64_t>> integer_field(const Json& body, std::string_view key, int64_t low, int64_t high) {
  const Json* value = present(body, key);
  if (value == nullptr) return std::optional<int64_t>();
  const auto number = value->as_int();
  if (!number) return tl::make_unexpected(invalid_type(std::string(key), "a whole number", *value));
  if (*number < low || *number > high)
    return tl::make_unexpected(invalid_value(
        std::string(key), fmt::format("{} is {}, it must be from {} to {}", key, *number, low, high)));
  return number;
}

ApiResult<std::optional<bool>> bool_field(const Json& body, std::string_view key) {
  const Json* value = present(body, key);
  if (value == nullptr) return std::optional<bool>();
  const auto flag = value->as_bool();
  if (!flag) return tl::make_unexpected(invalid_type(std::string(key), "true or false", *value));
  return flag;
}

ApiResult<std::optional<std::string>> string_field(const Json& body, std::string_view key) {
  const Json* value = present(body, key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return tl::make_unexpected(invalid_type(std::string(key), "a string", *value));
  return std::optional<std::string>(*value->as_string());
}

namespace {

template <class Read>
void read_sampling(const Json& body, int32_t vocab, sample::SamplingParams& p, Read&& read) {
  read([&] { return take(p.temperature, number_field(body, "temperature", 0, 2)); });
  read([&] { return take(p.top_p, number_field(body, "top_p", 0, 1)); });
  read([&] { return take(p.top_k, integer_field(body, "top_k", -1, INT32_MAX)); });
  read([&] { return take(p.min_p, number_field(body, "min_p", 0, 1)); });
  read([&] { return take(p.presence_penalty, number_field(body, "presence_penalty", -2, 2)); });
  read([&] { return take(p.frequency_penalty, number_field(body, "frequency_penalty", -2, 2)); });
  read([&] { return take(p.repetition_penalty, number_field(body, "repetition_penalty", 0.01, 100)); });
  read([&] { return take(p.seed, integer_field(body, "seed", INT64_MIN, INT64_MAX)); });
  read([&] { return take(p.min_tokens, integer_field(body, "min_tokens", 0, INT32_MAX)); });
  read([&] { return read_ids(body, "stop_token_ids", vocab, p.stop_token_ids); });
  read([&] { return read_ids(body, "allowed_token_ids", vocab, p.allowed_token_ids); });
  read([&] { return read_bias(body, vocab, p); });
}

std::optional<ApiError> read_stream_options(const Json& body, CommonFields& f) {
  const Json* options = present(body, "stream_options");
  if (options == nullptr) return std::nullopt;
  if (!options->is_object()) return invalid_type("stream_options", "an object", *options);
  return take(f.include_usage, bool_field(*options, "include_usage"));
}

}  // namespace

ApiResult<CommonFields> read_common(const Json& body, int32_t vocab) {
  CommonFields f;
  GenerationRequest& g = f.generation;
  g.sampling.seed = std::random_device()() | uint64_t{std::random_device()()} << 32;
  std::optional<ApiError> error;
  const auto read = [&](auto&& step) {
    if (!error) error = step();
  };
  read_sampling(body, vocab, g.sampling, read);
  int32_t most = -1;
  read([&] { return take(most, integer_field(body, "max_tokens", 0, INT32_MAX)); });
  read([&] { return take(most, integer_field(body, "max_completion_tokens", 0, INT32_MAX)); });
  if (most >= 0) g.max_tokens = most;
  read([&] { return take(g.n, integer_field(body, "n", 1, 128)); });
  read([&] { return take(g.include_stop, bool_field(body, "include_stop_str_in_output")); });
  read([&] { return take(g.ignore_eos, bool_field(body, "ignore_eos")); });
  read([&] { return take(g.skip_special_tokens, bool_field(body, "skip_special_tokens")); });
  read([&] { return take(g.priority, integer_field(body, "priority", INT32_MIN + 1, INT32_MAX)); });
  read([&] { return take(g.cache_salt, string_field(body, "cache_salt")); });
  read([&] { return read_stops(body, "stop", g.stop); });
  read([&] { return take(f.stream, bool_field(body, "stream")); });
  read([&] { return take(f.timings, bool_field(body, "timings")); });
  read([&] { return read_stream_options(body, f); });
  if (error) return tl::make_unexpected(std::move(*error));
  // The field is "lower goes first"; the scheduler's priority is "higher goes first".
  g.priority = -g.priority;
  if (const Status good = sample::validate(g.sampling, vocab); !good)
    return tl::make_unexpected(api_error(good.error()));
  return f;
}

}  // namespace gannet::server
