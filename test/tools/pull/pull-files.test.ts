/** How `wirewatch pull` begins and continues a copy, and what it says about files and options that it cannot use. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DAY_MS } from '../../../src/time.ts';
import { asOther, withoutAnotherUser } from '../../support/another-user.ts';
import { assertFailed, runBeside, succeedBeside } from '../../support/command.ts';
import { runProgram } from '../../support/program.ts';
import { sqlIn, subscription, withService } from '../../support/pull.ts';
import { words } from '../../support/words.ts';

type Use = Parameters<typeof withService>[2];
const withStream = (use: Use) => withService([subscription(7001, 'text')], [], use);

/** @param next must be said, and nothing of a data folder */
async function isRefused(args: string[], next: RegExp, through?: typeof asOther): Promise<void> {
  const run = runProgram(args, {}, through === undefined ? {} : { through });
  assertFailed({ status: await run.ended, stderr: run.stderr() }, 1, next);
  assert.doesNotMatch(run.stderr(), /restore|--data|data folder|WIREWATCH_DEBUG/);
}

test('a damaged copy is to be deleted or left, wherever the damage is found', () =>
  withStream(async (to, folder) => {
    const into = join(folder, 'copy.db');
    const args = [...to, '--into', into];
    await succeedBeside(args);
    sqlIn(
      into,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
       INSERT INTO detections SELECT 't.7001.1.' || i, 1, hex(randomblob(200)) FROM n`,
    );
    const sound = readFileSync(into);
    for (const damaged of ['state', 'sqlite_autoindex_detections_1', 'detections']) {
      const [found] = sqlIn(into, `SELECT rootpage FROM sqlite_schema WHERE name = '${damaged}'`);
      const page = Number(found?.rootpage) - 1;
      writeFileSync(into, Buffer.from(sound).fill(0xff, page * 16_384, (page + 1) * 16_384));
      // Counting reads the index alone.
      const all = damaged === 'detections' ? [...args, '--compare'] : args;
      await isRefused(all, /copy\.db is damaged\. Name another file with --into, or delete it/);
      writeFileSync(into, sound);
    }
    sqlIn(into, "UPDATE state SET notes = '{}'");
    await isRefused(args, /does not contain the position of a copy.*--into/);
    sqlIn(into, 'PRAGMA user_version = 1');
    await isRefused(args, /was not made by this version of pull.*--into/);
  }));

test('a file that pull did not make is named and not changed', () =>
  withStream(async (to, folder) => {
    const write = (name: string, content: string) => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const [text, other] = [write('key.json', '{"key":"ww_live_x"}'.repeat(100)), join(folder, 'other.db')];
    sqlIn(other, 'PRAGMA application_id = 7; CREATE TABLE detections (id TEXT)');
    const notes = write('notes.txt', 'my notes');
    const locked = join(folder, 'locked.ndjson');
    write('locked.ndjson.lock', 'not a lock'.repeat(100));
    const short = write('short.ndjson', 'a line');
    write('short.ndjson.place', JSON.stringify({ bytes: 100, cursor: 'x', walk: null, streams: null }));
    mkdirSync(join(folder, 'inner'));
    const names = readdirSync(folder);
    const files = names.filter((name) => name !== 'inner');
    const contents = () => files.map((name) => readFileSync(join(folder, name), 'latin1'));
    const before = contents();
    for (const [file, message, format = 'sqlite'] of [
      [text, /was not made by this version of pull\. Name another file with --into\.\n/],
      [other, /was not made by this version of pull\. Name another file with --into\.\n/],
      [notes, /already exists, but is not a copy/, 'ndjson'],
      [locked, /locked\.ndjson\.lock was not made by this version of pull/, 'ndjson'],
      [short, /lines are missing.*--into/, 'ndjson'],
      [join(folder, 'inner'), /inner is a folder\. Name a file with --into/],
      [join(folder, 'none', 'copy'), /there is no folder \S+none\. Create it first\.\n$/, 'ndjson'],
    ] as const)
      await isRefused([...to, '--format', format, '--into', file], message);
    const left = readdirSync(folder).filter((name) => !/^(notes|short).*\.lock$/.test(name));
    assert.deepEqual(left, names, 'nothing may be created');
    assert.deepEqual(contents(), before);
  }));

test('files that belong to another user are named, with what to do', { skip: withoutAnotherUser() }, () =>
  withStream(async (to, folder) => {
    chmodSync(folder, 0o755);
    for (const name of ['secret', 'own.db', 'own.ndjson'])
      writeFileSync(join(folder, name), 'ww_live_x', { mode: 0o600 });
    for (const into of ['own.db', 'own.db --compare', 'new.db', 'new.ndjson', 'own.ndjson --compare']) {
      const [file = '', ...more] = into.split(' ');
      const named = file === 'new.ndjson' ? 'new.ndjson.lock' : file;
      const said = `/${named} cannot be opened: permission denied\\. Name another file with --into`;
      await isRefused([...to, '--into', join(folder, file), ...more], new RegExp(said), asOther);
    }
    const unread = /secret cannot be read: permission denied\. Name a file .* with --key-file/;
    const key = ['--key-file', join(folder, 'secret')];
    await isRefused([...to, '--into', join(folder, 'new.db'), ...key], unread, asOther);
  }),
);

test('the key file may be the output of key create --json; its content is never shown', () =>
  withStream(async (to, folder) => {
    const key = join(folder, 'key');
    const args = [...to, '--into', join(folder, 'copy.db')];
    writeFileSync(key, JSON.stringify({ id: 'x', key: 'ww_live_x' }, null, 2));
    await succeedBeside(args);
    for (const wrong of ['{"id":"x"}', '{"key":', 'two words']) {
      writeFileSync(key, wrong);
      const refused = await runBeside(args);
      assert.deepEqual([refused.status, refused.stderr.includes(wrong)], [1, false]);
      assert.match(refused.stderr, /does not contain an API key/);
    }
    await isRefused(
      [...args, '--key-file', folder],
      /it is a folder, not a file\. Name a file .* with --key-file/,
    );
    rmSync(key);
    await isRefused(args, /the key file \S+ cannot be read: no such file/);
  }));

test('an invalid base address, format or wait, and --since with --full', () =>
  withStream(async (to, folder) => {
    const wrong =
      '--base-url ftp://x; --format xml; --full --since 2026-01-01T00:00:00Z; --poll-seconds 86401';
    for (const options of wrong.split(';')) {
      const { status } = await runBeside([...to, '--into', join(folder, 'copy.db'), ...words(options)]);
      assert.equal(status, 2, options);
    }
  }));

test('the extension tells the format; a copy is not continued in another, nor with --full if it began without', () =>
  withStream(async (to, folder, requests) => {
    for (const [made, other] of Object.entries({ sqlite: 'ndjson', ndjson: 'sqlite' })) {
      const args = [...to, '--into', join(folder, `copy.${made}`)];
      const begun = await succeedBeside(args);
      assert.match(begun.stdout, /run the command again with --full\.\n$/);
      const isDatabase = readFileSync(join(folder, `copy.${made}`), 'latin1').startsWith('SQLite format 3');
      assert.equal(isDatabase, made === 'sqlite');
      const { status, stderr } = await runBeside([...args, '--format', other]);
      assert.deepEqual([status !== 0, /--format/.test(stderr)], [true, true], stderr);

      requests.length = 0;
      const refused = await runBeside([...args, '--full']);
      assertFailed(refused, 2, /was started without --full\. Leave out --full to continue it\./);
      assert.deepEqual(requests, []);
      const advised = (text: string) => (/ delete (\S+)(?: and (\S+\.place))? /.exec(text) ?? []).slice(1);
      assert.deepEqual(advised(refused.stderr), advised(begun.stdout));
      for (const file of advised(refused.stderr)) if (file !== undefined) rmSync(file);
      for (const _ of [1, 2]) await succeedBeside([...args, '--full']);
      assert.match(requests[0] ?? '', /^\/v1\/detections\?/);
    }
  }));

test('a full copy starts the stream a day before as_of first, and then follows it by cursor', () =>
  withStream(async (to, folder, requests) => {
    const [fromMs, toMs] = [Date.now() - 62_000 - DAY_MS, Date.now() - DAY_MS];
    await succeedBeside([...to, '--into', join(folder, 'copy.db'), '--full']);
    const urls = requests.map((url) => new URL(url, 'http://x'));
    assert.deepEqual(
      urls.map(({ pathname, searchParams }) => `${pathname} ${searchParams.get('limit')}`),
      ['/v1/detections 1', '/v1/detections/changes 1', '/v1/detections 1000', '/v1/detections/changes 1000'],
    );
    const sinceMs = Date.parse(urls[1]?.searchParams.get('since') ?? '');
    // No period shows what an export has put up to a day ahead.
    assert.ok(sinceMs >= fromMs && sinceMs <= toMs, "by the server's clock if there is no as_of");
    const next = urls[3]?.searchParams;
    assert.deepEqual([next?.get('cursor'), next?.get('since')], ['abc', null]);
  }));
