// The strip of an account's nonces: what ended lately, what is in flight, fillers and gaps, in order, live. It moves with
// arrow keys, and each cell says in words what its colour says.
import { get, segment } from './api.js'
import { h, kind, word } from './dom.js'

const ENDED = 60
const PENDING = 256
const GAP_SHOWN = 20

export class Strip {
  constructor(alias) {
    this.alias = alias
    this.cells = new Map() // nonce -> {nonce, id, state, ended}
    this.next = null
    this.el = h('div', { class: 'strip', role: 'list', 'aria-label': `Nonces of ${alias}`, onkeydown: (e) => this.move(e) })
    this.drawn = new Map()
  }

  async load() {
    const [now, past] = await Promise.all([
      get(`/v1/accounts/${segment(this.alias)}/nonces`, { limit: PENDING }),
      get('/v1/transactions', { account: this.alias, state: 'finished', limit: ENDED })
    ])
    this.cells.clear()
    this.next = now.next_nonce
    for (const t of past.transactions)
      if (t.nonce !== null) this.cells.set(t.nonce, { nonce: t.nonce, id: t.id, state: t.outcome, ended: true })
    for (const n of now.nonces) this.cells.set(n.nonce, { nonce: n.nonce, id: n.id, state: n.state, filler: n.filler })
    this.draw()
  }

  hear(event) {
    if (event.account !== this.alias || event.nonce === undefined) return false
    if (event.event === 'removed') this.cells.delete(event.nonce)
    else {
      const before = this.cells.get(event.nonce)
      if (before?.ended && event.event !== 'finished') return false
      this.cells.set(event.nonce, {
        nonce: event.nonce, id: event.id ?? before?.id ?? null, state: event.outcome || event.state, ended: event.event === 'finished',
        filler: event.id === undefined
      })
    }
    if (this.next === null || event.nonce >= this.next) this.next = event.nonce + 1
    return true
  }

  // Cells from the lowest shown nonce on, with the gaps between those that are in flight.
  rows() {
    const sorted = [...this.cells.values()].sort((a, b) => a.nonce - b.nonce)
    const flying = sorted.filter((c) => !c.ended)
    const ended = sorted.filter((c) => c.ended).slice(-ENDED)
    for (const c of sorted) if (c.ended && !ended.includes(c)) this.cells.delete(c.nonce)
    const rows = []
    let before = null
    for (const c of [...ended, ...flying.slice(0, PENDING)].sort((a, b) => a.nonce - b.nonce)) {
      if (before !== null && !c.ended)
        for (let n = before + 1; n < c.nonce && n - before <= GAP_SHOWN; n++) rows.push({ nonce: n, gap: true, state: 'gap' })
      before = c.nonce
      rows.push(c)
    }
    return rows
  }

  counts() {
    const rows = this.rows()
    return {
      flying: rows.filter((c) => !c.ended && !c.gap).length,
      gaps: rows.filter((c) => c.gap).length,
      fillers: rows.filter((c) => c.filler && !c.ended).length
    }
  }

  label(c) {
    if (c.gap) return `Nonce ${c.nonce}: a gap, nobody uses it yet`
    const what = c.filler ? 'a filler' : c.id ? `transaction ${c.id}` : 'no transaction'
    return `Nonce ${c.nonce}: ${what}, ${word(c.state)}`
  }

  // Cells that stay keep their element, so that colours fade and the focus stays.
  draw() {
    const rows = this.rows()
    const keep = new Map()
    const focused = document.activeElement?.dataset?.nonce
    const els = rows.map((c) => {
      const look = c.gap ? 'gap' : `${kind(c.state)}${c.filler ? ' filler' : ''}${c.ended ? ' ended' : ''}`
      let el = this.drawn.get(c.nonce)
      const link = !c.gap && c.id
      if (!el || el.firstChild.hasAttribute('href') !== Boolean(link)) {
        el = h('span', { role: 'listitem' }, link ? h('a', {}) : h('span', { role: 'img' }))
      }
      const cell = el.firstChild
      if (link) cell.setAttribute('href', `#/transaction/${c.id}`)
      cell.className = `cell ${look}`
      cell.dataset.nonce = c.nonce
      cell.dataset.state = c.state
      cell.setAttribute('aria-label', this.label(c))
      cell.title = this.label(c)
      cell.tabIndex = -1
      keep.set(c.nonce, el)
      return el
    })
    this.drawn = keep
    if (els.some((el, i) => this.el.children[i] !== el) || this.el.children.length !== els.length) this.el.replaceChildren(...els)
    const first = this.el.querySelector(`[data-nonce="${focused}"]`) || this.el.querySelector('.cell:not(.ended)') || this.el.querySelector('.cell')
    if (first) first.tabIndex = 0
    if (focused && this.el.querySelector(`[data-nonce="${focused}"]`) && document.activeElement === document.body) first.focus()
  }

  move(e) {
    const cells = [...this.el.querySelectorAll('.cell')]
    const at = cells.indexOf(document.activeElement)
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: cells.length - 1 }[e.key]
    if (at < 0 || to === undefined || !cells[to]) return
    cells[at].tabIndex = -1
    cells[to].tabIndex = 0
    cells[to].focus()
    e.preventDefault()
  }
}

export function legend() {
  const items = [['sent', 'signed, in the pool'], ['block', 'in a block'], ['done ended', 'ended ok'], ['warn', 'retracted, dropped'],
    ['bad ended', 'ended badly'], ['sent filler', 'filler'], ['gap', 'gap']]
  return h('ul', { class: 'legend', 'aria-label': 'Colours' },
    items.map(([look, text]) => h('li', {}, h('span', { class: `cell ${look}`, 'aria-hidden': 'true' }), text)))
}
