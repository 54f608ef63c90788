"""The examples for Node and Python under listen/example: enqueue, follow to finalized, through cut
connections."""
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import proc  # noqa: E402
from harness.chain import remark  # noqa: E402
from harness.world import World  # noqa: E402

EXAMPLE = os.path.join(proc.ROOT, 'listen', 'example')
NODE_MODULES = os.path.join(proc.ROOT, 'build', 'runtime', 'node_modules')


class Examples(unittest.TestCase):
    def commands(self, world):
        """[program, script, connection string] of each language, with an application's rights and
        no more."""
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute(f'CREATE ROLE example_{world.number} LOGIN IN ROLE txrelay_app')
        db.close()
        dsn = world.pg.dsn_of(world.pg.database, f'example_{world.number}')
        parts = dict(p.split('=', 1) for p in dsn.split())
        uri = f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
        shutil.copy(os.path.join(EXAMPLE, 'follow.mjs'), world.dir)
        os.symlink(NODE_MODULES, os.path.join(world.dir, 'node_modules'))
        return {'python': ['/usr/bin/python3', os.path.join(EXAMPLE, 'follow.py'), dsn],
                'node': [os.environ.get('TXRELAY_NODE', 'node'),
                         os.path.join(world.dir, 'follow.mjs'), uri]}

    def start(self, world, name, command, content, key):
        return proc.Process([*command[:2], 'alice', '0x' + remark(content).hex(), key],
                            f'{world.dir}/{name}.log',
                            env={'DB': command[2]})

    def cut(self, world):
        return world.pg.value("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                              "WHERE application_name = 'follow example'")

    def test_follow_through_cut_connections(self):
        with World('--block-ms', '0') as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            programs = {}
            commands = self.commands(world)
            for name, command in commands.items():
                programs[name] = self.start(world, name, command, f'from {name}', f'key-{name}')
            for name, program in programs.items():
                proc.wait_for(f'{name} to see it in the pool',
                              lambda: re.search(r'^\d+ pending (ready|broadcast)', program.text(),
                                                                       re.M) or not program.alive())
                self.assertTrue(program.alive(), program.text())
            for turn in (1, 2):
                self.assertGreaterEqual(self.cut(world), 2)
                for name, program in programs.items():
                    proc.wait_for(f'{name} to notice',
                                  lambda: program.text().count('connecting again:') >= turn)
                # Into the gap: what happens while nobody listens is found by the look after LISTEN.
                world.chain.rpc('dev_newBlock', {'count': 1})
                sessions = ("SELECT count(*) FROM pg_stat_activity "
                            "WHERE application_name = 'follow example'")
                if turn == 1:
                    proc.wait_for('them to be back', lambda: world.pg.value(sessions) == 2)
            world.chain.rpc('dev_newBlock', {'count': 2})
            for name, program in programs.items():
                self.assertEqual(program.child.wait(30), 0, program.text())
                lines = [x for x in program.text().splitlines() if re.match(r'\d+ ', x)]
                self.assertEqual(lines, list(dict.fromkeys(lines)),
                                 'no status twice in a row, whatever was cut')
                self.assertIn('finished finalized', lines[-1])
            for name in programs:
                world.committed[remark(f'from {name}')] = int(re.search(r'^transaction (\d+)',
                                                                        programs[name].text(),
                                                                        re.M)[1])
            world.settle()
            # The same key is the same transaction, which has ended: at once, and nothing is sent
            # twice.
            for name, command in commands.items():
                program = self.start(world, f'{name}-again', command, f'from {name}', f'key-{name}')
                self.assertEqual(program.child.wait(30), 0, program.text())
            self.assertEqual(world.settle()['finalized'], 2)

    def test_what_the_database_answers_is_an_end(self):
        with World() as world:
            world.wait_leader(world.relay('one'))
            for name, command in self.commands(world).items():
                program = proc.Process([*command[:2], 'nobody', '0x0000'],
                                       f'{world.dir}/{name}.log', env={'DB': command[2]})
                self.assertNotEqual(program.child.wait(30), 0)
                self.assertIn('nobody', program.text())
                self.assertNotIn('connecting again', program.text())


if __name__ == '__main__':
    unittest.main()
