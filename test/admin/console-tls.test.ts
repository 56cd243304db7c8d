/** The administration port reached from other machines: only over TLS. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as tlsRequest } from 'node:https';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { createInstallation, startAppliance } from '../support/appliance.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { assertFailed } from '../support/command.ts';
import { linkOf, OWN_PAGE } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { inFolder } from '../support/program.ts';

describe('on a network address', () => {
  test('an unusable certificate is refused by the name of its setting', () => {
    using installation = createInstallation({
      WIREWATCH_ADMIN_PORT: '9',
      WIREWATCH_ADMIN_TLS_CERTIFICATE: '/nowhere.pem',
      WIREWATCH_ADMIN_TLS_KEY: '/nowhere.key',
    });
    const refused = installation.cli(['serve', '--port', '0'], { anyStatus: true });
    assertFailed(refused, 78, /\[admin\] tls_\w+, \/nowhere/);
  });

  test("with its own or the server's TLS, it speaks https", { skip: WITHOUT_OPENSSL }, () =>
    inFolder(async (folder) => {
      const { certificate, key } = makeCertificate(folder, 'console');
      for (const section of ['SERVER', 'ADMIN']) {
        await using appliance = await startAppliance({
          WIREWATCH_ADMIN_PORT: `${await freePort()}`,
          WIREWATCH_ADMIN_HOST: '0.0.0.0',
          [`WIREWATCH_${section}_TLS_CERTIFICATE`]: certificate,
          [`WIREWATCH_${section}_TLS_KEY`]: key,
        });
        const { origin, hash } = new URL(linkOf(appliance));
        assert.match(origin, /^https:/);
        const sent = tlsRequest(`${origin}/console/session`, {
          method: 'POST',
          ca: readFileSync(certificate),
          headers: OWN_PAGE,
        }).end(JSON.stringify({ token: hash.slice('#login='.length) }));
        const [response] = await once(sent, 'response');
        assert.equal(response.resume().statusCode, 200, section);
        const silent = connect(Number(new URL(origin).port), '127.0.0.1');
        silent.resume();
        // Node's own limit is longer than a test may take.
        if (section === 'ADMIN') await once(silent, 'close');
        silent.destroy();
      }
    }),
  );
});
