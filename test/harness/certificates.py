"""Certificates of a test: an authority, and what it signed, as PEM files in a folder."""
import os

from . import proc

REQUEST = ['openssl', 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']


class Certificates:
    def __init__(self):
        self.folder = proc.make_dir('txtls-')

    def path(self, name):
        return os.path.join(self.folder, name)

    def authority(self, name='ca'):
        """name.pem and name.key."""
        proc.run([*REQUEST, '-x509', '-days', '30', '-keyout', self.path(f'{name}.key'), '-out',
                  self.path(f'{name}.pem'), '-subj',
                  f'/CN={name}', '-addext', 'basicConstraints=critical,CA:TRUE'])

    def certificate(self, name, host, days='30', signer='ca'):
        """name.pem and name.key, for this host; what was there is replaced."""
        proc.run([*REQUEST, '-keyout', self.path(f'{name}.key'), '-out', self.path(f'{name}.csr'),
                  '-subj', f'/CN={host}'])
        with open(self.path('ext'), 'w') as file:
            file.write(f'subjectAltName=DNS:{host}\n')
        proc.run(['openssl', 'x509', '-req', '-in', self.path(f'{name}.csr'), '-CA',
                  self.path(f'{signer}.pem'), '-CAkey',
                  self.path(f'{signer}.key'), '-CAcreateserial', '-days', days, '-out',
                  self.path(f'{name}.pem'), '-extfile',
                  self.path('ext')])
