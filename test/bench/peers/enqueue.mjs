// The tables of two public queues, and the statement by which their users enqueue inside a transaction of their own:
// graphile-worker's is SQL, pg-boss's is what send() hands to the session that it is given.
// node enqueue.mjs DATABASE CALL    DATABASE: JSON for pg; prints {name: {version, sql, values}}
import { readFileSync } from 'node:fs'
import { makeWorkerUtils } from 'graphile-worker'
import pg from 'pg'
import { PgBoss } from 'pg-boss'

const [database, call] = process.argv.slice(2)
const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version
const data = { account: 'bench0', call }

const pool = new pg.Pool(JSON.parse(database))
const utils = await makeWorkerUtils({ pgPool: pool })
await utils.migrate()
await utils.release()
const boss = new PgBoss({ ...JSON.parse(database), supervise: false, schedule: false })
await boss.start()
await boss.createQueue('bench')
const seen = []
const db = { executeSql: async (sql, values) => (seen.push({ sql, values }), { rows: [{ id: 'x' }], rowCount: 1 }) }
await boss.send('bench', data, { db })
if (seen.length !== 1) throw new Error(`pg-boss sends ${seen.length} statements`)
console.log(JSON.stringify({
  graphile: {
    version: version('graphile-worker'),
    sql: 'SELECT graphile_worker.add_job($1, $2::json)',
    values: ['bench', JSON.stringify(data)],
  },
  'pg-boss': { version: version('pg-boss'), ...seen[0] },
}))
await boss.stop({ graceful: false })
await pool.end()
