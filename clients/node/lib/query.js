// One way to ask for all drivers: a text with $1, $2, ... and strings. Every argument is cast in the statement, so no
// driver has to know a type of ours, and none guesses one.

/** postgres.js: `sql`, or the `sql` that `sql.begin` passes. */
export const fromPostgres = (sql) => ({
  query: async (text, values) => ({ rows: await sql.unsafe(text, values) }),
  listen: async (channel, heard) => {
    const { unlisten } = await sql.listen(channel, heard)
    return unlisten
  },
})

/** Knex: the instance, or a transaction of it. Its bindings are question marks, in the order of the text. */
export const fromKnex = (knex) => ({
  query: (text, values) => {
    const bindings = []
    const raw = text.replace(/\$(\d+)/g, (_, n) => {
      bindings.push(values[n - 1])
      return '?'
    })
    return knex.raw(raw, bindings)
  },
})

/** Kysely: the instance, or a transaction of it. */
export const fromKysely = (db) => ({
  query: (text, values) =>
    db.executeQuery({ query: { kind: 'RawNode', sqlFragments: [text], parameters: [] }, queryId: {}, sql: text, parameters: values }),
})

/** Drizzle: the database or a transaction of it, and `sql` of drizzle-orm. */
export const fromDrizzle = (db, sql) => ({
  query: async (text, values) => {
    const parts = text.split(/\$(\d+)/)
    const strings = parts.filter((_, i) => i % 2 === 0)
    const answer = await db.execute(sql(strings, ...parts.filter((_, i) => i % 2).map((n) => values[n - 1])))
    return { rows: answer.rows ?? answer }
  },
})

/** Prisma: the client, or the transaction that `$transaction` passes. */
export const fromPrisma = (prisma) => ({
  query: async (text, values) => ({ rows: await prisma.$queryRawUnsafe(text, ...values) }),
})

/** The rows of a statement. */
export async function ask(db, text, values) {
  return (await db.query(text, values)).rows
}

/** Calls `heard` for each notification on the channel, and `lost` when the connection ends. Resolves to a function that ends it. */
export async function listen(db, channel, heard, lost) {
  if (db.listen) return db.listen(channel, heard)
  if (!db.on) throw new TypeError('this connection cannot listen: pass a pg.Client, or fromPostgres(sql)')
  const name = `"${channel}"`
  const onNotification = (n) => n.channel === channel && heard()
  const onEnd = () => lost(new Error('the connection to the database ended'))
  db.on('notification', onNotification).on('error', lost).on('end', onEnd)
  const end = () => db.off('notification', onNotification).off('error', lost).off('end', onEnd)
  try {
    await db.query(`LISTEN ${name}`)
  } catch (error) {
    end()
    throw error
  }
  return async () => {
    end()
    await db.query(`UNLISTEN ${name}`).catch(() => {}) // the connection may be gone
  }
}

/** The SQLSTATE of an error, also of one that a library has wrapped: TR010 .. TR014 are txrelay's. */
export function errorCode(error) {
  for (let e = error; e; e = e.cause) {
    const code = e.meta?.code ?? e.meta?.driverAdapterError?.cause?.originalCode ?? e.code
    if (/^[0-9A-Z]{5}$/.test(code ?? '') && !/^P\d{4}$/.test(code)) return code
  }
  return undefined
}
