"""Bad requests, made from an OpenAPI document: each route, parameter, field and body in turn, with
everything else as it should be; and mixtures of them. A value that breaks its schema has to be
refused, and the refusal has to name the parameter, the field or the value."""
import json
from typing import NamedTuple, Optional
from urllib.parse import quote

import jsonschema

# What a good request says. `bob` leads nowhere, so nothing of it reaches a chain.
GOOD = {'id': '1', 'account': 'bob', 'file': 'app.js', 'limit': '5', 'nonce': '1',
        'from': '2020-01-01T00:00:00Z', 'number': '1',
        'before': '2100-01-01T00:00:00Z', 'state': 'queued', 'outcome': 'ok',
        'hash': '0x' + '11' * 32, 'webhook': 'hook',
        'pallet': 'System', 'call': 'remark'}
BODIES = {'enqueue': {'account': 'bob', 'call': '0x00000478'}, 'cancelMany': {'ids': [1]},
          'bumpMany': {'ids': [1]}, 'retryMany': {'ids': [1]},
          'register': {'alias': 'carl', 'account': '0x' + '0c' * 32}}
# Other words for a thing: its part, or the argument that it becomes.
ALSO = {'Idempotency-Key': ('enqueue: key',),
        'call': ('pallet', 'args', 'System.remark', 'Utility.batch'),
        # another input has registered the account before
        **{name: ('registered as',) for name in ('scheme', 'watch_only')}}
IRREVERSIBLE = {'drain'}  # only what must be refused is asked

TEXTS = ['', ' ', '0', '-1', '-0', '01', '1.0', '1e9', '+1', '0x1', '501', '999999999999999999',
         '9223372036854775807', '9223372036854775808',
         '1' * 40, '1' * 3000, 'NaN', 'infinity', '-infinity', 'true', 'null', 'x', "'",
         "'; DROP TABLE txrelay.outbox; --", '%', '\\', '"',
         '2020-13-45', '2020-01-01', '294277-01-01T00:00:00Z', '0000-00-00T00:00:00Z', '..',
         '../../etc/passwd', '/', '{}', '[]', '0x',
         '0x' + 'f' * 64, '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY', '\u0661', '\u202e',
         '\ufffd', '\U0001f600', 'e\u0301' * 300,
         'a' * 3900, 'a' * 9000]
ESCAPES = ['%00', '%0a', '%7f', '%ff', '%c0%af', '%ed%a0%80', '%f4%90%80%80', '%', '%1', '%zz',
           '%e2%82', '+', '%2500']
THINGS = [None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -2**63, 1.5, -0.0, 1e300, '', ' ', 'x',
          '0', '-1', '007', '1' * 39, '9' * 39, '9' * 400,
          '0x', '0x0', '0x00', '0x' + '00' * 300, '0xgg', 'a' * 5000, '\u0000', 'a\u0000b',
          '\u001f', '\ud800', '\u202e', '\U0001f600', 'é' * 2000,
          '1 hour', '-1 hour', '999999999 years', '1e400 s', '2020-01-01T00:00:00Z', '2020-02-30',
          '294277-01-01', 'infinity', 'now', 'bob',
          [], [None], [[]], [1, 2], ['1'], [1] * 501, [2**63 - 1], {}, {'a': 1}, {'': None},
          {'a' * 3000: 1}, {'pallet': 'System'},
          {'pallet': 'System', 'name': 'remark'},
          {'pallet': 'System', 'name': 'remark', 'args': [[[[]]]]}, {'pallet': 'é', 'name': '.'},
          {'pallet': 'System', 'name': 'remark', 'args': {'remark': '0x' + 'z' * 500}},
          {'pallet': 1, 'name': []}, {'pallet': '', 'name': '', 'x': 1},
          {'pallet': 'Utility', 'name': 'batch', 'args': [[{'System': {'remark': [1.5]}}]]}]
# Bodies that are no object of JSON, or not one of UTF-8, or have something twice.
RAW = [b'[]', b'{', b'}', b'"x"', b'1', b'null', b'true', b' ', b'{}x', b'{"a":1,"a":2}',
       b'{"account":"bob","account":"alice","call":"0x00"}',
       b'{"a":}', b"{'a':1}", b'{"a":1,}', b'{a:1}', b'{"a":01}', b'{"a":1e999}',
       b'{"a":' + b'9' * 400 + b'}', b'{"a":NaN}', b'{"a":"\\ud800"}',
       b'{"a":"\\x"}', b'{"a":"\n"}', b'\xff\xfe{\x00}\x00', b'\xef\xbb\xbf{}', b'{"a":"\xff"}',
       b'{"a":"\xc0\x80"}', b'{"a":"\xed\xa0\x80"}', b'\x00',
       b'[' * 100000, b'{"a":' * 3000 + b'1' + b'}' * 3000,
       b'{"call":' + b'[' * 50000 + b']' * 50000 + b'}', b'x' * 1000000,
       b'{' + b','.join(b'"%d":1' % i for i in range(20000)) + b'}']
TYPES = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
         'application/jsonx', 'json', '', 'text/json',
         'application/json\\', 'application/xml', '*/*']


class Bad(NamedTuple):
    method: str
    path: str  # the route's pattern
    target: str
    body: Optional[bytes]
    headers: dict
    refused: bool  # it has to be
    names: tuple  # the answer's detail has to have one of these; (): nothing in particular
    operation: str


def resolve(document, schema):
    return document['components']['schemas'][
        schema['$ref'].rsplit('/', 1)[1]] if '$ref' in schema else schema


def breaks(document, schema, value):
    validator = jsonschema.Draft202012Validator(schema,
                                                resolver=jsonschema.RefResolver('', document))
    return not validator.is_valid(value)


def typed(schema, text):
    """A parameter's text as the value that it stands for."""
    if schema.get('type') != 'integer':
        return text
    return int(text) if text.isascii() and text.isdigit() else text


def shown(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:12]


class Inputs:
    def __init__(self, document):
        self.document = document
        self.operations = [(method, path, op) for path, item in document['paths'].items()
                           for method, op in item.items()]

    def request(self, method, path, op, params=None, query=None, body=..., headers=None,
                refused=True, names=()):
        """params: escaped values of the path; query: the escaped query; body: an object, bytes or
        None."""
        values = {**GOOD, **(params or {})}
        target = path
        for p in op.get('parameters', ()):
            if p['in'] == 'path':
                target = target.replace('{%s}' % p['name'], values[p['name']])
        if body is ...:
            body = BODIES.get(op['operationId'], {}) if method == 'post' else None
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return Bad(method.upper(), path, target + ('?' + query if query else ''), body,
                   {'Content-Type': 'application/json', **(headers or {})}, refused, names,
                   op['operationId'])

    def of_parameters(self, method, path, op):
        for p in op.get('parameters', ()):
            name, schema = p['name'], p['schema']
            for text in TEXTS:
                bad = breaks(self.document, schema, typed(schema, text))
                names = (*ALSO.get(name, ()), name, shown(text) or name, 'too long')
                if p['in'] == 'path' and text and text not in ('..', '/') and '/' not in text:
                    yield self.request(method, path, op, {name: quote(text, safe='')}, refused=bad,
                                       names=names)
                elif p['in'] == 'query':
                    yield self.request(method, path, op,
                                       query=f'{quote(name)}={quote(text, safe="")}', refused=bad,
                                       names=names)
                elif p['in'] == 'header' and text.isascii():
                    yield self.request(method, path, op, headers={name: text}, refused=bad,
                                       names=names)
            for escape in ESCAPES:
                if p['in'] == 'path':
                    yield self.request(method, path, op, {name: escape}, refused=False)
                elif p['in'] == 'query':
                    yield self.request(method, path, op, query=f'{name}={escape}', refused=False)
            if p['in'] == 'query':
                yield self.request(method, path, op, query=f'{name}={GOOD.get(name, "1")}&{name}=1',
                                   names=(name, 'twice'))
        for query in ('nonsense=1', 'Limit=1', '=', '=1', '%00=1', '%ff=1', 'a' * 3000,
                      '&'.join(f'p{i}=1' for i in range(17)), 'x' * 12000):
            yield self.request(method, path, op, query=query, refused=not query.startswith('='))

    def of_bodies(self, method, path, op):
        if 'requestBody' not in op:
            return
        schema = resolve(self.document, op['requestBody']['content']['application/json']['schema'])
        good = BODIES.get(op['operationId'], {})
        for name, field in schema.get('properties', {}).items():
            for thing in THINGS:
                bad = breaks(self.document, field,
                             thing) or (thing is None and name in schema.get('required', ()))
                yield self.request(method, path, op, body={**good, name: thing}, refused=bad,
                                   names=(*ALSO.get(name, ()), name, shown(thing), 'JSON', 'UTF-8'))
        if schema.get('additionalProperties') is False:
            for name in ('nonsense', 'Account', '', 'a' * 3000, '\u202e', '__proto__',
                         'account\u0000'):
                yield self.request(method, path, op, body={**good, name: 1},
                                   names=(shown(name), 'JSON', 'there is no field'))
        for name in schema.get('required', ()):
            yield self.request(method, path, op, body={k: v for k, v in good.items() if k != name},
                               names=(name,))
        for raw in RAW:
            yield self.request(method, path, op, body=raw,
                               names=('JSON', 'field', 'too long', 'account_policy: '))
        for kind in TYPES:
            yield self.request(method, path, op, body=b'{"nonsense":1}',
                               headers={'Content-Type': kind}, names=('Content-Type',))

    def one_thing(self):
        """Each operation with one thing wrong."""
        for operation in self.operations:
            for bad in (*self.of_parameters(*operation), *self.of_bodies(*operation)):
                if bad.refused or bad.operation not in IRREVERSIBLE:
                    yield bad

    def methods(self):
        """Each path with each method that it does not have."""
        for path, item in self.document['paths'].items():
            for method in ('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND',
                           'QUERY'):
                if method.lower() not in item:
                    yield self.request(method, path, next(iter(item.values())),
                                       body=None)._replace(names=('method', 'id must be'))

    def mixed(self, rnd, count):
        """Several things wrong at a time."""
        for _ in range(count):
            method, path, op = rnd.choice([o for o in self.operations
                                           if o[2]['operationId'] not in IRREVERSIBLE])
            names = [p['name'] for p in op.get('parameters', ()) if p['in'] == 'query'] + ['x']
            query = '&'.join(
                f'{rnd.choice(names)}={rnd.choice([*ESCAPES, *(quote(t) for t in TEXTS)])}'
                for _ in range(rnd.randrange(4)))
            body = None
            if method == 'post':
                schema = resolve(self.document,
                                 op['requestBody']['content']['application/json']['schema'])
                fields = [*schema.get('properties', ()), 'x', '']
                body = rnd.choice(RAW) if rnd.random() < .1 else {**BODIES.get(op['operationId'],
                                                                               {}),
                                                                  **{rnd.choice(fields): rnd.choice(
                                                                      THINGS) for _ in range(
                                                                          rnd.randrange(5))}}
            params = {p['name']: quote(rnd.choice(TEXTS), safe='') or '1'
                      for p in op.get('parameters', ()) if p['in'] == 'path'}
            yield self.request(method, path, op, params, query, body, refused=False)
