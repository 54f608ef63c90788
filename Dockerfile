# The relay alone: built on Debian 12, run on Debian 12 slim as an unprivileged user. The images are named by tag, so that a
# rebuild gets Debian's security updates; name them by digest where a build has to be the same each time.
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN ./dev setup build && ./dev build release

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libuv1 libpq5 libssl3 libsodium23 libsecp256k1-1 libnettle8 \
      libxxhash0 libwebsockets17 libwebsockets-evlib-uv libjansson4 libcyaml1 ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home txrelay
COPY --from=build /src/build/release/main/txrelay /usr/local/bin/txrelay
COPY --from=build /src/LICENSE /src/NOTICE /usr/share/doc/txrelay/
USER txrelay
ENTRYPOINT ["txrelay"]
CMD ["run"]
