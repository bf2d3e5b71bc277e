#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "server/openai.h"

namespace gannet::server {
namespace {

// The bounds that vLLM's dashboards expect.
constexpr double kFirstToken[] = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                  1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
constexpr double kTokenGap[] = {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
constexpr double kRequest[] = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                               30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
constexpr double kTokens[] = {1,    2,    5,     10,    20,    50,     100,    200,    500,    1000,
                              2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};
constexpr double kChoices[] = {1, 2, 5, 10, 20};
constexpr std::string_view kEnds[] = {"stop", "length", "tool_calls", "abort", "error"};

double seconds(int64_t us) { return static_cast<double>(std::max<int64_t>(us, 0)) * 1e-6; }

}  // namespace

void Histogram::add(double value) {
  const size_t bucket =
      static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::write(std::string& out, std::string_view name, std::string_view help,
                      std::string_view labels) const {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  int64_t n = 0;
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    n += counts_[i].load(std::memory_order_relaxed);
    const std::string bound = i == bounds_.size() ? "+Inf" : fmt::format("{}", bounds_[i]);
    fmt::format_to(to, "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, n);
  }
  fmt::format_to(to, "{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels,
                 sum_.load(std::memory_order_relaxed), n);
}

Metrics::Metrics()
    : first_token_(kFirstToken),
      token_gap_(kTokenGap),
      per_token_(kTokenGap),
      total_(kRequest),
      queue_(kRequest),
      prefill_(kRequest),
      decode_(kRequest),
      inference_(kRequest),
      prompt_tokens_(kTokens),
      generation_tokens_(kTokens),
      params_n_(kChoices),
      params_max_tokens_(kTokens) {}

void Metrics::ended(const GenerationRecord& record) {
  --in_flight_;
  if (log_requests_) log(record);
  if (record.end == GenerationRecord::End::aborted) {
    ++ends_[3];
    return;
  }
  if (record.end == GenerationRecord::End::failed) {
    ++ends_[4];
    return;
  }
  for (const Finish finish : record.finishes) ++ends_[static_cast<size_t>(finish)];
  const Timings& t = record.timings;
  const int64_t first = t.first_token_us < 0 ? t.total_us : t.first_token_us;
  total_.add(seconds(t.total_us));
  queue_.add(seconds(t.queue_us));
  prefill_.add(seconds(first - t.tokenize_us - t.queue_us));
  decode_.add(seconds(t.total_us - first));
  inference_.add(seconds(t.total_us - t.tokenize_us - t.queue_us));
  if (record.usage.completion_tokens > 1)
    per_token_.add(seconds(t.total_us - first) / (record.usage.completion_tokens - 1));
  prompt_tokens_.add(record.usage.prompt_tokens);
  generation_tokens_.add(record.usage.completion_tokens);
  params_n_.add(record.n);
  if (record.max_tokens > 0) params_max_tokens_.add(record.max_tokens);
}

void Metrics::log(const GenerationRecord& record) const {
  Json line = Json::object();
  line.set("time", unix_seconds());
  line.set("request_id", record.request_id);
  line.set("end", record.end == GenerationRecord::End::aborted  ? "abort"
                  : record.end == GenerationRecord::End::failed ? "error"
                                                                : "finished");
  Json& finishes = line.set("finish_reasons", Json::array());
  for (const Finish finish : record.finishes) finishes.push(finish_name(finish));
  line.set("n", record.n);
  if (record.end == GenerationRecord::End::finished)
    line.set("timings", timings_json(record.usage, record.timings));
  const std::string text = line.dump() + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);  // one call, so lines of threads do not mix
}

std::string Metrics::text(std::string_view model, const engine::ServiceCounts& engine,
                          const net::HttpServerCounts& http) const {
  std::string labels = "model_name=";
  append_json_string(labels, model);  // the escapes of a label are among those of JSON
  labels += ",engine=\"0\"";
  std::string out;
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help, double value) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{{3}}} {4}\n", name, help, type,
                   labels, value);
  };
  const auto used = engine.kv_blocks_total == 0
                        ? 0.0
                        : static_cast<double>(engine.kv_blocks_held) / static_cast<double>(engine.kv_blocks_total);
  const auto& scheduler = engine.scheduler;
  one("vllm:num_requests_running", "gauge", "Sequences that own a slot.", scheduler.running);
  one("vllm:num_requests_waiting", "gauge", "Sequences in the queue.", scheduler.waiting);
  one("vllm:kv_cache_usage_perc", "gauge", "Share of KV blocks that sequences hold, 0 to 1.", used);
  one("vllm:num_preemptions_total", "counter", "Sequences put back for lack of KV blocks.",
      static_cast<double>(scheduler.preemptions));
  one("vllm:prompt_tokens_total", "counter", "Prompt tokens of admitted sequences.",
      static_cast<double>(scheduler.prompt_tokens));
  one("vllm:generation_tokens_total", "counter", "Sampled tokens.", static_cast<double>(engine.sampled_tokens));
  one("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.",
      static_cast<double>(scheduler.prompt_tokens));
  one("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.",
      static_cast<double>(scheduler.cached_tokens));
  out +=
      "# HELP vllm:request_success_total Choices by how they ended.\n# TYPE vllm:request_success_total counter\n";
  for (size_t i = 0; i < ends_.size(); ++i)
    out += fmt::format("vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels, kEnds[i],
                       ends_[i].load());
  const auto histogram = [&](const Histogram& h, std::string_view name, std::string_view help) {
    h.write(out, name, help, labels);
  };
  histogram(first_token_, "vllm:time_to_first_token_seconds", "From the request's arrival to its first token.");
  histogram(token_gap_, "vllm:inter_token_latency_seconds", "Between two tokens of one choice.");
  histogram(per_token_, "vllm:request_time_per_output_token_seconds",
            "Decode time by tokens, one request a sample.");
  histogram(total_, "vllm:e2e_request_latency_seconds", "From arrival to the end.");
  histogram(queue_, "vllm:request_queue_time_seconds", "Until the engine took it up.");
  histogram(prefill_, "vllm:request_prefill_time_seconds", "From there to the first token.");
  histogram(decode_, "vllm:request_decode_time_seconds", "From the first token to the end.");
  histogram(inference_, "vllm:request_inference_time_seconds", "Prefill and decode.");
  histogram(prompt_tokens_, "vllm:request_prompt_tokens", "Prompt tokens of a request.");
  histogram(generation_tokens_, "vllm:request_generation_tokens", "Generated tokens of a request.");
  histogram(params_n_, "vllm:request_params_n", "n of a request.");
  histogram(params_max_tokens_, "vllm:request_params_max_tokens", "max_tokens of a request.");
  one("gannet:requests_in_flight", "gauge", "Generations that have not ended.",
      static_cast<double>(in_flight_.load()));
  one("gannet:steps_total", "counter", "Steps run.", static_cast<double>(engine.steps));
  one("gannet:kv_blocks_kept", "gauge", "KV blocks that only the prefix cache names.",
      static_cast<double>(engine.kv_blocks_kept));
  one("gannet:http_connections_open", "gauge", "Open client connections.", http.open_connections);
  one("gannet:http_requests_total", "counter", "HTTP requests taken.", static_cast<double>(http.requests));
  one("gannet:http_bad_requests_total", "counter", "Requests refused before a handler saw them.",
      static_cast<double>(http.bad_requests));
  return out;
}

}  // namespace gannet::server
