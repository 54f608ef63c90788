// The call's bytes, by its name: a relay encodes it with the chain's metadata (docs/http.md).

/** An answer of the relay that is a problem (RFC 9457). */
export class TxrelayHttpError extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title ?? `HTTP status ${status}`)
    this.name = 'TxrelayHttpError'
    this.status = status
    this.code = problem.code
  }
}

/** url: the relay's, for example http://127.0.0.1:8080. token: one with the scope enqueue. args: by name or by position. */
export async function encode({ url, token, signal }, account, pallet, name, args = []) {
  const answer = await fetch(new URL('/v1/transactions', url), {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ account, call: { pallet, name, args }, dry_run: true }, (_, v) => (typeof v === 'bigint' ? String(v) : v)),
    signal,
  })
  const text = await answer.text()
  let body
  try {
    body = JSON.parse(text)
  } catch {
    body = { detail: `${url} answered ${answer.status} without JSON: ${text.slice(0, 80)}` } // a proxy's page
  }
  if (!answer.ok || typeof body.call !== 'string') throw new TxrelayHttpError(body, answer.status)
  return Buffer.from(body.call.replace(/^0x/, ''), 'hex')
}
