// feed_client.mjs PROTO TARGET: one publisher by @grpc/grpc-js. Reads a line of JSON, {"feed", "numbers", "calls", "end",
// "token", "ca", "cert", "key", "name"}, and prints one: every answer in order, and how the call ended.
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const [proto, target] = process.argv.slice(2);
const job = JSON.parse(readFileSync(0, 'utf8'));
const api = grpc.loadPackageDefinition(
  loader.loadSync(proto, { keepCase: true, longs: Number, enums: String, oneofs: true, defaults: true })).txrelay.feed.v1;
const file = (path) => (path ? readFileSync(path) : null);
const credentials = job.ca ? grpc.credentials.createSsl(file(job.ca), file(job.key), file(job.cert))
  : grpc.credentials.createInsecure();
const options = job.name ? { 'grpc.ssl_target_name_override': job.name, 'grpc.default_authority': job.name } : {};
if (job.compress) options['grpc.default_compression_algorithm'] = 2;
const client = new api.Feed(target, credentials, options);
const metadata = new grpc.Metadata();
if (job.token) metadata.set('authorization', `Bearer ${job.token}`);

function items(number) {
  const calls = Array.from({ length: job.calls ?? 3 }, (_, i) => Buffer.alloc(job.bytes ?? 10, i));
  const hash = createHash('sha256');
  for (const call of calls) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(call.length);
    hash.update(length).update(call);
  }
  return [{ header: { feed: job.feed, number, publisher: Buffer.alloc(32) } }, ...calls.map((call) => ({ call })),
    { trailer: { count: calls.length, digest: hash.digest(), signature: Buffer.alloc(64) } }];
}

const answers = [];
const stream = client.Publish(metadata, { deadline: Date.now() + 30000 });
const pending = [...(job.numbers ?? [])];
let offered = null;
function offer(number) {
  offered = number;
  const all = items(number);
  for (let i = 0; i < all.length; i += 100) stream.write({ block_items: { items: all.slice(i, i + 100) } });
}
function next() {
  if (pending.length) offer(pending.shift());
  else if (job.end !== false) stream.write({ end_stream: { code: 'RESET' } });
}
stream.on('data', (answer) => {
  const kind = answer.response;
  answers.push({ [kind]: answer[kind] });
  if (kind === 'acknowledgement') next();
  if (kind === 'resend_block') offer(offered);
  if (kind === 'node_behind') offer(answer.node_behind.last + 1);
});
stream.on('error', () => {});
stream.on('status', (status) => {
  console.log(JSON.stringify({ answers, code: status.code, details: status.details }));
  client.close();
});
next();
