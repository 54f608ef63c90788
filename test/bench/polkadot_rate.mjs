// How fast @polkadot/api's users submit: one signAndSend after the other, each awaited until the node has taken it.
// node polkadot_rate.mjs NODE_MODULES WS SECONDS chain|hand    chain: nonce -1, asked of the node each time; hand: counted
// With -1 the API at times signs a nonce again that was taken just before ("outdated", "priority is too low"): those are counted apart.
import { createRequire } from 'node:module'

const [modules, ws, seconds, mode] = process.argv.slice(2)
const { ApiPromise, WsProvider, Keyring } = createRequire(modules + '/')('@polkadot/api')
const api = await ApiPromise.create({ provider: new WsProvider(ws), noInitWarn: true })
const pair = new Keyring({ type: 'sr25519' }).addFromUri('//Bob')
let nonce = (await api.rpc.system.accountNextIndex(pair.address)).toNumber()
const data = '0x' + '5a'.repeat(96)
let refused = 0
const send = () => api.tx.system.remark(data).signAndSend(pair, { nonce: mode === 'hand' ? nonce++ : -1 })
  .then(() => 1, (error) => {
    if (mode === 'hand' || ![1010, 1014].includes(error.code)) throw error
    refused++
    return 0
  })
for (let i = 0; i < 50; i++) await send() // warm: the compiler's and the API's caches
const start = process.hrtime.bigint()
const end = start + BigInt(Math.round(seconds * 1e9))
let count = 0
refused = 0
while (process.hrtime.bigint() < end) count += await send()
const took = Number(process.hrtime.bigint() - start) / 1e9
console.log(JSON.stringify({ count, refused, seconds: took, version: api.libraryInfo }))
await api.disconnect()
