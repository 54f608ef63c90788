// Waiting for one outcome, and following all of them. A notification is a hint that says "look": it may be lost with the
// connection. So both listen first, read then, and read again every half minute.
import { ask, listen } from './query.js'
import { status } from './functions.js'

const LOOK_MS = 30000
const OVERLAP_US = 60_000_000
const ROWS = 1000

/** What a sleeping reader waits for: a notification, the end of the connection, an abort, or some time. */
class Bell {
  #rung = false
  #failed = null
  #wake = () => {}

  ring = () => {
    this.#rung = true
    this.#wake()
  }

  fail = (error) => {
    this.#failed ??= error
    this.#wake()
  }

  /** Resolves at the next ring since the last call, or after `ms`; rejects once it failed. */
  async next(ms) {
    if (!this.#rung && !this.#failed) {
      let timer
      await new Promise((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, ms)
      })
      clearTimeout(timer)
    }
    this.#rung = false
    this.check()
  }

  check() {
    if (this.#failed) throw this.#failed
  }
}

async function listening(db, channel, signal) {
  signal?.throwIfAborted()
  const bell = new Bell()
  const abort = () => bell.fail(signal.reason)
  signal?.addEventListener('abort', abort, { once: true })
  const unlisten = await listen(db, channel, bell.ring, bell.fail)
  return {
    bell,
    end: async () => {
      signal?.removeEventListener('abort', abort)
      await unlisten()
    },
  }
}

/** The transaction once it has ended: a pg.Client, or fromPostgres(sql). Not inside of a transaction. */
export async function wait(db, id, { signal } = {}) {
  const { bell, end } = await listening(db, `tx_ended_${BigInt(id)}`, signal)
  try {
    for (;;) {
      const t = await status(db, id)
      if (!t) throw new RangeError(`transaction ${id} is not known: it was not committed, or its record was removed`)
      if (t.outcome) return t
      await bell.next(LOOK_MS)
    }
  } finally {
    await end()
  }
}

// finished_at in microseconds since 1970, as text: it is more than a double holds after the year 2255, and is compared here.
const ENDS = `SELECT f.account, f.id, a.alias, f.nonce, '0x' || encode(f.hash, 'hex') AS hash, '0x' || encode(f.block_hash, 'hex') AS block_hash,
    f.block_number, f.outcome, f.error, f.creator, f.traceparent, (extract(epoch FROM f.finished_at) * 1000000)::bigint AS at
  FROM txrelay.follow_finished f JOIN txrelay.follow_accounts a ON a.account = f.account
  WHERE f.id IS NOT NULL AND f.finished_at >= timestamptz 'epoch' + $1::text::bigint * interval '1 microsecond'
    AND (f.finished_at, f.id) > (timestamptz 'epoch' + $1::text::bigint * interval '1 microsecond', $2::text::bigint)
  ORDER BY f.finished_at, f.id LIMIT ${ROWS}`

const number = (value) => (value == null ? null : Number(value))

// Everything that ended at or after `from`, page by page.
async function* ends(db, from) {
  let [at, id] = [from, -1]
  for (;;) {
    const rows = (await ask(db, `SELECT to_jsonb(x)::text AS row FROM (${ENDS}) x ORDER BY x.at, x.id`, [String(at), String(id)])).map((r) => JSON.parse(r.row))
    yield* rows
    if (rows.length < ROWS) return
    ;({ at, id } = rows.at(-1))
  }
}

/**
 * Every final outcome from a position on, at least once. A position is microseconds since 1970: the one of the last event
 * that you have dealt with, 0 for all records that there are, none for now.
 */
export async function* follow(db, { position, signal, account } = {}) {
  const { bell, end } = await listening(db, 'pending_tx_removed', signal)
  const delivered = new Map() // by id: when it ended, for what a later scan reads again
  let reached = position
  let floor = 0 // what ended before it was not asked for
  let whole = -Infinity
  try {
    for (;;) {
      const [{ now, kept }] = await ask(db, `SELECT txrelay.follow_position()::text AS now,
        (SELECT (extract(epoch FROM k.dropped_before) * 1000000)::bigint::text FROM txrelay.follow_kept k) AS kept`, [])
      const upTo = Number(now)
      if (reached === undefined) {
        reached = floor = upTo
      } else if (whole === -Infinity && kept && Number(kept) > reached) {
        yield { type: 'gap', position: reached, droppedBefore: new Date(Number(kept) / 1000) }
      }
      // Once a minute from before the last position: an owner without pg_read_all_stats does not see all open transactions.
      const again = performance.now() - whole >= OVERLAP_US / 1000
      if (again) whole = performance.now()
      for await (const row of ends(db, Math.max(floor, again ? reached - OVERLAP_US : reached))) {
        bell.check()
        if (delivered.has(row.id)) continue
        delivered.set(row.id, row.at)
        reached = Math.max(reached, Math.min(row.at, upTo))
        if (account && row.alias !== account) continue
        yield {
          type: 'end',
          position: reached,
          id: row.id,
          account: row.alias,
          outcome: row.outcome,
          error: row.error,
          nonce: number(row.nonce),
          hash: row.hash,
          blockNumber: number(row.block_number),
          blockHash: row.block_hash,
          creator: row.creator,
          traceparent: row.traceparent,
          endedAt: new Date(row.at / 1000),
        }
      }
      reached = Math.max(reached, upTo)
      for (const [id, at] of delivered) if (at < reached - 2 * OVERLAP_US) delivered.delete(id)
      await bell.next(LOOK_MS)
    }
  } finally {
    await end()
  }
}
