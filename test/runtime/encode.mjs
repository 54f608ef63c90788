// encode.mjs METADATA: what @polkadot/types makes of calls, offline, by the metadata in the file. Reads a JSON list of
// {"pallet", "call", "args"} from standard input, with names as the runtime has them, and writes the list of their
// bytes. Only names are changed here ("max_weight" is "maxWeight" there); every value is encoded by the other side. A
// value {"as": x} is x, as it is: where the two sides are not written in the same way.
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { Metadata, TypeRegistry, expandMetadata } from '@polkadot/types';
import { stringCamelCase, u8aToHex } from '@polkadot/util';

const registry = new TypeRegistry();
const file = readFileSync(process.argv[2]);
// An answer of Metadata_metadata_at_version has an Option byte and a length in front.
const metadata = new Metadata(registry, u8aToHex(file.subarray(file.indexOf('meta'))));
registry.setMetadata(metadata);
const { tx } = expandMetadata(registry, metadata);

function value(x) {
  if (Array.isArray(x)) return x.map(value);
  if (x === null || typeof x !== 'object') return x;
  if ('as' in x) return x.as;
  if ('pallet' in x) return call(x);
  return Object.fromEntries(Object.entries(x).map(([k, v]) => [/^[A-Z]/.test(k) ? k : stringCamelCase(k), value(v)]));
}

function call({ pallet, call: name, args }) {
  const make = tx[stringCamelCase(pallet)][stringCamelCase(name)];
  const given = Array.isArray(args) ? args : make.meta.fields.map((f) => args[f.name.unwrap().toString()]);
  return make(...given.map(value));
}

process.stdout.write(JSON.stringify(JSON.parse(await text(process.stdin)).map((x) => call(x).toHex())) + '\n');
