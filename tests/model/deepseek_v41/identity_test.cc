// One-shot = any chunking = token by token = in company = trimmed = after drafts taken back, bit for bit.
#include <gtest/gtest.h>

#include "identity.h"

namespace gannet::deepseek_v41::test {
namespace {

// tests/support/v41_identity_tool.cc runs any number of further cases.
constexpr int64_t kCases = 2000;

TEST(Identity, RandomModelsAndPieces) {
  int64_t n_rows = 0;
  EXPECT_EQ(run_identity_cases(0, kCases, &n_rows), "");
  EXPECT_GT(n_rows, kCases * 10);
}

}  // namespace
}  // namespace gannet::deepseek_v41::test
