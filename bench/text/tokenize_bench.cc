// Load time and speed of tokenizers.
//
//   tokenize_bench TEXT-FILE MODEL...     MODEL: a folder, a tokenizer.json or a GGUF file
//
// One thread; the best of 5 runs by processor time, which other programs on the machine disturb least. Bound:
// encode and decode follow tables larger than the caches, so memory latency; a load is one pass over the file and
// one table access or more for each token and merge.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/mapped_file.h"
#include "text/token_map.h"
#include "text/tokenizer_file.h"

namespace {

using namespace gannet;

double thread_ms() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <class Work>
double best_ms(const Work& work) {
  double best = 1e18;
  for (int i = 0; i < 5; ++i) {
    const double start = thread_ms();
    work();
    best = std::min(best, thread_ms() - start);
  }
  return best;
}

double mb_per_s(size_t n_bytes, double ms) { return static_cast<double>(n_bytes) / 1e3 / ms; }

int measure(const std::string& text, const char* model) {
  const auto tokenizer = load_tokenizer(model);
  if (!tokenizer) return fmt::print(stderr, "{}\n", tokenizer.error().message), 1;
  std::vector<int32_t> ids;
  std::string back;
  const double load = best_ms([&] { (void)load_tokenizer(model); });
  const double encode = best_ms([&] { ids = tokenizer->encode(text); });
  const double decode = best_ms([&] { back = tokenizer->decode(ids); });
  std::string one_piece;  // no place to cut
  while (one_piece.size() < 1'000'000) one_piece += "thequickbrownfox";
  const double long_piece = best_ms([&] { (void)tokenizer->encode(one_piece); });
  double map = 0;
  if (tokenizer->is_byte_level())
    map = best_ms([&] { (void)engram_token_map(*tokenizer, tokenizer->n_vocab(), 0); });
  fmt::print("{:>8} {:>8.1f} {:>10.1f} {:>10.1f} {:>13.1f} {:>9.1f} {:>9.2f}  {}{}\n", tokenizer->n_vocab(), load,
             mb_per_s(text.size(), encode), mb_per_s(text.size(), decode), long_piece, map,
             static_cast<double>(text.size()) / static_cast<double>(ids.size()), model,
             back == text ? "" : "  (text changed)");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fmt::print(stderr, "usage: tokenize_bench TEXT-FILE MODEL...\n"), 2;
  const auto text = read_file(argv[1]);
  if (!text) return fmt::print(stderr, "{}\n", text.error().message), 1;
  fmt::print("{:>8} {:>8} {:>10} {:>10} {:>13} {:>9} {:>9}\n", "ids", "load ms", "enc MB/s", "dec MB/s",
             "1 MB piece ms", "Engram ms", "bytes/id");
  int status = 0;
  for (int i = 2; i < argc; ++i) status |= measure(*text, argv[i]);
  return status;
}
