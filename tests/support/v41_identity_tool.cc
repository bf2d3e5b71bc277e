// Runs random bit-identity cases of V4.1: v41_identity_tool FIRST LAST. Prints the first failure and exits with 1.
#include <cstdio>
#include <cstdlib>

#include "model/deepseek_v41/identity.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FIRST LAST\n", argv[0]);
    return 2;
  }
  const int64_t begin = std::atoll(argv[1]), end = std::atoll(argv[2]);
  int64_t n_rows = 0;
  for (int64_t at = begin; at < end; at += 1000) {
    const std::string failure =
        gannet::deepseek_v41::test::run_identity_cases(at, std::min(end, at + 1000), &n_rows);
    if (!failure.empty()) {
      std::printf("%s\n", failure.c_str());
      return 1;
    }
    std::printf("%lld cases, %lld rows: all bits equal\n", static_cast<long long>(std::min(end, at + 1000) - begin),
                static_cast<long long>(n_rows));
    std::fflush(stdout);
  }
  return 0;
}
