/** `wirewatch verify` and `rebuild`, and the scrub of a running appliance. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { programCommand } from '../support/command.ts';
import { assertSameContent, type Content, contentOfDetections } from '../support/database-content.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';

const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0' };

let installation: Installation;
let content: Content;

before(async () => {
  installation = createInstallation(SETTINGS);
  const serving = await installation.serve();
  await drop(serving, 300);
  await serving.stop();
  content = contentOfDetections(installation.data);
});
after(() => installation?.remove());

async function drop(serving: Serving, rows: number): Promise<void> {
  const name = fileName('newswire', nextWindowMs());
  putFile(installation.drop, name, ndjson(Array.from({ length: rows }, () => newRow())));
  await serving.logged('file applied', ({ msg, file }) => msg === 'file applied' && file === name);
}

const cli = (...args: string[]) => installation.cli(args, { anyStatus: true });
const run = (...args: string[]) => {
  const { command, args: all, options } = programCommand(args);
  return spawnSync(command, all, options).status;
};
const changed = (sql: string) => {
  const db = openDatabase(join(installation.data, 'detections.db'), 'write', DETECTIONS_SCHEMA);
  db.exec(sql);
  db.close();
};
const flip = (path: string) => {
  const bytes = readFileSync(path);
  bytes[Math.floor(bytes.length / 2)] = (bytes[Math.floor(bytes.length / 2)] ?? 0) ^ 1;
  writeFileSync(path, bytes);
};
const firstSegment = (log: string) => join(installation.data, log, '000000000001.zst');

describe('stopped', () => {
  test('a good installation: exit code 0, and what was compared', () => {
    const { status, stdout } = cli('verify');
    assert.equal(status, 0, stdout);
    assert.match(stdout, /is intact: every log entry up to number \d+ is complete/);
    const { verified, ...document } = JSON.parse(cli('verify', '--json').stdout);
    assert.equal(verified, installation.data);
    assert.deepEqual(document, { ok: true, entry: document.entry, findings: [], not_compared: null });
  });

  test('a changed row: exit code 1, by kind, and the next start rebuilds the database', async () => {
    changed(
      "UPDATE detection SET exported_at_given = 'x' WHERE id IN (SELECT id FROM detection ORDER BY id LIMIT 1 OFFSET 2)",
    );
    const { status, stdout } = cli('verify');
    assert.equal(status, 1);
    assert.match(stdout, /row differs: 1\n {2}detection id .*: exported_at_given\n/);
    assert.match(stdout, /What to do:\n {2}Restart Wirewatch/);
    const serving = await installation.serve();
    await serving.logged('the rebuild', ({ msg }) => msg.startsWith('detections.db was brought up'));
    await serving.stop();
    assertSameContent(withoutLog(contentOfDetections(installation.data)), withoutLog(content));
    assert.equal(cli('verify').status, 0);
  });

  test('damage elsewhere is named: the log, access.db, its spare copy, the secret', () => {
    const { data } = installation;
    const cases: [path: string, damage: (path: string) => void, message: RegExp][] = [
      [firstSegment('log'), flip, /log damaged: 1\n.*\/log\/.*rebuild --log.*restore BACKUP/s],
      [join(data, 'access.db'), flip, /access damaged: 1\n {2}\S+access\.db: .*spare copy/s],
      [
        join(data, 'access.db-spare'),
        flip,
        /access damaged: 1\n {2}\S+access\.db-spare: .*Restart Wirewatch/s,
      ],
      [join(data, 'secret'), (path) => rmSync(path), /secret missing: 1\n.*restore BACKUP --replace/s],
    ];
    for (const [path, damage, message] of cases) {
      const bytes = readFileSync(path);
      damage(path);
      const { status, stdout } = cli('verify');
      assert.equal(status, 1);
      assert.match(stdout, message);
      writeFileSync(path, bytes);
    }
    assert.equal(cli('verify').status, 0);
  });

  test('rebuild rebuilds the database, rebuild --log the log', async () => {
    changed('DELETE FROM detection WHERE id IN (SELECT id FROM detection ORDER BY id LIMIT 9)');
    assert.match(
      cli('rebuild').stdout,
      /^Rebuilt .* from [\d,]+ log entries: 300 detections, 300 versions\.$/m,
    );
    assertSameContent(withoutLog(contentOfDetections(installation.data)), withoutLog(content));
    flip(firstSegment('log'));
    const rebuilt = JSON.parse(cli('rebuild', '--log', '--json').stdout);
    assert.deepEqual([rebuilt.rebuilt, rebuilt.detections], ['log', 300]);
    assert.ok(existsSync(rebuilt.kept));
    assert.equal(cli('verify').status, 0);
    const serving = await installation.serve();
    await drop(serving, 5);
    await serving.stop();
    assert.equal(cli('verify').status, 0);
    content = contentOfDetections(installation.data);
  });

  test('a new log can be backed up', () => {
    const backup = `${installation.data}-backup`;
    assert.equal(cli('backup', backup).stderr, '');
    assert.equal(run('verify', backup), 0);
    assert.equal(run('restore', backup, '--data', `${installation.data}-restored`), 0);
  });

  test('no installation: exit code 78', () => {
    for (const command of ['verify', 'rebuild'])
      assert.equal(run(command, '--data', join(installation.data, 'nowhere')), 78, command);
  });
});

describe('beside a running appliance', () => {
  test('verify finds nothing while it ingests; rebuild is refused', async () => {
    const serving = await installation.serve();
    const drops = drop(serving, 2000);
    assert.equal(cli('verify').status, 0);
    await drops;
    const { status, stderr } = cli('rebuild');
    assert.equal(status, 1);
    assert.match(stderr, /Wirewatch is using/);
    await serving.stop();
    content = contentOfDetections(installation.data);
  });

  test('the scrub finds damage to the database: ingest stops, and a start rebuilds it', async () => {
    changed(
      "UPDATE detection SET exported_at_given = 'x' WHERE id IN (SELECT id FROM detection ORDER BY id LIMIT 1 OFFSET 2)",
    );
    // Without a record, a scrub is due.
    rmSync(join(installation.data, 'verified.json'));
    const serving = await installation.serve({ WIREWATCH_HASTE: '5000' });
    const line = await serving.logged('the damage report', ({ msg }) => msg === 'detections.db is damaged');
    assert.match(JSON.stringify(line.findings), /"row differs","count":1/);
    const health = await (await serving.get('/v1/health')).text();
    assert.match(health, /"status":"degraded"/);
    assert.match(installation.cli(['alert', 'list']).stdout, /database damaged/);
    await serving.stop();
    assert.ok(existsSync(join(installation.data, 'detections.db-damage')));
    const again = await installation.serve();
    await again.logged('the rebuild', ({ msg }) => msg.startsWith('detections.db was brought up'));
    await again.stop();
    assertSameContent(withoutLog(contentOfDetections(installation.data)), withoutLog(content));
  });

  test('damage to the log is an alert until a new log is started; ingest continues', async () => {
    const { kept } = JSON.parse(cli('rebuild', '--log', '--json').stdout);
    assert.ok(existsSync(kept));
    const serving = await installation.serve();
    await drop(serving, 5);
    const [segment] =
      readFileSync(join(installation.data, 'verified.json'), 'utf8').match(/"entry": \d+/) ?? [];
    const path = join(installation.data, 'log', `${String(segment?.slice(9)).padStart(12, '0')}.zst`);
    flip(path);
    assert.equal(cli('verify').status, 1);
    await serving.logged('the damage report', ({ msg }) => msg === 'the log is damaged');
    assert.match(installation.cli(['alert', 'list']).stdout, /log damaged/);
    await drop(serving, 5);
    await serving.stop();
    // It is the segment that a start would continue.
    await assert.rejects(installation.begin().listening(), /is damaged at byte .*rebuild --log/s);
    cli('rebuild', '--log');
    const healed = await installation.serve();
    assert.doesNotMatch(installation.cli(['alert', 'list']).stdout, /log damaged/);
    await healed.stop();
    assert.equal(cli('verify').status, 0);
  });
});

/** A new log has another mark, and a start writes the last delivery time. */
function withoutLog({ log_mark: _, delivery: __, ...others }: Content): Content {
  return others;
}
