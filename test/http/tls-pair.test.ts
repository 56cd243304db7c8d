/** A certificate and its key: which pairs are refused, and when a certificate is about to expire. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { checkTlsPair, readTlsFiles, validityError } from '../../src/http/tls-pair.ts';
import { Refused } from '../../src/refused.ts';
import { DAY_MS } from '../../src/time.ts';
import { type CertificateFiles, useCertificates, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { NOW_MS } from '../support/server.ts';

const { folder, first, second } = useCertificates();
const skip = WITHOUT_OPENSSL;

describe('a pair that cannot be used is refused, naming the file', { skip }, () => {
  async function refusal(files: CertificateFiles): Promise<string> {
    try {
      checkTlsPair(files, await readTlsFiles(files));
    } catch (error) {
      assert.ok(error instanceof Refused && error.code === 'configuration', String(error));
      return error.message;
    }
    return assert.fail('the pair was accepted');
  }

  test('no such file; a folder', async () => {
    const gone = await refusal({ ...first, certificate: join(folder, 'gone.pem') });
    assert.match(gone, /tls_certificate, .*gone\.pem: no such file or folder/);
    assert.match(await refusal({ ...first, key: folder }), /tls_key, .*: it is a folder/);
  });

  test('no certificate, no key, a key with a passphrase', async () => {
    const text = join(folder, 'text');
    writeFileSync(text, 'no PEM\n');
    assert.match(
      await refusal({ ...first, certificate: text }),
      /text: no PEM certificate found in the file/,
    );
    assert.match(await refusal({ ...first, key: text }), /text: no PEM private key without a passphrase/);
    const locked = join(folder, 'locked.key');
    spawnSync('openssl', ['ec', '-in', first.key, '-aes256', '-passout', 'pass:x', '-out', locked]);
    assert.match(await refusal({ ...first, key: locked }), /locked\.key: .* without a passphrase/);
  });

  test('a key of another certificate', async () => {
    assert.match(
      await refusal({ ...first, key: second.key }),
      /second\.key: the key does not match the certificate in .*first\.pem/,
    );
  });

  test('both in one file are accepted, in either order', async () => {
    const [certificate, key] = [readFileSync(first.certificate), readFileSync(first.key)];
    for (const parts of [
      [certificate, key],
      [key, certificate],
    ]) {
      const both = join(folder, 'both.pem');
      writeFileSync(both, Buffer.concat(parts));
      const files = { certificate: both, key: both };
      checkTlsPair(files, await readTlsFiles(files));
    }
  });
});

describe('the expiry of a certificate', () => {
  const paths = { certificate: 'c.pem', key: 'c.key' };
  const fault = (days: number, left: number) =>
    validityError(
      paths,
      { validFromMs: NOW_MS - (days - left) * DAY_MS, validToMs: NOW_MS + left * DAY_MS },
      NOW_MS,
    );

  test('is reported 14 days ahead, or in the last third of its lifetime if that is shorter', () => {
    assert.equal(fault(90, 14.1), null);
    assert.equal(fault(90, 13), 'c.pem: the certificate expires at 2026-12-04T12:00:00Z');
    assert.equal(fault(6, 2.1), null);
    assert.match(fault(6, 1.9) ?? '', /expires at/);
  });

  test('is reported when it has expired or is not valid yet', () => {
    assert.match(fault(90, 0) ?? '', /expired at 2026-11-21T12:00:00Z; clients reject it/);
    assert.match(fault(90, -3) ?? '', /expired at 2026-11-18T12:00:00Z/);
    assert.match(fault(90, 91) ?? '', /not valid before 2026-11-22T12:00:00Z/);
  });
});
