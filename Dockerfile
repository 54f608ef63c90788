# Built on Debian 12, run on Debian 12 slim as the user 10001. The images are named by tag, so that a rebuild gets Debian's
# security updates; name them by digest where a build has to be the same each time.
#
#   docker build -t txrelay .                           the relay
#   docker build -t txrelay-devchain --target devchain . the node for development that docker-compose.yml uses
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates
COPY . /src
WORKDIR /src
RUN ./dev build release && DESTDIR=/out cmake --install build/release --prefix /usr --strip

FROM build AS build-devchain
RUN ./dev devchain

FROM debian:12-slim AS base
RUN apt-get update && apt-get install -y --no-install-recommends libuv1 libpq5 libssl3 libsodium23 libsecp256k1-1 libnettle8 \
      libxxhash0 libwebsockets17 libwebsockets-evlib-uv libnghttp2-14 libprotobuf-c1 libjansson4 libcyaml1 ca-certificates && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 txrelay && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin txrelay
USER 10001:10001

FROM base AS devchain
COPY --from=build-devchain /src/build/devchain/test/devchain/devchain /usr/bin/devchain
ENTRYPOINT ["devchain"]

# A relay reads /etc/txrelay/txrelay.yaml unless TXRELAY_CONFIG names another file. Key files belong to the user 10001 and have
# mode 0600. `control` in the configuration, or TXRELAY_CONTROL, is what the health check asks.
FROM base AS relay
LABEL org.opencontainers.image.title=txrelay org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.description="A transactional outbox and transaction relay for Substrate chains"
COPY --from=build /out/usr/bin/txrelay /usr/bin/txrelay
COPY --from=build /out/usr/share/doc/txrelay /usr/share/doc/txrelay
ENV TXRELAY_CONFIG=/etc/txrelay/txrelay.yaml TXRELAY_CONTROL=unix:/run/txrelay/control.sock
USER root
RUN install -d -o 10001 -g 10001 -m 0700 /run/txrelay
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["txrelay", "health"]
ENTRYPOINT ["txrelay"]
CMD ["run"]
