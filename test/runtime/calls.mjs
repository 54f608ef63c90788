// calls.mjs URL: reads a JSON list of [pallet, call, arguments...] from standard input, writes the list of their SCALE
// encodings as @polkadot/api makes them with the chain's own metadata. Names as in the api: "balances", "transferAll".
// An argument that itself is such a list under {"call": [...]} or {"calls": [[...], ...]} is a nested call.
import { text } from 'node:stream/consumers';
import { ApiPromise, WsProvider } from '@polkadot/api';

const api = await ApiPromise.create({ provider: new WsProvider(process.argv[2]), noInitWarn: true });

const argument = (a) => (a?.call ? build(a.call) : a?.calls ? a.calls.map(build) : a);
const build = ([pallet, name, ...args]) => api.tx[pallet][name](...args.map(argument));

const wanted = JSON.parse(await text(process.stdin));
process.stdout.write(JSON.stringify(wanted.map((row) => build(row).method.toHex())) + '\n');
await api.disconnect();
