// mkspec.mjs OUT: writes the chain spec of the tests: the genesis of Rococo's Asset Hub, which holds its real runtime
// (statemine 900), as it comes with @substrate/connect-known-chains. Two changes: the test accounts have funds, and the
// clock of the genesis is fixed. Without the latter the first block's timestamp can fall into another slot than
// its Aura digest names, and the block fails.
import { writeFileSync } from 'node:fs';
import { chainSpec } from '@substrate/connect-known-chains/rococo_v2_2_asset_hub';
import { Keyring } from '@polkadot/keyring';
import { bnToU8a, u8aConcat, u8aToHex } from '@polkadot/util';
import { blake2AsU8a, cryptoWaitReady, xxhashAsU8a } from '@polkadot/util-crypto';

const FREE = 10n ** 18n;
const GENESIS_MS = 1_700_000_004_000n; // the start of an Aura slot
const FUNDED = [['//Alice', 'sr25519'], ['//Alice', 'ed25519'], ['//Alice', 'ecdsa'], ['//Bob', 'sr25519']];

const u32 = (n) => bnToU8a(n, { bitLength: 32, isLe: true });
const u64 = (n) => bnToU8a(n, { bitLength: 64, isLe: true });
const u128 = (n) => bnToU8a(n, { bitLength: 128, isLe: true });
const prefix = (pallet, item) => u8aConcat(xxhashAsU8a(pallet, 128), xxhashAsU8a(item, 128));

// System.Account: a map by Blake2_128Concat of AccountId.
const accountKey = (id) => u8aToHex(u8aConcat(prefix('System', 'Account'), blake2AsU8a(id, 128), id));

// AccountInfo: nonce, consumers, providers, sufficients, then AccountData: free, reserved, two kinds of frozen.
const accountInfo = (free) =>
  u8aToHex(u8aConcat(u32(0), u32(0), u32(1), u32(0), u128(free), u128(0), u128(0), u128(0)));

await cryptoWaitReady();
const spec = JSON.parse(chainSpec);
const top = spec.genesis.raw.top;
for (const [uri, type] of FUNDED) {
  const pair = new Keyring({ type }).addFromUri(uri);
  top[accountKey(pair.addressRaw)] = accountInfo(FREE);
}
top[u8aToHex(prefix('Timestamp', 'Now'))] = u8aToHex(u64(GENESIS_MS));
writeFileSync(process.argv[2], JSON.stringify(spec));
console.log(`runtime: ${spec.name}, ${Object.keys(top).length} genesis entries -> ${process.argv[2]}`);
