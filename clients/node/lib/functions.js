// The SQL functions of docs/sql.md.
import { ask } from './query.js'

// The arguments that enqueue and enqueue_many share: the name here, in SQL, and its type there.
const OPTIONS = [
  ['priority', 'priority', 'bigint'],
  ['notBefore', 'not_before', 'timestamptz'],
  ['deadline', 'deadline', 'timestamptz'],
  ['creator', 'creator', 'text'],
  ['specVersion', 'spec_version', 'bigint'],
  ['tip', 'tip', 'numeric'],
  ['maxTip', 'max_tip', 'numeric'],
  ['deadlineBlock', 'deadline_block', 'bigint'],
  ['retries', 'retries', 'bigint'],
  ['expiresIn', 'expires_in', 'interval'],
  ['delay', 'delay', 'interval'],
  ['traceparent', 'traceparent', 'text'],
]

/** A call as digits: Buffer, Uint8Array, or hexadecimal text with or without 0x. */
export function hex(bytes) {
  if (typeof bytes === 'string') {
    const digits = bytes.replace(/^0x/, '')
    if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new TypeError(`a call is bytes or hexadecimal text, not ${JSON.stringify(bytes.slice(0, 40))}`)
    return digits
  }
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`a call is bytes or hexadecimal text, not ${typeof bytes}`)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

const textOf = (value, type) => {
  if (value instanceof Date) return value.toISOString()
  if (type === 'interval' && typeof value === 'number') return `${value} milliseconds`
  return String(value)
}

// A call of a function: the arguments in front are expressions over `values`, options are named.
async function call(db, name, first, values, options, known) {
  const named = []
  const unknown = Object.keys(options).find((k) => !known.some(([option]) => option === k))
  if (unknown) throw new TypeError(`${name}: there is no option ${JSON.stringify(unknown)}: ${known.map(([o]) => o).join(', ')}`)
  for (const [option, argument, type] of known) {
    if (options[option] == null) continue
    values.push(textOf(options[option], type))
    named.push(`${argument} => $${values.length}::text::${type}`)
  }
  const [row] = await ask(db, `SELECT txrelay.${name}(${[...first, ...named].join(', ')})::text AS answer`, values)
  return row.answer
}

const KEY = ['key', 'key', 'text']

/** Stores a transaction in the transaction that `db` is in. Resolves to its id. */
export async function enqueue(db, account, bytes, options = {}) {
  return Number(await call(db, 'enqueue', ['$1::text', "decode($2::text, 'hex')"], [account, hex(bytes)], options, [KEY, ...OPTIONS]))
}

/** Stores several; the options hold for each of them. keys: one for each call, null for none. */
export async function enqueueMany(db, account, calls, { keys, ...options } = {}) {
  const values = [account, JSON.stringify(Array.from(calls, hex))]
  const array = (n, what) =>
    `ARRAY(SELECT ${what} FROM jsonb_array_elements_text($${n}::text::jsonb) WITH ORDINALITY e (e, n) ORDER BY n)`
  const first = ['$1::text', array(2, "decode(e, 'hex')")]
  if (keys) {
    values.push(JSON.stringify(Array.from(keys, (k) => k ?? null)))
    first.push(array(3, 'e'))
  }
  const answer = await call(db, 'enqueue_many', first, values, options, OPTIONS)
  return answer.slice(1, -1).split(',').filter(Boolean).map(Number)
}

/** Stores an extrinsic that was signed elsewhere. */
export async function enqueueSigned(db, extrinsic, options = {}) {
  const known = [KEY, ['creator', 'creator', 'text'], ['account', 'account', 'text'], ['traceparent', 'traceparent', 'text']]
  return Number(await call(db, 'enqueue_signed', ["decode($1::text, 'hex')"], [hex(extrinsic)], options, known))
}

/** 'cancelled', 'requested' or 'finished'. */
export const cancel = (db, id) => call(db, 'cancel', ['$1::text::bigint'], [String(id)], {}, [])

/** Raises the tip: 'queued', 'requested' or 'finished'. Without a tip: the next step of the account's policy. */
export const bump = (db, id, tip) => call(db, 'bump', ['$1::text::bigint'], [String(id)], { tip }, [['tip', 'tip', 'numeric']])

/** Enqueues a transaction that ended without effect once more. Resolves to the new id. */
export async function retry(db, id, options = {}) {
  const known = [['deadline', 'deadline', 'timestamptz'], ['deadlineBlock', 'deadline_block', 'bigint']]
  return Number(await call(db, 'retry', ['$1::text::bigint'], [String(id)], options, known))
}

const number = (value) => (value == null ? null : Number(value))
const amount = (value) => (value == null ? null : BigInt(value))
const date = (value) => (value == null ? null : new Date(value))

function transaction(t) {
  return {
    id: number(t.id),
    account: t.account,
    stage: t.stage,
    state: t.state,
    outcome: t.outcome,
    waits: t.waits,
    nonce: number(t.nonce),
    hash: t.hash,
    blockNumber: number(t.block_number),
    blockHash: t.block_hash,
    tip: amount(t.tip),
    fee: amount(t.fee),
    error: t.error,
    key: t.key,
    creator: t.creator,
    createdAt: date(t.created_at),
    updatedAt: date(t.updated_at),
    retryOf: number(t.retry_of),
    retriedAs: number(t.retried_as),
    traceparent: t.traceparent,
  }
}

// As JSON, so that no driver decides on the types of columns; amounts as text, because JSON.parse would round them.
const STATUS = `SELECT (to_jsonb(t) || jsonb_build_object('tip', t.tip::text, 'fee', t.fee::text))::text AS row FROM txrelay.status(`

/** A transaction by its id, or by the hash of an extrinsic that was signed for it ('0x..'). null: it is not known. */
export async function status(db, idOrHash) {
  const byHash = typeof idOrHash === 'string' && idOrHash.startsWith('0x')
  const text = STATUS + (byHash ? 'hash => $1::text' : '$1::text::bigint') + ') t'
  const [found] = await ask(db, text, [String(idOrHash)])
  return found ? transaction(JSON.parse(found.row)) : null
}
