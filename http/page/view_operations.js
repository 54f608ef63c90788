// What operators did, newest first.
import { get } from './api.js'
import { ago, empty, fill, h, table } from './dom.js'

const brief = (o) => o ? Object.entries(o).filter(([, v]) => v !== null).map(([k, v]) => `${k} ${v}`).join(', ') : '–'

export async function operations(view) {
  const list = h('div', {})
  const more = h('button', { type: 'button', class: 'quiet' }, 'More')
  let all = []
  let next

  async function page() {
    const answer = await get('/v1/operations', { limit: 50, cursor: next })
    all = [...all, ...answer.operations]
    next = answer.next
    if (!view.alive()) return
    fill(list, all.length ? table('Operations', ['when', 'who', 'action', 'subject', 'before', 'after', 'answer'], all.map((o) => [
      ago(o.at), o.who, h('strong', {}, o.action),
      o.id ? h('a', { href: `#/transaction/${o.id}` }, `transaction ${o.id}`) : h('a', { href: `#/account/${encodeURIComponent(o.account)}` }, o.account || '–'),
      h('span', { class: 'why' }, brief(o.before)), h('span', { class: 'why' }, brief(o.after)), o.answer])) : empty('Nobody did anything through this interface yet.'))
    more.hidden = !next
  }
  more.addEventListener('click', () => view.try(page))
  await page()
  view.show('Operations', h('h1', {}, 'Operations'), list, more)
}
