// verify.mjs URL EXPECTED.json: walks all finalized blocks with @polkadot/api and writes what it finds as JSON. It knows
// nothing of txrelay's tables or code: this is what any client of the chain sees.
//
// EXPECTED: {"committed": [call...], "rolled_back": [call...], "accounts": [account id...]}, all as hex; every call
// is unlike any other. The report:
//   finalized    height of the walk's last block
//   extrinsics   of those accounts, in the order of the chain: call, hash, block, block_hash, index, signer, nonce,
//                outcome ("ok", or the error by name, also when it came from inside of a batch that itself succeeded)
//   problems     a committed call that is not there exactly once, a rolled-back one that is there, a call of nobody, a
//                nonce out of line; empty when all is well
import { readFileSync } from 'node:fs';
import { ApiPromise, WsProvider } from '@polkadot/api';
import { u8aToHex } from '@polkadot/util';
import { decodeAddress } from '@polkadot/util-crypto';

const [url, file] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(file, 'utf8'));
const api = await ApiPromise.create({ provider: new WsProvider(url), noInitWarn: true });

// The api knows modules by names of its own ("balances"); a person reads the runtime's ("Balances").
const palletNames = new Map(api.runtimeMetadata.asLatest.pallets.map((p) => [p.index.toNumber(), p.name.toString()]));

function errorText(error) {
  if (error.isModule) {
    return `${palletNames.get(error.asModule.index.toNumber())}.${api.registry.findMetaError(error.asModule).name}`;
  }
  const detail = error.isToken || error.isArithmetic || error.isTransactional ? `.${error.value.type}` : '';
  return error.type + detail;
}

// What the events of one extrinsic say about it; null if they say nothing.
function judge(events) {
  let outcome = null;
  for (const { section, method, data } of events) {
    switch (`${section}.${method}`) {
      case 'system.ExtrinsicSuccess':
        outcome ??= 'ok';
        break;
      case 'system.ExtrinsicFailed':
        outcome = errorText(data.dispatchError);
        break;
      case 'utility.BatchInterrupted':
        outcome = `Utility.BatchInterrupted[${data.index}]: ${errorText(data.error)}`;
        break;
    }
  }
  return outcome;
}

async function extrinsicsOf(number, accounts) {
  const blockHash = await api.rpc.chain.getBlockHash(number);
  const { block } = await api.rpc.chain.getBlock(blockHash);
  const events = await (await api.at(blockHash)).query.system.events();
  const found = [];
  block.extrinsics.forEach((x, index) => {
    const signer = x.isSigned ? u8aToHex(decodeAddress(x.signer.toString())) : null;
    if (!accounts.has(signer)) return;
    const own = events.filter((e) => e.phase.isApplyExtrinsic && e.phase.asApplyExtrinsic.eqn(index));
    found.push({
      call: x.method.toHex(), hash: x.hash.toHex(), block: number, block_hash: blockHash.toHex(), index, signer,
      nonce: x.nonce.toNumber(), outcome: judge(own.map((e) => e.event)),
    });
  });
  return found;
}

function judgeCalls(extrinsics, problems) {
  const times = new Map();
  for (const x of extrinsics) times.set(x.call, (times.get(x.call) ?? 0) + 1);
  for (const call of expected.committed) {
    if (times.get(call) !== 1) problems.push(`committed call ${call.slice(0, 40)} is there ${times.get(call) ?? 0} times`);
  }
  for (const call of expected.rolled_back) {
    if (times.has(call)) problems.push(`rolled-back call ${call.slice(0, 40)} is there`);
  }
  const known = new Set(expected.committed);
  for (const x of extrinsics) {
    if (!known.has(x.call)) problems.push(`nobody committed call ${x.call.slice(0, 40)} of block ${x.block}`);
    if (!x.outcome) problems.push(`no outcome among the events of ${x.hash}`);
  }
}

async function judgeNonces(extrinsics, accounts, head, problems) {
  const state = await api.at(head);
  for (const account of accounts) {
    const nonces = extrinsics.filter((x) => x.signer === account).map((x) => x.nonce);
    nonces.forEach((nonce, i) => {
      if (nonce !== i) problems.push(`${account}: extrinsic ${i} of the account has nonce ${nonce}`);
    });
    const next = (await state.query.system.account(account)).nonce.toNumber();
    if (next !== nonces.length) problems.push(`${account}: state nonce ${next}, ${nonces.length} extrinsics`);
  }
}

const accounts = new Set(expected.accounts);
const head = await api.rpc.chain.getFinalizedHead();
const finalized = (await api.rpc.chain.getHeader(head)).number.toNumber();
const extrinsics = [];
for (let number = 1; number <= finalized; number++) extrinsics.push(...(await extrinsicsOf(number, accounts)));
const problems = [];
judgeCalls(extrinsics, problems);
await judgeNonces(extrinsics, accounts, head, problems);
process.stdout.write(JSON.stringify({ finalized, extrinsics, problems }) + '\n');
await api.disconnect();
