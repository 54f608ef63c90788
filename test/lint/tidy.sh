#!/usr/bin/env bash
# clang-tidy's short list (.clang-tidy) over the product's sources, but for what others wrote (BLAKE3, llhttp); BUILD is a clang build tree. Then the proof that it can fail.
set -uo pipefail
build=$1
cd "$(dirname "$0")/../.."
out=$(git ls-files '*.c' | grep -v '^test/' | grep -v '/example/' | grep -vE '^(chain/codec/blake3|net/llhttp)/' | xargs -P "$(nproc)" -n8 clang-tidy-14 -quiet -p "$build" 2>/dev/null |
  grep -E '(error|warning):')
if [ -n "$out" ]; then
  echo "$out" | sort -u
  exit 1
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp .clang-tidy "$tmp/"
printf '#include <string.h>\nint f(int *p);\nint f(int *p)\n{\n    memset(p, 0, sizeof(p));\n    return p[0] == p[0];\n}\n' >"$tmp/bad.c"
if clang-tidy-14 -quiet "$tmp/bad.c" -- >/dev/null 2>&1; then
  echo "tidy: the planted fault was not found"
  exit 1
fi
echo "clang-tidy: clean, and able to fail"
