// Who led when.
import { ago, empty, h, span, table, time } from './dom.js'

export function leaders(list) {
  if (!list.length) return empty('Nobody has led yet.')
  return table('Who led when', ['account', 'relay', 'epoch', 'since', 'for'], list.map((l) => [
    h('a', { href: `#/account/${encodeURIComponent(l.account)}` }, l.account), l.leader, l.epoch, time(l.since),
    l.until ? span(Date.parse(l.until) - Date.parse(l.since)) : ['since ', ago(l.since)]]))
}
