# The programs and nothing else: the package of ./dev package. A GPU needs the driver of its host; several ranks on
# GPUs also need NCCL, which is here.
#
#   ./dev package
#   docker build --file containers/runtime.Dockerfile --tag hstu build
#   docker run --rm --gpus all --volume "$PWD:/work" hstu train config.toml --output run
#
# Without NCCL (218 MB less): --build-arg WITH_NCCL=no.
ARG BASE_IMAGE=debian:12-slim
ARG WITH_NCCL=yes
FROM ${BASE_IMAGE} AS nccl-yes
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-pip=2* \
 && pip download --no-cache-dir --no-deps --only-binary=:all: --dest /tmp nvidia-nccl-cu13==2.28.9 \
 && python3 -m zipfile -e /tmp/nvidia_nccl_cu13-*.whl /tmp/wheel \
 && mkdir -p /nccl && cp /tmp/wheel/nvidia/nccl/lib/libnccl.so.2 /nccl
FROM ${BASE_IMAGE} AS nccl-no
RUN mkdir /nccl
# hadolint ignore=DL3006
FROM nccl-${WITH_NCCL} AS nccl

FROM ${BASE_IMAGE}
ARG TARGETARCH=amd64
ARG VERSION=0.1.0
COPY --from=nccl /nccl/ /usr/local/lib/
COPY hstu-${VERSION}-linux-*.tar.gz /tmp/
RUN case "$TARGETARCH" in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) exit 1 ;; esac \
 && tar -xzf "/tmp/hstu-${VERSION}-linux-${machine}.tar.gz" --strip-components=1 -C /usr/local \
 && ldconfig && rm /tmp/hstu-*.tar.gz \
 && useradd --create-home --uid 1000 hstu
USER 1000
WORKDIR /work
ENTRYPOINT ["hstu"]
