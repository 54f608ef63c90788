// Publish batches to a feed with @grpc/grpc-js: each line of standard input is a batch, a JSON array of calls in hexadecimal.
//
//     npm install @grpc/grpc-js @grpc/proto-loader protobufjs
//     node publish.mjs FEED RELAY[,RELAY...] KEY_FILE [FIRST] < batches      (feed.proto beside it, or PROTO names it)
//
// A relay is HOST:PORT or unix:/path. KEY_FILE is one that `txrelay keys new --scheme ed25519` made. FIRST is the number of the
// first batch (0). TLS: CA, CERT and CERT_KEY in the environment name PEM files; TOKEN is the relays' token. It prints each
// number that is acknowledged, and ends when all are: another publisher may push the same batches at the same time.
import { readFileSync } from 'node:fs'
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import grpc from '@grpc/grpc-js'
import loader from '@grpc/proto-loader'
import protobuf from 'protobufjs'

const PIECE = 256 * 1024 // bytes of calls in one request; a relay takes at most 1 MiB
const ANSWER_MS = 60000 // for the answer to a whole batch
const SKIPPED_MS = 120000 // while another publisher's copy is taken: its own time and that of the database
const { CA, CERT, CERT_KEY, TOKEN, PROTO } = process.env
const [feed, relays, keyFile, first = '0'] = process.argv.slice(2)

const proto = PROTO ?? join(dirname(fileURLToPath(import.meta.url)), 'feed.proto')
const definition = loader.loadSync(proto, { keepCase: true, longs: Number, enums: String, oneofs: true, defaults: true })
const { Feed } = grpc.loadPackageDefinition(definition).txrelay.feed.v1
const Call = protobuf.loadSync(proto).lookupType('txrelay.feed.v1.Call')
const seed = Buffer.from(readFileSync(keyFile, 'utf8').trim().replace(/^0x/, ''), 'hex')
const key = createPrivateKey({ key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]), format: 'der', type: 'pkcs8' })
const publisher = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)

const kept = new Map() // number -> calls, until they are acknowledged
readFileSync(0, 'utf8').split('\n').filter(Boolean).forEach((line, i) => kept.set(Number(first) + i, JSON.parse(line)))
let leader = ''
let attempt = 0
let refused = 0

const be32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n); return b }
const be64 = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64BE(BigInt(n)); return b }

// The header, the calls and the trailer of a batch.
function items(number) {
  // Serialised here and once: the relay hashes these bytes as they were sent.
  const calls = kept.get(number).map((hex) => Call.encode({ call: Buffer.from(hex.replace(/^0x/, ''), 'hex') }).finish())
  const hash = createHash('sha256')
  for (const call of calls) hash.update(be32(call.length)).update(call)
  const digest = hash.digest()
  const name = Buffer.from(feed)
  const signed = Buffer.concat([Buffer.from('txrelay-feed-v1\0'), be32(name.length), name, be64(number), be32(calls.length), digest])
  return [{ header: { feed, number, publisher } }, ...calls.map((call) => ({ call })),
    { trailer: { count: calls.length, digest, signature: sign(null, signed, key) } }]
}

// Sends a batch. One that is not kept any more: the stream is closed with the reason.
function offer(stream, number) {
  if (!kept.has(number)) {
    const earliest = kept.size ? lowest() : number
    stream.write({ end_stream: { code: 'TOO_FAR_BEHIND', earliest, latest_acked: earliest - 1 } })
    return
  }
  let piece = []
  let size = 0
  for (const item of items(number)) {
    const bytes = item.call?.length ?? 0
    if (size + bytes > PIECE) {
      stream.write({ block_items: { items: piece } })
      piece = []
      size = 0
    }
    piece.push(item)
    size += bytes
  }
  stream.write({ block_items: { items: piece } })
}

const lowest = () => Math.min(...kept.keys())

// The next batch, or the end of the stream.
function goOn(stream) {
  if (kept.size) offer(stream, lowest())
  else stream.write({ end_stream: { code: 'RESET' } })
}

function acknowledged(number) {
  const done = [...kept.keys()].filter((n) => n <= number)
  done.forEach((n) => kept.delete(n))
  if (!done.length) return
  attempt = refused = 0
  console.log('acknowledged', number)
}

// What the end of a stream says about the next one.
function ended({ status, last, leader: where, detail }) {
  console.log('the relay ended the stream:', status, detail)
  leader = where
  if (status === 'DUPLICATE_BLOCK' || status === 'BEHIND') acknowledged(last)
  if ((status === 'BAD_BLOCK_PROOF' || status === 'INVALID_REQUEST') && ++refused === 3) {
    console.error(`refused three times: ${detail}`)
    process.exit(1)
  }
}

function credentials() {
  if (!CA) return grpc.credentials.createInsecure()
  return grpc.credentials.createSsl(readFileSync(CA), CERT ? readFileSync(CERT_KEY) : null, CERT ? readFileSync(CERT) : null)
}

// One stream, to its end. It gives the status of the call.
function session(relay) {
  const client = new Feed(relay, credentials())
  const metadata = new grpc.Metadata()
  if (TOKEN) metadata.set('authorization', `Bearer ${TOKEN}`)
  const stream = client.Publish(metadata)
  let limit = setTimeout(() => stream.cancel(), ANSWER_MS)
  stream.on('data', (answer) => {
    clearTimeout(limit)
    limit = setTimeout(() => stream.cancel(), answer.response === 'skip_block' ? SKIPPED_MS : ANSWER_MS)
    if (answer.response === 'acknowledgement') {
      acknowledged(answer.acknowledgement.number)
      goOn(stream)
    } else if (answer.response === 'resend_block') {
      offer(stream, answer.resend_block.number)
    } else if (answer.response === 'node_behind') {
      offer(stream, answer.node_behind.last + 1)
    } else if (answer.response === 'end_of_stream') {
      ended(answer.end_of_stream)
    }
  })
  stream.on('error', () => {}) // 'status' says the same
  goOn(stream)
  return new Promise((resolve) => stream.on('status', (status) => {
    clearTimeout(limit)
    client.close()
    resolve(status)
  }))
}

for (let turn = 0; kept.size; turn++) {
  const relay = leader || relays.split(',')[turn % relays.split(',').length]
  leader = ''
  const status = await session(relay)
  if (status.code !== grpc.status.OK) console.log('no stream:', grpc.status[status.code], status.details)
  if (status.code === grpc.status.UNAUTHENTICATED || status.code === grpc.status.UNIMPLEMENTED) process.exit(1)
  if (kept.size && !leader) { // with jitter, so that publishers do not come back all at once
    await new Promise((resolve) => setTimeout(resolve, Math.min(30000, 1000 * 2 ** attempt) * (0.5 + Math.random() / 2)))
    attempt = Math.min(attempt + 1, 5)
  }
}
