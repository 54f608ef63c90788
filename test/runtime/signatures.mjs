// signatures.mjs SIGN_TOOL LINES: has our program (test/vectors/sign_tool.c) derive keys and sign, with all that differs
// by case (scheme, kind of secret, junctions, password, message length) drawn at random, and checks every public key
// and signature with @polkadot/util-crypto (schnorrkel compiled to WebAssembly) and, for sr25519, with @scure/sr25519.
// The deterministic schemes must give the very same bytes. Prints a JSON report.
import { spawnSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { Keyring } from '@polkadot/keyring';
import { hexToU8a, u8aToHex } from '@polkadot/util';
import { cryptoWaitReady, mnemonicGenerate, sr25519Verify } from '@polkadot/util-crypto';
import * as scure from '@scure/sr25519';

const [tool, lines] = process.argv.slice(2);
const DEV_PHRASE = 'bottom drive obey lake curtain smoke basket hold race lonely fit walk';
const SCHEMES = ['sr25519', 'sr25519', 'sr25519', 'ed25519', 'ecdsa', 'ethereum'];
const pick = (list) => list[randomInt(list.length)];

const junction = () =>
  pick([() => String(randomInt(1e9)), () => randomBytes(randomInt(1, 12)).toString('hex'),
    () => `longer-than-32-bytes-${randomBytes(randomInt(16, 40)).toString('hex')}`, () => `é${randomInt(100)}`])();

function secretUri(scheme) {
  const raw = randomInt(3) === 0;
  let uri = raw ? u8aToHex(randomBytes(32)) : pick([DEV_PHRASE, mnemonicGenerate(pick([12, 15, 18, 21, 24]))]);
  if (scheme === 'ethereum') return raw ? uri : `${uri}/m/${randomInt(100)}'/60'/0'/0/${randomInt(1000)}`;
  for (let n = randomInt(4); n > 0; n--) uri += (scheme === 'sr25519' ? pick(['/', '//']) : '//') + junction();
  return !raw && randomInt(2) ? `${uri}///pass-${randomInt(1e6)}` : uri;
}

function check({ scheme, uri, message }, answer) {
  const [publicKey, signature] = answer.split(' ');
  if (publicKey === 'error') return answer;
  const pair = new Keyring({ type: scheme }).addFromUri(uri);
  if (publicKey !== u8aToHex(pair.publicKey)) return `public key ${publicKey}, not ${u8aToHex(pair.publicKey)}`;
  const bytes = hexToU8a(signature);
  if (scheme !== 'sr25519') {
    return u8aToHex(pair.sign(message)) === signature && pair.verify(message, bytes, pair.publicKey) ? null : 'signature';
  }
  if (!sr25519Verify(message, bytes, pair.publicKey)) return 'signature (util-crypto)';
  if (!scure.verify(message, bytes, pair.publicKey)) return 'signature (scure)';
  const other = Uint8Array.from(message.length ? message : [0]);
  other[0] ^= 1;
  return sr25519Verify(other, bytes, pair.publicKey) ? 'the checker takes a signature of another message' : null;
}

await cryptoWaitReady();
const cases = Array.from({ length: Number(lines) }, (_, i) => {
  const scheme = SCHEMES[i % SCHEMES.length];
  return { scheme, uri: secretUri(scheme), message: new Uint8Array(randomBytes(randomInt(2) ? randomInt(300) : i)) };
});
const input = cases.map((c) => `${c.scheme} ${c.uri.replaceAll(' ', '_')} ${u8aToHex(c.message)}\n`).join('');
const run = spawnSync(tool, { input, encoding: 'utf8', maxBuffer: 1 << 26 });
if (run.status !== 0) throw new Error(`${tool}: exit ${run.status} ${run.signal ?? ''} ${run.stderr} ${run.error ?? ''}`);
const answers = run.stdout.trimEnd().split('\n');
const report = { lines: answers.length, checked: {}, problems: [] };
cases.forEach((c, i) => {
  const problem = check(c, answers[i] ?? 'error no answer');
  if (problem) report.problems.push(`${c.scheme} "${c.uri}" message ${u8aToHex(c.message)}: ${problem}`);
  report.checked[c.scheme] = (report.checked[c.scheme] ?? 0) + 1;
});
process.stdout.write(JSON.stringify(report) + '\n');
