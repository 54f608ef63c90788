// What an application in Node does, with each driver and query builder: node clients.mjs STEP, one JSON line for each result.
// DB: a connection string of an application's login; URL, TOKEN: the relay's HTTP interface.
import assert from 'node:assert/strict'
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql as drizzleSql } from 'drizzle-orm'
import knexOf from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import * as tx from 'txrelay'

const url = process.env.DB
const [step, ...args] = process.argv.slice(2)
const tell = (what) => console.log(JSON.stringify(what, (_, v) => (typeof v === 'bigint' ? String(v) : v)))
// System.remark with these bytes; below 64 of them the length is one byte.
const remark = (text) => Buffer.concat([Buffer.from([0, 0, text.length << 2]), Buffer.from(text)])

// Not of the URL: it takes no socket from one.
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env
const postgresJs = () => postgres({ host, port, user, database })

// name -> how to open it: `begin` runs work in a transaction, with what the client takes.
const drivers = {
  pg: async () => {
    const pool = new pg.Pool({ connectionString: url })
    const begin = async (work) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        const result = await work(client)
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    }
    return { begin, plain: pool, close: () => pool.end() }
  },
  postgres: async () => {
    const sql = postgresJs()
    return { begin: (work) => sql.begin((t) => work(tx.fromPostgres(t))), plain: tx.fromPostgres(sql), close: () => sql.end() }
  },
  knex: async () => {
    const knex = knexOf({ client: 'pg', connection: { connectionString: url } })
    return { begin: (work) => knex.transaction((t) => work(tx.fromKnex(t))), plain: tx.fromKnex(knex), close: () => knex.destroy() }
  },
  kysely: async () => {
    const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }) })
    return { begin: (work) => db.transaction().execute((t) => work(tx.fromKysely(t))), plain: tx.fromKysely(db), close: () => db.destroy() }
  },
  drizzle: async () => {
    const pool = new pg.Pool({ connectionString: url })
    const db = drizzle(pool)
    return {
      begin: (work) => db.transaction((t) => work(tx.fromDrizzle(t, drizzleSql))),
      plain: tx.fromDrizzle(db, drizzleSql),
      close: () => pool.end(),
    }
  },
  // Prisma's own client needs a generator that downloads programs. This has the two methods that an application uses.
  prisma: async () => {
    const pool = new pg.Pool({ connectionString: url })
    const raw = (db) => ({ $queryRawUnsafe: async (text, ...values) => (await db.query(text, values)).rows })
    const under = await drivers.pg()
    const close = () => Promise.all([pool.end(), under.close()])
    return { begin: (work) => under.begin((t) => work(tx.fromPrisma(raw(t)))), plain: tx.fromPrisma(raw(pool)), close }
  },
}

const refused = async (code, part, call) => {
  const error = await call().then(() => assert.fail(`${code} was expected`), (e) => e)
  assert.equal(tx.errorCode(error), code, String(error))
  const said = [error.message, error.cause?.message].join(' ')
  assert.ok(said.includes(part), said)
}

async function all(...names) {
  for (const name of names) await driver(name)
}

async function driver(name) {
  const { begin, plain, close } = await drivers[name]()
  const order = (db, note) => db.query('INSERT INTO orders (note) VALUES ($1::text)', [note])
  // The order and its transaction commit together, or neither does.
  const id = await begin(async (db) => {
    await order(db, `${name} kept`)
    return tx.enqueue(db, 'alice', remark(`${name} kept`), { key: `${name}-1` })
  })
  assert.ok(Number.isSafeInteger(id))
  await assert.rejects(begin(async (db) => {
    await order(db, `${name} lost`)
    await tx.enqueue(db, 'alice', remark(`${name} lost`))
    throw new Error('changed my mind')
  }), /changed my mind/)
  assert.equal(await tx.enqueue(plain, 'alice', '0x' + remark(`${name} kept`).toString('hex'), { key: `${name}-1` }), id)

  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const careful = await begin((db) => tx.enqueue(db, 'alice', new Uint8Array(remark(`${name} options`)), {
    key: null, priority: -1, delay: 3600000, expiresIn: '2 hours', creator: `${name}`, specVersion: 1, tip: 5n, maxTip: '10',
    deadlineBlock: 4000000000, retries: 2, traceparent,
  }))
  const t = await tx.status(plain, careful)
  assert.deepEqual([t.id, t.account, t.stage, t.outcome, t.creator, t.traceparent, t.key], [careful, 'alice', 'outbox', null, name, traceparent, null])
  assert.ok(t.createdAt instanceof Date && Math.abs(Date.now() - t.createdAt) < 600000)
  assert.equal(await tx.bump(plain, careful, 7), 'queued')
  assert.equal(await tx.cancel(plain, careful), 'cancelled')
  assert.equal(await tx.cancel(plain, careful), 'finished')
  assert.equal((await tx.status(plain, careful)).outcome, 'cancelled')
  const again = await tx.retry(plain, careful, { deadline: new Date(Date.now() + 7200000) })
  assert.equal((await tx.status(plain, again)).retryOf, careful)
  assert.equal(await tx.cancel(plain, again), 'cancelled')

  const many = await begin((db) => tx.enqueueMany(db, 'alice', [remark(`${name} a`), remark(`${name} b`)], { keys: [`${name}-a`, null] }))
  assert.equal(many.length, 2)
  assert.deepEqual(await tx.enqueueMany(plain, 'alice', []), [])
  assert.equal(await tx.status(plain, 999999999), null)
  assert.equal(await tx.status(plain, '0x' + '00'.repeat(32)), null)

  await refused('TR010', 'no such account: "alise"', () => tx.enqueue(plain, 'alise', remark('x')))
  await refused('TR011', 'priority is 5000', () => tx.enqueue(plain, 'alice', remark('x'), { priority: 5000 }))
  await refused('TR012', 'was used before', () => tx.enqueue(plain, 'alice', remark('other'), { key: `${name}-1` }))
  await refused('TR011', 'does not begin with its length', () => tx.enqueueSigned(plain, remark('x'), { key: 'k' }))
  await assert.rejects(tx.enqueue(plain, 'alice', 'remark'), /bytes or hexadecimal text/)
  await assert.rejects(tx.enqueue(plain, 'alice', remark('x'), { wish: 1 }), /no option "wish": key, priority/)
  await close()
  tell({ driver: name, ids: [id, ...many], ended: [careful, again] })
}

// Waits for the outcomes of these ids, half of them with each of the two drivers that listen.
async function wait(...ids) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const sql = postgresJs()
  for (const [i, id] of ids.entries()) {
    const { outcome, fee, blockNumber } = await tx.wait(i % 2 ? tx.fromPostgres(sql) : client, Number(id))
    tell({ id: Number(id), outcome, fee, blockNumber, feeType: typeof fee })
  }
  await assert.rejects(tx.wait(client, 999999999), /transaction 999999999 is not known/)
  assert.equal(client.listenerCount('notification'), 0)
  const [{ n }] = (await client.query('SELECT count(*)::int AS n FROM pg_listening_channels()')).rows
  assert.equal(n, 0)
  const abort = AbortSignal.timeout(50)
  const sleeper = await tx.enqueue(client, 'alice', remark('sleeper'), { delay: '1 hour' })
  await assert.rejects(tx.wait(client, sleeper, { signal: abort }), (e) => e === abort.reason)
  await assert.rejects(tx.wait({ query: client.query.bind(client) }, sleeper), /cannot listen/)
  await tx.cancel(client, sleeper)
  await sql.end()
  await client.end()
}

// Follows from a position until it is stopped; a connection that ends is opened again, from the last position.
async function follow(position) {
  let at = position === 'now' ? undefined : Number(position)
  for (;;) {
    const client = new pg.Client({ connectionString: url, application_name: 'clients follow' })
    client.on('error', () => {})
    await client.connect()
    tell({ event: 'connected' })
    try {
      for await (const event of tx.follow(client, { position: at, account: 'alice' })) {
        tell(event)
        at = event.position
      }
    } catch (error) {
      tell({ event: 'lost', error: error.message, position: at })
    } finally {
      client.end().catch(() => {})
    }
  }
}

async function encode() {
  const relay = { url: process.env.URL, token: process.env.TOKEN }
  for (const given of [['by position'], { remark: 'by name' }])
    assert.deepEqual(await tx.encode(relay, 'alice', 'System', 'remark', given), remark(Object.values(given)[0]))
  const wrong = await tx.encode(relay, 'alice', 'Sistem', 'remark', ['x']).catch((e) => e)
  assert.ok(wrong instanceof tx.TxrelayHttpError, String(wrong))
  assert.ok(wrong.status === 422 && /Sistem/.test(wrong.message), `${wrong.status} ${wrong.message}`)
  const stranger = await tx.encode({ ...relay, token: 'txr_x' }, 'alice', 'System', 'remark').catch((e) => e)
  assert.equal(stranger.status, 401)
  tell({ encoded: true })
}

await { drivers: all, wait, follow, encode }[step](...args)
