/** `wirewatch verify` and `compact`, and the scrub of a running appliance. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { AlertDocument } from '../../src/health/alert-texts.ts';
import { readScrubRecord } from '../../src/log/scrub-findings.ts';
import { listSegments } from '../../src/log/segment.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase } from '../../src/store/database.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { createInstallation, createKey, dropRows, type Serving } from '../support/appliance.ts';
import { NO_PRELOAD, succeed } from '../support/command.ts';
import {
  assertSameContent,
  changeDetections,
  contentOfDetections,
  withoutLog,
} from '../support/database-content.ts';
import { newRows } from '../support/export-files.ts';
import { flipBit } from '../support/flip-bit.ts';
import { readerOf } from '../support/lab.ts';
import { preloadedFs } from '../support/preload.ts';
import { until } from '../support/until.ts';

const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0' };

const installation = createInstallation(SETTINGS);
const { data } = installation;
after(() => installation.remove());
const first = await installation.serve();
await drop(first, 300);
await first.stop();
let content = contentOfDetections(data);

function drop(serving: Serving, count: number): Promise<void> {
  return dropRows(serving, installation.drop, newRows(count));
}

const cli = (...args: string[]) => installation.cli(args, { anyStatus: true });
const alerts = () => installation.cli(['alert', 'list']).stdout;
const ONE_CHANGED =
  "UPDATE detection SET exported_at_given = 'x' WHERE id IN (SELECT id FROM detection ORDER BY id LIMIT 1 OFFSET 2)";
/** Of the log: not in its last entry, which a power cut may have torn. */
const flipEarly = (path: string) => flipBit(path, statSync(path).size >> 4);
function damageTrail(path: string): void {
  using db = openDatabase(path, 'write', ACCESS_SCHEMA);
  db.exec('UPDATE audit SET at = at + 1 WHERE entry = 1');
}

test('a good installation: exit code 0, and what was compared', () => {
  const { stdout } = installation.cli(['verify']);
  assert.match(stdout, /is intact: every log entry up to number \d+ is complete/);
  const { verified, ...document } = JSON.parse(cli('verify', '--json').stdout);
  assert.equal(verified, data);
  assert.deepEqual(document, { ok: true, entry: document.entry, findings: [], not_compared: null });
});

test('a changed row: exit code 1, by kind, and the next start rebuilds the database', async () => {
  changeDetections(data, ONE_CHANGED);
  const { status, stdout } = cli('verify');
  assert.equal(status, 1);
  assert.match(stdout, /database differs: 1\n {2}detection of stream \d differs from the log .*\n/);
  assert.match(stdout, /What to do:\n {2}Check the disk\. A running Wirewatch makes the database anew/);
  const serving = await installation.serve();
  await serving.logged('the rebuild', ({ msg }) => msg.startsWith('detections.db was brought up'));
  await serving.stop();
  assertSameContent(withoutLog(contentOfDetections(data)), withoutLog(content));
  assert.equal(cli('verify').status, 0);
});

test('damage elsewhere is named: the log, access.db, its spare copy, the audit trail, the secret', () => {
  const cases: [file: string, damage: (path: string) => void, message: RegExp][] = [
    ['log/000000000001.zst', flipEarly, /log damaged: 1\n.*\/log\/.*wirewatch compact.*restore BACKUP/s],
    ['access.db', flipBit, /access damaged: 1\n {2}\S+access\.db: .*the spare copy takes its place/s],
    ['access.db-spare', flipBit, /spare copy damaged: 1\n {2}\S+access\.db-spare: .*makes it anew/s],
    [
      'access.db',
      damageTrail,
      /audit trail damaged: 1\n {2}\S+access\.db: the audit trail is damaged: 1 entry.*Accounts and keys are not affected/s,
    ],
    ['secret', (path) => rmSync(path), /secret missing: 1\n.*copy the file "secret"/is],
  ];
  for (const [file, damage, message] of cases) {
    const path = join(data, file);
    const bytes = readFileSync(path);
    damage(path);
    const { status, stdout } = cli('verify');
    assert.equal(status, 1);
    assert.match(stdout, message);
    const { findings } = readScrubRecord(dataFolder(data)) ?? {};
    assert.equal(findings?.length, 1, 'it is noted for a running Wirewatch');
    writeFileSync(path, bytes);
  }
  assert.equal(cli('verify').status, 0);
});

test('a read that fails once is no damage', { skip: NO_PRELOAD }, () => {
  const failing = preloadedFs(`
    const { readFileSync } = fs;
    fs.readFileSync = (path, ...rest) => {
      if (!String(path).endsWith('access.db-spare')) return readFileSync(path, ...rest);
      fs.readFileSync = readFileSync;
      syncBuiltinESMExports();
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
    };`);
  succeed(['verify', '--data', data], failing);
});

test('what was found in access.db is forgotten once a command has put the spare copy in its place', () => {
  flipBit(join(data, 'access.db'));
  assert.equal(cli('verify').status, 1);
  assert.match(cli('ingest', 'pause').stderr, /its spare copy took its place/);
  assert.equal(readScrubRecord(dataFolder(data)), null);
  cli('ingest', 'resume');
  assert.equal(cli('verify').status, 0);
});

test('verify finds nothing while it ingests, nor after compact', async () => {
  const serving = await installation.serve();
  const drops = drop(serving, 2000);
  assert.equal(cli('verify').status, 0);
  await drops;
  const more = drop(serving, 2000);
  const compacted = JSON.parse(cli('compact', '--json').stdout);
  assert.ok(compacted.detections >= 2300 && compacted.damage === null, JSON.stringify(compacted));
  await more;
  assert.equal(cli('verify').status, 0);
  await serving.stop();
  content = contentOfDetections(data);
});

test('the scrub finds damage to the database, which is made anew while it runs', async () => {
  changeDetections(data, ONE_CHANGED);
  // Without a record, a scrub is due.
  rmSync(join(data, 'verified.json'));
  const serving = await installation.serve({ WIREWATCH_HASTE: '5000' });
  const line = await serving.logged('the damage report', ({ msg }) => msg === 'detections.db is damaged');
  assert.match(JSON.stringify(line.findings), /"database differs","count":1/);
  await serving.logged('the rebuild', ({ msg }) => msg.startsWith('detections.db was rebuilt'));
  await until('the end of the alert', () => !alerts().includes('damaged'));
  await serving.stop();
  assert.ok(!existsSync(join(data, 'detections.db-damage')));
  assertSameContent(withoutLog(contentOfDetections(data)), withoutLog(content));
});

test('damage to access.db that verify finds is an alert until a start has replaced it', async () => {
  const revoked = createKey(installation.cli, 'agency', '7001');
  installation.cli(['key', 'revoke', revoked.split('_')[2] ?? '', '--yes']);
  const serving = await installation.serve({ WIREWATCH_HASTE: '5000' });
  flipBit(join(data, 'access.db'));
  assert.equal(cli('verify').status, 1);
  await serving.logged('the alert', ({ alert }) => alert === 'keys cannot be checked');
  await serving.stop();
  const healed = await installation.serve({ WIREWATCH_HASTE: '5000' });
  const statusOf = async (key: string) => (await readerOf(healed.url, key).get('/v1/me')).status;
  assert.deepEqual([await statusOf(revoked), await statusOf(installation.key)], [401, 200]);
  await healed.logged('the spare copy', ({ msg }) => msg.includes('its spare copy took its place'));
  await healed.logged('a verification', ({ msg }) => msg === 'detections.db was compared with the log');
  assert.ok(!cli('alert', 'list').stdout.includes('keys cannot be checked'));
  await healed.stop();
  assert.equal(cli('verify').status, 0);
});

test('damage to the log is an alert until the log is written anew; ingest continues', async () => {
  await using serving = await installation.serve();
  await drop(serving, 5);
  flipBit(listSegments(join(data, 'log'))[0]?.path ?? '');
  assert.equal(cli('verify').status, 1);
  await serving.logged('the damage report', ({ msg }) => msg === 'the log is damaged');
  assert.match(alerts(), /log damaged.*wirewatch\s+compact/s);
  await drop(serving, 5);
  const told =
    /^Rewrote the log\. .* detections, .* versions, in .*The old log was damaged: 1 x log damaged/s;
  assert.match(cli('compact').stdout, told);
  await until('the end of the alert', () => !alerts().includes('log damaged'));
  assert.equal(cli('verify').status, 0);
  await drop(serving, 5);
});

test('damage that touches no request is no urgent alert: a row of the audit trail, the secret', async () => {
  const secret = join(data, 'secret');
  const bytes = readFileSync(secret);
  await using serving = await installation.serve({ WIREWATCH_HASTE: '5000' });
  damageTrail(join(data, 'access.db'));
  // The change carries the damaged row into the spare copy.
  cli('ingest', 'pause');
  cli('ingest', 'resume');
  rmSync(secret);
  assert.equal(cli('verify').status, 1);
  await serving.logged('the finding', ({ msg }) => msg === 'the audit trail is damaged');
  await serving.logged('the alert', ({ alert }) => alert === 'secret missing');
  const open = (): AlertDocument[] => JSON.parse(cli('alert', 'list', '--json').stdout);
  assert.equal(open().find(({ name }) => name === 'secret missing')?.page_worthy, false);
  assert.ok(open().every(({ name }) => name !== 'keys cannot be checked'));
  writeFileSync(secret, bytes);
  assert.match(cli('verify').stdout, /audit trail damaged: 1/);
  await until('the end of the alert', () => open().every(({ name }) => name !== 'secret missing'));
});
