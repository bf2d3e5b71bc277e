#!/usr/bin/env bash
# Gets the C++ core of XGrammar (Apache-2.0): the source package by exact version and checksum, unpacked into
# third_party/fetched/. Nothing of it is installed. Idempotent.
set -euo pipefail
cd "$(dirname "$0")/.."

version="0.2.8"
sha256="8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80"
target="third_party/fetched/xgrammar-$version"

if [ -e "$target/.complete" ]; then
  echo "xgrammar $version: there"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "getting xgrammar $version (source package)"
# --no-binary for this one package only: pip builds its metadata with build tools that come as wheels.
python3 -m pip download --quiet --no-deps --no-binary xgrammar --dest "$work" "xgrammar==$version"
archive="$work/xgrammar-$version.tar.gz"
if ! echo "$sha256  $archive" | sha256sum --check --status; then
  echo "tools/fetch_xgrammar.sh: the package's checksum is not $sha256" >&2
  exit 1
fi
rm -rf "$target"
mkdir -p third_party/fetched
top="xgrammar-$version"
tar -xzf "$archive" -C third_party/fetched "$top/LICENSE" "$top/NOTICE" "$top/cpp" "$top/include" \
  "$top/3rdparty/dlpack/include" "$top/3rdparty/picojson"
touch "$target/.complete"
echo "xgrammar: $target"
