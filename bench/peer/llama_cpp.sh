#!/usr/bin/env bash
# Fetches and builds the peer that speed and truth are compared with: the llama.cpp inside the source package
# llama-cpp-python 0.3.36, Release, for the CPU at hand, with one line mended.
#   bench/peer/llama_cpp.sh FOLDER [-jN] [TARGET...]        then: FOLDER/build/bin/llama-bench and others
# Nothing is built into Gannet; FOLDER must lie outside the repository or be ignored by git.
set -euo pipefail
version=0.3.36
folder=${1:?usage: llama_cpp.sh FOLDER [-jN] [TARGET...]}; shift
jobs=-j$(nproc)
if [[ ${1:-} == -j* ]]; then jobs=$1; shift; fi
targets=("$@"); [ $# -gt 0 ] || targets=(llama-bench llama-batched-bench llama-server)
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"; cd "$folder"
archive=llama_cpp_python-$version.tar.gz
[ -f "$archive" ] || pip download --quiet --no-deps --no-binary llama-cpp-python "llama-cpp-python==$version"
[ -d "llama_cpp_python-$version" ] || tar xzf "$archive"
source=$PWD/llama_cpp_python-$version/vendor/llama.cpp
# GCC 12 says of _tile_loadconfig that it reads 8 bytes, so the stores that fill the other 56 are dropped and the
# instruction faults. The empty asm makes them visible.
mmq=$source/ggml/src/ggml-cpu/amx/mmq.cpp
grep -q '"r"(&tc)' "$mmq" ||
  sed -i 's|^\( *\)_tile_loadconfig(&tc);|\1asm volatile("" :: "r"(\&tc) : "memory");\n&|' "$mmq"
grep -q '"r"(&tc)' "$mmq" || { echo "llama_cpp.sh: the line to mend is not there" >&2; exit 1; }
cmake -S "$source" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF \
  -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DGGML_CCACHE=OFF >/dev/null
cmake --build build "$jobs" --target "${targets[@]}"
# The program that writes its logits, for the measurement of truth.
g++ -O2 -std=c++17 -I"$source/include" -I"$source/ggml/include" "$here/llama_logits.cc" -o build/bin/llama_logits \
  $(find build -name 'libllama.a') $(find build -name 'libggml.a') $(find build -name 'libggml-cpu.a') \
  $(find build -name 'libggml-base.a') -lgomp -lpthread -ldl
