// What the scripts share: the chain's API, the accounts of the bench, and the end of a run.
import { readFileSync } from 'node:fs'
import { ApiPromise, Keyring, WsProvider } from '@polkadot/api'

export const connect = (ws) => ApiPromise.create({ provider: new WsProvider(ws), noInitWarn: true })

export const pairs = (count) => {
  const ring = new Keyring({ type: 'sr25519' })
  return Array.from({ length: count }, (_, i) => ring.addFromUri(`//Bench//${i}`))
}

export const remark = (length) => '0x' + '5a'.repeat(length)

export const version = (name) =>
  name + ' ' + JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version

// One submission after the other for each pair, each awaited until the node has taken it, with a nonce that is kept here.
export const sender = async (api, accounts, data) => {
  const nonces = await Promise.all(accounts.map(async (p) => (await api.rpc.system.accountNextIndex(p.address)).toNumber()))
  return (i) => api.tx.system.remark(data).signAndSend(accounts[i], { nonce: nonces[i]++ })
}

export const say = (result) => console.log(JSON.stringify(result))
