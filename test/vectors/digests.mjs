// Makes digests.json: the metadata hashes (RFC 78) of the real metadata of this folder, by another implementation.
//   npm install @polkadot-api/merkleize-metadata@1.3.0 (in a folder of its own, with this script)
//   node digests.mjs FOLDER-OF-UNPACKED-METADATA > digests.json
import { readFileSync } from 'node:fs'
import { merkleizeMetadata } from '@polkadot-api/merkleize-metadata'

const tokens = [
  ['v15-polkadot', 10, 'DOT'], ['v15-kusama', 12, 'KSM'], ['v15-asset-hub-polkadot', 10, 'DOT'],
  ['v15-asset-hub-kusama', 12, 'KSM'], ['v15-substrate', 18, 'UNIT'], ['v15-polkadot', 0, ''], ['v15-polkadot', 255, 'DOT'],
]
console.log(JSON.stringify(tokens.map(([metadata, decimals, symbol]) => {
  const bytes = new Uint8Array(readFileSync(`${process.argv[2]}/${metadata}.scale`))
  const digest = merkleizeMetadata(bytes, { decimals, tokenSymbol: symbol }).digest()
  return { metadata, decimals, symbol, digest: '0x' + Buffer.from(digest).toString('hex') }
}), null, 1))
