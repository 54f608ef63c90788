/** What asks: pg's Client or PoolClient, or what a `from..` function makes. */
export interface Queryable {
  query(text: string, values: any[]): Promise<{ rows: any[] }>
}

/** What also listens: a pg.Client of its own, or fromPostgres(sql). */
export type Listening = Queryable &
  ({ on(event: string, heard: (...args: any[]) => void): any; off(event: string, heard: (...args: any[]) => void): any } | {
    listen(channel: string, heard: () => void): Promise<() => Promise<unknown>>
  })

export function fromPostgres(sql: any): Queryable & { listen(channel: string, heard: () => void): Promise<() => Promise<unknown>> }
export function fromKnex(knex: { raw(sql: string, bindings: any): any }): Queryable
export function fromKysely(db: { executeQuery(query: any): Promise<any> }): Queryable
/** `sql` is the one of drizzle-orm. */
export function fromDrizzle(db: { execute(query: any): any }, sql: any): Queryable
export function fromPrisma(prisma: { $queryRawUnsafe(query: string, ...values: any[]): any }): Queryable

/** Bytes, or hexadecimal text with or without 0x. */
export type Bytes = Uint8Array | string
/** Planck, the chain's smallest unit. */
export type Amount = bigint | number | string
/** Milliseconds, or an interval of Postgres: '1 hour'. */
export type Span = number | string

export interface Options {
  /** -1000 to 1000; higher goes first. */
  priority?: number
  notBefore?: Date | string
  /** Nothing is signed for it after this time. */
  deadline?: Date | string
  creator?: string
  /** It ends as failed rather than be signed under another runtime. */
  specVersion?: number
  tip?: Amount
  maxTip?: Amount
  /** The last block that may contain it. */
  deadlineBlock?: number
  /** How often it returns to the queue after the chain says that the call failed; 0 to 100. */
  retries?: number
  /** A deadline that counts from now. */
  expiresIn?: Span
  /** A notBefore that counts from now. */
  delay?: Span
  /** W3C trace context of the request. */
  traceparent?: string
}

export type Outcome = 'ok' | 'dispatch_error' | 'expired' | 'cancelled' | 'failed' | 'usurped' | 'unknown'

export interface Transaction {
  id: number | null
  account: string
  stage: 'outbox' | 'pending' | 'finished'
  state: string | null
  outcome: Outcome | null
  /** Why it is not done yet. */
  waits: string | null
  nonce: number | null
  hash: string | null
  blockNumber: number | null
  blockHash: string | null
  tip: bigint | null
  fee: bigint | null
  error: string | null
  key: string | null
  creator: string | null
  createdAt: Date
  updatedAt: Date | null
  retryOf: number | null
  retriedAs: number | null
  traceparent: string | null
}

/** Stores a transaction in the transaction that `db` is in; resolves to its id. The same key and call give the same id. */
export function enqueue(db: Queryable, account: string, call: Bytes, options?: Options & { key?: string }): Promise<number>
export function enqueueMany(db: Queryable, account: string, calls: Iterable<Bytes>,
  options?: Options & { keys?: Iterable<string | null> }): Promise<number[]>
export function enqueueSigned(db: Queryable, extrinsic: Bytes,
  options?: { key?: string; creator?: string; account?: string; traceparent?: string }): Promise<number>
export function cancel(db: Queryable, id: number): Promise<'cancelled' | 'requested' | 'finished'>
export function bump(db: Queryable, id: number, tip?: Amount): Promise<'queued' | 'requested' | 'finished'>
export function retry(db: Queryable, id: number, options?: { deadline?: Date | string; deadlineBlock?: number }): Promise<number>
/** By id, or by the hash of an extrinsic that was signed for it. null: it is not known. */
export function status(db: Queryable, idOrHash: number | string): Promise<Transaction | null>

/** The transaction once it has ended. `db` must not be in a transaction, nor behind a transaction pooler. */
export function wait(db: Listening, id: number, options?: { signal?: AbortSignal }): Promise<Transaction & { outcome: Outcome }>

export interface End {
  type: 'end'
  /** Follow from here to go on after this event. */
  position: number
  id: number
  account: string
  outcome: Outcome
  error: string | null
  nonce: number | null
  hash: string | null
  blockNumber: number | null
  blockHash: string | null
  creator: string | null
  traceparent: string | null
  endedAt: Date
}
/** Records that ended before this time were removed: outcomes after your position may be missing. */
export interface Gap {
  type: 'gap'
  position: number
  droppedBefore: Date
}

/** Every final outcome from a position on, at least once: the position of the last event, 0 for all, none for now. */
export function follow(db: Listening, options?: { position?: number; account?: string; signal?: AbortSignal }): AsyncGenerator<End | Gap, never>

/** The bytes of a call by its name: a relay with HTTP encodes it. args: by name (object) or by position (array). */
export function encode(relay: { url: string | URL; token: string; signal?: AbortSignal }, account: string, pallet: string,
  name: string, args?: unknown[] | Record<string, unknown>): Promise<Buffer>

export class TxrelayHttpError extends Error {
  status: number
  code?: string
}

/** The SQLSTATE of an error, also of one that a library has wrapped. TR010 .. TR014 are txrelay's. */
export function errorCode(error: unknown): string | undefined
