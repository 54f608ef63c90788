// How fast @polkadot/api's users submit: one signAndSend after the other, each awaited until the node has taken it.
// node api.mjs WS SECONDS LENGTH chain|hand    chain: nonce -1, asked of the node each time; hand: counted
// With -1 the API at times signs a nonce again that was taken just before ("outdated", "priority is too low"): those are
// counted apart.
import { connect, pairs, remark, say, sender, version } from './common.mjs'

const [ws, seconds, length, mode] = process.argv.slice(2)
const api = await connect(ws)
const [pair] = pairs(1)
const data = remark(Number(length))
const byHand = await sender(api, [pair], data)
let refused = 0
const send = mode === 'hand'
  ? () => byHand(0).then(() => 1)
  : () => api.tx.system.remark(data).signAndSend(pair, { nonce: -1 }).then(() => 1, (error) => {
    if (![1010, 1014].includes(error.code)) throw error
    refused++
    return 0
  })
for (let i = 0; i < 50; i++) await send() // warm: the compiler's and the API's caches
const start = performance.now()
let count = 0
refused = 0
while (performance.now() - start < seconds * 1000) count += await send()
say({ count, refused, seconds: (performance.now() - start) / 1000, version: version('@polkadot/api') })
process.exit()
