/** Which Host headers the administration port accepts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certificateNames, isHostAccepted, ownNames } from '../../src/admin/host-header.ts';
import { words } from '../support/words.ts';

test('IP addresses and private names are accepted, public DNS names are not', () => {
  const own = ownNames('Wire.Example.com', 'machine');
  const accepted = `127.0.0.1 127.0.0.1:9464 10.1.2.3:80 [::1]:9464 [2001:db8::1] localhost:9464 LOCALHOST wirewatch:9464
    a.internal. nas.home.arpa wire.example.com:9464 machine machine.local:9464`;
  const refused = `evil.example.com evil.example.com:9464 localhost.evil.com evil.local evil.machine.local
    evilsvc.cluster.local 127.0.0.1.evil.com x.0x7f 1.2.3 999.1.1.1 [::1 [evil.com] localhost:9464:1 localhost@evil.com
    -.com`;
  for (const host of words(accepted)) assert.ok(isHostAccepted(host, own), host);
  for (const host of [undefined, '', 'a b', ...words(refused)]) assert.ok(!isHostAccepted(host, own), host);
});

test('over TLS, names in the certificate are accepted, too', () => {
  const names = certificateNames('DNS:wire.example.org, IP Address:10.0.0.1, DNS:*.agency.example');
  assert.deepEqual(names, ['wire.example.org', '.agency.example']);
  assert.deepEqual(certificateNames(undefined), []);
  for (const host of ['wire.example.org:9464', 'console.agency.example'])
    assert.ok(isHostAccepted(host, names), host);
  for (const host of ['agency.example.evil.com', 'evilagency.example'])
    assert.ok(!isHostAccepted(host, names), host);
});
