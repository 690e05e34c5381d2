# The programs and nothing else: the package of ./dev package on Debian 12. A GPU needs the driver of its host alone.
#
#   ./dev package
#   docker build --file containers/runtime.Dockerfile --tag hstu build
#   docker run --rm --gpus all --volume "$PWD:/work" hstu train config.toml --output run
FROM debian:12-slim
ARG TARGETARCH=amd64
ARG VERSION=0.1.0
COPY hstu-${VERSION}-linux-*.tar.gz /tmp/
RUN case "$TARGETARCH" in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) exit 1 ;; esac \
 && tar -xzf "/tmp/hstu-${VERSION}-linux-${machine}.tar.gz" --strip-components=1 -C /usr/local \
 && rm /tmp/hstu-*.tar.gz \
 && useradd --create-home --uid 1000 hstu
USER 1000
WORKDIR /work
ENTRYPOINT ["hstu"]
