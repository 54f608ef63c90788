"""The bytes of a call by its name: a relay encodes it with the chain's metadata (docs/http.md)."""
from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Mapping, Optional, Sequence, Union


class HttpError(Exception):
    """An answer of the relay that is a problem (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]):
        super().__init__(problem.get('detail') or problem.get('title') or f'HTTP status {status}')
        self.status, self.code = status, problem.get('code')


def encode(url: str, token: str, account: str, pallet: str, name: str,
           args: Union[Sequence[Any], Mapping[str, Any]] = (),
           timeout: Optional[float] = 30) -> bytes:
    """url: the relay's, for example http://127.0.0.1:8080. token: one with the scope enqueue.
    args: by position or by name."""
    body = {'account': account, 'call': {'pallet': pallet, 'name': name, 'args': args},
            'dry_run': True}
    request = urllib.request.Request(url.rstrip('/') + '/v1/transactions',
                                     json.dumps(body).encode(), method='POST',
                                     headers={'Authorization': f'Bearer {token}',
                                              'Content-Type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return bytes.fromhex(json.load(answer)['call'].removeprefix('0x'))
    except urllib.error.HTTPError as error:
        text = error.read()
        try:
            problem = json.loads(text)
        except ValueError:
            # a proxy's page
            problem = {'detail': f'{url} answered {error.code} without JSON: {text[:80]!r}'}
        raise HttpError(error.code, problem) from None
