// What is wrong first, then who leads, and how fast it goes.
import { get } from './api.js'
import { ago, amount, badge, empty, fill, h, number, span, table } from './dom.js'
import { leaders } from './leaders.js'
import { live, second } from './live.js'
import { figure } from './plot.js'

export async function now(view) {
  const wrong = h('section', { 'aria-labelledby': 'wrong-title' })
  const figures = h('div', { class: 'figures' })
  const cluster = h('section', { 'aria-labelledby': 'cluster-title' })
  const accounts = h('section', { 'aria-labelledby': 'accounts-title' })
  const bad = h('section', { 'aria-labelledby': 'bad-title' })
  const led = h('section', { 'aria-labelledby': 'led-title' })
  let o = null

  function drawFigures() {
    const s = live.all()
    const t = second()
    const half = s.quantile(0.5)
    const most = s.quantile(0.99)
    fill(figures,
      figure('Ended per second', s.rate(t).toFixed(1), s.rates(t), 'mean of ten seconds'),
      figure('Nonce to end, median', half === null ? '–' : span(half), s.latencyLine(t), most === null ? 'no end yet' : `99 % within ${span(most)}`),
      figure('Waiting', bounded(o.queued), null, 'in the outbox'),
      figure('In flight', bounded(o.in_flight), null, 'with a nonce'))
  }

  async function load() {
    const [overview, members, list, past] = await Promise.all([get('/v1/overview'), get('/v1/cluster'), get('/v1/accounts', { limit: 12 }),
      get('/v1/leaders', { limit: 8 })])
    if (!view.alive()) return
    o = overview
    drawWrong(wrong, o)
    drawFigures()
    drawCluster(cluster, members, o)
    drawAccounts(accounts, list, o)
    drawBad(bad, o)
    fill(led, h('h2', { id: 'led-title' }, 'Who led when'), leaders(past.leaders))
  }

  await load()
  view.show('Now', h('h1', { class: 'unseen' }, 'Now'), wrong, figures, cluster, accounts, bad, led)
  view.every(1000, drawFigures)
  view.every(2500, load)
  view.on(live.listen({ state: () => view.soon(load) }))
}

const bounded = (n) => n >= 10000 ? '10\u202f000+' : number(n)

function drawWrong(el, o) {
  const all = [
    ...o.blocked_relays.map((b) => ({ ...b, who: b.relay || 'the database', href: null })),
    ...o.blocked_accounts.map((b) => ({ ...b, who: b.account, href: `#/account/${encodeURIComponent(b.account)}` }))
  ]
  if (!all.length) {
    fill(el, h('div', { class: 'well' }, h('span', { class: 'dot done', 'aria-hidden': 'true' }),
      h('div', {}, h('h2', { id: 'wrong-title' }, 'Nothing is wrong'),
        h('p', {}, `${number(o.accounts)} account${o.accounts === 1 ? '' : 's'} make progress, and every relay does its work.`))))
    return
  }
  fill(el, h('h2', { id: 'wrong-title' }, all.length === 1 ? 'One thing needs you' : `${all.length} things need you`),
    h('ul', { class: 'troubles' }, all.map((b) => h('li', {},
      h('p', { class: 'head' }, b.href ? h('a', { href: b.href }, b.who) : h('strong', {}, b.who), h('code', {}, b.code), b.since && ago(b.since)),
      h('p', {}, b.reason),
      b.id && h('p', {}, h('a', { href: `#/transaction/${b.id}` }, `transaction ${b.id}`), b.nonce !== null && ` at nonce ${b.nonce}`)))))
}

function drawCluster(el, c, o) {
  const sick = new Set(o.blocked_relays.map((b) => b.relay))
  fill(el, h('h2', { id: 'cluster-title' }, 'Relays'),
    c.members.length ? table('Relays', ['relay', 'leads', 'heartbeat', 'best block', 'address'], c.members.map((m) => [
      h('span', { class: 'with-dot' }, h('span', { class: `dot ${m.heartbeat_age_s > 5 ? 'bad' : sick.has(m.relay) ? 'warn' : 'done'}`, 'aria-hidden': 'true' }),
        h('strong', {}, m.relay), m.heartbeat_age_s > 5 && h('span', { class: 'badge bad' }, 'silent')),
      m.leads ? `${number(m.leads)} account${m.leads === 1 ? '' : 's'}` : 'follows', ago(m.heartbeat), number(m.best),
      h('span', { class: 'mono small' }, m.address || '–')])) : empty('No relay has been here for a minute.'))
}

function drawAccounts(el, list, o) {
  fill(el, h('h2', { id: 'accounts-title' }, 'Accounts'), accountTable(list.accounts),
    o.accounts > list.accounts.length && h('p', {}, h('a', { href: '#/accounts' }, `All ${bounded(o.accounts)} accounts`)))
}

export function accountTable(accounts) {
  if (!accounts.length) return empty('No account is registered yet.')
  return table('Accounts', ['account', 'leader', 'next nonce', 'ends/s', 'state'], accounts.map((a) => [
    h('a', { href: `#/account/${encodeURIComponent(a.alias)}` }, a.alias),
    a.leader ? h('span', {}, a.leader, h('span', { class: 'faint' }, ` epoch ${a.epoch}`)) : h('span', { class: 'badge bad' }, 'no leader'),
    amount(a.next_nonce), live.account(a.alias).rate(second()).toFixed(1),
    a.paused ? badge2('off', 'paused') : a.suspension ? badge2('bad', 'suspended') : a.blocked ? badge2('warn', a.blocked.code) : badge2('done', 'moves')]))
}

const badge2 = (look, text) => h('span', { class: `badge ${look}` }, text)

function drawBad(el, o) {
  fill(el, h('h2', { id: 'bad-title' }, 'Ended without success'),
    o.ended_badly.length ? table('Ended without success', ['transaction', 'account', 'outcome', 'why', 'when'], o.ended_badly.map((t) => [
      h('a', { href: `#/transaction/${t.id}` }, t.id), t.account, badge(t.outcome), h('span', { class: 'why' }, t.error || '–'), ago(t.at)]))
      : empty('None among the last 500.'))
}
