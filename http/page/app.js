// Which view is shown, and who is signed in.
import { Problem, token, whenUnauthorized } from './api.js'
import { fill, h } from './dom.js'
import { live } from './live.js'
import { account, accounts } from './view_account.js'
import { enqueue } from './view_enqueue.js'
import { now } from './view_now.js'
import { operations } from './view_operations.js'
import { search, transaction, transactions } from './view_transactions.js'

const main = document.getElementById('main')
const VIEWS = { '': now, accounts, account, transactions, transaction, search, enqueue, operations }

// One shown view: what it started ends with it.
class View {
  constructor() {
    this.ends = []
    this.over = false
    this.waits = false
  }

  alive() {
    return !this.over
  }

  on(end) {
    this.ends.push(end)
  }

  end() {
    this.over = true
    for (const end of this.ends) end()
  }

  show(title, ...content) {
    if (this.over) return
    document.title = `${title} · txrelay`
    fill(main, content)
  }

  async try(f) {
    if (this.over) return
    try {
      await f()
      this.note(null)
    } catch (e) {
      this.note(e)
    }
  }

  // Trouble over a view that is there already: it stays readable.
  note(e) {
    if (this.over) return
    let el = document.getElementById('trouble')
    if (!e) {
      el?.remove()
      return
    }
    if (!el) {
      el = h('p', { id: 'trouble', class: 'notice warn', role: 'status' })
      main.prepend(el)
    }
    el.textContent = e instanceof Problem && e.status === 0 ? 'The relay does not answer. What you see may be old; this page tries again.' : String(e.message || e)
  }

  every(ms, f) {
    let timer
    const turn = async () => {
      if (!document.hidden) await this.try(f)
      if (!this.over) timer = setTimeout(turn, ms)
    }
    timer = setTimeout(turn, ms)
    this.on(() => clearTimeout(timer))
  }

  later(ms, f) {
    const timer = setTimeout(() => this.try(f), ms)
    this.on(() => clearTimeout(timer))
  }

  // At once, but not more often than every 200 ms.
  soon(f) {
    if (this.waits) return
    this.waits = true
    this.later(200, async () => {
      this.waits = false
      await f()
    })
  }
}

let view = null

async function route() {
  if (location.hash && !location.hash.startsWith('#/')) return
  view?.end()
  view = null
  const [path, query] = location.hash.slice(2).split('?')
  const [name, ...rest] = path.split('/')
  for (const a of document.querySelectorAll('header nav a')) {
    const here = a.getAttribute('href') === `#/${name}` || (a.getAttribute('href') === '#/accounts' && name === 'account') ||
      (a.getAttribute('href') === '#/transactions' && (name === 'transaction' || name === 'search'))
    if (here) a.setAttribute('aria-current', 'page')
    else a.removeAttribute('aria-current')
  }
  if (!token.get()) {
    signIn()
    return
  }
  const mine = view = new View()
  main.setAttribute('aria-busy', 'true')
  try {
    await (VIEWS[name] || missing)(mine, rest.map(decodeURIComponent).join('/'), new URLSearchParams(query))
  } catch (e) {
    if (!mine.alive() || (e instanceof Problem && e.status === 401)) return
    mine.show('Trouble', h('h1', {}, e.status === 404 ? 'There is no such thing' : e.status === 403 ? 'Your token may not see this' : 'This did not work'), h('p', {}, e.message),
      h('p', {}, h('button', { type: 'button', class: 'quiet', onclick: route }, 'Try again')))
  } finally {
    main.removeAttribute('aria-busy')
  }
}

function missing(v) {
  v.show('Nothing here', h('h1', {}, 'There is nothing here'), h('p', {}, h('a', { href: '#/' }, 'To what is going on now')))
}

function signIn(why) {
  live.end()
  drawState('offline')
  const wrong = h('p', { class: 'wrong', role: 'alert' }, why)
  const input = h('input', { id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, maxlength: 200, placeholder: 'txr_…' })
  document.title = 'Sign in · txrelay'
  fill(main, h('form', {
    class: 'card sign-in',
    onsubmit: (e) => {
      e.preventDefault()
      const text = input.value.trim()
      if (!/^[\w.~+/=-]+$/.test(text)) {
        wrong.textContent = 'A token is one word.'
        return
      }
      token.set(text)
      live.start()
      route()
    }
  },
  h('h1', {}, 'Sign in with a token'),
  h('p', {}, 'Make one on a host of the relay: ', h('code', {}, 'txrelay token create NAME --scope read'), '. With the scope ', h('code', {}, 'operate'), ' it can also cancel, bump, retry, pause and resume; with ', h('code', {}, 'enqueue'), ' it can enqueue.'),
  h('label', { for: 'token' }, 'Token'), input, wrong,
  h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Sign in')),
  h('p', { class: 'note' }, 'It stays in this tab, and is forgotten when the tab is closed.')))
  input.focus()
}

const STATES = { live: 'live', stale: 'database away', offline: 'offline' }
function drawState(state, why) {
  const el = document.getElementById('live')
  el.className = `live ${state}`
  el.textContent = STATES[state]
  el.title = why || (state === 'live' ? 'Events arrive as they happen.' : 'The stream of events is not there; this page tries again.')
  document.getElementById('out').hidden = !token.get()
}

whenUnauthorized(() => {
  if (!token.get()) return
  token.clear()
  view?.end()
  signIn('The relay does not know this token. It may have been revoked, or have expired.')
})

live.listen({ state: drawState })
document.getElementById('out').addEventListener('click', () => {
  token.clear()
  view?.end()
  signIn()
})
document.getElementById('search').addEventListener('submit', (e) => {
  e.preventDefault()
  const q = document.getElementById('find').value.trim()
  if (q) location.hash = `#/search?q=${encodeURIComponent(q)}`
})
document.addEventListener('keydown', (e) => {
  if (e.key !== '/' || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return
  e.preventDefault()
  document.getElementById('find').focus()
})
window.addEventListener('hashchange', () => {
  route().then(() => main.focus({ preventScroll: true }))
  scrollTo(0, 0)
})

drawState('offline')
if (token.get()) live.start()
route()
