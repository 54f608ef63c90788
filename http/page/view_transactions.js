// Transactions: found by what one knows of them, and one with its timeline.
import { get } from './api.js'
import { ago, amount, badge, copyable, empty, fill, h, number, stateOf, table, time, word } from './dom.js'
import { button } from './actions.js'
import { live } from './live.js'

export function rows(list) {
  if (!list.length) return empty('There are none.')
  return table('Transactions', ['id', 'account', 'nonce', 'state', 'key', 'creator', 'made'], list.map((t) => [
    h('a', { href: `#/transaction/${t.id}` }, t.id), t.account, number(t.nonce), badge(stateOf(t)),
    h('span', { class: 'cut', title: t.key }, t.key || '–'), h('span', { class: 'cut', title: t.creator }, t.creator || '–'), ago(t.created_at)]))
}

// The next page that has something. The relay looks at so many rows for each, so one may be empty and not the last.
async function found(query, view) {
  let answer = await get('/v1/transactions', query)
  while (!answer.transactions.length && answer.next && view.alive()) answer = await get('/v1/transactions', { ...query, cursor: answer.next })
  return answer
}

const FILTERS = ['account', 'state', 'outcome', 'key', 'creator', 'hash', 'nonce']

export async function transactions(view, _, query) {
  const given = Object.fromEntries(FILTERS.map((f) => [f, query.get(f) || '']))
  const list = h('div', {})
  const more = h('button', { type: 'button', class: 'quiet' }, 'More')
  let all = []
  let next

  async function page() {
    const answer = await found({ ...given, limit: 50, cursor: next }, view)
    all = [...all, ...answer.transactions]
    next = answer.next
    if (!view.alive()) return
    fill(list, rows(all))
    more.hidden = !next
  }
  more.addEventListener('click', () => view.try(page))
  const form = h('form', {
    class: 'filters', role: 'search', 'aria-label': 'Filters',
    onsubmit: (e) => {
      e.preventDefault()
      const set = new URLSearchParams([...new FormData(form)].filter(([, v]) => v.trim()).map(([k, v]) => [k, v.trim()]))
      location.hash = `#/transactions?${set}`
    }
  }, FILTERS.map((f) => h('div', {}, h('label', { for: `f-${f}` }, f), h('input', { id: `f-${f}`, name: f, value: given[f], autocomplete: 'off', spellcheck: 'false', maxlength: 200 }))),
  h('button', { type: 'submit', class: 'primary' }, 'Find'))
  await page()
  view.show('Transactions', h('h1', {}, 'Transactions'), form, list, more)
}

// What somebody typed: an id goes to its transaction, all else is tried one after the other.
export async function search(view, _, query) {
  const q = (query.get('q') || '').trim()
  const ways = []
  if (/^0x[0-9a-f]{64}$/i.test(q)) ways.push(['hash', q])
  else {
    if (/^\d{1,18}$/.test(q)) ways.push(['id', q], ['nonce', q])
    ways.push(['key', q], ['creator', q], ['account', q])
  }
  const tried = await Promise.all(ways.map(async ([name, value]) => {
    try {
      if (name === 'id') return [name, [await get(`/v1/transactions/${value}`)]]
      return [name, (await found({ [name]: value, limit: 20 }, view)).transactions]
    } catch (problem) {
      if (problem.status === 404 || problem.status === 400) return [name, []]
      throw problem
    }
  }))
  const hits = tried.filter(([, list]) => list.length)
  const [first] = hits
  if (hits.length === 1 && first[1].length === 1) {
    location.replace(`#/transaction/${first[1][0].id}`)
    return
  }
  view.show(`Find ${q}`, h('h1', {}, 'Found ', h('q', {}, q)),
    hits.length ? hits.map(([name, list]) => h('section', { 'aria-label': `by ${name}` }, h('h2', {}, `by ${name}`), rows(list)))
      : empty('No transaction has this id, hash, nonce, key, creator or account.'))
}

export async function transaction(view, id) {
  const el = h('div', {})
  let at = null

  async function load() {
    const t = await get(`/v1/transactions/${encodeURIComponent(id)}`)
    if (!view.alive()) return
    const text = JSON.stringify(t)
    if (text === at) return
    at = text
    draw(el, t, load)
  }
  await load()
  view.show(`Transaction ${id}`, el)
  view.on(live.listen({
    event: (e) => {
      if (String(e.id) === String(id)) view.soon(load)
    },
    state: () => view.soon(load)
  }))
  view.every(2500, load)
}

function draw(el, t, load) {
  const done = Boolean(t.outcome)
  const subject = { id: t.id, account: t.account }
  fill(el, h('div', { class: 'title' }, h('h1', {}, `Transaction ${t.id}`), badge(stateOf(t)), h('div', { class: 'buttons' },
    !done && button('bump', subject, load, 'Raise tip'), !done && button('cancel', subject, load),
    done && t.outcome !== 'ok' && !t.retried_as && button('retry', subject, (answer) => {
      location.hash = `#/transaction/${answer}`
    }, 'Send again'))),
  t.waits && h('div', { class: 'notice warn', role: 'note' }, h('strong', {}, 'It waits: '), t.waits),
  t.error && h('div', { class: `notice ${done && t.outcome !== 'ok' ? 'bad' : 'warn'}`, role: 'note' }, h('strong', {}, done ? 'It ended so: ' : 'Last error: '), t.error),
  h('dl', { class: 'facts' },
    fact('Account', h('a', { href: `#/account/${encodeURIComponent(t.account)}` }, t.account)), fact('Nonce', number(t.nonce)),
    fact('Hash', copyable(t.hash)), t.block_number !== null && fact('Block', [number(t.block_number), ' ', copyable(t.block_hash)]),
    fact('Fee', amount(t.fee)), fact('Tip', amount(t.tip)), t.key && fact('Key', t.key), fact('Creator', t.creator || '–'),
    t.retry_of && fact('Retry of', h('a', { href: `#/transaction/${t.retry_of}` }, t.retry_of)),
    t.retried_as && fact('Sent again as', h('a', { href: `#/transaction/${t.retried_as}` }, t.retried_as)),
    t.traceparent && fact('Trace', copyable(t.traceparent, t.traceparent))),
  t.call && [h('h2', {}, 'Call'), t.decoded === null ? empty('This runtime does not decode it.') : h('pre', { class: 'decoded', tabindex: 0 }, callText(t.decoded)),
    h('p', {}, copyable(t.call))],
  h('h2', {}, 'Timeline'), timeline(t))
}

// {pallet, call, args} as people write it.
function callText(d) {
  const args = d && typeof d === 'object' ? d.args : null
  const lines = args && typeof args === 'object' ? Object.entries(args).map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`) : []
  return `${d.pallet}.${d.call}${lines.length ? `\n${lines.join('\n')}` : ''}`
}

const fact = (name, value) => h('div', {}, h('dt', {}, name), h('dd', {}, value))

function timeline(t) {
  const steps = [step('done', 'Enqueued', t.created_at, t.creator && `by ${t.creator}`)]
  for (const a of t.history) {
    const bad = a.error || a.reason
    steps.push(step(a.outcome === 'ok' || a.state === 'in_block' ? 'block' : bad ? 'warn' : 'sent',
      a.filler ? `Filler signed at nonce ${a.nonce}` : `Attempt ${a.attempt} signed at nonce ${a.nonce}`, a.created_at,
      [copyable(a.hash), a.tip && a.tip !== '0' && ` tip ${amount(a.tip)}`, a.era_death !== null && ` valid until block ${number(a.era_death)}`,
        a.spec_version !== null && `, runtime ${a.spec_version}`],
      a.reason && `because: ${word(a.reason)}`,
      a.error && h('span', { class: 'why' }, a.error, a.error_count > 1 && ` (${a.error_count} times)`),
      a.state && !t.outcome && h('span', {}, 'now ', badge(a.state))))
  }
  if (t.block_number !== null) steps.push(step('block', `In block ${number(t.block_number)}`, null, copyable(t.block_hash)))
  if (t.outcome) steps.push(step(t.outcome === 'ok' ? 'done' : 'bad', ['Ended: ', word(t.outcome)], t.updated_at, t.fee !== null && `fee ${amount(t.fee)} planck`))
  else steps.push(step('wait', t.waits ? 'It waits' : 'On its way', null, t.waits || word(t.state || t.stage)))
  return h('ol', { class: 'timeline' }, steps)
}

function step(look, title, at, ...more) {
  return h('li', { class: look }, h('p', { class: 'head' }, h('strong', {}, title), at && time(at)),
    more.filter(Boolean).map((m) => h('p', { class: 'more' }, m)))
}
