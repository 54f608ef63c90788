// devchain.mjs URL KIND: what @polkadot/api, a client that shares no code with devchain, sees of it. KIND is the pool that
// the node was started with: single-state or fork-aware. Writes a JSON report:
//   kind, api, metadata  what was tested with what
//   lines                {"21": 5, ...}: for each line of test/devchain/behaviour.md, how many assertions held
//   problems             assertions that did not hold, each named by its line; empty when all is well
//   seconds              of all plays together
// Blocks and finality come by command only; every play has an account of its own and leaves an empty pool behind. The node
// must have been started as test_devchain_api.py does it. The plays are in devchain_pool.mjs and devchain_rpc.mjs.
import { readFileSync } from 'node:fs';
import { ApiPromise, WsProvider } from '@polkadot/api';
import { Keyring } from '@polkadot/keyring';
import { blake2AsHex } from '@polkadot/util-crypto';
import { poolPlays } from './devchain_pool.mjs';
import { rpcPlays } from './devchain_rpc.mjs';

const DEADLINE_MS = 10000;
const TERMINAL = ['finalized', 'finalityTimeout', 'usurped', 'invalid', 'dropped'];
const AS_STARTED = { min_tip: 0, ready_max: 8192, future_max: 512, ban_ms: 1800000, block_extrinsics_max: 5000 };

const statusName = (status) => (typeof status === 'string' ? status : Object.keys(status)[0]);

// The node's hand and the client's eyes, with the assertions.
class World {
  constructor(url, kind) {
    this.url = url;
    this.forkAware = kind === 'fork-aware';
    this.provider = new WsProvider(url, 100); // milliseconds until it connects again
    this.keyring = new Keyring({ type: 'sr25519' });
    this.lines = {};
    this.accounts = 0;
    this.watches = [];
    this.waiting = new Set();
  }

  async connect() {
    this.api = await ApiPromise.create({ provider: this.provider, noInitWarn: true });
    this.genesis = this.api.genesisHash.toHex();
  }

  // ---- assertions ----

  check(line, what, held, detail = '') {
    if (!held) throw new Error(`line ${line}: ${what}${detail && ': '}${detail}`);
    this.lines[line] = (this.lines[line] ?? 0) + 1;
  }

  equal(line, what, got, want) {
    const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
    this.check(line, what, a === b, `got ${a}, want ${b}`);
  }

  // The promise must be refused with that code (and data, if given).
  async refused(line, what, promise, code, data) {
    const error = await promise.then((result) => ({ code: `accepted: ${JSON.stringify(result)}` }), (e) => e);
    this.equal(line, what, error.code ?? String(error), code);
    if (data !== undefined) this.equal(line, `${what}, data`, error.data, data);
    return error;
  }

  // ---- waiting: for a condition, looked at whenever something was heard ----

  changed() {
    for (const look of [...this.waiting]) look();
  }

  until(what, condition) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!condition()) return;
        clearTimeout(timer);
        this.waiting.delete(look);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.delete(look);
        reject(new Error(`${what}: not within ${DEADLINE_MS} ms`));
      }, DEADLINE_MS);
      this.waiting.add(look);
      look();
    });
  }

  // All that was sent before is here when a question has been answered on the same connection.
  settled(provider = this.provider) {
    return provider.send('system_chain', []);
  }

  // ---- the node ----

  dev(method, params = {}) {
    return this.provider.send(`dev_${method}`, [params]);
  }

  // A block (or several); the hash of the last.
  async block(params = {}) {
    return (await this.dev('newBlock', params)).best.hash;
  }

  finalize(number) {
    return this.dev('finalize', number === undefined ? {} : { number });
  }

  async bestNumber() {
    return (await this.api.rpc.chain.getHeader()).number.toNumber();
  }

  // A new account with money, known to nobody else.
  async account(free = '1000000000000000') {
    const pair = this.keyring.addFromUri(`//account ${++this.accounts}`);
    await this.dev('setBalance', { account: pair.address, free });
    return pair;
  }

  // Runs before each play: the settings of the start, nothing in the pool, all final, no subscription left.
  async fresh() {
    await this.dev('set', AS_STARTED);
    await this.dev('clearScript');
    await this.dev('dropPool');
    await this.dev('clearBans');
    await this.block();
    await this.finalize();
    for (const w of this.watches) {
      if (!w.ended() && w.provider.isConnected) await this.unwatch(w);
    }
    this.watches = [];
  }

  // ---- transactions ----

  remark(text) {
    return this.api.tx.system.remark(text);
  }

  // What is signed can be falsified by `signed`: genesisHash, blockHash, runtimeVersion, era.
  sign(pair, nonce, call = this.remark('a'), { tip = 0, ...signed } = {}) {
    return call.sign(pair, {
      nonce, tip, era: 0, genesisHash: this.genesis, blockHash: this.genesis, runtimeVersion: this.api.runtimeVersion,
      ...signed,
    });
  }

  submit(xt) {
    return this.provider.send('author_submitExtrinsic', [xt.toHex()]);
  }

  // The raw statuses are kept in `heard`; each must be one that the api's own types know.
  async watch(xt, provider = this.provider) {
    const w = { hash: blake2AsHex(xt.toU8a()), xt, provider, heard: [], id: null };
    w.ended = () => w.heard.some((status) => TERMINAL.includes(statusName(status)));
    const hear = (_, status) => {
      w.heard.push(status);
      this.changed();
    };
    w.id = await provider.subscribe('author_extrinsicUpdate', 'author_submitAndWatchExtrinsic', [xt.toHex()], hear);
    this.watches.push(w);
    return w;
  }

  unwatch(w, provider = w.provider) {
    return provider.send('author_unwatchExtrinsic', [w.id]);
  }

  // Exactly these statuses and no more.
  async hears(line, what, w, want) {
    await this.until(what, () => w.heard.length >= want.length).catch(() => {}); // the comparison says what is missing
    await this.settled(w.provider);
    this.equal(line, what, w.heard, want);
    for (const status of w.heard) {
      const decoded = this.api.registry.createType('ExtrinsicStatus', status);
      this.equal(4, `${what}: the api's own type`, decoded.type.toLowerCase(), statusName(status).toLowerCase());
    }
  }

  // What a block really holds.
  async hashesIn(block) {
    return (await this.api.rpc.chain.getBlock(block)).block.extrinsics.map((x) => x.hash.toHex());
  }

  async holds(line, what, block, w) {
    this.check(line, what, (await this.hashesIn(block)).includes(w.hash), `${block} does not hold ${w.hash}`);
  }

  pending() {
    return this.provider.send('author_pendingExtrinsics', []);
  }

  nextIndex(pair) {
    return this.provider.send('system_accountNextIndex', [pair.address]);
  }

  async eventsOf(block, hash) {
    const index = (await this.hashesIn(block)).indexOf(hash);
    const events = await (await this.api.at(block)).query.system.events();
    return events.filter((e) => e.phase.isApplyExtrinsic && e.phase.asApplyExtrinsic.eqn(index)).map((e) => e.event);
  }
}

console.log = console.error; // standard output is the report's; the api logs there
const [url, kind] = process.argv.slice(2);
const version = JSON.parse(readFileSync(new URL('node_modules/@polkadot/api/package.json', import.meta.url))).version;
const world = new World(url, kind);
await world.connect();
const start = Date.now();
const problems = [];
for (const [name, play] of Object.entries({ ...rpcPlays, ...poolPlays })) {
  await world.fresh();
  await play(world).catch((error) => problems.push(`${name}: ${String(error.message ?? error).slice(0, 600)}`));
}
const report = JSON.stringify({
  kind, api: version, metadata: world.api.runtimeMetadata.version, lines: world.lines, problems,
  seconds: (Date.now() - start) / 1000,
});
await world.api.disconnect();
process.stdout.write(report + '\n', () => process.exit(0)); // providers of the plays may still hold timers
