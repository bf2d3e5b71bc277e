#include "cli/cli.h"

int main(int argc, char** argv) { return gannet::cli::main(argc, argv); }
