// One account: the strip, its figures, why it waits, and what one can do.
import { get, segment } from './api.js'
import { ago, amount, badge, copyable, empty, fill, h, number, span, table } from './dom.js'
import { button } from './actions.js'
import { leaders } from './leaders.js'
import { live, second } from './live.js'
import { figure } from './plot.js'
import { Strip, legend } from './strip.js'
import { accountTable } from './view_now.js'
import { rows as transactionRows } from './view_transactions.js'

export async function accounts(view) {
  const list = h('div', {})
  const more = h('button', { type: 'button', class: 'quiet' }, 'More')
  let all = []
  let next

  async function page() {
    const answer = await get('/v1/accounts', { limit: 100, cursor: next })
    all = [...all, ...answer.accounts]
    next = answer.next
    if (!view.alive()) return
    fill(list, accountTable(all))
    more.hidden = !next
  }
  more.addEventListener('click', () => view.try(page))
  const find = h('form', {
    class: 'inline',
    onsubmit: (e) => {
      e.preventDefault()
      location.hash = `#/account/${encodeURIComponent(find.elements.account.value.trim())}`
    }
  }, h('label', { for: 'account' }, 'Alias, id or address'), h('input', { id: 'account', name: 'account', required: true, maxlength: 200, autocomplete: 'off', spellcheck: 'false' }),
  h('button', { type: 'submit', class: 'quiet' }, 'Open'))
  await page()
  view.show('Accounts', h('h1', {}, 'Accounts'), find, list, more)
}

export async function account(view, name) {
  const a = await get(`/v1/accounts/${segment(name)}`)
  const strip = new Strip(a.alias)
  const head = h('div', {})
  const figures = h('div', { class: 'figures' })
  const tally = h('p', { class: 'tally', 'aria-live': 'off' })
  const latest = h('div', {})
  const facts = h('div', {})
  const led = h('div', {})
  let info = a
  let dirty = false

  function drawHead() {
    fill(head, h('div', { class: 'title' }, h('h1', {}, info.alias), h('div', { class: 'buttons' },
      info.paused || info.suspension ? button('resume', { account: info.alias }, refresh) : button('pause', { account: info.alias }, refresh))),
    h('p', { class: 'lead' }, info.leader ? ['led by ', h('strong', {}, info.leader), `, epoch ${info.epoch}, heard from `, span(info.heartbeat_age_s * 1000), ' ago']
      : h('strong', {}, 'nobody leads it'), ' · ', copyable(info.address || info.account_id)),
    info.paused && notice('warn', 'Paused', `by ${info.paused_by}: ${info.paused_reason}`, info.paused_since),
    info.suspension && notice('bad', 'Suspended', info.suspension),
    info.blocked && !info.paused && notice('warn', info.blocked.code, info.blocked.reason, info.blocked.since))
  }

  const count = (stage) => info.counts.filter((c) => c.stage === stage)
  const sum = (stage) => count(stage).reduce((n, c) => n + c.count, 0)

  function drawFigures() {
    const s = live.account(info.alias)
    const t = second()
    const half = s.quantile(0.5)
    const fees = count('finished').reduce((n, c) => n + BigInt(c.fee || '0'), 0n)
    const oldest = count('outbox')[0]?.oldest
    fill(figures,
      figure('Waiting', number(sum('outbox')), null, oldest ? ['the oldest for ', span(Date.now() - Date.parse(oldest))] : 'in the outbox'),
      figure('In flight', number(strip.counts().flying), null, `next nonce ${number(strip.next)}`),
      figure('Ended per second', s.rate(t).toFixed(1), s.rates(t)),
      figure('Nonce to end, median', half === null ? '–' : span(half), s.latencyLine(t)),
      figure('Fees', amount(fees), null, 'planck, of what is kept'))
  }

  function drawStrip() {
    dirty = false
    strip.draw()
    const c = strip.counts()
    tally.textContent = `${c.flying} in flight, ${c.gaps} gap${c.gaps === 1 ? '' : 's'}, ${c.fillers} filler${c.fillers === 1 ? '' : 's'}`
    drawFigures()
  }

  function drawFacts() {
    const policy = Object.entries(info.policy || {})
    fill(facts, h('h2', {}, 'Kept records'), table('How many in each state', ['stage', 'state', 'count', 'oldest', 'fees'], info.counts.map((c) => [
      c.stage, badge(c.state), `${number(c.count)}${c.more ? '+' : ''}`, ago(c.oldest), amount(c.fee)])),
    h('h2', {}, 'Policy'), policy.length ? h('dl', { class: 'facts' }, policy.map(([k, v]) => [h('dt', {}, k), h('dd', {}, String(v))])) : empty('Every key has its default.'))
  }

  async function refresh() {
    const [again, list, past] = await Promise.all([get(`/v1/accounts/${segment(a.alias)}`), get('/v1/transactions', { account: a.alias, limit: 12 }),
      get('/v1/leaders', { account: a.alias, limit: 8 })])
    if (!view.alive()) return
    info = again
    drawHead()
    drawFigures()
    drawFacts()
    fill(latest, h('h2', {}, 'Latest transactions'), transactionRows(list.transactions))
    fill(led, h('h2', {}, 'Who led when'), leaders(past.leaders))
  }

  await Promise.all([strip.load(), refresh()])
  view.show(info.alias, head, h('section', { 'aria-labelledby': 'strip-title' }, h('h2', { id: 'strip-title' }, 'Nonces'), strip.el, tally, legend()),
    figures, latest, led, facts)
  drawStrip()
  view.on(live.listen({
    event: (e) => {
      if (e.event === 'live') view.try(async () => { await strip.load(); drawStrip() })
      else if (strip.hear(e) && !dirty) {
        dirty = true
        view.later(100, drawStrip)
      }
    }
  }))
  view.every(1000, drawFigures)
  view.every(2500, refresh)
}

function notice(look, title, text, since) {
  return h('div', { class: `notice ${look}`, role: 'note' }, h('strong', {}, title), ' ', text, since && [' ', ago(since)])
}
