// The command line: one file a command in this folder, joined here.
#pragma once

namespace gannet::cli {

// Parses and runs one command. Returns the exit code: 0 success, 1 failure (one sentence on stderr), 2 bad usage.
int main(int argc, char** argv);

}  // namespace gannet::cli
