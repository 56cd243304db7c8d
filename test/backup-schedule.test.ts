/** Scheduled backups: when they are due, what is kept, what is told when one is not as it should be. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { backupName, deleteOld, listKept, newestGood } from '../src/backup/kept-files.ts';
import { startSchedule } from '../src/backup/schedule.ts';
import type { AlertDocument } from '../src/health/alerts.ts';
import { openDetections } from '../src/store/detections.ts';
import { DAY_MS, HOUR_MS } from '../src/time.ts';
import { createInstallation, type Installation, putFile, type Serving } from './support/appliance.ts';
import { makeCertificate, WITHOUT_OPENSSL } from './support/certificates.ts';
import { fileName, ndjson, newRow, nextWindowMs } from './support/export-files.ts';
import { inFolder } from './support/program.ts';
import { until } from './support/until.ts';

const HOURLY = { WIREWATCH_BACKUP_EVERY_HOURS: '1' };
const WRITTEN = 'backup written and opened again';

let installation: Installation;
let backups: string;
before(async () => {
  installation = createInstallation();
  backups = join(installation.data, 'backups');
  const serving = await installation.serve();
  putFile(installation.drop, fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
  await serving.logged('the file', ({ msg }) => msg === 'file applied');
  await serving.stop();
  assert.ok(!existsSync(backups), 'without the setting there is none');
});
after(() => installation?.remove());
beforeEach(() => rmSync(backups, { recursive: true, force: true }));

const place = (...names: string[]) => {
  mkdirSync(backups, { recursive: true });
  for (const name of names) writeFileSync(join(backups, name), 'an older one');
};
const names = () => readdirSync(backups).sort();
const written = (serving: Serving) => serving.logged('that it was written', ({ msg }) => msg === WRITTEN);
const opened = (serving: Serving, name: string) =>
  serving.logged(`the alert ${name}`, ({ msg, alert }) => msg === 'alert opened' && alert === name);

function alert(name: string): AlertDocument | undefined {
  const list: AlertDocument[] = JSON.parse(installation.cli(['alert', 'list', '--json']).stdout);
  return list.find((one) => one.name === name);
}

describe('one is due', () => {
  test('at the first start; it is written, opened again, and good', async () => {
    const serving = await installation.serve(HOURLY);
    const line = await written(serving);
    assert.equal(line.detections, 2);
    const [name = ''] = names();
    assert.match(name, /^wirewatch-\d{8}T\d{6}Z\.tar$/);
    assert.equal(line.file, join(backups, name));
    assert.deepEqual(names(), [name], 'nothing else is left there');
    assert.equal(installation.cli(['verify', join(backups, name)]).status, 0);
    assert.equal(alert('backup overdue'), undefined);
    await serving.stop();

    // A restart judges by the file that is there.
    const again = await installation.serve(HOURLY);
    await again.stop();
    assert.deepEqual(names(), [name]);
    assert.ok(!again.log.some(({ msg }) => msg === WRITTEN));
  });

  test('when the newest is older than every_hours, or of the future', async () => {
    for (const ageMs of [HOUR_MS + 1000, -DAY_MS]) {
      rmSync(backups, { recursive: true, force: true });
      place(backupName(Date.now() - ageMs));
      const serving = await installation.serve(HOURLY);
      await written(serving);
      await serving.stop();
      assert.equal(names().length, 2);
    }
  });

  test('in a folder of its own, where its parent is there', async () => {
    const folder = join(installation.data, '..', 'elsewhere');
    const serving = await installation.serve({ ...HOURLY, WIREWATCH_BACKUP_FOLDER: folder });
    await written(serving);
    await serving.stop();
    assert.equal(readdirSync(folder).length, 1);
    assert.ok(!existsSync(backups));
  });
});

test('one that is named for a time to come neither counts nor costs another its place', async () => {
  await inFolder(async (folder) => {
    const names = [4, 3, 2, 1].map((days) => backupName(Date.now() - days * DAY_MS));
    const future = backupName(Date.now() + 400 * DAY_MS);
    for (const name of [...names, future]) writeFileSync(join(folder, name), '');
    assert.deepEqual(deleteOld(folder, 3, Date.now()), names.slice(0, 1));
    assert.deepEqual(readdirSync(folder).sort(), [...names.slice(1), future].sort());
    assert.equal(newestGood(listKept(folder), Date.now())?.name, names.at(-1));
  });
});

test('after one was made the next is not begun at once, whatever the clock says', async () => {
  const folder = join(installation.data, 'clock');
  mkdirSync(folder);
  let nowMs = Date.now();
  const made: number[] = [];
  const { close, look } = startSchedule(
    {
      data: installation.data,
      drop: installation.drop,
      folder,
      every_hours: 1,
      keep: 1,
      now: () => nowMs,
      log: () => {},
      onAlert: () => {},
    },
    (_, target) => {
      made.push(nowMs);
      writeFileSync(target, '');
      const result = { kind: 'written', bytes: 0, detections: 0, findings: [] } as const;
      return { made: Promise.resolve(result), giveUp: async () => {} };
    },
  );
  await until('one is made', () => readdirSync(folder).some((name) => name.endsWith('.tar')));
  for (const aheadMs of [400 * DAY_MS, -400 * DAY_MS, 0]) {
    nowMs = Date.now() + aheadMs;
    look();
  }
  await close();
  assert.equal(made.length, 1);
});

test('one whose test was cut off does not count, and goes', async () => {
  place(`${backupName(Date.now() - 1000)}.untested`);
  const serving = await installation.serve(HOURLY);
  await written(serving);
  await serving.stop();
  assert.equal(names().length, 1);
  assert.ok(names()[0]?.endsWith('.tar'));
});

test('it is made with the settings of the appliance, whatever a configuration says by now', async () => {
  const good = join(installation.data, '..', 'good.toml');
  const unused = join(installation.data, 'wirewatch.toml');
  writeFileSync(good, '[backup]\nevery_hours = 1\n');
  writeFileSync(unused, 'broken = [');
  try {
    const serving = await installation.serve({ WIREWATCH_CONFIG: good });
    await written(serving);
    await serving.stop();
  } finally {
    rmSync(unused);
  }
});

test('nor with half of them, where some are variables', { skip: WITHOUT_OPENSSL }, async () => {
  const { certificate, key } = makeCertificate(join(installation.data, '..'), 'own');
  const half = join(installation.data, '..', 'half.toml');
  writeFileSync(half, `[server]\ntls_key = ${JSON.stringify(key)}\n[backup]\nevery_hours = 1\n`);
  const serving = await installation.serve({
    WIREWATCH_CONFIG: half,
    WIREWATCH_SERVER_TLS_CERTIFICATE: certificate,
  });
  await written(serving);
  await serving.stop();
});

test('the newest are kept, and no file of another name is touched', async () => {
  const foreign = [
    'notes.txt',
    'wirewatch-monday.tar',
    'wirewatch-20200101T000000Z.tar.gz',
    'wirewatch-20209901T000000Z.tar',
  ];
  place(
    'wirewatch-20200101T000000Z.tar',
    'wirewatch-20200102T000000Z.tar',
    'wirewatch-20200103T000000Z.tar',
    ...foreign,
  );
  const serving = await installation.serve({ ...HOURLY, WIREWATCH_BACKUP_KEEP: '2' });
  const line = await written(serving);
  await serving.stop();
  assert.deepEqual(line.deleted, ['wirewatch-20200102T000000Z.tar', 'wirewatch-20200101T000000Z.tar']);
  assert.equal(names().length, foreign.length + 2);
  for (const name of [...foreign, 'wirewatch-20200103T000000Z.tar']) assert.ok(names().includes(name), name);
});

test('damaged ones count for nothing, and go when a good one follows', async () => {
  await inFolder(async (folder) => {
    const day = (date: number) => `wirewatch-202001${String(date).padStart(2, '0')}T000000Z.tar`;
    for (const name of [day(1), day(2), `${day(3)}.damaged`, day(4), `${day(5)}.damaged`])
      writeFileSync(join(folder, name), '');
    mkdirSync(join(folder, day(6)));
    assert.deepEqual(
      listKept(folder).map(({ name }) => name),
      [`${day(5)}.damaged`, day(4), `${day(3)}.damaged`, day(2), day(1)],
    );
    assert.deepEqual(deleteOld(folder, 2, Date.now()).sort(), [day(1), `${day(3)}.damaged`]);
    assert.deepEqual(readdirSync(folder).sort(), [day(2), day(4), `${day(5)}.damaged`, day(6)]);
  });
});

test('one that did not pass its test goes when a good one of the same second is there', async () => {
  await inFolder(async (folder) => {
    const name = backupName(Date.now() - HOUR_MS);
    for (const one of [name, `${name}.damaged`]) writeFileSync(join(folder, one), '');
    assert.deepEqual(deleteOld(folder, 1, Date.now()), [`${name}.damaged`]);
  });
});

test('one that cannot be made opens an alert with the cause, and health is not touched by it', async () => {
  const folder = join(installation.data, 'not-mounted', 'backups');
  const serving = await installation.serve({ ...HOURLY, WIREWATCH_BACKUP_FOLDER: folder });
  const line = await opened(serving, 'backup overdue');
  assert.equal(line.page_worthy, false);
  assert.match(String(line.detail), /cannot make the folder .*not-mounted/);
  assert.equal(alert('backup overdue')?.page_worthy, false);
  assert.ok(!existsSync(join(installation.data, 'not-mounted')));
  const health = JSON.parse(await (await serving.get('/v1/health')).text());
  assert.ok(health.alerts.open > health.alerts.page_worthy);
  await serving.stop();
});

test('one that does not pass its test is put by, older ones are kept, and an alert says so until a good one follows', async () => {
  place('wirewatch-20200101T000000Z.tar', 'wirewatch-20200102T000000Z.tar');
  const change = (sequence: string) => {
    const db = openDetections(join(installation.data, 'detections.db'));
    db.exec(`UPDATE stream_head SET sequence = sequence ${sequence}`);
    db.close();
  };
  change('+ 5');
  const settings = { ...HOURLY, WIREWATCH_BACKUP_KEEP: '1' };
  const serving = await installation.serve(settings);
  const line = await opened(serving, 'backup not restorable');
  assert.equal(line.page_worthy, false);
  assert.match(String(line.detail), /\.tar\.damaged \(sequences: .*its head says/);
  await serving.stop();
  assert.equal(names().length, 3);
  assert.equal(names().filter((name) => name.endsWith('.damaged')).length, 1);

  change('- 5');
  const mended = await installation.serve(settings);
  await written(mended);
  await until('the alert closes', () => alert('backup not restorable') === undefined);
  await until('the newest good one alone is left', () => names().length === 1);
  await mended.stop();
  assert.ok(names()[0]?.endsWith('.tar'));
});

test('that the newest did not pass its test is known from its name after a restart', async () => {
  const name = backupName(Date.now() - 1000);
  place(backupName(Date.now() - 60_000), `${name}.damaged`);
  const serving = await installation.serve(HOURLY);
  const line = await opened(serving, 'backup not restorable');
  assert.equal(line.detail, join(backups, `${name}.damaged`));
  await serving.stop();
  assert.equal(names().length, 2, 'none was due');
});

test('a stop gives up the backup that is being made, and leaves nothing of it', async () => {
  const serving = await installation.serve(HOURLY);
  await until('it has begun', () => existsSync(backups) && names().length > 0);
  assert.equal(await serving.stop(), 0);
  assert.deepEqual(
    names().filter((name) => !/^wirewatch-\d{8}T\d{6}Z\.tar$/.test(name)),
    [],
  );
  for (const name of names()) assert.equal(installation.cli(['verify', join(backups, name)]).status, 0);
});
