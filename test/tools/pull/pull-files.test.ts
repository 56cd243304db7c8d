/** What `wirewatch pull` says about files that it cannot use: what is wrong with them, never advice for an appliance. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { runProgram } from '../../support/program.ts';
import { pulled, subscription, withService } from '../../support/pull.ts';

/** @param next must be said, and nothing of a data folder */
async function isRefused(args: string[], next: RegExp): Promise<void> {
  const { code, stderr } = await pulled(args);
  assert.equal(code, 1, stderr);
  assert.match(stderr, next);
  assert.doesNotMatch(stderr, /restore|--data|data folder|WIREWATCH_DEBUG/);
}

function edit(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

function rootPage(path: string, name: string): number {
  const db = new DatabaseSync(path);
  const row = db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name);
  db.close();
  return Number(row?.rootpage);
}

test('a damaged copy is to be deleted or left, wherever the damage is found', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    const into = join(folder, 'copy.db');
    const args = [...to, '--into', into];
    assert.equal((await pulled(args)).code, 0);
    edit(
      into,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
       INSERT INTO detections SELECT 't.7001.1.' || i, 1, hex(randomblob(200)) FROM n`,
    );
    const sound = readFileSync(into);
    // Counting reads the index alone.
    for (const [damaged, ...more] of [
      ['state'],
      ['sqlite_autoindex_detections_1'],
      ['detections', '--compare'],
    ]) {
      const page = rootPage(into, String(damaged)) - 1;
      writeFileSync(into, Buffer.from(sound).fill(0xff, page * 16_384, (page + 1) * 16_384));
      await isRefused(
        [...args, ...more],
        /copy\.db is damaged\. Name another file with --into, or delete it/,
      );
      writeFileSync(into, sound);
    }
  }));

test('a file that pull did not make is named and not changed', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    const [text, other, wal] = ['key.json', 'detections.db', 'gone.db-wal'].map((name) => join(folder, name));
    assert.ok(text !== undefined && other !== undefined && wal !== undefined);
    writeFileSync(text, '{"key":"ww_live_x"}'.repeat(100));
    edit(other, 'PRAGMA application_id = 7; CREATE TABLE detections (id TEXT)');
    writeFileSync(wal, 'of a killed pull');
    const names = readdirSync(folder);
    const contents = () => names.map((name) => readFileSync(join(folder, name), 'latin1'));
    const before = contents();
    for (const file of [text, other])
      await isRefused([...to, '--into', file], /was not made by pull\. Name another file with --into\.\n/);
    await isRefused(
      [...to, '--into', join(folder, 'gone.db')],
      /gone\.db is missing, but .*-wal is still there/,
    );
    assert.deepEqual(readdirSync(folder), names, 'nothing may be created');
    assert.deepEqual(contents(), before);
  }));

test('a copy that was deleted without the files beside it starts again without them', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    const into = join(folder, 'copy.db');
    const program = runProgram([...to, '--into', into, '--follow']);
    await program.until('its cursor', () => (existsSync(`${into}-wal`) ? true : undefined));
    program.kill('SIGKILL');
    await program.ended;
    rmSync(into);
    const left = /Delete (\S+) and (\S+) to start a new copy/;
    await isRefused([...to, '--into', into], left);
    for (const file of left.exec((await pulled([...to, '--into', into])).stderr)?.slice(1) ?? [])
      rmSync(file, { force: true });
    const { code, stderr } = await pulled([...to, '--into', into]);
    assert.equal(code, 0, stderr);
  }));

test('a folder in place of a file, and a missing folder', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    mkdirSync(join(folder, 'inner'));
    for (const format of ['sqlite', 'ndjson']) {
      const args = [...to, '--format', format, '--into'];
      await isRefused([...args, join(folder, 'inner')], /inner is a folder\. Name a file with --into/);
      const missing = join(folder, 'none', 'copy');
      await isRefused([...args, missing], /there is no folder \S+none\. Create it first\.\n$/);
    }
    const args = [...to, '--into', join(folder, 'copy.db'), '--key-file', join(folder, 'inner')];
    await isRefused(args, /inner is a folder\. Name the file with the API key/);
  }));

test('the extension tells the format, and a copy is not continued in another', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    for (const [made, other] of [
      ['sqlite', 'ndjson'],
      ['ndjson', 'sqlite'],
    ]) {
      const args = [...to, '--into', join(folder, `copy.${made}`)];
      assert.equal((await pulled(args)).code, 0);
      const isDatabase = readFileSync(join(folder, `copy.${made}`), 'latin1').startsWith('SQLite format 3');
      assert.equal(isDatabase, made === 'sqlite');
      const { code, stderr } = await pulled([...args, '--format', `${other}`]);
      assert.deepEqual([code !== 0, /--format/.test(stderr)], [true, true], stderr);
    }
  }));
