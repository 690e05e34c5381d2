# Builds hstu from a checkout, with every tool of ./dev: a place to develop in, and the origin of the package.
#
#   docker build --file containers/build.Dockerfile --tag hstu-build .
#   docker run --rm --volume "$PWD/packages:/packages" hstu-build sh -c './dev package && cp build/hstu-*.tar.gz /packages'
#
# On another distribution: --build-arg BASE_IMAGE=ubuntu:24.04. The stage `dependencies` is cached until one of its
# files changes. For 64-bit Arm: the same on such a machine, or with --platform linux/arm64.
# With GPU kernels: --build-arg CUDA_ROOT=FOLDER of this checkout, a toolkit of CUDA 13 (docs/gpu.md), copied with it.
ARG BASE_IMAGE=debian:12
FROM ${BASE_IMAGE} AS dependencies
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates=20* git=1:2* \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /hstu
COPY dev dev
COPY deps deps
COPY tools/deps-verb tools/install-verbs tools/mlperf-verbs tools/
RUN ./dev deps

FROM dependencies
ARG CUDA_ROOT=
ENV CUDA_HOME=${CUDA_ROOT:+/hstu/${CUDA_ROOT}}
COPY . /hstu
RUN ./dev build all
CMD ["./dev", "test"]
