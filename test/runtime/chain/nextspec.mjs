// nextspec.mjs VERSION: prints, as JSON text, the runtime of spec.json (900) with another spec version. What it executes is
// the same, what signatures commit to is not: a runtime upgrade without a second runtime.
//
// The version stands in three places of the wasm: in the RuntimeVersion that Core_version encodes and in the custom
// section runtime_version (both start with authoring, spec and implementation version, u32 each), and in the code
// of CheckSpecVersion, where the compiler made one constant of (spec_version, transaction_version).
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const FROM = 900;
const TO = Number(process.argv[2]);
const TRANSACTION_VERSION = 6;
const AUTHORING = 1;
const IMPLEMENTATION = 0;
const ZSTD_PREFIX = '52bc537646db8e05'; // sp-maybe-compressed-blob
const I64_CONST = 0x42;

function zstd(input, ...options) {
  const done = spawnSync('zstd', ['--stdout', '--quiet', ...options], { input, maxBuffer: 1 << 26 });
  if (done.error || done.status !== 0) throw new Error(`zstd (Debian package zstd): ${done.error ?? done.stderr}`);
  return done.stdout;
}

function unpack(code) {
  if (code.subarray(0, 8).toString('hex') !== ZSTD_PREFIX) throw new Error('the code of spec.json is not compressed');
  return zstd(code.subarray(8), '--decompress');
}

function versions(spec) {
  const bytes = Buffer.alloc(12);
  [AUTHORING, spec, IMPLEMENTATION].forEach((value, i) => bytes.writeUInt32LE(value, 4 * i));
  return bytes;
}

// The instruction i64.const of a positive number, which wasm writes as signed LEB128.
function constant(value) {
  const bytes = [I64_CONST];
  while (value > 0x3fn) {
    bytes.push(Number(value & 0x7fn) | 0x80);
    value >>= 7n;
  }
  return Buffer.from([...bytes, Number(value)]);
}

const folded = (spec) => constant((BigInt(TRANSACTION_VERSION) << 32n) | BigInt(spec));

// Replaces every occurrence; there have to be some, and the size of the code stays what it is.
function replace(wasm, what, old, now) {
  let count = 0;
  for (let at = wasm.indexOf(old); at >= 0; at = wasm.indexOf(old, at + old.length)) {
    now.copy(wasm, at);
    count++;
  }
  if (count === 0 || old.length !== now.length) throw new Error(`${what}: ${count} found in the wasm`);
}

const spec = JSON.parse(readFileSync(new URL('spec.json', import.meta.url), 'utf8'));
const wasm = unpack(Buffer.from(spec.genesis.raw.top['0x3a636f6465'].slice(2), 'hex'));
replace(wasm, 'RuntimeVersion', versions(FROM), versions(TO));
replace(wasm, 'constant of CheckSpecVersion', folded(FROM), folded(TO));
process.stdout.write(JSON.stringify(`0x${ZSTD_PREFIX}${zstd(wasm).toString('hex')}`) + '\n');
