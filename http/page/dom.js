// Elements and words. Texts of others only ever become text nodes.

export function h(tag, props, ...children) {
  const svg = tag === 'svg' || tag === 'path' || tag === 'line' || tag === 'circle'
  const el = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag)
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value)
    else if (name === 'class') el.setAttribute('class', value)
    else el.setAttribute(name, value === true ? '' : value)
  }
  add(el, children)
  return el
}

export function add(el, children) {
  for (const child of [children].flat(Infinity))
    if (child !== undefined && child !== null && child !== false) el.append(child instanceof Node ? child : String(child))
  return el
}

export function fill(el, ...children) {
  el.replaceChildren()
  return add(el, children)
}

export const short = (hash) => hash ? `${hash.slice(0, 8)}…${hash.slice(-4)}` : ''

export function number(n) {
  return n === null || n === undefined ? '–' : Number(n).toLocaleString('en').replaceAll(',', '\u202f')
}

// Planck are texts of digits: they may not fit a number.
export function amount(text) {
  if (text === null || text === undefined) return '–'
  return String(text).replace(/\B(?=(\d{3})+$)/g, '\u202f')
}

export function span(ms) {
  const s = ms / 1000
  if (s < 1) return `${Math.max(0, Math.round(ms))} ms`
  if (s < 10) return `${s.toFixed(1)} s`
  if (s < 90) return `${Math.round(s)} s`
  if (s < 5400) return `${Math.round(s / 60)} min`
  if (s < 129600) return `${Math.round(s / 3600)} h`
  return `${Math.round(s / 86400)} days`
}

export function time(iso) {
  if (!iso) return '–'
  const at = new Date(iso)
  const today = at.toDateString() === new Date().toDateString()
  const text = today ? at.toLocaleTimeString('en-GB') : at.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
  return h('time', { datetime: iso, title: iso }, text)
}

export function ago(iso) {
  if (!iso) return '–'
  return h('time', { datetime: iso, title: iso, 'data-ago': iso }, `${span(Date.now() - Date.parse(iso))} ago`)
}

// Ages grow while nobody asks.
setInterval(() => {
  for (const el of document.querySelectorAll('time[data-ago]'))
    el.textContent = `${span(Date.now() - Date.parse(el.dataset.ago))} ago`
}, 5000)

const WORDS = {
  queued: 'queued', signed: 'signed', future: 'future', ready: 'in the pool', broadcast: 'broadcast', in_block: 'in a block',
  retracted: 'retracted', finality_timeout: 'no finality', finalized: 'finalized', usurped: 'usurped', dropped: 'dropped',
  invalid: 'invalid', ok: 'ok', dispatch_error: 'dispatch error', expired: 'expired', cancelled: 'cancelled', failed: 'failed',
  unknown: 'unknown'
}
const KINDS = {
  queued: 'wait', signed: 'sent', future: 'sent', ready: 'sent', broadcast: 'sent', in_block: 'block', finalized: 'done', ok: 'done',
  retracted: 'warn', finality_timeout: 'warn', dropped: 'warn', invalid: 'warn', usurped: 'bad', dispatch_error: 'bad', expired: 'bad',
  cancelled: 'off', failed: 'bad', unknown: 'bad'
}
export const word = (state) => WORDS[state] || state || ''
export const kind = (state) => KINDS[state] || 'wait'
export function badge(state) {
  return h('span', { class: `badge ${kind(state)}` }, word(state))
}
export const stateOf = (t) => t.outcome || t.state || t.stage

export function copyable(text, shown) {
  if (!text) return '–'
  return h('button', {
    class: 'copy mono', type: 'button', title: `${text} – press to copy`,
    onclick: async (e) => {
      await navigator.clipboard?.writeText(text)
      toast('Copied')
      e.stopPropagation()
    }
  }, shown || short(text), h('span', { class: 'unseen' }, ' copy'))
}

let toastTimer
export function toast(text) {
  const el = document.getElementById('toast')
  el.textContent = text
  el.classList.add('shown')
  clearTimeout(toastTimer)
  toastTimer = setTimeout(() => el.classList.remove('shown'), 4000)
}

export function empty(text) {
  return h('p', { class: 'empty' }, text)
}

// A table that becomes cards on a narrow screen: each cell knows its heading.
export function table(caption, heads, rows) {
  return h('div', { class: 'scroll', tabindex: rows.length ? 0 : null, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', { class: 'unseen' }, caption),
      h('thead', {}, h('tr', {}, heads.map((x) => h('th', { scope: 'col' }, x)))),
      h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell, i) => h('td', { 'data-head': heads[i] }, cell)))))))
}
