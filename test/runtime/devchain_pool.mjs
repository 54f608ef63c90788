// The plays of devchain.mjs about the pool: what a watched transaction hears, what is refused, which bytes are banned.
// Each takes the World of devchain.mjs; the numbers are the lines of test/devchain/behaviour.md.
const DEV = 10n ** 12n;
const FUTURE_BYTES = 60000; // test_devchain_api.py starts the node with these limits
const READY_BYTES = 1000000;
const LONGEST = 5n * 1024n * 1024n * 3n / 4n; // what ordinary transactions may take of a block
const STALE = 'Transaction is outdated';
const PAYMENT = 'Inability to pay some fees (e.g. account balance too low)';
const BAD_PROOF = 'Transaction has a bad signature';
const ANCIENT = 'Transaction has an ancient birth block';

const long = (bytes) => 'x'.repeat(bytes);
const priorities = (error) => error.message.match(/\((\d+) vs (\d+)\)/).slice(1).map(BigInt);

async function gap(w) {
  const pair = await w.account();
  const second = await w.watch(w.sign(pair, 1));
  await w.hears(12, 'nonce 1 first', second, ['future']);
  w.equal(13, 'pendingExtrinsics', await w.pending(), []);
  w.equal(13, 'accountNextIndex', await w.nextIndex(pair), 0);
  const first = await w.watch(w.sign(pair, 0));
  await w.hears(12, 'nonce 0 fills the gap', first, ['ready']);
  await w.hears(12, 'nonce 1 is promoted', second, ['future', 'ready']);
  w.equal(13, 'pendingExtrinsics of both', await w.pending(), [first.xt.toHex(), second.xt.toHex()]);
  w.equal(13, 'accountNextIndex of both', await w.nextIndex(pair), 2);
  const b = await w.block();
  await w.finalize();
  await w.hears(12, 'nonce 0 to its end', first, ['ready', { inBlock: b }, { finalized: b }]);
  await w.hears(12, 'nonce 1 to its end', second, ['future', 'ready', { inBlock: b }, { finalized: b }]);
}

async function sameBytesAgain(w) {
  const line = w.forkAware ? 15 : 14;
  const pair = await w.account();
  const first = await w.watch(w.sign(pair, 0));
  await w.refused(line, 'second time', w.submit(first.xt), 1013, 'Any { .. }');
  await w.refused(line, 'third time', w.submit(first.xt), w.forkAware ? 1013 : 1012);
  const b = await w.block();
  await w.hears(line, 'the pooled one is included', first, ['ready', { inBlock: b }]);
  await w.refused(w.forkAware ? 15 : 16, 'included, not final', w.submit(first.xt), w.forkAware ? 1013 : 1012);
  await w.finalize();
  await w.refused(16, 'final', w.submit(first.xt), 1012);
}

async function bansLapse(w) {
  const pair = await w.account();
  const xt = w.sign(pair, 0);
  await w.submit(xt);
  await w.block();
  await w.finalize();
  await w.block({ count: 3 });
  await w.refused(19, 'by default a ban outlives blocks', w.submit(xt), 1012);
  await w.dev('set', { ban_ms: 0 });
  const other = w.sign(pair, 0, w.remark('other'));
  await w.refused(17, 'a used nonce', w.submit(other), 1010, STALE);
  await w.refused(19, 'a ban of 0 ms holds until a block', w.submit(other), 1012);
  await w.block();
  await w.refused(19, 'and no longer', w.submit(other), 1010, STALE);
  await w.dev('clearBans');
  await w.refused(16, 'included, after the ban', w.submit(xt), 1010, STALE);
}

async function refusalsBan(w) {
  const pair = await w.account('10000000000');
  const poor = w.sign(pair, 0, w.remark('a'), { tip: 20000000000n });
  await w.refused(17, 'a tip beyond the balance', w.submit(poor), 1010, PAYMENT);
  await w.refused(17, 'once more', w.submit(poor), 1012);
  await w.submit(w.sign(pair, 0));
  await w.block();
  const stale = w.sign(pair, 0, w.remark('other'));
  await w.refused(17, 'a used nonce', w.submit(stale), 1010, STALE);
  await w.refused(17, 'a used nonce once more', w.submit(stale), 1012);
  const match = { method: 'author_submitExtrinsic', times: 0 };
  const verdicts = [['CannotLookup', 1011, 1011], ['Unactionable', 1018, 1018], ['Trap', 1002, 1012], ['NoTags', 1019, 1012]];
  for (const [verdict, code, again] of verdicts) {
    await w.dev('script', { match, action: { verdict } });
    const xt = w.sign(pair, 1, w.remark(verdict));
    const line = code === again ? 18 : 17;
    await w.refused(line, verdict, w.submit(xt), code);
    await w.refused(line, `${verdict} once more`, w.submit(xt), again);
    await w.dev('clearScript');
  }
}

async function replacement(w) {
  const pair = await w.account();
  const old = await w.watch(w.sign(pair, 0, w.remark('old'), { tip: 10 }));
  const next = await w.watch(w.sign(pair, 1));
  const equal = w.sign(pair, 0, w.remark('equ'), { tip: 10 });
  const text = 'The transaction has too low priority to replace another transaction already in the pool.';
  const [was, wants] = priorities(await w.refused(20, 'equal priority', w.submit(equal), 1014, text));
  w.check(20, 'the message shows both priorities', was === wants && was > 0n);
  await w.refused(18, '1014 does not ban', w.submit(equal), 1014);
  const lower = await w.refused(20, 'a lower tip', w.submit(w.sign(pair, 0, w.remark('low'), { tip: 9 })), 1014);
  w.check(20, 'lower against old', priorities(lower)[0] > priorities(lower)[1]);
  await w.hears(20, 'the old one hears nothing of it', old, ['ready']);
  const fresh = await w.watch(w.sign(pair, 0, w.remark('new'), { tip: 11 }));
  await w.hears(21, 'the old one', old, ['ready', { usurped: fresh.hash }]);
  await w.hears(21, 'the dependant', next, ['ready']);
  w.equal(6, 'unwatch after usurped', await w.unwatch(old), false);
  const b = await w.block();
  await w.hears(21, 'the new one', fresh, ['ready', { inBlock: b }]);
  await w.hears(21, 'the dependant, included', next, ['ready', { inBlock: b }]);
  await w.hears(6, 'the old one hears no more', old, ['ready', { usurped: fresh.hash }]);
}

// priority = (tip + 1) * floor(longest block / length): of long ones the length decides, not the weight.
async function priorityFallsWithLength(w) {
  const pair = await w.account();
  const slots = (xt) => LONGEST / BigInt(xt.encodedLength);
  const pooled = await w.watch(w.sign(pair, 0, w.remark(long(40000)), { tip: 4 }));
  const longer = w.sign(pair, 0, w.remark(long(50000)), { tip: 4 });
  const [was, wants] = priorities(await w.refused(22, 'longer, same tip', w.submit(longer), 1014));
  w.equal(22, 'priority of the pooled one', `${was}`, `${5n * slots(pooled.xt)}`);
  w.equal(22, 'priority of the longer one', `${wants}`, `${5n * slots(longer)}`);
  const shorter = await w.watch(w.sign(pair, 0, w.remark(long(30000)), { tip: 4 }));
  await w.hears(22, 'shorter, same tip', pooled, ['ready', { usurped: shorter.hash }]);
}

async function readyLimit(w) {
  const [low, mid, high] = [await w.account(), await w.account(), await w.account()];
  const root = await w.watch(w.sign(low, 0, w.remark('a'), { tip: 1 }));
  const child = await w.watch(w.sign(low, 1, w.remark('a'), { tip: 100 }));
  await w.dev('set', { ready_max: 2 });
  const least = w.sign(mid, 0);
  await w.refused(23, 'the newcomer is the lowest', w.submit(least), 1016,
    "The transaction couldn't enter the pool because of the limit");
  const strong = await w.watch(w.sign(high, 0, w.remark('a'), { tip: 50 }));
  await w.hears(23, 'the newcomer', strong, ['ready']);
  await w.block({ empty: true });
  await w.finalize();
  await w.hears(23, 'the lowest', root, ['ready', 'dropped']);
  if (!w.forkAware) {
    await w.hears(23, 'its dependant', child, ['ready', 'dropped']);
    w.equal(23, 'pool', await w.pending(), [strong.xt.toHex()]);
  }
  w.equal(6, 'unwatch after dropped', await w.unwatch(root), false);
}

async function byteAndFutureLimits(w) {
  const [a, b] = [await w.account(), await w.account()];
  await w.dev('set', { min_tip: 1000 }); // nobody is included
  const old = await w.watch(w.sign(a, 0, w.remark(long(READY_BYTES * 0.6)), { tip: 1 }));
  const fresh = await w.watch(w.sign(b, 0, w.remark(long(READY_BYTES * 0.6)), { tip: 9 }));
  await w.block();
  await w.finalize();
  await w.hears(24, 'too many bytes: the lower one', old, ['ready', 'dropped']);
  await w.hears(24, 'too many bytes: the higher one', fresh, ['ready']);
  await w.dev('dropPool');
  const futures = [];
  const big = w.remark(long(FUTURE_BYTES * 0.4));
  for (const nonce of [9, 7, 8]) futures.push(await w.watch(w.sign(a, nonce, big)));
  await w.block();
  await w.finalize();
  await w.hears(24, 'too many bytes of futures: the oldest', futures[0], ['future', 'dropped']);
  await w.dev('set', { future_max: 2 });
  const last = await w.watch(w.sign(a, 5));
  await w.block();
  await w.finalize();
  await w.hears(24, 'too many futures: the oldest', futures[1], ['future', 'dropped']);
  await w.hears(24, 'too many futures: the others', futures[2], ['future']);
  await w.hears(24, 'too many futures: the newcomer', last, ['future']);
}

async function drainedBalance(w) {
  const [pair, other] = [await w.account(), await w.account()];
  const all = w.api.tx.balances.transferAllowDeath(other.address, 1000n * DEV - 2000000000n);
  await w.submit(w.sign(pair, 0, all));
  const second = await w.watch(w.sign(pair, 1, w.remark('b'), { tip: 1000000000n }));
  const third = await w.watch(w.sign(pair, 2, w.remark('c')));
  await w.block();
  await w.hears(25, 'found by the author', second, ['ready', 'invalid']);
  await w.hears(25, 'its dependant', third, w.forkAware ? ['ready'] : ['ready', 'invalid']);
  await w.refused(25, 'those bytes again', w.submit(second.xt), 1012);
}

async function mortal(w) {
  const pair = await w.account();
  while ((await w.bestNumber()) % 8 !== 4) await w.block();
  const birth = await w.api.rpc.chain.getBlockHash();
  const number = await w.bestNumber();
  const era = w.api.createType('ExtrinsicEra', { current: number, period: 8 });
  const { asMortalEra: read } = era;
  w.equal(26, 'the era as the api reads it', [read.birth(number), read.death(number)], [number, number + 8]);
  const tx = await w.watch(w.sign(pair, 0, w.remark('m'), { era, blockHash: birth }));
  await w.dev('set', { min_tip: 1 }); // nobody includes it
  await w.block({ count: 6 });
  await w.hears(26, 'best is death - 2', tx, ['ready']);
  await w.block();
  if (w.forkAware) {
    await w.hears(26, 'out of the view, not told', tx, ['ready']);
    w.equal(26, 'pendingExtrinsics', await w.pending(), []);
    await w.refused(26, 'still in the mempool', w.submit(tx.xt), 1013);
    await w.block({ count: 10 });
    await w.finalize();
  }
  await w.hears(26, 'expired', tx, ['ready', 'invalid']);
  await w.refused(26, 'those bytes again', w.submit(tx.xt), 1012);
  if (w.forkAware) return;
  await w.dev('clearBans');
  await w.refused(26, 'at death', w.submit(tx.xt), 1010, ANCIENT);
  await w.block();
  await w.dev('clearBans');
  await w.refused(26, 'after death', w.submit(tx.xt), 1010, BAD_PROOF);
}

async function reorgWithTheSame(w) {
  const line = w.forkAware ? 28 : 27;
  const tx = await w.watch(w.sign(await w.account(), 0));
  const lost = await w.block();
  await w.hears(10, 'included', tx, ['ready', { inBlock: lost }]);
  await w.dev('reorg', { depth: 1, length: 2 });
  await w.until('a second block', () => tx.heard.filter((s) => s.inBlock).length === 2);
  const kept = tx.heard.at(-1).inBlock;
  w.check(line, 'another block', kept !== lost);
  await w.holds(line, 'the second block holds it', kept, tx);
  await w.finalize();
  const want = w.forkAware ? ['ready', { inBlock: lost }, { inBlock: kept }, { finalized: kept }]
    : ['ready', { inBlock: lost }, { retracted: lost }, { inBlock: kept }, { finalized: kept }];
  await w.hears(line, 'the reorganisation', tx, want);
}

async function reorgBackToThePool(w) {
  const tx = await w.watch(w.sign(await w.account(), 0));
  const lost = await w.block();
  await w.dev('reorg', { depth: 1, length: 1, keep: false });
  w.equal(29, 'it is in the pool', await w.pending(), [tx.xt.toHex()]);
  const again = await w.block();
  await w.finalize();
  const want = w.forkAware ? ['ready', { inBlock: lost }, { inBlock: again }, { finalized: again }]
    : ['ready', { inBlock: lost }, { retracted: lost }, 'ready', { inBlock: again }, { finalized: again }];
  await w.hears(29, 'included later', tx, want);
  await w.holds(29, 'the later block holds it', again, tx);
}

async function reorgThatLosesIt(w) {
  const tx = await w.watch(w.sign(await w.account(), 0));
  const lost = await w.block();
  await w.dev('reorg', { depth: 1, length: 1, keep: false, resubmit: false });
  await w.block({ count: 2 });
  await w.hears(29, 'silence', tx, ['ready', { inBlock: lost }, ...(w.forkAware ? [] : [{ retracted: lost }])]);
}

// Single-state: the 513th block with watched ones. Fork-aware: a block more than 128 behind.
async function finalityStall(w) {
  const pair = await w.account();
  const count = w.forkAware ? 2 : 513;
  const all = [];
  for (let nonce = 0; nonce < count; nonce++) all.push(await w.watch(w.sign(pair, nonce)));
  await w.dev('set', { block_extrinsics_max: 1 });
  const b = await w.block();
  await w.block({ count: w.forkAware ? 128 : 511 });
  await w.hears(31, 'at the limit', all[0], ['ready', { inBlock: b }]);
  await w.block();
  await w.hears(31, 'above the limit', all[0], ['ready', { inBlock: b }, { finalityTimeout: b }]);
  w.equal(31, 'the next one', all[1].ended(), false);
  w.equal(6, 'unwatch after finalityTimeout', await w.unwatch(all[0]), false);
  await w.finalize();
  const last = all.at(-1);
  await w.until('the last one is final', () => last.ended());
  w.check(31, 'others are finalized', last.heard.at(-1).finalized);
}

async function jump(w) {
  const pair = await w.account();
  const tx = await w.watch(w.sign(pair, 0));
  const before = await w.bestNumber();
  await w.block({ count: 21, burst: true });
  await w.hears(32, 'no inBlock', tx, ['ready']);
  const holder = (await w.api.rpc.chain.getBlockHash(before + 1)).toHex();
  await w.holds(32, 'yet it is included', holder, tx);
  await w.finalize();
  await w.hears(32, 'finality', tx, w.forkAware ? ['ready', { finalized: holder }] : ['ready']);
}

async function precedence(w) {
  const pair = await w.account();
  await w.submit(w.sign(pair, 0));
  await w.block();
  const wrong = w.sign(pair, 0, w.remark('bad'), { genesisHash: `0x${'11'.repeat(32)}` });
  await w.refused(38, 'bad signature and old nonce', w.submit(wrong), 1010, BAD_PROOF);
  const poor = w.sign(pair, 0, w.remark('poor'), { tip: 2000n * DEV });
  await w.refused(38, 'old nonce and no money', w.submit(poor), 1010, STALE);
  const nobody = w.keyring.addFromUri('//nobody');
  await w.refused(38, 'an account that is not there', w.submit(w.sign(nobody, 3)), 1010, PAYMENT);
}

async function whatIsSigned(w) {
  const pair = await w.account();
  const { specVersion, transactionVersion } = w.api.runtimeVersion;
  const era = w.api.createType('ExtrinsicEra', { current: await w.bestNumber(), period: 64 });
  const wrong = {
    'genesis hash': { genesisHash: `0x${'22'.repeat(32)}` },
    'spec version': { runtimeVersion: { specVersion: specVersion.addn(1), transactionVersion } },
    'transaction version': { runtimeVersion: { specVersion, transactionVersion: transactionVersion.addn(1) } },
    'birth block': { era, blockHash: `0x${'33'.repeat(32)}` },
  };
  for (const [what, signed] of Object.entries(wrong)) {
    await w.refused(39, `wrong ${what}`, w.submit(w.sign(pair, 0, w.remark(what), signed)), 1010, BAD_PROOF);
  }
}

async function upgrade(w) {
  const pair = await w.account();
  const seen = [];
  await w.provider.subscribe('state_runtimeVersion', 'state_subscribeRuntimeVersion', [], (_, v) => {
    seen.push(v.specVersion);
    w.changed();
  });
  const old = w.api.runtimeVersion.specVersion.toNumber();
  await w.until('the version of now', () => seen.length === 1);
  await w.block();
  const pooled = await w.watch(w.sign(pair, 0));
  const oldSigned = w.sign(pair, 0, w.remark('old version'));
  let decorated = false;
  w.api.once('decorated', () => {
    decorated = true;
    w.changed();
  });
  await w.dev('upgrade');
  await w.until('the new version', () => seen.length === 2);
  w.equal(46, 'the subscription', seen, [old, old + 1]);
  await w.until("the api's own upgrade", () => decorated && w.api.runtimeVersion.specVersion.eqn(old + 1));
  await w.refused(46, 'signed for the old version', w.submit(oldSigned), 1010, BAD_PROOF);
  if (w.forkAware) {
    await w.block({ count: 12 });
    await w.finalize();
  }
  await w.hears(46, 'the pooled one', pooled, ['ready', 'invalid']);
  const fresh = await w.watch(w.sign(pair, 0, w.remark('new version')));
  const b = await w.block();
  await w.hears(46, 'signed for the new version', fresh, ['ready', { inBlock: b }]);
  await w.settled();
  w.equal(46, 'told on change only', seen.length, 2);
}

async function reaped(w) {
  const pair = await w.account();
  const tx = await w.watch(w.sign(pair, 0, w.remark('again')));
  const first = await w.block();
  await w.finalize();
  await w.hears(47, 'the first time', tx, ['ready', { inBlock: first }, { finalized: first }]);
  w.equal(47, 'accountNextIndex', await w.nextIndex(pair), 1);
  await w.dev('setBalance', { account: pair.address, free: 0 });
  w.equal(47, 'accountNextIndex of a reaped account', await w.nextIndex(pair), 0);
  w.equal(47, 'the account is gone', (await w.api.query.system.account(pair.address)).providers.toNumber(), 0);
  await w.refused(47, 'of a reaped account', w.submit(w.sign(pair, 1)), 1010, PAYMENT);
  await w.dev('setBalance', { account: pair.address, free: '10000000000000' });
  await w.refused(47, 'the old bytes are banned', w.submit(tx.xt), 1012);
  await w.dev('clearBans');
  const same = await w.watch(tx.xt);
  const second = await w.block();
  await w.finalize();
  await w.hears(47, 'the second time', same, ['ready', { inBlock: second }, { finalized: second }]);
  await w.holds(47, 'the first block holds the hash', first, tx);
  await w.holds(47, 'the second block holds the hash', second, tx);
}

export const poolPlays = {
  gap, sameBytesAgain, bansLapse, refusalsBan, replacement, priorityFallsWithLength, readyLimit, byteAndFutureLimits,
  drainedBalance, mortal, reorgWithTheSame, reorgBackToThePool, reorgThatLosesIt, finalityStall, jump, precedence,
  whatIsSigned, reaped, upgrade,
};
