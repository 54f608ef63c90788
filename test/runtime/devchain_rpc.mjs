// The plays of devchain.mjs about JSON-RPC: submission and watching, heads, nonces, refusals of the server itself. Each
// takes the World of devchain.mjs; the numbers are the lines of test/devchain/behaviour.md, and "api" is what no line says:
// that @polkadot/api finds a chain here that it can work with.
import { HttpProvider, WsProvider } from '@polkadot/api';
import { hexToU8a } from '@polkadot/util';
import { blake2AsHex } from '@polkadot/util-crypto';

const SUBSCRIPTION_ID = /^[A-Za-z0-9]{16}$/;
const REQUEST_MAX = 15 * 1024 * 1024;
const CONNECTIONS_MAX = 100;
const SUBSCRIPTIONS_MAX = 1024;

// A connection of its own, closed after use.
async function connected(w, use) {
  const provider = new WsProvider(w.url, false);
  await provider.connect();
  await provider.isReady;
  try {
    return await use(provider);
  } finally {
    await provider.disconnect();
  }
}

async function chain(w) {
  const { api } = w;
  w.equal('api', 'genesis', api.genesisHash.toHex(), await w.provider.send('chain_getBlockHash', [0]));
  const raw = await w.provider.send('state_getRuntimeVersion', []);
  w.equal('api', 'runtime version', [api.runtimeVersion.specName.toString(), api.runtimeVersion.specVersion.toNumber()],
    [raw.specName, raw.specVersion]);
  w.equal('api', 'existential deposit', api.consts.balances.existentialDeposit.toString(), '1000000000');
  w.equal('api', 'ss58 prefix', api.registry.chainSS58, 42);
  const pallets = api.runtimeMetadata.asLatest.pallets.map((p) => p.name.toString());
  for (const name of ['System', 'Timestamp', 'Balances', 'TransactionPayment', 'Utility', 'Sudo']) {
    w.check('api', `pallet ${name}`, pallets.includes(name), pallets.join());
  }
  const v14 = api.createType('Metadata', hexToU8a(await w.provider.send('state_getMetadata', [])));
  w.equal('api', 'metadata by state_getMetadata', v14.version, 14);
  const pair = await w.account();
  const { partialFee } = await w.remark('a').paymentInfo(pair, { nonce: 0, era: 0 });
  const before = (await api.query.system.account(pair.address)).data.free.toBigInt();
  await w.submit(w.sign(pair, 0));
  await w.block();
  const after = (await api.query.system.account(pair.address)).data.free.toBigInt();
  w.equal('api', 'the fee is what paymentInfo says', `${before - after}`, partialFee.toBigInt().toString());
}

async function submit(w) {
  const pair = await w.account();
  const best = await w.bestNumber();
  const xt = await w.remark('one').signAsync(pair, { nonce: -1 });
  const hash = (await w.api.rpc.author.submitExtrinsic(xt)).toHex();
  w.equal(1, 'hash of all bytes', hash, blake2AsHex(xt.toU8a()));
  w.equal(1, 'no block was awaited', await w.bestNumber(), best);
  w.equal(1, 'pendingExtrinsics', (await w.api.rpc.author.pendingExtrinsics()).map((x) => x.hash.toHex()), [hash]);
  w.equal(1, 'one more nonce', (await w.api.rpc.system.accountNextIndex(pair.address)).toNumber(), 1);
}

async function watchFrames(w) {
  const pair = await w.account();
  const [tx, next] = [await w.watch(w.sign(pair, 0)), await w.watch(w.sign(pair, 1))];
  for (const { id } of [tx, next]) w.check(2, 'its form', SUBSCRIPTION_ID.test(id), id);
  w.check(2, 'another one each time', tx.id !== next.id);
  // WsProvider gives a notification to us only under this method's name and with this id.
  await w.hears(3, 'author_extrinsicUpdate', tx, ['ready']);
  const b = await w.block();
  await w.hears(10, 'in a block', tx, ['ready', { inBlock: b }]);
  await w.block({ count: 2 });
  await w.finalize();
  await w.hears(10, 'finalized: the containing block', tx, ['ready', { inBlock: b }, { finalized: b }]);
  await w.holds(10, 'the block holds it', b, tx);
  const events = (await w.eventsOf(b, tx.hash)).map((e) => `${e.section}.${e.method}`);
  w.check(10, 'its events', events.includes('system.ExtrinsicSuccess'), events.join());
  w.equal(6, 'unwatch after finalized', await w.unwatch(tx), false);
  await w.block();
  await w.finalize();
  await w.hears(6, 'nothing more', tx, ['ready', { inBlock: b }, { finalized: b }]);
}

// As an application uses it: the api asks for the nonce, fetches the block that a status names and looks for the events.
async function signAndSend(w) {
  const pair = await w.account();
  const heard = [];
  const stop = await w.remark('by the api').signAndSend(pair, (result) => {
    heard.push(result);
    w.changed();
  });
  await w.until('ready', () => heard.some((r) => r.status.isReady));
  const b = await w.block();
  await w.until('inBlock', () => heard.some((r) => r.status.isInBlock)); // the api would skip it for a later one
  await w.finalize();
  await w.until('finalized', () => heard.some((r) => r.status.isFinalized));
  const last = heard.at(-1);
  w.equal(10, 'types', heard.map((r) => r.status.type), ['Ready', 'InBlock', 'Finalized']);
  w.equal(10, 'the block', last.status.asFinalized.toHex(), b);
  w.equal(10, 'place', last.txIndex, (await w.hashesIn(b)).indexOf(last.txHash.toHex()));
  w.check(10, 'success', last.findRecord('system', 'ExtrinsicSuccess') && !last.dispatchError);
  stop();
}

async function dispatchError(w) {
  const [pair, other] = [await w.account(), await w.account()];
  const heard = [];
  const stop = await w.api.tx.balances.transferKeepAlive(other.address, 5n * 10n ** 15n).signAndSend(pair, (r) => {
    heard.push(r);
    w.changed();
  });
  const b = await w.block();
  await w.finalize();
  await w.until('finalized', () => heard.some((r) => r.status.isFinalized));
  const last = heard.at(-1);
  w.equal(33, 'included all the same', last.status.asFinalized.toHex(), b);
  w.check(33, 'ExtrinsicFailed', last.findRecord('system', 'ExtrinsicFailed'));
  const error = w.api.registry.findMetaError(last.dispatchError.asModule);
  w.equal(33, "the error by the pallet's name", `${error.section}.${error.name}`, 'balances.InsufficientBalance');
  w.equal(33, 'the nonce is used', await w.nextIndex(pair), 1);
  stop();
}

async function refusedWatch(w) {
  const pair = await w.account();
  await w.submit(w.sign(pair, 0));
  await w.block();
  const before = (await w.dev('stats')).subscriptions;
  let heard = 0;
  const xt = w.sign(pair, 0, w.remark('late'));
  const watch = w.provider.subscribe('author_extrinsicUpdate', 'author_submitAndWatchExtrinsic', [xt.toHex()], () => heard++);
  await w.refused(5, 'a watch of a used nonce', watch, 1010, 'Transaction is outdated');
  await w.block();
  await w.settled();
  w.equal(5, 'no notification', heard, 0);
  w.equal(5, 'no subscription', (await w.dev('stats')).subscriptions, before);
}

async function unwatch(w) {
  const tx = await w.watch(w.sign(await w.account(), 0));
  await w.hears(7, 'before', tx, ['ready']);
  await connected(w, async (other) => w.equal(7, "another connection's id", await w.unwatch(tx, other), false));
  w.equal(7, 'first time', await w.unwatch(tx), true);
  w.equal(7, 'second time', await w.unwatch(tx), false);
  w.equal(7, 'an unknown id', await w.provider.send('author_unwatchExtrinsic', ['abcdefghijklmnop']), false);
  w.equal(7, 'the pool', await w.pending(), [tx.xt.toHex()]);
  await w.holds(7, 'it gets into a block', await w.block(), tx);
  await w.hears(7, 'nothing more', tx, ['ready']);
}

async function closing(w) {
  const xt = w.sign(await w.account(), 0);
  const tx = await connected(w, (other) => w.watch(xt, other));
  w.equal(8, 'the pool', await w.pending(), [xt.toHex()]);
  await w.holds(8, 'it gets into a block', await w.block(), tx);
}

async function overHttp(w) {
  const http = new HttpProvider(w.url.replace(/^ws/, 'http'));
  const xt = w.sign(await w.account(), 0);
  await w.refused(9, 'watch', http.send('author_submitAndWatchExtrinsic', [xt.toHex()]), -32603);
  w.equal(9, 'not submitted', await w.pending(), []);
  w.equal(9, 'submit', await http.send('author_submitExtrinsic', [xt.toHex()]), xt.hash.toHex());
}

async function broadcast(w) {
  const tx = await w.watch(w.sign(await w.account(), 0));
  const peers = ['12D3KooWA', '12D3KooWB'];
  await w.dev('broadcast', { peers });
  const b = await w.block();
  await w.hears(11, 'between ready and inBlock', tx, ['ready', { broadcast: peers }, { inBlock: b }]);
}

async function finalizedHeads(w) {
  const start = await w.bestNumber();
  const numbers = [];
  const stop = await w.api.rpc.chain.subscribeFinalizedHeads((header) => {
    numbers.push(header.number.toNumber());
    w.changed();
  });
  await w.until('the first head', () => numbers.length === 1);
  await w.block({ count: 4 });
  await w.finalize(start + 3);
  await w.finalize();
  await w.until('the last head', () => numbers.at(-1) === start + 4);
  w.equal(34, 'one header a round', numbers, [start, start + 3, start + 4]);
  for (const number of [start + 1, start + 2]) {
    const header = await w.api.rpc.chain.getHeader(await w.api.rpc.chain.getBlockHash(number));
    w.equal(34, 'a skipped height', header.number.toNumber(), number);
  }
  stop();
}

async function newHeads(w) {
  const start = await w.bestNumber();
  const heads = [];
  const stop = await w.api.rpc.chain.subscribeNewHeads((header) => {
    heads.push(header);
    w.changed();
  });
  await w.until('the first head', () => heads.length === 1);
  await w.block({ count: 2 });
  await w.dev('reorg', { depth: 2, length: 2 });
  const best = (await w.dev('reorg', { depth: 1, length: 3 })).best.hash;
  await w.until('the last head', () => heads.at(-1).hash.toHex() === best);
  w.equal(35, 'new best ones only', heads.map((h) => h.number.toNumber() - start), [0, 1, 2, 2, 4]);
  stop();
}

async function header(w) {
  await w.submit(w.sign(await w.account(), 0));
  const hash = await w.block();
  const raw = await w.provider.send('chain_getHeader', [hash]);
  w.equal(36, 'keys', Object.keys(raw).sort(), ['digest', 'extrinsicsRoot', 'number', 'parentHash', 'stateRoot']);
  w.equal(36, 'number', raw.number, `0x${(await w.bestNumber()).toString(16)}`);
  w.check(36, 'logs', raw.digest.logs.length > 0 && raw.digest.logs.every((l) => /^0x([0-9a-f]{2})+$/.test(l)));
  w.equal(36, "the api's hash of it", w.api.createType('Header', raw).hash.toHex(), hash);
}

async function nextIndex(w) {
  const pair = await w.account();
  for (const nonce of [0, 1, 3]) await w.submit(w.sign(pair, nonce));
  w.equal(37, 'a gap is ignored', await w.nextIndex(pair), 2);
  await w.block();
  w.equal(37, 'by the state', await w.nextIndex(pair), 2);
  await w.submit(w.sign(pair, 2));
  w.equal(37, 'the gap is filled', await w.nextIndex(pair), 4);
  w.equal(37, 'by the alias', await w.provider.send('account_nextIndex', [pair.address]), 4);
  const id = `0x${Buffer.from(pair.publicKey).toString('hex')}`;
  await w.refused(37, 'hex of an AccountId32', w.provider.send('system_accountNextIndex', [id]), -32602);
}

async function undecodable(w) {
  const submit = (hex) => w.provider.send('author_submitExtrinsic', [hex]);
  const cut = w.sign(await w.account(), 0).toHex().slice(0, -2);
  const plain = await w.refused(40, 'truncated, submit', submit(cut), 1040);
  w.check(40, 'its text', plain.message.includes('Client error: '), plain.message);
  const watched = await w.refused(40, 'truncated, watch', w.provider.subscribe('author_extrinsicUpdate',
    'author_submitAndWatchExtrinsic', [cut], () => {}), 1001);
  w.check(40, 'its text', watched.message.includes('Extrinsic has invalid format: '), watched.message);
  const rubbish = await w.refused(40, 'framed rubbish', submit('0x10deadbeef'), 1002);
  w.check(40, 'its text', rubbish.message.includes('Verification Error: '), rubbish.message);
  await w.refused(41, 'no 0x', submit(cut.slice(2)), -32602);
  await w.refused(41, 'an unknown method', w.provider.send('author_nothing', []), -32601);
  const denied = await w.refused(41, 'an unsafe method', w.provider.send('author_removeExtrinsic', [[]]), -32601);
  w.check(41, 'its text', denied.message.includes('RPC call is unsafe to be called externally'), denied.message);
}

// The node has noticed that all other connections are closed.
async function alone(w) {
  const deadline = Date.now() + 10000;
  while ((await w.dev('stats')).open_connections > 1) {
    if (Date.now() > deadline) throw new Error('other connections are still open');
  }
}

async function serverLimits(w) {
  const xt = w.sign(await w.account(), 0);
  await connected(w, async (other) => {
    const heads = () => other.subscribe('chain_newHead', 'chain_subscribeNewHeads', [], () => {});
    await Promise.all(Array.from({ length: SUBSCRIPTIONS_MAX }, heads));
    const limit = `Exceeded max limit of ${SUBSCRIPTIONS_MAX}`;
    await w.refused(42, 'one subscription too many', w.watch(xt, other), -32006, limit);
    w.equal(42, 'not submitted', await w.pending(), []);
  });
  await connected(w, async (other) => {
    let answered = false;
    // Its answer has no id, so the api never learns of it; what it sees is a connection that goes on.
    other.send('author_submitExtrinsic', [`0x${'00'.repeat(REQUEST_MAX / 2 + 1)}`]).then(() => (answered = true), () => {});
    await w.settled(other);
    w.equal(42, 'a request too big has no answer of its id', answered, false);
  });
  await alone(w);
  const others = Array.from({ length: CONNECTIONS_MAX - 1 }, () => new WsProvider(w.url, false));
  try {
    for (const other of others) await other.connect();
    await Promise.all(others.map((other) => other.isReady));
    const last = new WsProvider(w.url, false);
    const refused = new Promise((resolve) => last.on('error', resolve));
    await last.connect();
    const { message } = await refused;
    w.check(42, 'one connection too many', message.includes('429'), message);
  } finally {
    for (const other of others) await other.disconnect();
  }
  await alone(w);
}

async function outOfOrder(w) {
  await w.dev('script', { match: { method: 'system_name' }, action: { delay_ms: 300 } });
  const order = [];
  await Promise.all(['system_name', 'system_version'].map((m) => w.provider.send(m, []).then(() => order.push(m))));
  w.equal(45, 'the later question first', order, ['system_version', 'system_name']);
}

// Every connection is cut without a close frame; the api's provider connects again and subscribes again to what is not
// a transaction.
async function cutConnections(w) {
  const other = new WsProvider(w.url, 100);
  await other.isReady;
  const heads = [];
  await other.subscribe('chain_newHead', 'chain_subscribeNewHeads', [], (_, head) => heads.push(Number(head.number)));
  const tx = await w.watch(w.sign(await w.account(), 0), other);
  await w.hears(8, 'before the cut', tx, ['ready']);
  let again = 0;
  w.provider.on('connected', () => (again++, w.changed()));
  other.on('connected', () => (again++, w.changed()));
  await w.dev('cutConnections').catch(() => {});
  await w.until('both to be connected again', () => w.provider.isConnected && other.isConnected && again >= 2);
  w.equal(8, 'the pool', await w.pending(), [tx.xt.toHex()]);
  w.equal(7, 'an id from before the cut', await w.unwatch(tx), false);
  await w.settled(other);
  const b = await w.block();
  await w.holds(8, 'it gets into a block', b, tx);
  await w.settled(other);
  w.equal(8, 'the watch is gone', tx.heard, ['ready']);
  w.equal(35, 'heads after the cut', heads.at(-1), await w.bestNumber());
  await other.disconnect();
}

// test_devchain_api.py starts the node with the buffer of a real one.
async function slowReader(w) {
  await connected(w, async (other) => {
    let heads = 0;
    const id = await other.subscribe('chain_newHead', 'chain_subscribeNewHeads', [], () => heads++);
    await w.block({ count: 500 }); // in one go: the node has no time to write in between
    await w.settled(other);
    const before = heads;
    w.check(43, 'some heads came, not all', before >= 16 && before < 500, `${before} of 500`);
    await w.block();
    await w.settled(other);
    w.equal(43, 'silence after that', heads, before);
    w.equal(43, 'unsubscribe', await other.send('chain_unsubscribeNewHeads', [id]), false);
  });
}

export const rpcPlays = {
  chain, submit, watchFrames, signAndSend, dispatchError, refusedWatch, unwatch, closing, overHttp, broadcast,
  finalizedHeads, newHeads, header, nextIndex, undecodable, serverLimits, outOfOrder,
  slowReader, cutConnections,
};
