// What an operator can do: each action says first what it will do, and asks.
import { post, segment } from './api.js'
import { fill, h, toast } from './dom.js'

const TEXTS = {
  cancel: {
    title: 'Cancel this transaction?', button: 'Cancel the transaction', danger: true,
    text: 'If it has not been submitted, it ends now and takes no effect. If it may be in a pool, the leader replaces it with a filler at the same nonce and a higher tip; the record says which of the two the chain included.'
  },
  bump: {
    title: 'Raise its tip?', button: 'Raise the tip',
    text: 'A queued transaction gets the tip when it is signed. One in a pool is signed again at the same nonce with this tip. The account’s tip_cap and the transaction’s max_tip still hold.',
    field: { name: 'tip', label: 'Tip in planck', pattern: '[0-9]{1,39}', required: true }
  },
  retry: {
    title: 'Send it again?', button: 'Send it again',
    text: 'The same call is enqueued as a new transaction, with a new id. This record stays as it is and names the new one.'
  },
  pause: {
    title: 'Pause this account?', button: 'Pause', danger: true,
    text: 'Nothing more of it is signed. What is in flight goes on to its end, and applications can still enqueue. It goes on when somebody resumes it.',
    field: { name: 'reason', label: 'Reason, which everybody sees', maxlength: 200 }
  },
  resume: {
    title: 'Resume this account?', button: 'Resume',
    text: 'Its leader goes on from where it stopped: what waits in the queue is signed and submitted.'
  }
}

const ANSWERS = {
  cancelled: 'Cancelled: it takes no effect.', requested: 'The leader was asked to.', queued: 'It has the tip when it is signed.',
  finished: 'It had ended before.', paused: 'Paused.', resumed: 'Resumed.'
}

const path = (action, subject) => subject.id
  ? `/v1/transactions/${subject.id}/${action}` : `/v1/accounts/${segment(subject.account)}/${action}`

export function button(action, subject, done, label) {
  return h('button', { type: 'button', class: TEXTS[action].danger ? 'quiet danger' : 'quiet', 'data-action': action, onclick: () => open(action, subject, done) },
    label || action[0].toUpperCase() + action.slice(1))
}

function open(action, subject, done) {
  const dialog = document.getElementById('dialog')
  const text = TEXTS[action]
  const wrong = h('p', { class: 'wrong', role: 'alert' })
  const input = text.field && h('input', { id: 'dialog-field', type: 'text', autocomplete: 'off', ...text.field, label: undefined })
  const go = h('button', { type: 'submit', class: text.danger ? 'primary danger' : 'primary' }, text.button)
  const form = h('form', {
    method: 'dialog',
    onsubmit: async (e) => {
      e.preventDefault()
      go.disabled = true
      try {
        const value = input?.value.trim()
        const { answer } = await post(path(action, subject), value ? { [text.field.name]: value } : {})
        dialog.close()
        toast(action === 'retry' ? `Enqueued again as transaction ${answer}.` : ANSWERS[answer] || `The answer: ${answer}`)
        done?.(answer)
      } catch (problem) {
        wrong.textContent = problem.status === 403 ? 'Your token may not: it needs the scope operate.' : problem.message
        go.disabled = false
      }
    }
  },
  h('h2', { id: 'dialog-title' }, text.title),
  h('p', { class: 'subject' }, subject.id ? `Transaction ${subject.id} of ${subject.account}` : `Account ${subject.account}`),
  h('p', {}, text.text),
  input && h('label', { for: 'dialog-field' }, text.field.label), input,
  wrong,
  h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Leave it'), go))
  fill(dialog, form)
  dialog.showModal()
}
