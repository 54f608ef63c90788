// A line over the last two minutes, with its words for whoever does not see it.
import { h } from './dom.js'

const WIDTH = 240
const HEIGHT = 44

export function plot(label, values, shown) {
  const known = values.filter((v) => v !== null)
  const top = Math.max(1, ...known)
  const step = WIDTH / Math.max(1, values.length - 1)
  let line = ''
  let area = ''
  let pen = false
  values.forEach((v, i) => {
    if (v === null) {
      pen = false
      return
    }
    const x = (i * step).toFixed(1)
    const y = (HEIGHT - 3 - (v / top) * (HEIGHT - 8)).toFixed(1)
    line += `${pen ? 'L' : 'M'}${x} ${y}`
    pen = true
  })
  if (known.length === values.length && line) area = `${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`
  return h('svg', {
    class: 'plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img',
    'aria-label': `${label} over the last two minutes: now ${shown}, highest ${Math.round(top)}`
  },
  area && h('path', { class: 'area', d: area }),
  h('path', { class: 'line', d: line || `M0 ${HEIGHT - 3}L${WIDTH} ${HEIGHT - 3}` }))
}

export function figure(label, value, values, note) {
  return h('section', { class: 'figure', 'aria-label': label },
    h('h3', {}, label), h('p', { class: String(value).length > 9 ? 'big long' : 'big' }, value), note && h('p', { class: 'note' }, note),
    values && plot(label, values, value))
}
