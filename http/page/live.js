// What the stream says, kept small: rates and latencies of the last two minutes, and who wants to hear.
import { follow } from './api.js'

const SECONDS = 120
const KNOWN_MAX = 20000
const ACCOUNTS_MAX = 300

class Series {
  constructor() {
    this.counts = new Array(SECONDS).fill(0)
    this.at = 0
    this.latencies = [] // of ends: [second, ms]
  }

  roll(now) {
    if (now - this.at >= SECONDS) this.counts.fill(0)
    else for (let s = this.at + 1; s <= now; s++) this.counts[s % SECONDS] = 0
    this.at = now
    while (this.latencies.length && (this.latencies[0][0] < now - SECONDS || this.latencies.length > 5000)) this.latencies.shift()
  }

  add(now, latency) {
    this.roll(now)
    this.counts[now % SECONDS]++
    if (latency >= 0) this.latencies.push([now, latency])
  }

  // Oldest first; the present second is not over.
  rates(now) {
    this.roll(now)
    return Array.from({ length: SECONDS - 1 }, (_, i) => this.counts[(now + 1 + i) % SECONDS])
  }

  rate(now) {
    const last = this.rates(now).slice(-10)
    return last.reduce((a, b) => a + b, 0) / last.length
  }

  // A point for each second that had ends: the median.
  latencyLine(now) {
    this.roll(now)
    const by = new Map()
    for (const [s, ms] of this.latencies) by.set(s, [...(by.get(s) || []), ms])
    return Array.from({ length: SECONDS - 1 }, (_, i) => {
      const list = by.get(now - SECONDS + 1 + i)
      return list ? list.sort((a, b) => a - b)[list.length >> 1] : null
    })
  }

  quantile(q) {
    const list = this.latencies.map((x) => x[1]).sort((a, b) => a - b)
    return list.length ? list[Math.min(list.length - 1, Math.floor(list.length * q))] : null
  }
}

export const second = () => Math.floor(Date.now() / 1000)
const all = new Series()
const accounts = new Map()
const began = new Map() // id -> when it got its nonce
const heard = new Set()
let state = 'offline'
let stop = null

export const live = {
  state: () => state,
  all: () => all,
  account(alias) {
    if (!accounts.has(alias)) {
      if (accounts.size >= ACCOUNTS_MAX) accounts.delete(accounts.keys().next().value)
      accounts.set(alias, new Series())
    }
    return accounts.get(alias)
  },
  // on.event(event) for each; on.state(state). Returns how to end it.
  listen(on) {
    heard.add(on)
    return () => heard.delete(on)
  },
  start() {
    stop?.()
    stop = follow(take, (s, why) => {
      state = s
      for (const on of heard) on.state?.(s, why)
    })
  },
  end() {
    stop?.()
    stop = null
    state = 'offline'
  }
}

function take(event) {
  const { id } = event
  if (id && event.event === 'new' && !event.from_scan) {
    if (began.size >= KNOWN_MAX) began.delete(began.keys().next().value)
    began.set(id, Date.parse(event.updated_at))
  }
  if (id && event.event === 'finished') {
    const from = began.get(id)
    const latency = from === undefined ? -1 : Date.parse(event.updated_at) - from
    began.delete(id)
    all.add(second(), latency)
    if (event.account) live.account(event.account).add(second(), latency)
  }
  for (const on of heard) on.event?.(event)
}
