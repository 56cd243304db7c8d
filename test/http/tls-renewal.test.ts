/** How a renewed certificate is loaded, check by check. */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { checkTlsPair, readTlsFiles, watchTlsPair } from '../../src/http/tls-pair.ts';
import { createLogger } from '../../src/logger.ts';
import { DAY_MS } from '../../src/time.ts';
import { overwrite, useCertificates, WITHOUT_OPENSSL } from '../support/certificates.ts';

const { first, second, copyOf } = useCertificates();
const skip = WITHOUT_OPENSSL;

describe('renewal, check by check', { skip }, () => {
  /** Watches a pair, with checks controlled by the test. */
  async function watched(name: string) {
    const paths = copyOf(first, name);
    const pair = checkTlsPair(paths, await readTlsFiles(paths));
    const taken: number[] = [];
    const expiryAlerts: (string | null)[] = [];
    const alerts = new Map<string, string | null>();
    const warned: unknown[] = [];
    const log = createLogger({ level: 'silent' });
    log.warn = (...args: unknown[]) => void warned.push(args[0]);
    let nowMs = Date.now();
    const renewal = watchTlsPair({
      paths,
      pair,
      onRenewed: ({ validToMs }) => void taken.push(validToMs),
      conditions: {
        set(name, detail) {
          alerts.set(name, detail);
          if (name === 'certificate expires') expiryAlerts.push(detail);
        },
      },
      log,
      now: () => nowMs,
      everyMs: null,
    });
    const setNow = (ms: number) => {
      nowMs = ms;
    };
    const unusable = () => alerts.get('certificate not usable') ?? null;
    return { paths, pair, taken, expiryAlerts, unusable, warned, renewal, setNow };
  }

  test('a half-written pair is reported once, at the second check, and loaded when complete', async () => {
    const { paths, renewal, taken, warned } = await watched('half');
    writeFileSync(paths.certificate, readFileSync(second.certificate));
    await renewal.check();
    assert.deepEqual([taken, warned.length], [[], 0]);
    await renewal.check();
    await renewal.check();
    assert.deepEqual([taken, warned.length], [[], 1]);
    assert.match(JSON.stringify(warned), /does not match the certificate/);
    writeFileSync(paths.key, readFileSync(second.key));
    await renewal.check();
    assert.equal(taken.length, 1);
  });

  test('an alert is open from the second check of an unusable pair until a good one is there', async () => {
    const { paths, renewal, unusable } = await watched('unusable');
    writeFileSync(paths.key, 'broken');
    await renewal.check();
    assert.equal(unusable(), null, 'the file may be incomplete');
    await renewal.check();
    assert.match(unusable() ?? '', /unusable\.key: no PEM private key without a passphrase/);
    overwrite(paths, second);
    await renewal.check();
    assert.equal(unusable(), null);
    renameSync(paths.key, `${paths.key}.away`);
    await renewal.check();
    await renewal.check();
    assert.match(unusable() ?? '', /no such file or folder/);
    renameSync(`${paths.key}.away`, paths.key);
    await renewal.check();
    assert.equal(unusable(), null, 'the current certificate is back');
  });

  test('the alert opens near expiry and closes with the new pair', async () => {
    const { paths, pair, expiryAlerts, renewal, setNow } = await watched('late');
    assert.equal(expiryAlerts.at(-1), null);
    setNow(pair.validToMs - DAY_MS);
    await renewal.check();
    assert.match(expiryAlerts.at(-1) ?? '', /late\.pem: the certificate expires at/);
    overwrite(paths, second);
    // The second certificate may have been created a second after the first.
    setNow(Date.now());
    await renewal.check();
    assert.equal(expiryAlerts.at(-1), null);
  });
});
