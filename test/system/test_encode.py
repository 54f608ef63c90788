"""txrelay encode and decode against a node: a person at psql makes a call by name, enqueues it,
and the chain takes it."""
import json
import os
import re
import subprocess
import unittest

from harness import proc
from harness.liar import Liar
from harness.relay import cli
from harness.world import World
from system import test_liar

BOB = '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'
BOB_ID = bytes.fromhex('8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48')
VALUE = 1234567890123
TRANSFER = json.dumps({'dest': BOB, 'value': str(VALUE)})


class Encode(unittest.TestCase):
    def test_a_transfer_by_name_from_psql_to_finality(self):
        with World() as world:
            node = ('--node', world.chain.ws)
            relay = world.relay('one')
            world.wait_leader(relay)
            free = self.free(world)

            line = cli('encode', *node, 'Balances', 'transfer_keep_alive', TRANSFER, '--sql',
                       'alice').stdout
            self.assertRegex(line, r"^SELECT txrelay\.enqueue\('alice', decode\('[0-9a-f]+', "
                                   r"'hex'\)\);\n$")
            done = subprocess.run(['psql', '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', world.pg.dsn,
                                   '-f', '-'], input=line,
                                  capture_output=True, text=True, check=True,
                                  env={**os.environ,
                                       'PGOPTIONS': '-c standard_conforming_strings=off'})
            first = int(done.stdout)
            call = bytes.fromhex(re.search(r"decode\('([0-9a-f]+)'", line).group(1))
            world.committed[call] = first

            everything = ('Balances.transfer_all', json.dumps([BOB, True]))
            done = cli('encode', *node, '--database', world.pg.dsn, '--enqueue', 'alice',
                       *everything)
            second = int(done.stdout)
            self.assertIn('"call":"transfer_all"', done.stderr.replace(' ', ''))
            self.assertIn(cli('encode', *node, *everything).stdout.strip(), done.stderr)
            world.committed[bytes.fromhex(cli('encode', *node, *everything).stdout[2:])] = second
            world.settle()
            self.assertEqual([world.pg.value('SELECT outcome FROM txrelay.finished_transactions '
                                             'WHERE id = %s', (tx,))
                              for tx in (first, second)], ['ok', 'ok'])
            self.assertGreaterEqual(self.free(world) - free, VALUE)
            self.decodes_what_the_chain_has(world, node, call)

    def free(self, world):
        """Bob's free balance, as the node's storage has it (AccountInfo: four u32, then free)."""
        key = ('0x26aa394eea5630e07c48ae0c9558cef7b99d880ec681799c0cf30e8886371da9'
               '4f9aea1afa791265fae359272badc1cf' + BOB_ID.hex())
        return int.from_bytes(bytes.fromhex(world.chain.rpc('state_getStorage', key)[2:])[16:32],
                              'little')

    def decodes_what_the_chain_has(self, world, node, call):
        raw = next(x.raw for _, _, _, x in world.chain.walk() if x.call == call)
        shown = json.loads(cli('decode', *node, '0x' + raw.hex()).stdout)
        self.assertEqual((shown['signed'], shown['nonce'], shown['scheme']), (True, 0, 'sr25519'))
        self.assertEqual(shown['signer'], '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY')
        self.assertEqual(shown['call'], {'pallet': 'Balances', 'call': 'transfer_keep_alive',
                                         'args': {'dest': BOB, 'value': str(VALUE)}})
        self.assertEqual(json.loads(cli('decode', *node, '--extrinsic', '-',
                                        stdin=raw.hex() + '\n').stdout), shown)
        again = cli('encode', *node, json.dumps(shown['call'])).stdout.strip()
        self.assertEqual(again, '0x' + call.hex())

    def test_two_endpoints_must_agree_about_what_is_enqueued(self):
        def lie(said):
            long = len(said.result or '') > 10000 if isinstance(said.result, str) else False
            return [said.but(test_liar.LiarTest.broken_remark(said.result))] if long else None
        def enqueue(*endpoints):
            return cli('encode', 'System.remark', '["x"]', '--endpoint', ','.join(endpoints),
                       '--database', world.pg.dsn, '--enqueue',
                       'alice', check=False)
        with World() as world:
            liar = Liar(world.chain.ws, lie)
            relay = world.relay('one')
            world.wait_leader(relay)
            for endpoints, told in (((world.chain.ws, liar.url),
                                     'the endpoints disagree about the bytes of this call: 0x0000'),
                                    ((liar.url, world.chain.ws),
                                     'the endpoints disagree about the bytes of this call: 0x004d'),
                                    ((world.chain.ws, 'ws://127.0.0.1:1'),
                                     'one endpoint of 2 answered')):
                done = enqueue(*endpoints)
                self.assertEqual((done.returncode, done.stdout), (1, ''), done.stderr)
                self.assertIn(told, done.stderr)
                self.assertIn('nothing was enqueued', done.stderr)
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.transactions'), 0)
            liar.tell(None)
            done = enqueue(world.chain.ws, liar.url)
            self.assertEqual(done.returncode, 0, done.stderr)
            world.committed[bytes.fromhex('00000478')] = int(done.stdout)
            world.settle()

    def test_what_a_person_does_wrong_is_told(self):
        with World() as world:
            node = ('--node', world.chain.ws)
            for args, code, told in (
                    ((*node, 'Balances', 'transfer', '{}'), 1,
                     'near: transfer_allow_death, transfer_keep_alive'),
                    ((*node, 'Balances.burn'), 1, "the pallet Balances has no such call: 'burn'"),
                    ((*node, 'Balances', 'transfer_all', '{'), 1,
                     'Balances.transfer_all: the arguments: it is not JSON'),
                    ((*node, 'Balances'), 1, 'txrelay encode --list Balances lists them'),
                    ((*node, '--list', 'Balanced'), 1, 'near: Balances'),
                    (node, 2, 'give a pallet and a call, or --list'),
                    ((*node, '--list', '--sql', 'alice'), 2,
                     'only one of --list, --sql and --enqueue'),
                    ((*node, '--list', 'System', 'remark', '{}'), 2,
                     "--list takes only a pallet and a call, not '{}'"),
                    (('System', 'remark'), 2, 'no chain is given: use --node, --metadata'),
                    (('--node', 'ws://127.0.0.1:1', 'System', 'remark'), 1, 'ws://127.0.0.1:1'),
                    (('--metadata', '/nonexistent', 'System', 'remark'), 1,
                     "'/nonexistent' cannot be opened"),
                    ((*node, '--enqueue', 'alice', 'System', 'remark', '["x"]'), 2,
                     'no database is given'),
                    ((*node, '--enqueue', 'alicia', '--database', world.pg.dsn, 'System', 'remark',
                      '["x"]'), 1, 'alicia'),
                    (('-', '--metadata', '/dev/null'), 1, 'not runtime metadata')):
                with self.subTest(args=args):
                    done = cli('encode', *args, check=False)
                    self.assertEqual((done.returncode, done.stdout), (code, ''), done.stderr)
                    self.assertIn(told, done.stderr)
            for args, code, told in (((*node, '0x0'), 1, "'0x0' is not 0x and an even count"),
                                     ((*node, 'zz'), 1, "'zz' is not 0x"),
                                     ((*node, '0xffff'), 1, 'RuntimeCall has no variant 255'),
                                     ((*node, '0x0884ff'), 1, 'MultiAddress has no variant 255'),
                                     ((*node, '--extrinsic', '0x000000'), 1, 'extrinsic: '),
                                     (node, 2, 'the bytes are missing')):
                with self.subTest(args=args):
                    done = cli('decode', *args, check=False)
                    self.assertEqual((done.returncode, done.stdout), (code, ''), done.stderr)
                    self.assertIn(told, done.stderr)

    def test_the_next_endpoint_is_asked(self):
        with World() as world:
            call = ('System', 'remark', '["x"]')
            # escaped as all text beyond ASCII: U+0080 to U+009F are control characters to terminals
            text = 'r\u00e9sum\u00e9'
            encoded = cli('encode', '--node', world.chain.ws, 'System', 'remark',
                          json.dumps([text])).stdout.strip()
            for form in ((), ('--json',)):
                shown = cli('decode', '--node', world.chain.ws, *form, encoded).stdout
                self.assertTrue(shown.isascii(), shown)
                self.assertEqual(cli('encode', '--node', world.chain.ws, shown).stdout.strip(),
                                 encoded)
            done = cli('encode', '--node', f'ws://127.0.0.1:1,{world.chain.ws}', *call)
            self.assertEqual(done.stdout, '0x00000478\n')
            done = cli('encode', '--node', 'ws://127.0.0.1:1,ws://127.0.0.1:2', *call, check=False,
                       seconds=10)
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertIn('ws://127.0.0.1:2', done.stderr)

    def test_metadata_as_a_node_answers_it(self):
        """What curl writes of state_getMetadata, its text, and its bytes are all the same
        metadata, and no node is asked."""
        with World() as world:
            answer = world.chain.rpc('state_getMetadata')
            forms = {'bytes': bytes.fromhex(answer[2:]), 'text': answer.encode() + b'\n',
                     'string': json.dumps(answer).encode(),
                     'answer': json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': answer}).encode()}
            online = cli('encode', '--node', world.chain.ws, 'Balances', 'transfer_keep_alive',
                         TRANSFER).stdout
            for name, content in forms.items():
                path = os.path.join(world.dir, f'metadata.{name}')
                with open(path, 'wb') as file:
                    file.write(content)
                self.assertEqual(cli('encode', '--metadata', path, 'Balances',
                                     'transfer_keep_alive', TRANSFER).stdout, online, name)
            listed = cli('encode', '--metadata', path, '--list', 'Balances').stdout
            self.assertIn('Balances.transfer_keep_alive(dest: MultiAddress, value: u128)\n', listed)


if __name__ == '__main__':
    proc.install_signals()
    unittest.main()
