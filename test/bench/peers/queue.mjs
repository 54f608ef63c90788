// A job queue on Postgres in front of the chain: every job signs and submits one extrinsic by @polkadot/api, in the strict
// order of its key (the account), and is done when the node has taken it. It follows no block. Generous to the queues: the
// nonce is kept in the worker's memory, where a real one would have to ask the chain after each restart.
// node queue.mjs pg-boss|graphile-worker WS DATABASE KEYS JOBS SECONDS LENGTH
//   DATABASE: JSON for pg: {host, port, user, database}
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { connect, pairs, remark, say, sender, version } from './common.mjs'

const [kind, ws, database, keyText, jobText, secondText, length] = process.argv.slice(2)
const [keys, jobs, seconds] = [keyText, jobText, secondText].map(Number)
const api = await connect(ws)
const accounts = pairs(keys)
const send = await sender(api, accounts, remark(Number(length)))
for (let i = 0; i < 50; i++) await send(i % keys)
const orders = Array.from({ length: jobs }, (_, n) => n % keys)
let done = 0

// What autovacuum would have done before long.
const settle = async () => {
  const db = new pg.Client(JSON.parse(database))
  await db.connect()
  await db.query('VACUUM ANALYZE')
  await db.end()
}

// Ends at the last job or when the time is up.
const timed = async (begin) => {
  await settle()
  const start = performance.now()
  await begin(() => done >= jobs || performance.now() - start >= seconds * 1000)
  say({ count: done, seconds: (performance.now() - start) / 1000, version: version(kind) })
  process.exit()
}

// fetch and complete as fast as they go, with no pause for polling; a fetch brings one job of each key at most.
const pgBoss = async () => {
  const boss = new PgBoss({ ...JSON.parse(database), max: 16, supervise: false, schedule: false })
  await boss.start()
  await boss.createQueue('bench', { policy: 'key_strict_fifo' })
  for (let i = 0; i < jobs; i += 1000) {
    await boss.insert('bench', orders.slice(i, i + 1000).map((key) => ({ singletonKey: String(key), data: { key } })))
  }
  await timed(async (over) => {
    while (!over()) {
      const batch = await boss.fetch('bench', { batchSize: keys })
      await Promise.all(batch.map((job) => send(job.data.key)))
      if (batch.length) await boss.complete('bench', batch.map((job) => job.id))
      done += batch.length
    }
  })
}

// A worker asks for the next job before the end of the last one is stored, finds its queue locked and sleeps for a
// pollInterval: with the default of 2 s one key would get one job in 2 s.
const graphile = async () => {
  const pool = new pg.Pool({ ...JSON.parse(database), max: keys + 4 })
  const utils = await makeWorkerUtils({ pgPool: pool })
  await utils.migrate()
  for (let i = 0; i < jobs; i += 1000) {
    await utils.addJobs(orders.slice(i, i + 1000).map((key) => ({ identifier: 'send', payload: { key }, queueName: `key${key}` })))
  }
  const quiet = { debug() {}, info() {}, warn: console.error, error: console.error }
  await timed(async (over) => {
    await new Promise((resolve, reject) => {
      run({
        pgPool: pool, concurrency: keys, pollInterval: 5, noHandleSignals: true,
        logger: new Logger(() => (level, text) => quiet[level]?.(text)),
        taskList: {
          send: async ({ key }) => {
            await send(key)
            done++
            if (over()) resolve()
          },
        },
      }).catch(reject)
    })
  })
}

await (kind === 'pg-boss' ? pgBoss() : graphile())
