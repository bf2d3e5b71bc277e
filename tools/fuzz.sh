#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a number of executions under address and undefined-behaviour sanitizers.
#   tools/fuzz.sh [RUNS] [TARGET...]     default: 1000000 runs of every target
# New inputs go to build/fuzz/corpus/TARGET; the first crash ends the run with its file named.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-1000000}
shift || true

bash tools/install.sh dev
cmake --preset fuzz >/dev/null
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$file" .cc)"); done
fi
cmake --build build/fuzz --target "${targets[@]}"
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds=tests/fuzz/corpus/${target%_fuzz}
  echo "=== $target: $runs runs"
  log=build/fuzz/$target.log
  if ! "build/fuzz/tests/$target" -runs="$runs" -max_len=16384 -rss_limit_mb=3000 -timeout=20 -print_final_stats=1 \
      "$corpus" $([ -d "$seeds" ] && echo "$seeds") >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "tools/fuzz.sh: $target failed, see $log" >&2
    exit 1
  fi
  grep 'stat::number_of_executed_units' "$log"
done
