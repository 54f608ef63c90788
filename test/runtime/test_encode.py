"""txrelay encode and decode, compared byte for byte with @polkadot/types (encode.mjs) on the
metadata of real runtimes. Both sides read the same file, and no chain runs."""
import json
import os
import unittest

from harness import proc
from harness.chain import NodeTools
from harness.relay import cli

POLKADOT = 'v15-polkadot'
HUB = 'v15-asset-hub-polkadot'
EVM = 'sh-solochain-evm'
STATEMINE = 'v14-statemine'  # the runtime that the other tests of this folder run
ALICE = '15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5'
BOB = '14E5nqKAp3oAJcmzgZhUD2RcptBeUBScxKHgJKU4HPNcKVf3'
CHARLIE = '14Gjs1TD93gnwEBfDMHoCgsuf1s2TVKUP6Z1qKmAZnZ8cW5q'
BOB_42 = '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'
HASH = '0x' + '11' * 16 + 'ef' * 16


def call(pallet, name, args=None):
    return {'pallet': pallet, 'call': name, 'args': {} if args is None else args}


class Two:
    """A value that the two sides are given in two ways."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs


def side(value, ours):
    if isinstance(value, Two):
        return value.ours if ours else {'as': value.theirs}
    if isinstance(value, dict):
        return {k: side(v, ours) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [side(v, ours) for v in value]
    return value


REMARK = call('System', 'remark', {'remark': 'hello'})
TRANSFER = call('Balances', 'transfer_keep_alive', {'dest': BOB, 'value': '12345678901234567890'})
# one byte, by bits there
VOTE = {'vote': Two(0x81, {'aye': True, 'conviction': 'Locked1x'}), 'balance': '77'}
PARENT = {'parents': 1, 'interior': 'Here'}
ON_HUB = {'parents': 0, 'interior': {'X1': [{'Parachain': 1000}]}}
HERE = {'parents': 0, 'interior': {'X1': [{'AccountId32': {'network': None, 'id': HASH}}]}}
DOT = {'id': PARENT, 'fun': {'Fungible': '10000000000'}}

CALLS = [
    (POLKADOT, REMARK),
    (POLKADOT, call('System', 'remark', {'remark': '0x'})),
    (POLKADOT, call('System', 'remark_with_event', {'remark': 'h\u00e9llo \u20ac'})),
    (POLKADOT, call('System', 'set_heap_pages', {'pages': '18446744073709551615'})),
    (POLKADOT, call('System', 'set_storage', {'items': [['0x01', '0x'], ['0x0203', '0xff']]})),
    (POLKADOT, call('System', 'kill_storage', {'keys': ['0x26aa394eea5630e07c48ae0c9558cef7']})),
    (POLKADOT, TRANSFER),
    (POLKADOT, call('Balances', 'transfer_allow_death', [{'Id': '0x' + '8e' * 32}, 5])),
    (POLKADOT, call('Balances', 'transfer_allow_death',
                    [{'Address20': '0x' + '11' * 20}, '340282366920938463463374607431768211455'])),
    (POLKADOT, call('Balances', 'transfer_allow_death', [{'Raw': '0x0102'}, 1073741824])),
    (POLKADOT, call('Balances', 'transfer_all', {'dest': ALICE, 'keep_alive': True})),
    (POLKADOT, call('Balances', 'force_adjust_total_issuance',
                    {'direction': 'Decrease', 'delta': '1000000000000'})),
    (POLKADOT, call('Balances', 'upgrade_accounts', {'who': [ALICE, BOB]})),
    (POLKADOT, call('Timestamp', 'set', {'now': 1700000000000})),
    (POLKADOT, call('Staking', 'bond', {'value': '100000000000', 'payee': {'Account': CHARLIE}})),
    (POLKADOT, call('Staking', 'set_payee', {'payee': 'Staked'})),
    (POLKADOT, call('Staking', 'validate', {'prefs': {'commission': 100000000, 'blocked': False}})),
    (POLKADOT, call('Staking', 'nominate', {'targets': [ALICE, BOB, CHARLIE]})),
    (POLKADOT, call('Staking', 'chill')),
    (POLKADOT, call('Staking', 'scale_validator_count', {'factor': 7})),
    (POLKADOT, call('Staking', 'set_staking_configs', {
        'min_nominator_bond': {'Set': '5'}, 'min_validator_bond': 'Noop',
        'max_nominator_count': {'Set': 9},
        'max_validator_count': 'Remove', 'chill_threshold': {'Set': 50}, 'min_commission': 'Noop',
        'max_staked_rewards': 'Remove'})),
    (POLKADOT, call('ConvictionVoting', 'vote', {'poll_index': 3, 'vote': {'Standard': VOTE}})),
    (POLKADOT, call('ConvictionVoting', 'vote',
                    {'poll_index': 70,
                     'vote': {'SplitAbstain': {'aye': 1, 'nay': 2, 'abstain': '3'}}})),
    (POLKADOT, call('ConvictionVoting', 'delegate',
                    {'class': 33, 'to': BOB, 'conviction': 'Locked3x', 'balance': 10})),
    (POLKADOT, call('ConvictionVoting', 'remove_vote', {'class': None, 'index': 4})),
    (POLKADOT, call('Referenda', 'submit', {
        'proposal_origin': {'system': 'Root'}, 'proposal': {'Lookup': {'hash': HASH, 'len': 42}},
        'enactment_moment': {'After': 100}})),
    (POLKADOT, call('Referenda', 'submit', {
        'proposal_origin': {'Origins': 'SmallSpender'}, 'proposal': {'Inline': '0x0001'},
        'enactment_moment': {'At': 4000000000}})),
    (POLKADOT, call('Referenda', 'set_metadata', {'index': 1, 'maybe_hash': HASH})),
    (POLKADOT, call('Bounties', 'propose_bounty', {'value': 3, 'description': 'mend the roof'})),
    (POLKADOT, call('Multisig', 'as_multi', {
        'threshold': 2, 'other_signatories': [BOB, CHARLIE],
        'maybe_timepoint': {'height': 7, 'index': 1}, 'call': REMARK,
        'max_weight': {'ref_time': '1000000000000', 'proof_size': 65536}})),
    (POLKADOT, call('Multisig', 'approve_as_multi', {
        'threshold': 2, 'other_signatories': [BOB], 'maybe_timepoint': None, 'call_hash': HASH,
        'max_weight': {'ref_time': 0, 'proof_size': 63}})),
    (POLKADOT, call('Scheduler', 'schedule',
                    {'when': 5, 'maybe_periodic': [10, 20], 'priority': 255, 'call': TRANSFER})),
    (POLKADOT, call('Scheduler', 'set_retry', {'task': [1, 2], 'retries': 3, 'period': 4})),
    (POLKADOT, call('Preimage', 'ensure_updated', {'hashes': [HASH, '0x' + '00' * 32]})),
    (POLKADOT, call('Utility', 'batch_all',
                    {'calls': [REMARK, TRANSFER, call('Utility', 'batch', {'calls': [REMARK]})]})),
    (POLKADOT, call('Utility', 'dispatch_as',
                    {'as_origin': {'system': {'Signed': ALICE}}, 'call': REMARK})),
    (POLKADOT, call('Utility', 'with_weight',
                    {'call': REMARK, 'weight': {'ref_time': 16383, 'proof_size': 16384}})),
    (POLKADOT,
     call('Proxy', 'proxy', {'real': BOB, 'force_proxy_type': 'Staking', 'call': TRANSFER})),
    (POLKADOT, call('Proxy', 'proxy',
                    {'real': BOB, 'force_proxy_type': None, 'call': call('Staking', 'chill')})),
    (POLKADOT, call('NominationPools', 'set_state', {'pool_id': 1, 'state': 'Destroying'})),
    (POLKADOT, call('NominationPools', 'set_configs', {
        'min_join_bond': {'Set': 1}, 'min_create_bond': 'Noop', 'max_pools': 'Remove',
        'max_members': {'Set': 2},
        'max_members_per_pool': 'Noop', 'global_max_commission': {'Set': 1000000000}})),
    (POLKADOT, call('Treasury', 'spend', {
        'asset_kind': {'V4': {'location': ON_HUB, 'asset_id': PARENT}}, 'amount': 1,
        'beneficiary': {'V4': HERE}, 'valid_from': None})),
    (POLKADOT, call('Vesting', 'vested_transfer',
                    {'target': BOB,
                     'schedule': {'locked': '100', 'per_block': '1', 'starting_block': 9}})),
    (POLKADOT, call('Crowdloan', 'contribute',
                    {'index': 2000, 'value': 5, 'signature': {'Ecdsa': '0x' + 'ab' * 65}})),
    (POLKADOT, call('Claims', 'mint_claim', {'who': '0x' + '12' * 20, 'value': 1,
                                             'vesting_schedule': [1, 2, 3], 'statement': 'Saft'})),
    (POLKADOT, call('XcmPallet', 'limited_teleport_assets', {
        'dest': {'V4': ON_HUB}, 'beneficiary': {'V4': HERE}, 'assets': {'V4': [DOT]},
        'fee_asset_item': 0,
        'weight_limit': {'Limited': {'ref_time': 5, 'proof_size': 6}}})),
    (POLKADOT, call('XcmPallet', 'send', {
        'dest': {'V3': {'parents': 0, 'interior': {'X1': {'Parachain': 2000}}}},
        'message': {'V4': [{'WithdrawAsset': [DOT]},
                           {'BuyExecution': {'fees': DOT, 'weight_limit': 'Unlimited'}},
                           'RefundSurplus',
                           {'DepositAsset': {'assets': {'Wild': {'AllCounted': 1}},
                                             'beneficiary': HERE}}]}})),
    (HUB, call('Assets', 'set_metadata',
               {'id': 1984, 'name': 'Tether USD', 'symbol': 'USDt', 'decimals': 6})),
    (HUB, call('Assets', 'transfer_keep_alive', {'id': 1984, 'target': BOB, 'amount': '1000000'})),
    (HUB, call('ForeignAssets', 'transfer', {'id': ON_HUB, 'target': BOB, 'amount': '1000000'})),
    (HUB, call('Nfts', 'create', {'admin': ALICE, 'config': {
        'settings': 9, 'max_supply': 100,
        'mint_settings': {'mint_type': {'HolderOf': 7}, 'price': '5', 'start_block': None,
                                                           'end_block': 8,
                                                           'default_item_settings': 0}}})),
    (HUB, call('AssetConversion', 'swap_exact_tokens_for_tokens', {
        'path': [PARENT, ON_HUB], 'amount_in': 1, 'amount_out_min': '2', 'send_to': ALICE,
        'keep_alive': False})),
    (EVM, call('Evm', 'withdraw', {'address': '0x' + 'ab' * 20, 'value': '12345678901234567890'})),
    (EVM, call('Evm', 'call', {
        'source': '0x' + '01' * 20, 'target': '0x' + '02' * 20, 'input': '0xa9059cbb',
        'value': str(10 ** 24), 'gas_limit': 21000,
        'max_fee_per_gas': str(2 ** 256 - 1), 'max_priority_fee_per_gas': None, 'nonce': '0xff',
        'access_list': []})),
    (EVM, call('Balances', 'transfer_keep_alive', {'dest': '0x' + '8e' * 20, 'value': 5})),
    (STATEMINE, call('Balances', 'transfer_keep_alive', {'dest': '0x' + '8e' * 32, 'value': 5})),
    (STATEMINE,
     call('Assets', 'create', {'id': 5, 'admin': {'Id': '0x' + '8e' * 32}, 'min_balance': 1})),
    (STATEMINE, call('Utility', 'batch', {'calls': [REMARK, call('System', 'remark', ['0xff'])]})),
]


def metadata(name):
    return os.path.join(proc.BUILD, 'test', 'vectors', 'metadata', f'{name}.scale')


def ours(runtime, wanted):
    return cli('encode', '--metadata', metadata(runtime), wanted['pallet'], wanted['call'],
               json.dumps(side(wanted['args'], True))).stdout.strip()


class Encode(unittest.TestCase):
    maxDiff = 4000

    def test_the_same_bytes_as_polkadot_js(self):
        compared = 0
        for runtime in (POLKADOT, HUB, EVM, STATEMINE):
            wanted = [c for name, c in CALLS if name == runtime]
            theirs = NodeTools.get().run('encode.mjs', metadata(runtime),
                                         stdin=json.dumps(side(wanted, False)))
            for one, other in zip(wanted, theirs, strict=True):
                with self.subTest(runtime=runtime, call=f"{one['pallet']}.{one['call']}"):
                    self.assertEqual(ours(runtime, one), other)
                    compared += 1
        self.assertEqual(compared, len(CALLS))
        self.assertGreaterEqual(compared, 50)
        print(f'\n  {compared} calls of 4 runtimes: byte for byte what @polkadot/types makes '
              'of them')

    def test_what_is_decoded_encodes_to_the_same_bytes(self):
        for runtime, wanted in CALLS:
            with self.subTest(runtime=runtime, call=f"{wanted['pallet']}.{wanted['call']}"):
                encoded = ours(runtime, wanted)
                for form in (['--json'], ['--plain']):
                    shown = cli('decode', '--metadata', metadata(runtime), encoded, *form).stdout
                    again = cli('encode', '--metadata', metadata(runtime), '-',
                                stdin=shown).stdout.strip()
                    self.assertEqual(again, encoded, shown)

    def test_an_address_of_another_chain_is_refused(self):
        """@polkadot/types takes it; here it is most likely a mistake, and the way out is told."""
        args = json.dumps({'dest': BOB_42, 'value': 1})
        done = cli('encode', '--metadata', metadata(POLKADOT), 'Balances', 'transfer_keep_alive',
                   args, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn(f"prefix 42, this chain's is 0; the same key here: {BOB}", done.stderr)


if __name__ == '__main__':
    unittest.main()
