/** `wirewatch backup` and an S3 service whose certificate a private authority signed. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createInstallation } from '../support/appliance.ts';
import { makeAuthority, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { assertFailed, runBeside } from '../support/command.ts';
import { BUCKET, CREDENTIALS, REGION, startS3Server } from '../support/s3-server.ts';
import { testFolder } from '../support/test-folder.ts';

test('a private authority is trusted if NODE_EXTRA_CA_CERTS names its certificate', {
  skip: WITHOUT_OPENSSL,
}, async () => {
  const folder = testFolder();
  const { certificate, key, authority } = makeAuthority(folder, 'service');
  const other = makeAuthority(folder, 'other').authority;
  using installation = createInstallation();
  writeFileSync(join(installation.data, 'secret'), randomBytes(32), { mode: 0o600 });
  const server = await startS3Server({ cert: readFileSync(certificate), key: readFileSync(key) });
  const backUp = (more: Readonly<Record<string, string>> = {}) =>
    runBeside(['backup', `s3://${BUCKET}/tls`, '--data', installation.data], {
      WIREWATCH_COPY_ENDPOINT: server.endpoint,
      WIREWATCH_COPY_REGION: REGION,
      AWS_ACCESS_KEY_ID: CREDENTIALS.access,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secret,
      ...more,
    });
  try {
    const refused = /cannot reach s3:.*unable to verify the first certificate.*NODE_EXTRA_CA_CERTS/s;
    assertFailed(await backUp(), 1, refused);
    assertFailed(await backUp({ NODE_EXTRA_CA_CERTS: other }), 1, refused);
    assert.equal(server.requests.length, 0);
    const trusted = { NODE_EXTRA_CA_CERTS: authority };
    const { status, stderr } = await backUp(trusted);
    assert.equal(status, 0, stderr);
    const endpoint = server.endpoint.replace('localhost', '127.0.0.1');
    const wrongName = await backUp({ ...trusted, WIREWATCH_COPY_ENDPOINT: endpoint });
    assertFailed(wrongName, 1, /is not in the cert's list.*Check that the S3 service runs/s);
  } finally {
    await server.close();
  }
});
