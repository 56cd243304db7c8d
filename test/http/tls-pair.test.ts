/** A certificate and its key: which pairs are refused, when one is about to expire, and how a renewed one is loaded. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadTlsPair, validityError, watchTlsPair } from '../../src/http/tls-pair.ts';
import { createLogger } from '../../src/logger.ts';
import { DAY_MS } from '../../src/time.ts';
import { overwrite, useCertificates, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { NOW_MS } from '../support/server.ts';

const { folder, first, second, copyOf } = useCertificates();
const skip = WITHOUT_OPENSSL;

const pathsOf = ({ certificate, key }: typeof first) => ({ tls_certificate: certificate, tls_key: key });

describe('a pair that cannot be used is refused, naming the file', { skip }, () => {
  const refused = (files: Partial<typeof first>, message: RegExp) =>
    assert.rejects(loadTlsPair(pathsOf({ ...first, ...files })), { code: 'configuration', message });

  test('no such file; a folder', async () => {
    const gone = join(folder, 'gone.pem');
    await refused({ certificate: gone }, /tls_certificate, .*gone\.pem: no such file or folder/);
    await refused({ key: folder }, /tls_key, .*: it is a folder/);
  });

  test('no certificate, no key, a key with a passphrase', async () => {
    const text = join(folder, 'text');
    writeFileSync(text, 'no PEM\n');
    await refused({ certificate: text }, /text: no PEM certificate found in the file/);
    await refused({ key: text }, /text: no PEM private key without a passphrase/);
    const locked = join(folder, 'locked.key');
    spawnSync('openssl', ['ec', '-in', first.key, '-aes256', '-passout', 'pass:x', '-out', locked]);
    await refused({ key: locked }, /locked\.key: .* without a passphrase/);
  });

  test('a key of another certificate', async () => {
    await refused({ key: second.key }, /second\.key: the key does not match the certificate in .*first\.pem/);
  });

  test('both in one file are accepted, in either order', async () => {
    const [certificate, key] = [readFileSync(first.certificate), readFileSync(first.key)];
    for (const parts of [
      [certificate, key],
      [key, certificate],
    ]) {
      const both = join(folder, 'both.pem');
      writeFileSync(both, Buffer.concat(parts));
      await loadTlsPair({ tls_certificate: both, tls_key: both });
    }
  });
});

describe('the expiry of a certificate', () => {
  const paths = { tls_certificate: 'c.pem', tls_key: 'c.key' };
  const fault = (days: number, left: number) => {
    const [validFromMs, validToMs] = [NOW_MS - (days - left) * DAY_MS, NOW_MS + left * DAY_MS];
    return validityError({ paths, validFromMs, validToMs }, NOW_MS);
  };

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

describe('renewal, check by check', { skip }, () => {
  /** Watches a pair, with checks controlled by the test. */
  async function watched(name: string) {
    const paths = copyOf(first, name);
    const pair = await loadTlsPair(pathsOf(paths));
    const taken: number[] = [];
    const alerts = new Map<string, string | null>();
    const warned: unknown[] = [];
    const log = createLogger({ level: 'silent' });
    log.warn = (...args: unknown[]) => void warned.push(args[0]);
    const clock = { nowMs: Date.now() };
    const renewal = watchTlsPair({
      pair,
      onRenewed: ({ validToMs }) => void taken.push(validToMs),
      conditions: { set: (name, detail) => void alerts.set(name, detail) },
      log,
      now: () => clock.nowMs,
      everyMs: null,
    });
    /** Checks so often. @returns the text of an alert; empty while it is closed */
    const check = async (times = 1, alert = 'certificate not usable') => {
      for (let count = 0; count < times; count += 1) await renewal.check();
      return alerts.get(alert) ?? '';
    };
    return { renewal, paths, pair, taken, warned, check, clock };
  }

  test('an unusable pair is reported once, at the second check, and a good one is loaded', async () => {
    const { paths, check, taken, warned } = await watched('half');
    writeFileSync(paths.certificate, readFileSync(second.certificate));
    assert.deepEqual([await check(), taken, warned.length], ['', [], 0], 'the files may be incomplete');
    assert.match(await check(2), /does not match the certificate/);
    assert.deepEqual([taken, warned.length], [[], 1]);
    writeFileSync(paths.key, readFileSync(second.key));
    assert.deepEqual([await check(), taken.length], ['', 1]);
    writeFileSync(paths.key, 'broken');
    assert.match(await check(2), /half\.key: no PEM private key without a passphrase/);
    overwrite(paths, second);
    assert.equal(await check(), '');
    renameSync(paths.key, `${paths.key}.away`);
    assert.match(await check(2), /no such file or folder/);
    renameSync(`${paths.key}.away`, paths.key);
    assert.equal(await check(), '', 'the current certificate is back');
  });

  test('one check runs at a time, though its files are on a share that hangs', async () => {
    const { renewal } = await watched('hung');
    const first = renewal.check();
    assert.equal(renewal.check(), first);
    await first;
    assert.notEqual(renewal.check(), first);
    await renewal.check();
  });

  test('the alert opens near expiry and closes with the new pair', async () => {
    const { paths, pair, check, clock } = await watched('late');
    assert.equal(await check(0, 'certificate expires'), '');
    clock.nowMs = pair.validToMs - DAY_MS;
    assert.match(await check(1, 'certificate expires'), /late\.pem: the certificate expires at/);
    overwrite(paths, second);
    // The second certificate may have been created a second after the first.
    clock.nowMs = Date.now();
    assert.equal(await check(1, 'certificate expires'), '');
  });
});
