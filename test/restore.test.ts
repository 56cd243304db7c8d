/** `wirewatch restore`: a backup in place, whole or not at all, and clients that go on where they stood. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Database from 'better-sqlite3';
import { create, extract } from 'tar';
import { chooseJournal } from '../src/backup/restored-journal.ts';
import { openReader } from '../src/store/database.ts';
import { dataFolder } from '../src/store/folder.ts';
import { completeRestore, placingSteps } from '../src/store/incoming.ts';
import { appendKeyRevoked, appendPosition, readJournalEnd } from '../src/store/journal.ts';
import { isLocked } from '../src/store/locks.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from './support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from './support/export-files.ts';
import { runProgram } from './support/program.ts';

const MAIN = join(import.meta.dirname, '..', 'dist', 'main.cjs');

let appliance: Appliance;
let work: string;
let backup: string;
showLogOfFailures(() => appliance?.serving());
before(async () => {
  work = mkdtempSync(join(tmpdir(), 'wirewatch-restore-'));
  backup = join(work, 'backup.tar');
  appliance = await startAppliance();
  const rows = Array.from({ length: 50 }, () => newRow());
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  appliance.cli(['backup', backup]);
  // What the backup does not know.
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
});
after(async () => {
  await appliance?.stop();
  rmSync(work, { recursive: true, force: true });
});

function run(...args: string[]) {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
}

function restored(...args: string[]) {
  const { status, stdout, stderr } = run('restore', ...args, '--json');
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

/** A copy of the appliance's folder as it is while nobody writes: what a stop leaves. */
async function stoppedCopy(name: string): Promise<string> {
  const copy = join(work, name);
  await appliance.serving().stop();
  cpSync(appliance.data, copy, { recursive: true });
  await appliance.restart();
  return copy;
}

/** Names and contents of all files, but of the lock and of the memory that readers share, which say nothing. */
function contentOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^lock|-shm$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return new Map(names.map((name) => [name.slice(folder.length), readFileSync(name).toString('latin1')]));
}

function assertSame(found: Map<string, string>, expected: Map<string, string>, when?: string): void {
  const names = (files: Map<string, string>) => [...files.keys()];
  assert.deepEqual(names(found), names(expected), when);
  for (const [name, content] of expected) assert.ok(found.get(name) === content, `${name} ${when ?? ''}`);
}

function detectionsIn(folder: string): number {
  const db = openReader(join(folder, 'detections.db'));
  try {
    return (
      db.prepare<unknown[], { count: number }>('SELECT count(*) AS count FROM detection').get()?.count ?? 0
    );
  } finally {
    db.close();
  }
}

describe('into a folder that holds no installation', () => {
  test('it is made where it is missing, is in order, and only its owner may enter', () => {
    const data = join(work, 'missing', 'data');
    const said = restored(backup, '--data', data);
    assert.deepEqual([said.detections, said.replaced, said.journal], [50, null, 'broken']);
    assert.equal(detectionsIn(data), 50);
    const { status, stderr } = run('verify', '--data', data);
    // The archive is not there: it is not in the backup.
    assert.equal(status, 1, stderr);
    assert.deepEqual(
      readdirSync(data).filter((name) => name.startsWith('incoming') || name.startsWith('.')),
      [],
    );
  });

  test('what else lies there stays: drop folder, photos, configuration', () => {
    const data = join(work, 'prepared');
    cpSync(appliance.drop, join(data, 'drop'), { recursive: true });
    writeFileSync(join(data, 'wirewatch.toml'), '[log]\nlevel = "warn"\n');
    const before = contentOf(data);
    restored(backup, '--data', data);
    const afterwards = contentOf(data);
    for (const [name, content] of before) assert.ok(afterwards.get(name) === content, name);
    assert.deepEqual(JSON.parse(run('verify', '--archive', '--data', data, '--json').stdout).findings, []);
  });
});

describe('into one that holds an installation', () => {
  test('it is refused without --replace, and nothing is changed', async () => {
    const data = await stoppedCopy('refused');
    const before = contentOf(data);
    const { status, stderr } = run('restore', backup, '--data', data);
    assert.equal(status, 1);
    assert.match(stderr, /holds an installation \(access\.db, detections\.db, secret\).*add --replace/);
    assertSame(contentOf(data), before);
  });

  test('with --replace the old one is moved aside whole; drop folder and usage.db stay where they are', async () => {
    const data = await stoppedCopy('replaced');
    const before = contentOf(data);
    const said = restored(backup, '--replace', '--data', data);
    assert.deepEqual(
      [said.journal, said.files_to_read, said.files_missing, said.versions],
      ['continued', 1, [], 'same'],
    );
    assert.equal(detectionsIn(data), 50);
    assert.equal(detectionsIn(said.replaced), 51);
    const afterwards = contentOf(data);
    const aside = contentOf(said.replaced);
    for (const [name, content] of before) {
      const stays = name.startsWith('/drop/') || name === '/usage.db';
      assert.ok((stays ? afterwards : aside).get(name) === content, name);
    }
  });

  test('while an appliance runs on it, it is refused, and that appliance goes on', async () => {
    const { status, stderr } = appliance.cli(['restore', backup, '--replace'], { anyStatus: true });
    assert.equal(status, 1);
    assert.match(stderr, /an appliance runs on .*Stop it first; nothing was changed/);
    assert.equal((await appliance.get('/v1/me')).status, 200);
    assert.ok(isLocked(join(appliance.data, 'lock')));
  });

  test('it says what will happen at the next start, and why', async () => {
    const data = await stoppedCopy('said');
    const continued = run('restore', backup, '--replace', '--data', data).stdout;
    assert.match(continued, /one file was applied since the backup.*read again from archive\//);
    assert.match(continued, /Versions come out as clients have seen them/);
    rmSync(join(data, 'journal'));
    const broken = run('restore', backup, '--replace', '--data', data).stdout;
    assert.match(
      broken,
      /Versions are raised by 1,000, once, .*the journal that was kept since the backup is not there/,
    );
    const changed = await stoppedCopy('changed');
    const between = join(work, 'between.tar');
    run('backup', between, '--data', changed);
    run('subscription', 'add', '7003', '--account', 'agency', '--data', changed);
    const unread = JSON.parse(run('restore', between, '--replace', '--data', changed, '--json').stdout);
    assert.deepEqual([unread.versions, unread.reasons], ['same', []], 'no file was read after the change');
    const lost = await stoppedCopy('lost');
    rmSync(join(lost, 'drop', 'archive'), { recursive: true });
    const missing = run('restore', backup, '--replace', '--data', lost).stdout;
    assert.match(missing, /raised by 1,000.*not in the archive/s);
    assert.match(missing, /These are not in the drop folder\..*\n {2}archive\//);
  });
});

describe('a backup that is not good changes nothing', () => {
  /** The good one with the header of an entry rewritten, its checksum set right. */
  function forged(name: string, entry: string, change: (header: Buffer) => void): string {
    const bytes = readFileSync(backup);
    const at = headerOf(bytes, entry);
    const header = bytes.subarray(at, at + 512);
    change(header);
    header.fill(0x20, 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const file = join(work, name);
    writeFileSync(file, bytes);
    return file;
  }

  function headerOf(bytes: Buffer, entry: string): number {
    for (let at = 0; at < bytes.length; at += 512)
      if (bytes.toString('latin1', at, at + entry.length + 1) === `${entry}\0`) return at;
    return assert.fail(`${entry} is not in the backup`);
  }

  const rename = (to: string) => (header: Buffer) => {
    header.fill(0, 0, 100);
    header.write(to, 0);
  };
  const linkTo = (type: string, to: string) => (header: Buffer) => {
    header.write(type, 156);
    header.fill(0, 157, 257);
    header.write(to, 157);
    header.write('00000000000\0', 124);
  };

  function assertRefused(file: string, reason: RegExp): void {
    const data = join(work, 'untouched');
    const around = readdirSync(work);
    const { status, stdout, stderr } = run('restore', file, '--data', data);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, reason);
    assert.match(stderr, /Nothing was changed/);
    assert.deepEqual(readdirSync(work), around, 'no folder was made');
  }

  test('one with a changed byte', () => {
    const bytes = readFileSync(backup);
    const at = headerOf(bytes, 'secret') + 512;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(join(work, 'changed.tar'), bytes);
    assertRefused(join(work, 'changed.tar'), /its secret is damaged/);
  });

  test('one with an entry that leads out of the folder', () => {
    for (const path of ['../escaped', '/tmp/escaped', 'secret/../../escaped', './secret', 'SECRET'])
      assertRefused(forged('path.tar', 'secret', rename(path)), /expected the file secret, found/);
    assert.ok(!existsSync(join(work, 'escaped')));
  });

  test('one with a link in the place of a file', () => {
    for (const type of ['1', '2'])
      assertRefused(
        forged('link.tar', 'journal', linkTo(type, '/etc/passwd')),
        /expected the file journal, found "journal" \((Symbolic)?Link\)/,
      );
    assertRefused(forged('fifo.tar', 'journal', linkTo('6', '')), /found "journal" \(FIFO\)/);
  });

  test('one of a newer program, by its manifest or by its databases', () => {
    const bytes = readFileSync(backup);
    const text = Buffer.from(bytes);
    const at = bytes.indexOf('"version": 1');
    text.write('"version": 9', at);
    writeFileSync(join(work, 'newer.tar'), text);
    assertRefused(
      join(work, 'newer.tar'),
      /version 9, this program knows 1\. It was written by a newer program/,
    );
    const content = join(work, 'newer');
    mkdirSync(content);
    extract({ file: backup, cwd: content, sync: true });
    const db = new Database(join(content, 'access.db'));
    db.pragma('user_version = 99');
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    const manifest = JSON.parse(readFileSync(join(content, 'manifest.json'), 'utf8'));
    const newer = readFileSync(join(content, 'access.db'));
    const sha256 = createHash('sha256').update(newer).digest('hex');
    manifest.parts['access.db'] = { bytes: newer.length, sha256 };
    writeFileSync(join(content, 'manifest.json'), JSON.stringify(manifest));
    const names = ['manifest.json', 'detections.db', 'access.db', 'journal', 'secret'];
    create({ file: join(work, 'newer.tar'), cwd: content, sync: true }, names);
    assertRefused(join(work, 'newer.tar'), /access\.db: it has schema 99, this program knows/);
  });

  test('no backup at all', () => {
    writeFileSync(join(work, 'text.tar'), 'text');
    assertRefused(join(work, 'text.tar'), /cannot be restored/);
    const { status, stderr } = run('restore', join(work, 'gone.tar'), '--data', join(work, 'untouched'));
    assert.equal(status, 1);
    assert.match(stderr, /cannot read the backup/);
    assert.ok(!existsSync(join(work, 'untouched')));
  });
});

describe('a crash', () => {
  test('between any two steps of putting the new state in place is made up for by the next', async () => {
    const data = await stoppedCopy('steps');
    // A database with a log of its own, as a crash of the appliance leaves it.
    writeFileSync(join(data, 'detections.db-wal'), 'log');
    writeFileSync(join(data, 'access.db.schema-1'), 'older');
    const incoming = join(data, 'incoming-20261121T101000Z');
    mkdirSync(incoming);
    for (const name of ['detections.db', 'access.db', 'secret', 'journal'])
      writeFileSync(join(incoming, name), `new ${name}`);
    const stepsOf = (folder: string) =>
      placingSteps(dataFolder(folder), 'incoming-20261121T101000Z', 'replaced-20261121T101000Z');
    const whole = join(work, 'steps-whole');
    cpSync(data, whole, { recursive: true });
    const steps = stepsOf(whole).length;
    assert.ok(steps > 8);
    assert.equal(completeRestore(dataFolder(whole)), 'replaced-20261121T101000Z');
    const expected = contentOf(whole);
    assert.ok(expected.has('/replaced-20261121T101000Z/detections.db-wal'));
    for (let done = 0; done <= steps; done += 1) {
      const copy = join(work, `steps-${done}`);
      cpSync(data, copy, { recursive: true });
      for (const step of stepsOf(copy).slice(0, done)) step();
      completeRestore(dataFolder(copy));
      assertSame(contentOf(copy), expected, `after ${done} steps`);
      assert.equal(completeRestore(dataFolder(copy)), undefined, 'nothing is left to do');
      rmSync(copy, { recursive: true });
    }
  });

  test('at any moment of the command leaves the old state or the new one, and the command completes it', async () => {
    const data = await stoppedCopy('killed');
    const old = contentOf(data);
    const outcomes = new Set<string>();
    // Later and later, until it comes to its end: how long that takes is the machine's affair.
    for (let delayMs = 0; !outcomes.has('done'); delayMs += Math.max(120, delayMs / 4)) {
      rmSync(data, { recursive: true });
      cpSync(join(appliance.data), data, { recursive: true, filter: (name) => name !== data });
      for (const [name, content] of old) writeFileSync(join(data, name), Buffer.from(content, 'latin1'));
      const restoring = runProgram(['restore', backup, '--replace', '--data', data]);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      restoring.kill('SIGKILL');
      const code = await restoring.ended;
      const isPending = readdirSync(data).some((name) => name.startsWith('incoming-'));
      const count = isPending ? -1 : detectionsIn(data);
      outcomes.add(code === 0 ? 'done' : isPending ? 'pending' : count === 51 ? 'old' : 'new');
      const again = run('restore', backup, '--replace', '--data', data, '--json');
      assert.equal(again.status, 0, again.stderr);
      assert.equal(detectionsIn(data), 50);
      assert.deepEqual(
        readdirSync(data).filter((name) => /^(\.incoming|incoming-)/.test(name)),
        [],
      );
    }
    assert.ok(outcomes.has('old') && outcomes.has('done'), [...outcomes].join());
  });

  test('that left a restore half placed is made up for by a start; commands wait for that', async () => {
    const data = await stoppedCopy('half');
    const incoming = join(data, 'incoming-20261121T101000Z');
    const unpacked = join(work, 'unpacked');
    restored(backup, '--data', unpacked);
    mkdirSync(incoming);
    for (const name of ['detections.db', 'access.db', 'secret', 'journal'])
      cpSync(join(unpacked, name), join(incoming, name));
    for (const args of [
      ['key', 'list'],
      ['ingest', 'status'],
      ['backup', join(work, 'half.tar')],
    ]) {
      const { status, stderr } = run(...args, '--data', data);
      assert.equal(status, 78, stderr);
      assert.match(stderr, /a restore into .* was cut off.*wirewatch serve/s);
    }
    const serving = runProgram(['serve', '--data', data, '--port', '0']);
    await serving.url();
    assert.ok(serving.log().some(({ msg }) => msg === 'a restore that had been cut off was completed'));
    serving.kill('SIGTERM');
    assert.equal(await serving.ended, 0);
    assert.equal(detectionsIn(join(data, 'replaced-20261121T101000Z')), 51);
  });
});

describe('the journal that a restored installation goes on with', () => {
  const stage = () => dataFolder(mkdtempSync(join(work, 'stage-')));

  /** The backup's parts, and a data folder with what the case wants in it. */
  function parts(live: (folder: string) => void) {
    const from = join(work, `parts-${readdirSync(work).length}`);
    restored(backup, '--data', from);
    const backedUp = stage();
    for (const name of ['detections.db', 'access.db', 'secret'])
      cpSync(join(from, name), join(backedUp.root, name));
    const lines = readFileSync(join(from, 'journal'), 'utf8').split('\n');
    const own = lines.filter((line) => !line.includes('"restored"'));
    writeFileSync(backedUp.journal, own.join('\n'));
    const folder = stage();
    live(folder.root);
    return { backedUp, folder, text: own.join('\n') };
  }
  const linesOf = (path: string) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));

  test("is the one that was there, where it begins with all of the backup's", () => {
    const { backedUp, folder, text } = parts(() => {});
    writeFileSync(folder.journal, text);
    appendPosition(folder.journal, 9e15);
    assert.deepEqual(chooseJournal(backedUp, folder, Date.now()), { kind: 'continued' });
    assert.equal(readFileSync(backedUp.journal, 'utf8'), readFileSync(folder.journal, 'utf8'));
  });

  test("is the backup's, marked as unproven, where there is none, a shorter one or another one", () => {
    const changed = (text: string) => text.replace(/"position":(\d)/, '"position":9');
    for (const [live, reason] of [
      [null, /is not there/],
      [(text: string) => text.slice(0, -40), /does not go on/],
      [changed, /does not go on/],
    ] as const) {
      const { backedUp, folder, text } = parts(() => {});
      if (live !== null) writeFileSync(folder.journal, live(text));
      const choice = chooseJournal(backedUp, folder, Date.now());
      assert.ok(choice.kind === 'broken');
      assert.match(choice.reason, reason);
      assert.ok(readFileSync(backedUp.journal, 'utf8').startsWith(text));
      const last = linesOf(backedUp.journal).at(-1);
      assert.deepEqual([last.proven, last.reason], [false, choice.reason]);
    }
  });

  test('knows the positions that any other witness has seen, and the keys that it knows as revoked', async () => {
    const data = await stoppedCopy('witness');
    const keyId = JSON.parse(run('key', 'list', '--data', data, '--json').stdout)[0].id;
    const { backedUp, folder } = parts(() => {});
    // Another journal, and a database that is further than the backup.
    cpSync(join(data, 'detections.db'), folder.detections);
    cpSync(join(data, 'access.db'), folder.access);
    appendPosition(folder.journal, 8e15);
    appendKeyRevoked(folder.journal, keyId, Date.now());
    assert.equal(chooseJournal(backedUp, folder, Date.now()).kind, 'broken');
    assert.equal(readJournalEnd(backedUp.journal).position, 8e15);
    assert.deepEqual(linesOf(backedUp.journal).filter((line) => line.key_revoked === keyId).length, 1);
    appendFileSync(folder.journal, 'x');
  });
});

test('while a removal is yet to be done again, verify finds nothing wrong with what is half removed', async () => {
  const data = await stoppedCopy('half-removed');
  const before = join(work, 'before-removal.tar');
  assert.equal(run('backup', before, '--data', data).status, 0);
  assert.equal(run('subscription', 'remove', '7001', '--yes', '--data', data).status, 0);
  restored(before, '--replace', '--data', data);
  const db = new Database(join(data, 'detections.db'));
  db.exec('DELETE FROM stream_row WHERE sequence <= 7; DELETE FROM detection WHERE rowid % 2 = 0');
  db.close();
  const { status, stdout } = run('verify', '--data', data, '--json');
  assert.deepEqual([status, JSON.parse(stdout).findings], [0, []]);
});

test('what was given out before goes on working after: keys, tokens, cursors', async () => {
  const key = createKey(appliance.cli, 'agency', '7001');
  const [, id = '', secret = ''] = /_live_([a-z2-7]{12})_(.*)$/.exec(key) ?? [];
  const file = join(work, 'with-key.tar');
  appliance.cli(['backup', file]);
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: id,
    client_secret: secret,
  });
  const answer = await fetch(`${appliance.serving().url}/oauth/token`, { method: 'POST', body });
  const { access_token } = JSON.parse(await answer.text());
  const since = new Date(Date.now() - 60_000).toISOString();
  const page = JSON.parse(await (await appliance.get(`/v1/detections/changes?since=${since}`, key)).text());
  await appliance.serving().stop();
  appliance.cli(['restore', file, '--replace']);
  await appliance.restart();
  for (const credential of [key, access_token]) {
    const read = await appliance.get(`/v1/detections/changes?cursor=${page.next_cursor}`, credential);
    assert.equal(read.status, 200);
    assert.deepEqual(JSON.parse(await read.text()).data, []);
  }
});
