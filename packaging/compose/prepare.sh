#!/bin/sh
# Makes what the services of docker-compose.yml need, once, in the volume /secrets: passwords, a development key, and the
# configurations that hold them. Each folder belongs to the one user that reads it: 999 is postgres, 10001 is txrelay.
set -eu
umask 077
cd /secrets
[ ! -e whole ] || exit 0
random() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }
relay=$(random) follower=$(random)
rm -rf postgres relay follower
mkdir postgres relay follower
random >postgres/password
cat >postgres/logins.sql <<END
CREATE ROLE txrelay_relay NOLOGIN;
CREATE ROLE txrelay_follower NOLOGIN;
CREATE ROLE txrelay_app NOLOGIN;
CREATE ROLE relay LOGIN PASSWORD '$relay';
CREATE ROLE follower LOGIN PASSWORD '$follower';
GRANT txrelay_relay TO relay;
GRANT txrelay_follower TO follower;
END
echo //Alice >relay/alice.key
cat >relay/owner.yaml <<END
database:
  url: host=127.0.0.1 dbname=txrelay user=postgres password=$(cat postgres/password)
END
cat >relay/txrelay.yaml <<END
database:
  url: host=127.0.0.1 dbname=txrelay user=relay password=$relay
chain:
  endpoints: [ws://127.0.0.1:9944]
accounts:
  - alias: alice
    scheme: sr25519
    key_file: /secrets/relay/alice.key
END
cat >follower/txrelay.yaml <<END
database:
  url: host=127.0.0.1 dbname=txrelay user=follower password=$follower
END
chown -R 999:999 postgres
chown -R 10001:10001 relay follower
chmod 711 .
touch whole
