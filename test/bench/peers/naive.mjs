// What the closest public system does (its schema, its triggers, its order of steps): an actor for each account submits and
// watches, and when the node has answered it inserts a row, whose trigger notifies all of it as JSON; then every status that
// comes is an UPDATE, which notifies as well. At most 16 connections. Generous to it: the extrinsics are signed before the
// clock runs, nothing is read, removed or repaired, and nobody listens.
// node naive.mjs WS DATABASE ACCOUNTS SECONDS LENGTH MOST
import { compactToU8a, u8aConcat, u8aToHex } from '@polkadot/util'
import { blake2AsU8a } from '@polkadot/util-crypto'
import pg from 'pg'
import { connect, pairs, remark, say } from './common.mjs'

const [ws, database, ...numbers] = process.argv.slice(2)
const [count, seconds, length, most] = numbers.map(Number)
const SCHEMA = `
CREATE TABLE pending_transactions (account_id bytea NOT NULL, nonce bigint NOT NULL, hash bytea NOT NULL, call_scale bytea,
  extrinsic_scale bytea NOT NULL, watched boolean NOT NULL DEFAULT true, state text NOT NULL, status_metadata jsonb,
  creator_id text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, nonce));
CREATE INDEX pending_tx_hash_idx ON pending_transactions (hash);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.updated_at := now(); RETURN NEW; END$$;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_notify(TG_ARGV[0], json_build_object(
  'account_id', encode(NEW.account_id, 'hex'), 'nonce', NEW.nonce, 'hash', encode(NEW.hash, 'hex'), 'call_scale',
  encode(NEW.call_scale, 'hex'), 'extrinsic_scale', encode(NEW.extrinsic_scale, 'hex'), 'watched', NEW.watched, 'state',
  NEW.state, 'status_metadata', NEW.status_metadata, 'creator_id', NEW.creator_id, 'created_at', NEW.created_at)::text);
  RETURN NEW; END$$;
CREATE TRIGGER t1 AFTER INSERT ON pending_transactions FOR EACH ROW EXECUTE FUNCTION tell('pending_tx_new');
CREATE TRIGGER t2 AFTER UPDATE ON pending_transactions FOR EACH ROW EXECUTE FUNCTION tell('pending_tx_update');
CREATE TRIGGER t3 BEFORE UPDATE ON pending_transactions FOR EACH ROW EXECUTE FUNCTION touch();`
const INSERT = {
  name: 'insert',
  text: `INSERT INTO pending_transactions (account_id, nonce, hash, call_scale, extrinsic_scale, watched, state, creator_id)
    VALUES ($1, $2, $3, $4, $5, true, 'future', 'local') ON CONFLICT (account_id, nonce) DO UPDATE SET hash = excluded.hash,
    call_scale = excluded.call_scale, extrinsic_scale = excluded.extrinsic_scale, watched = true, state = 'future'`,
}
const UPDATE = { name: 'update', text: 'UPDATE pending_transactions SET state = $3 WHERE account_id = $1 AND nonce = $2' }
const STATES = { inBlock: 'in_block', finalized: 'finalized', broadcast: 'broadcast', retracted: 'retracted' }

// The socket: a call is answered, a subscription tells.
const open = async (url) => {
  const socket = new WebSocket(url)
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject })
  const calls = new Map(), subs = new Map(), early = new Map()
  let serial = 0
  socket.onmessage = ({ data }) => {
    const m = JSON.parse(data)
    if (m.id !== undefined) return calls.get(m.id)(m)
    const { subscription, result } = m.params
    const tell = subs.get(subscription)
    tell ? tell(result) : early.set(subscription, [...(early.get(subscription) ?? []), result])
  }
  return (hex, tell) => new Promise((resolve, reject) => {
    const id = ++serial
    calls.set(id, (m) => {
      calls.delete(id)
      if (m.error) return reject(new Error(JSON.stringify(m.error)))
      subs.set(m.result, tell)
      for (const status of early.get(m.result) ?? []) tell(status)
      early.delete(m.result)
      resolve()
    })
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'author_submitAndWatchExtrinsic', params: [hex] }))
  })
}

const pool = new pg.Pool({ ...JSON.parse(database), max: 16 })
await pool.query(SCHEMA)
const api = await connect(ws)
const accounts = pairs(count)
const call = api.tx.system.remark(remark(length)).method.toU8a()
const { specVersion, transactionVersion } = api.runtimeVersion
const implied = u8aConcat(specVersion.toU8a(), transactionVersion.toU8a(), api.genesisHash, api.genesisHash)
const immortal = Uint8Array.of(0), noTip = Uint8Array.of(0)
const signed = accounts.map((pair) => Array.from({ length: Math.floor(most / count) }, (_, nonce) => {
  const extra = u8aConcat(immortal, compactToU8a(nonce), noTip)
  const signature = pair.sign(u8aConcat(call, extra, implied))
  const body = u8aConcat([0x84, 0], pair.publicKey, [1], signature, extra, call)
  const raw = u8aConcat(compactToU8a(body.length), body)
  return { account: pair.publicKey, nonce, hash: blake2AsU8a(raw), raw, hex: u8aToHex(raw) }
}))
const submit = await open(ws)
let finalized = 0, stop = false, failed = null
const bytes = (u8a) => Buffer.from(u8a)
const actor = async (rows) => {
  const work = []
  for (const x of rows) {
    if (stop) break
    const key = [bytes(x.account), x.nonce]
    let last = Promise.resolve() // statuses of one in their order
    await submit(x.hex, (status) => {
      const state = typeof status === 'string' ? status : STATES[Object.keys(status)[0]]
      last = last.then(() => stop || pool.query({ ...UPDATE, values: [...key, state] })).then(() => {
        if (state === 'finalized' && !stop) finalized++
      }).catch((error) => { failed ??= error })
      work.push(last)
    })
    await pool.query({ ...INSERT, values: [...key, bytes(x.hash), bytes(call), bytes(x.raw)] })
  }
  while (work.length && !stop) await work.shift()
}
const start = performance.now()
const timer = setTimeout(() => { stop = true }, seconds * 1000)
await Promise.all(signed.map(actor))
clearTimeout(timer)
if (failed) throw failed
say({ count: finalized, seconds: (performance.now() - start) / 1000, version: 'insert and update per event' })
process.exit()
