// Compiled only: the declarations fit the types of the drivers themselves.
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql as drizzleSql } from 'drizzle-orm'
import knexOf from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import * as tx from 'txrelay'

export async function all(): Promise<void> {
  const client = new pg.Client()
  const pooled = await new pg.Pool().connect()
  const sql = postgres('')
  const knex = knexOf({ client: 'pg' })
  const kysely = new Kysely<{ orders: { note: string } }>({ dialect: new PostgresDialect({ pool: new pg.Pool() }) })
  const drizzled = drizzle(new pg.Pool())
  const prisma = { $queryRawUnsafe: async <T = unknown>(query: string, ...values: unknown[]): Promise<T> => [query, values] as T }

  const ids: number[] = [
    await tx.enqueue(client, 'alice', new Uint8Array(3), { key: 'k', tip: 5n, deadline: new Date(), expiresIn: '1 hour', delay: 5 }),
    await tx.enqueue(pooled, 'alice', '0x0000'),
    await sql.begin((t) => tx.enqueue(tx.fromPostgres(t), 'alice', Buffer.alloc(2))),
    await knex.transaction((t) => tx.enqueue(tx.fromKnex(t), 'alice', '00')),
    await kysely.transaction().execute((t) => tx.enqueue(tx.fromKysely(t), 'alice', '00')),
    await drizzled.transaction((t) => tx.enqueue(tx.fromDrizzle(t, drizzleSql), 'alice', '00')),
    await tx.enqueue(tx.fromPrisma(prisma), 'alice', '00'),
    ...(await tx.enqueueMany(client, 'alice', ['00'], { keys: ['a', null] })),
    await tx.enqueueSigned(client, '00', { account: 'alice' }),
    await tx.retry(client, 1, { deadlineBlock: 5 }),
  ]
  const t = await tx.status(client, ids[0]!)
  const fee: bigint | null | undefined = t?.fee
  const { outcome } = await tx.wait(client, 1, { signal: AbortSignal.timeout(5) })
  if (outcome === 'ok') await tx.wait(tx.fromPostgres(sql), 1)
  for await (const e of tx.follow(client, { position: 0 })) {
    if (e.type === 'end') console.log(e.outcome, e.position, fee)
    else console.log(e.droppedBefore.toISOString())
  }
  const call: Buffer = await tx.encode({ url: 'http://localhost', token: 't' }, 'alice', 'System', 'remark', { remark: '0x' })
  console.log(call, tx.errorCode(new Error()))
  // @ts-expect-error: there is no such option
  await tx.enqueue(client, 'alice', '00', { wish: 1 })
  // @ts-expect-error: a query builder does not listen
  await tx.wait(tx.fromKnex(knex), 1)
}
