#!/usr/bin/env bash
# Installs what Gannet needs to build and run: Debian packages (tools/packages.txt) and the third-party sources that
# Debian does not package. Idempotent: what is there already is left alone. Needs root or sudo for the packages only.
#   tools/install.sh          everything to build, test and run
#   tools/install.sh dev      also formatters, clang-tidy and the fuzzer's runtime
set -euo pipefail
cd "$(dirname "$0")/.."

groups="build"
case "${1:-}" in
  "") ;;
  dev) groups="build dev" ;;
  *) echo "usage: tools/install.sh [dev]" >&2; exit 2 ;;
esac

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else echo "tools/install.sh: installing packages needs root, and there is no sudo" >&2; exit 1
  fi
}

missing=()
while read -r group name version; do
  case " $groups " in *" $group "*) ;; *) continue ;; esac
  have=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$name" 2>/dev/null || true)
  case "$have" in
    "installed "$version) continue ;;                      # unquoted on purpose: the version is a pattern
    "installed "*) echo "note: $name is ${have#installed }, Gannet was tested with $version" ;;
    *) missing+=("$name=$version") ;;
  esac
done < <(grep -v '^#' tools/packages.txt)

if [ ${#missing[@]} -gt 0 ]; then
  echo "installing Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "Debian packages: all there"
fi

for fetch in tools/fetch_*.sh; do
  [ -e "$fetch" ] && bash "$fetch"
done
echo "dependencies ready"
