// Enqueue a transaction and follow it to its end, with plain SQL and LISTEN: the package `pg` and nothing of ours.
//
//     DB="postgresql:///shop" node follow.mjs alice 0x00001468656c6c6f [KEY]
//
// A notification is a hint that says "look": it may be missed while the connection is away. So: LISTEN first, then ask
// for the status, then wait. After a lost connection the same again. The key makes the enqueue safe to repeat.
import pg from 'pg'

const REQUEST_POLL_MS = 30000 // a look now and then, should a notification ever be lost
const [account, call, key = `follow-${process.pid}-${Date.now()}`] = process.argv.slice(2)

// what(db), on a new connection for as long as there is none to be had.
async function again(what) {
  for (;;) {
    const db = new pg.Client({ connectionString: process.env.DB, application_name: 'follow example', keepAlive: true })
    const lost = new Promise((_, reject) => db.on('error', reject)) // the connection ended while nothing was asked
    lost.catch(() => {})
    try {
      await db.connect()
      return await what(db, lost)
    } catch (error) {
      const asked = error.code && !/^(08|57P|53)/.test(error.code) && /^[0-9A-Z]{5}$/.test(error.code)
      if (asked) throw error // an answer of the database: trying again gives the same
      console.log('connecting again:', error.message)
      await new Promise((resolve) => setTimeout(resolve, 1000))
    } finally {
      db.end().catch(() => {})
    }
  }
}

async function enqueue(db) {
  const bytes = Buffer.from(call.replace(/^0x/, ''), 'hex')
  return (await db.query('SELECT txrelay.enqueue($1, $2, key => $3) AS id', [account, bytes, key])).rows[0].id
}

// Until it has ended: the outcome. told: what was printed before the connection was lost.
async function follow(db, lost, id, told) {
  let heard = () => {}
  let news = false
  db.on('notification', (n) => {
    if (String(JSON.parse(n.payload).id) === id) {
      news = true
      heard()
    }
  })
  await db.query('LISTEN pending_tx_new; LISTEN pending_tx_update; LISTEN pending_tx_removed')
  for (;;) {
    news = false
    const { rows } = await db.query('SELECT stage, state, block_hash, outcome, error FROM txrelay.status($1)', [id])
    if (!rows.length) throw Object.assign(new Error(`transaction ${id} is not known`), { code: '02000' })
    const line = Object.values(rows[0]).filter(Boolean).join(' ')
    if (told.at(-1) !== line) {
      told.push(line)
      console.log(id, line)
    }
    if (rows[0].stage === 'finished') return rows[0].outcome
    if (news) continue // it came between the answer and here
    let timer
    const look = new Promise((resolve) => {
      heard = resolve
      timer = setTimeout(resolve, REQUEST_POLL_MS)
    })
    await Promise.race([look, lost]).finally(() => clearTimeout(timer))
  }
}

const id = String(await again(enqueue))
console.log('transaction', id)
const told = []
const outcome = await again((db, lost) => follow(db, lost, id, told))
process.exit(outcome === 'ok' ? 0 : 1)
