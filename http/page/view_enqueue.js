// A form for one transaction: account, pallet, call and its arguments by their types. What it would be is shown before it is sent.
import { get, post, segment } from './api.js'
import { amount, fill, h, toast } from './dom.js'

const OPTIONS = [['key', 'Idempotency key', 'The same key and call enqueue once.'], ['tip', 'Tip in planck', ''],
  ['expires_in', 'Expires in', 'For example 90 minutes.']]

// Numbers stay texts, because they may not fit a number here; bytes and texts are taken as they are.
export function valueOf(text, type) {
  if (/^(bytes|str)$/.test(type) || !/^(?:[[{"]|(?:true|false|null)$)/.test(text)) return text
  return JSON.parse(text)
}

function select(id, label, options, onchange) {
  const el = h('select', { id, required: true, onchange: () => onchange(el.value) }, h('option', { value: '' }, '–'),
    options.map(([value, text]) => h('option', { value }, text)))
  return h('div', {}, h('label', { for: id }, label), el)
}

function input(id, label, more) {
  return h('div', {}, h('label', { for: id }, label), h('input', { id, autocomplete: 'off', spellcheck: 'false', maxlength: 100000, ...more }))
}

export async function enqueue(view) {
  const [{ pallets }, { accounts }] = await Promise.all([get('/v1/calls'), get('/v1/accounts', { limit: 100 })])
  const calls = h('div', {})
  const args = h('div', { class: 'args' })
  const types = h('details', { hidden: true })
  const wrong = h('p', { class: 'wrong', role: 'alert' })
  const tried = h('div', { 'aria-live': 'polite' })
  let pallet = ''
  let call = null

  async function choosePallet(name) {
    pallet = name
    call = null
    fill(calls)
    fill(args)
    types.hidden = true
    if (!name) return
    const answer = await get(`/v1/calls/${segment(name)}`)
    if (pallet !== name) return
    fill(calls, select('e-call', 'Call', answer.calls.map((c) => [c.name, c.name]), (chosen) => chooseCall(answer.calls.find((c) => c.name === chosen))))
  }

  function chooseCall(chosen) {
    call = chosen || null
    fill(tried)
    fill(args, call && call.args.map((a, i) => input(`e-arg-${i}`, [a.name || `argument ${i + 1}`, ' ', h('code', {}, a.type)], { required: true, 'data-type': a.type })))
    types.hidden = !call || !call.args.length
    types.open = false
    fill(types, h('summary', {}, 'What these types are'))
  }

  types.addEventListener('toggle', () => view.try(async () => {
    if (!types.open || types.children.length > 1) return
    const of = call
    const answer = await get(`/v1/calls/${segment(pallet)}/${segment(call.name)}`)
    if (call === of) types.append(h('pre', { class: 'types', tabindex: 0 }, answer.types))
  }))

  function request() {
    const body = { account: form.elements.account.value.trim(), call: { pallet, name: call.name } }
    body.call.args = call.args.map((a, i) => {
      const { value } = document.getElementById(`e-arg-${i}`)
      try {
        return valueOf(value, a.type)
      } catch (e) {
        throw new Error(`${a.name}: ${e.message}`)
      }
    })
    for (const [name] of OPTIONS) if (form.elements[name].value.trim()) body[name] = form.elements[name].value.trim()
    return body
  }

  async function run(f) {
    wrong.textContent = ''
    try {
      if (!form.reportValidity()) return
      await f(request())
    } catch (problem) {
      wrong.textContent = problem.status === 403 ? `Your token may not: ${problem.message}.` : problem.message
    }
  }

  const dry = (body) => post('/v1/transactions', { ...body, dry_run: true })

  function shown(answer) {
    return [h('p', {}, 'Fee about ', h('strong', {}, answer.fee === null ? 'not known' : `${amount(answer.fee)} planck`), ', without the tip.'),
      h('pre', { class: 'decoded', tabindex: 0 }, JSON.stringify(answer.decoded, null, 2)), h('p', { class: 'mono small cut', title: answer.call }, answer.call)]
  }

  function ask(body, answer) {
    const dialog = document.getElementById('dialog')
    const bad = h('p', { class: 'wrong', role: 'alert' })
    const go = h('button', { type: 'submit', class: 'primary' }, 'Enqueue')
    fill(dialog, h('form', {
      method: 'dialog',
      onsubmit: async (e) => {
        e.preventDefault()
        go.disabled = true
        try {
          const { id } = await post('/v1/transactions', body)
          dialog.close()
          toast(`Enqueued as transaction ${id}.`)
          location.hash = `#/transaction/${id}`
        } catch (problem) {
          bad.textContent = problem.status === 403 ? 'Your token may not: it needs the scope enqueue for this account.' : problem.message
          go.disabled = false
        }
      }
    },
    h('h2', { id: 'dialog-title' }, 'Enqueue this transaction?'), h('p', { class: 'subject' }, `For account ${body.account}: ${pallet}.${call.name}`),
    h('p', {}, 'The leader of the account signs it and submits it. It takes effect on the chain once, or ends with a recorded reason.'),
    shown(answer), bad,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Leave it'), go)))
    dialog.showModal()
  }

  const form = h('form', {
    class: 'card enqueue',
    onsubmit: (e) => {
      e.preventDefault()
      run(async (body) => ask(body, await dry(body)))
    }
  },
  h('div', {}, h('label', { for: 'e-account' }, 'Account'), h('input', { id: 'e-account', name: 'account', list: 'e-accounts', required: true, maxlength: 200, autocomplete: 'off', spellcheck: 'false' }),
    h('datalist', { id: 'e-accounts' }, accounts.map((a) => h('option', { value: a.alias })))),
  select('e-pallet', 'Pallet', pallets.map((p) => [p.name, p.name]), (name) => view.try(() => choosePallet(name))),
  calls, args, types,
  h('details', {}, h('summary', {}, 'Options'), OPTIONS.map(([name, label, hint]) => [input(`e-${name}`, label, { name }), hint && h('p', { class: 'note' }, hint)])),
  wrong, tried,
  h('div', { class: 'buttons' },
    h('button', { type: 'button', class: 'quiet', onclick: () => run(async (body) => fill(tried, shown(await dry(body)))) }, 'Try it'),
    h('button', { type: 'submit', class: 'primary' }, 'Enqueue…')))
  view.show('Enqueue', h('h1', {}, 'Enqueue a transaction'), form)
}
