#include "cli/cli.h"

namespace gannet::cli {
int main(int, char**) { return 2; }
}  // namespace gannet::cli
