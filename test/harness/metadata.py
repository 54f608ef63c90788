"""Metadata of devchain with other signed extensions: what a runtime upgrade can do to the form of
extrinsics."""
from .chain import compact, put_compact

FIRST = b'\x48CheckNonZeroSender'  # with its length; devchain's list begins with it
COUNT = 8                          # signed extensions of devchain
TYPE_BOOL, TYPE_U8, TYPE_UNIT = 0, 1, 7  # of test/devchain/metadata_internal.h


def extension(name, explicit, implicit):
    return put_compact(len(name)) + name.encode() + put_compact(explicit) + put_compact(implicit)


def with_extensions(blob, *extensions):
    """The metadata with these extensions before all others."""
    at = blob.rindex(FIRST)  # a type has the name too
    if blob[at - 1] != COUNT << 2:
        raise AssertionError('devchain has other extensions')
    return blob[:at - 1] + put_compact(COUNT + len(extensions)) + b''.join(extensions) + blob[at:]


def rules(chain, *extensions):
    """Script rules of devchain: from now on every question for metadata gets these extensions."""
    plain = bytes.fromhex(chain.rpc('state_getMetadata')[2:])
    wrapped = bytes.fromhex(chain.rpc('state_call', 'Metadata_metadata_at_version',
                                      '0x0f000000')[2:])
    size, at = compact(wrapped, 1)
    if wrapped[0] != 1 or size != len(wrapped) - at:
        raise AssertionError('not an Option of opaque metadata')
    v15 = with_extensions(wrapped[at:], *extensions)
    answers = {'state_getMetadata': with_extensions(plain, *extensions),
               'state_call': b'\x01' + put_compact(len(v15)) + v15}
    return [{'match': {'method': method, 'times': 0}, 'action': {'result': '0x' + answer.hex()}}
            for method, answer in answers.items()]
