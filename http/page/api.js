// The relay's HTTP interface. The token is the user's: it is kept for this tab only, and sent in a header only.

const KEY = 'txrelay.token'
export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  clear: () => sessionStorage.removeItem(KEY)
}

export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail)
    this.status = status
    this.code = code
  }
}

let onUnauthorized = () => {}
export function whenUnauthorized(f) {
  onUnauthorized = f
}

async function ask(method, path, body, signal) {
  const headers = { Authorization: `Bearer ${token.get() || 'none'}` }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  let answer
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, credentials: 'omit', cache: 'no-store' })
  } catch (e) {
    if (e.name === 'AbortError') throw e
    throw new Problem(0, 'unreachable', 'The relay does not answer.')
  }
  if (answer.ok) return answer
  const problem = await answer.json().catch(() => ({}))
  if (answer.status === 401) onUnauthorized()
  throw new Problem(answer.status, problem.code || 'error', problem.detail || answer.statusText)
}

export async function get(path, params) {
  const query = new URLSearchParams(Object.entries(params || {}).filter(([, v]) => v !== undefined && v !== null && v !== ''))
  const text = query.toString()
  return (await ask('GET', text ? `${path}?${text}` : path)).json()
}

export async function post(path, body) {
  return (await ask('POST', path, body || {})).json()
}

export const segment = encodeURIComponent

// Events over SSE, by fetch: EventSource sends no Authorization header. It resumes from the last id.
export function follow(onEvent, onState) {
  const control = new AbortController()
  let last = null
  let wait = 500

  async function once() {
    const headers = { Authorization: `Bearer ${token.get() || 'none'}`, Accept: 'text/event-stream' }
    if (last) headers['Last-Event-ID'] = last
    const answer = await fetch('/v1/events', { headers, signal: control.signal, credentials: 'omit', cache: 'no-store' })
    if (answer.status === 401) {
      onUnauthorized()
      control.abort()
      return
    }
    if (!answer.ok) throw new Error(String(answer.status))
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      rest += value
      const blocks = rest.split('\n\n')
      rest = blocks.pop()
      for (const block of blocks) take(block)
    }
  }

  function take(block) {
    let id = null
    for (const line of block.split('\n')) {
      if (line.startsWith('id: ')) id = line.slice(4)
      if (!line.startsWith('data: ')) continue
      const event = JSON.parse(line.slice(6))
      wait = 500
      if (event.event === 'live' || event.event === 'stale') onState(event.event, event.text)
      onEvent(event)
    }
    if (id) last = id
  }

  ;(async () => {
    while (!control.signal.aborted) {
      try {
        await once()
      } catch {
        // below
      }
      if (control.signal.aborted) return
      onState('offline')
      await new Promise((resolve) => setTimeout(resolve, wait))
      wait = Math.min(wait * 2, 5000)
    }
  })()
  return () => control.abort()
}
