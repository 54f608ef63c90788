// faults.cjs OPTION...: chopsticks with what a test of faults needs and chopsticks lacks. Its own methods stay as they
// are, but for those of finality, which can be held back here: by itself chopsticks calls every block final at once, so
// that nothing could ever be taken back.
//   dev_setWasm [code]        the head's runtime is replaced, as by an upgrade: spec version of it
//   dev_clearPool []          the pool loses all it has, and tells nobody: how many that were
//   dev_emptyBlock []         a block of inherents alone; what is pooled stays there
//   dev_holdFinality [held]   true: the head is the last final block until this is called with false
const core = require('@acala-network/chopsticks-core');

const { chain_subscribeFinalizedHeads: subscribeFinalized } = core.allHandlers;
let held = null;

Object.assign(core.allHandlers, {
  async dev_setWasm({ chain }, [code]) {
    chain.head.setWasm(code);
    return (await chain.head.runtimeVersion).specVersion;
  },
  async dev_clearPool({ chain }) {
    const count = chain.txPool.pendingExtrinsics.length;
    chain.txPool.clear();
    return count;
  },
  async dev_emptyBlock({ chain }) {
    return (await chain.newBlock({ transactions: [] })).hash;
  },
  async dev_holdFinality({ chain }, [hold]) {
    held = hold ? chain.head : null;
    return chain.head.hash;
  },
  async chain_getFinalizedHead({ chain }) {
    return (held ?? chain.head).hash;
  },
  // Who subscribes while finality is held hears of no block before it goes on.
  chain_subscribeFinalizedHeads(context, params, manager) {
    const subscribe = (...args) => {
      const send = manager.subscribe(...args);
      return (header) => held || send(header);
    };
    return subscribeFinalized(context, params, { ...manager, subscribe });
  },
});
require('@acala-network/chopsticks/cli');
