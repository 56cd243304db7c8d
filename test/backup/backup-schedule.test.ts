/** The scheduled backup: when it is due, and its alerts. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { backedUpMs } from '../../src/backup/backup-state.ts';
import { isOverdue, startBackups } from '../../src/backup/schedule.ts';
import type { AlertDocument } from '../../src/health/alert-texts.ts';
import type { Outcome } from '../../src/own-process.ts';
import { DAY_MS, formatMs, MINUTE_MS } from '../../src/time.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { until } from '../support/until.ts';

const OFTEN = { WIREWATCH_BACKUP_EVERY_MINUTES: '60' };

let installation: Installation;
let backups: string;
const hourly = () => ({
  data: installation.data,
  drop: installation.drop,
  folder: backups,
  every_minutes: 60,
});
before(async () => {
  installation = createInstallation();
  backups = join(installation.data, 'backups');
  const serving = await installation.serve();
  putFile(installation.drop, fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
  await serving.logged('the file', ({ msg }) => msg === 'file applied');
  await serving.stop();
  assert.ok(!existsSync(backups), 'without the setting there must be no backup');
});
after(() => installation?.remove());
beforeEach(() => rmSync(backups, { recursive: true, force: true }));

const done = (folder = backups) => until('the backup', () => existsSync(join(folder, 'backup.json')));
const opened = (serving: Serving, name: string) =>
  serving.logged(`the alert ${name}`, ({ msg, alert }) => msg === 'alert opened' && alert === name);

function alert(name: string): AlertDocument | undefined {
  const list: AlertDocument[] = JSON.parse(installation.cli(['alert', 'list', '--json']).stdout);
  return list.find((one) => one.name === name);
}

describe('a backup is due', () => {
  test('at the first start', async () => {
    const serving = await installation.serve(OFTEN);
    await done();
    assert.equal(installation.cli(['verify', backups]).status, 0);
    assert.equal(alert('backup overdue'), undefined);
    await serving.stop();

    // A restart reads the time from the existing backup.
    const at = backedUpMs(backups);
    const again = await installation.serve(OFTEN);
    await again.stop();
    assert.equal(backedUpMs(backups), at);
  });

  test('when the last one is older than every_minutes, or in the future', async () => {
    for (const ageMs of [61 * MINUTE_MS, -DAY_MS]) {
      installation.cli(['backup', backups]);
      const path = join(backups, 'backup.json');
      const state = JSON.parse(readFileSync(path, 'utf8'));
      const at = new Date(Date.now() - ageMs).toISOString();
      writeFileSync(path, JSON.stringify({ ...state, at }));
      const serving = await installation.serve(OFTEN);
      await until('it is made', () => Math.abs(Date.now() - (backedUpMs(backups) ?? 0)) < MINUTE_MS);
      await serving.stop();
    }
  });

  test('in its own folder, if the parent exists', async () => {
    const folder = join(installation.data, '..', 'elsewhere');
    const serving = await installation.serve({ ...OFTEN, WIREWATCH_BACKUP_FOLDER: folder });
    await done(folder);
    await serving.stop();
    assert.ok(!existsSync(backups));
  });
});

test('after a backup, the next does not start at once, whatever the clock says', async () => {
  let nowMs = Date.now();
  const begun: string[] = [];
  const { close, check } = startBackups(
    {
      ...hourly(),
      now: () => nowMs,
      log: () => {},
      onAlert: () => {},
    },
    ([command = '']) => {
      begun.push(command);
      const outcome: Outcome = { kind: 'done', printed: { path: backups, findings: [] } };
      return { outcome: Promise.resolve(outcome), giveUp: async () => {} };
    },
  );
  await until('the backup is created', () => begun.length === 1);
  for (const aheadMs of [400 * DAY_MS, -400 * DAY_MS, 0]) {
    nowMs = Date.now() + aheadMs;
    check();
  }
  await close();
  assert.deepEqual(begun, ['backup']);
});

test('a failed one is retried after five minutes, and then as usual', async () => {
  const begun: string[] = [];
  let monotonicMs = 0;
  const { close, check } = startBackups(
    {
      ...hourly(),
      now: Date.now,
      log: () => {},
      onAlert: () => {},
    },
    ([command = '']) => {
      begun.push(command);
      const outcome: Outcome =
        begun.length === 1
          ? { kind: 'failed', detail: 'no disk' }
          : { kind: 'done', printed: { path: backups, findings: [] } };
      return { outcome: Promise.resolve(outcome), giveUp: async () => {} };
    },
    () => monotonicMs,
  );
  const checkAt = async (ms: number) => {
    monotonicMs = ms;
    check();
    await new Promise((resolve) => setImmediate(resolve));
    return begun.join();
  };
  assert.equal(await checkAt(1000), 'backup');
  assert.equal(await checkAt(5 * MINUTE_MS - 1), 'backup');
  assert.equal(await checkAt(5 * MINUTE_MS), 'backup,backup');
  assert.equal(await checkAt(64 * MINUTE_MS), 'backup,backup');
  assert.equal(await checkAt(65 * MINUTE_MS), 'backup,backup,backup');
  await close();
});

test('it is overdue after one and a half intervals and a few minutes', () => {
  const now = Date.now();
  assert.ok(!isOverdue(now - 5 * MINUTE_MS, 1, now));
  assert.ok(isOverdue(now - 7 * MINUTE_MS, 1, now));
  assert.ok(!isOverdue(now - 94 * MINUTE_MS, 60, now));
  assert.ok(isOverdue(now - 96 * MINUTE_MS, 60, now));
});

test('the overdue alert names the newest backup', async () => {
  installation.cli(['backup', backups]);
  const madeAt = formatMs(backedUpMs(backups) ?? 0);
  const nowMs = Date.now() + DAY_MS;
  const details: (string | null)[] = [];
  const { close } = startBackups(
    {
      ...hourly(),
      now: () => nowMs,
      log: () => {},
      onAlert: (detail) => void details.push(detail),
    },
    () => ({
      outcome: Promise.resolve<Outcome>({ kind: 'failed', detail: 'the disk is full.' }),
      giveUp: async () => {},
    }),
  );
  await until('it has failed', () => details.length > 1);
  await close();
  const state = `${backups} was last updated at ${madeAt}`;
  assert.deepEqual(details, [state, `the disk is full. ${state}`]);
});

test('uses the settings of the running appliance, even if the configuration has changed', async () => {
  const good = join(installation.data, '..', 'good.toml');
  const unused = join(installation.data, 'wirewatch.toml');
  writeFileSync(good, '[backup]\nevery_minutes = 60\n');
  writeFileSync(unused, 'broken = [');
  try {
    const serving = await installation.serve({ WIREWATCH_CONFIG: good });
    await done();
    await serving.stop();
  } finally {
    rmSync(unused);
  }
});

test('uses all of them, even if some are environment variables', { skip: WITHOUT_OPENSSL }, async () => {
  const { certificate, key } = makeCertificate(join(installation.data, '..'), 'own');
  const half = join(installation.data, '..', 'half.toml');
  writeFileSync(half, `[server]\ntls_key = ${JSON.stringify(key)}\n[backup]\nevery_minutes = 60\n`);
  const serving = await installation.serve({
    WIREWATCH_CONFIG: half,
    WIREWATCH_SERVER_TLS_CERTIFICATE: certificate,
  });
  await done();
  await serving.stop();
});

test('a failed backup opens an alert with the cause, and does not affect health', async () => {
  const folder = join(installation.data, 'not-mounted', 'backups');
  const serving = await installation.serve({ ...OFTEN, WIREWATCH_BACKUP_FOLDER: folder });
  const line = await opened(serving, 'backup overdue');
  assert.equal(line.page_worthy, false);
  assert.match(String(line.detail), /cannot write .*not-mounted/);
  assert.equal(alert('backup overdue')?.page_worthy, false);
  assert.ok(!existsSync(join(installation.data, 'not-mounted')));
  const health = JSON.parse(await (await serving.get('/v1/health')).text());
  assert.ok(health.alerts.open > health.alerts.page_worthy);
  await serving.stop();
});

test('a stop abandons the backup in progress, and the folder stays good', async () => {
  const serving = await installation.serve(OFTEN);
  await until('it has begun', () => existsSync(backups));
  assert.equal(await serving.stop(), 0);
  installation.cli(['backup', backups]);
  assert.equal(installation.cli(['verify', backups]).status, 0);
});
