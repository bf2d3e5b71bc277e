// Counts and times of requests, as Prometheus text under the names that vLLM's dashboards read, and our own.
// Thread-safe: atomics only, so that reading never holds up the engine.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/service.h"
#include "net/http_server.h"
#include "server/generation.h"

namespace gannet::server {

// Cumulative buckets are made when it is written; adding is two atomic additions.
class Histogram {
 public:
  static constexpr size_t kMaxBounds = 24;
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}
  void add(double value);
  // Lines NAME_bucket, NAME_sum and NAME_count; `labels` is the inside of the braces.
  void write(std::string& out, std::string_view name, std::string_view help, std::string_view labels) const;

 private:
  std::span<const double> bounds_;  // rising; static storage
  std::array<std::atomic<int64_t>, kMaxBounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

class Metrics final : public GenerationObserver {
 public:
  Metrics();
  void started() override { ++in_flight_; }
  void first_token(int64_t us) override { first_token_.add(static_cast<double>(us) * 1e-6); }
  void token_gap(int64_t us) override { token_gap_.add(static_cast<double>(us) * 1e-6); }
  void ended(const GenerationRecord& record) override;

  int64_t in_flight() const { return in_flight_; }
  // One JSON line a request, without any text of it, on stderr.
  void log_requests(bool on) { log_requests_ = on; }

  std::string text(std::string_view model, const engine::ServiceCounts& engine,
                   const net::HttpServerCounts& http) const;

 private:
  void log(const GenerationRecord& record) const;

  std::atomic<int64_t> in_flight_{0};
  std::array<std::atomic<int64_t>, 5> ends_{};  // stop, length, tool_calls, abort, error
  std::atomic<bool> log_requests_{false};
  Histogram first_token_, token_gap_, per_token_, total_, queue_, prefill_, decode_, inference_, prompt_tokens_,
      generation_tokens_, params_n_, params_max_tokens_;
};

}  // namespace gannet::server
