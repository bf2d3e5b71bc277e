// Speed of a Llama-class model end to end, without tokenizer and scheduler: prefill, decode and sampling.
//   decode_bench MODEL.gguf [--threads N] [--isa avx2|avx512] [--prompt N] [--tokens N] [--batch N] [--numerics
//   float32|precise]   (default: integer)
// Where the time goes: perf record -g decode_bench ...; ops are separate functions, so their shares can be read
// off.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "model/llama/model.h"
#include "model/llama_runner.h"
#include "sample/sampler.h"

namespace gannet::bench {
namespace {

struct Options {
  std::string model, isa;
  int threads = 0;
  int32_t prompt = 128, tokens = 128, batch = 1;
  Numerics numerics = Numerics::integer;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int fail(const Error& error) { return std::fprintf(stderr, "decode_bench: %s\n", error.message.c_str()), 1; }

std::vector<int32_t> prompt_of(int32_t n, int32_t vocab, int32_t seq) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>((int64_t{i} * 7919 + 13 + seq) % vocab));
  return tokens;
}

int run(const Options& options) {
  const Machine machine = this_machine(options.isa);
  const double t0 = now_s();
  const auto checkpoint = weights::Checkpoint::open(options.model);
  if (!checkpoint) return fail(checkpoint.error());
  const auto config = llama::config_of(*checkpoint);
  if (!config) return fail(config.error());
  const auto model = llama::create(*checkpoint, *config, options.numerics, machine);
  if (!model) return fail(model.error());
  const double t1 = now_s();

  const int32_t B = options.batch, vocab = (*model)->info().vocab;
  test::LlamaRunner runner(**model, B, options.prompt + options.tokens + 1, options.threads, 1);
  std::vector<std::vector<int32_t>> prompts;
  for (int32_t b = 0; b < B; ++b) prompts.push_back(prompt_of(options.prompt, vocab, b));
  double prefill_s = 0;
  for (int round = 0; round < 2; ++round) {  // the first one touches every page
    const double begin = now_s();
    for (int32_t b = 0; b < B; ++b) {
      const test::Piece piece{b, 0, prompts[static_cast<size_t>(b)]};
      runner.run(std::span(&piece, 1), true);
    }
    prefill_s = now_s() - begin;
  }

  sample::Sampler sampler(vocab, machine);
  sample::SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<int32_t> last(static_cast<size_t>(B), 17);
  double step_s = 0, sample_s = 0;
  for (int32_t i = 0; i < options.tokens; ++i) {
    std::vector<test::Piece> pieces;
    for (int32_t b = 0; b < B; ++b)
      pieces.push_back({b, options.prompt + i, std::span(&last[static_cast<size_t>(b)], 1)});
    const double begin = now_s();
    const std::vector<float> logits = runner.run(pieces, true);
    const double end = now_s();
    for (int32_t b = 0; b < B; ++b)
      last[static_cast<size_t>(b)] =
          sampler
              .sample(std::span(logits).subspan(static_cast<size_t>(b) * static_cast<size_t>(vocab),
                                                static_cast<size_t>(vocab)),
                      greedy, {})
              ->token;
    step_s += end - begin;
    sample_s += now_s() - end;
  }
  std::printf(
      "%s, %s%s: load %.0f ms; prefill %d x %d: %.0f tokens/s; decode batch %d: %.1f tokens/s, step %.2f ms, "
      "sample %.3f ms\n",
      machine.cpu.name.c_str(),
      options.threads == 0 ? "all threads" : (std::to_string(options.threads) + " threads").c_str(),
      options.isa.empty() ? "" : (", " + options.isa).c_str(), (t1 - t0) * 1e3, B, options.prompt,
      B * options.prompt / prefill_s, B, B * options.tokens / (step_s + sample_s), step_s / options.tokens * 1e3,
      sample_s / options.tokens * 1e3);
  return 0;
}

}  // namespace
}  // namespace gannet::bench

int main(int argc, char** argv) {
  gannet::bench::Options options;
  if (argc < 2)
    return std::fprintf(stderr,
                        "usage: decode_bench MODEL [--threads N] [--isa NAME] [--prompt N] [--tokens N] [--batch "
                        "N] [--numerics float32]\n"),
           2;
  options.model = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--threads")
      options.threads = std::atoi(argv[i + 1]);
    else if (flag == "--isa")
      options.isa = argv[i + 1];
    else if (flag == "--prompt")
      options.prompt = std::atoi(argv[i + 1]);
    else if (flag == "--tokens")
      options.tokens = std::atoi(argv[i + 1]);
    else if (flag == "--batch")
      options.batch = std::atoi(argv[i + 1]);
    else if (flag == "--numerics" && std::strcmp(argv[i + 1], "float32") == 0)
      options.numerics = gannet::Numerics::float32;
    else if (flag == "--numerics" && std::strcmp(argv[i + 1], "precise") == 0)
      options.numerics = gannet::Numerics::precise;
    else
      return std::fprintf(stderr, "decode_bench: unknown option %s\n", argv[i]), 2;
  }
  return gannet::bench::run(options);
}
