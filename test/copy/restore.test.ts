/** `wirewatch restore`: what is in place afterwards, and how a lost end is repaired. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { closeRemovals, removeSubscription } from '../../src/auth/removal.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { lostEnd } from '../../src/ingest/apply/lost-end.ts';
import { streamWriter } from '../../src/ingest/apply/stream-writer.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { epochAt, epochTimes } from '../../src/log/version-epoch.ts';
import { type Database, writing } from '../../src/store/database.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { isLocked } from '../../src/store/locks.ts';
import { formatMs, HOUR_MS } from '../../src/time.ts';
import { openAccess } from '../support/access.ts';
import { createKey } from '../support/appliance.ts';
import { assertFailed, succeed } from '../support/command.ts';
import { assertSameContent, contentOfDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { idOf } from '../support/export-files.ts';
import { createCopied, QUIETLY, rowsFrom } from '../support/history.ts';
import { runProgram } from '../support/program.ts';
import {
  added,
  appliance,
  assertSame,
  backedUpAtMs,
  backup,
  backupOf,
  contentOf,
  copyOf,
  detectionsIn,
  epochsIn,
  first,
  inDetections,
  restored,
  run,
  served,
  stopped,
  whole,
  work,
} from '../support/restore.ts';
import { filesBelow } from '../support/test-folder.ts';
import { granted, inBody, postToken } from '../support/token-client.ts';

describe('if the data folder has the same log as the copy', () => {
  test('nothing is lost, and every column is equal', async () => {
    const data = copyOf(stopped, 'kept');
    const same = backupOf(data, 'same');
    const expected = contentOfDetections(data);
    const damaged = copyOf(data, 'kept-damaged');
    for (const database of ['detections.db', 'access.db']) writeFileSync(join(damaged, database), 'damaged');
    const lost = restored(same, '--replace', '--data', damaged);
    // Without its database it is not certain that it has all of its log.
    assert.deepEqual([lost.detections, lost.access, lost.raised], [51, 'continued', true]);
    writeFileSync(join(data, 'access.db'), 'damaged');
    const result = restored(same, '--replace', '--data', data);
    assert.deepEqual([result.detections, result.access, result.raised], [51, 'continued', false]);
    assertSameContent(contentOfDetections(data), expected);
    // The database is as after a stop.
    const messages = (await served(data)).map(({ msg }) => msg);
    assert.doesNotMatch(messages.join('\n'), /rebuilt|brought up to date/);
    // The search for missing windows adds its own entry.
    const [found, before] = [contentOfDetections(data), expected].map(withoutOpenDelivery);
    assertSameContent(found ?? {}, before ?? {});
  });
});

/** Starts an appliance, which reads the file that waits, and stops it. */
async function readBy(data: string): Promise<void> {
  const serving = runProgram(['serve', '--data', data, '--port', '0'], { WIREWATCH_INGEST_QUIET_MS: '0' });
  await serving.logged('the file to be read', ({ msg }) => msg === 'file applied');
  assert.equal(await serving.stop(), 0);
}

/** Completes the removal of a subscription, and gives its number away again. */
function addAgain(access: Database, atMs: number): void {
  removeSubscription(access, 7001);
  closeRemovals(access, [7001]);
  addSubscription(access, { id: 7001, account_id: 'agency' }, atMs);
}

/** The rows of the change stream in versions of an epoch. */
function announcedIn(data: string): unknown[] {
  const select = 'SELECT body FROM stream_row WHERE version > 1000 ORDER BY position';
  return inDetections<{ body: string }>(data, select).map(({ body }) => {
    const { id, version, article } = JSON.parse(body);
    return { id, version, headline: article.headline };
  });
}

describe('if the end of the log is, or may be, lost', () => {
  test('on another machine versions are raised and positions continue a year ahead, once, and it says so', async () => {
    const data = join(work, 'other', 'machine');
    const { detections, raised, replaced, orphans } = restored(backup, '--data', data);
    assert.deepEqual([detections, raised, replaced, orphans], [50, true, null, []]);
    // It is not known what clients have missed.
    assert.equal(announcedIn(data).length, 50);
    const [epoch, ...more] = epochsIn(data);
    assert.deepEqual(more, []);
    assert.ok((epoch?.position ?? 0) >= Date.now() * 1000 + 3.1e13);
    // By this, the old machine knows who took over.
    assert.equal(findTail(join(data, 'log')).last?.operation.host, hostname());
    const content = contentOfDetections(data);
    await served(data);
    // A rebuild from the log gives the same result.
    rmSync(join(data, 'detections.db'));
    await served(data);
    const again = contentOfDetections(data);
    for (const table of ['detection', 'stream_row', 'stream', 'ingest_file'])
      assert.deepEqual(again[table], content[table], table);
    assert.equal(epochsIn(data).length, 1);
    assert.doesNotMatch(readdirSync(data).join('\n'), /^(\.|incoming|replaced)/m);
    const { stdout } = run('restore', backup, '--data', join(work, 'told'));
    assert.match(stdout, /raised by 1,000, once, and positions continue a year ahead/);
    assert.ok(stdout.trimEnd().endsWith(`wirewatch serve --data ${join(work, 'told')}`), stdout);
  });

  test('a standby of the copy names what only it had read: the writer decides', () => {
    const data = copyOf(stopped, 'to-standby');
    const settings = { WIREWATCH_COPY_TO: backup, WIREWATCH_COPY_STANDBY: 'true' };
    const { stdout } = succeed(['restore', backup, '--replace', '--data', data], settings);
    const named = /1 file in the archive is not in the copy\. Drop it again on the writer:\n {2}archive/;
    assert.match(stdout, named);
    assert.deepEqual([detectionsIn(data), epochsIn(data)], [50, []]);
  });

  test('archived files added since are read at the next start', async () => {
    const data = copyOf(stopped, 'orphans');
    rmSync(join(data, 'log'), { recursive: true });
    const result = restored(backup, '--replace', '--data', data);
    assert.deepEqual([result.detections, result.raised, result.orphans.length], [50, true, 1]);
    await readBy(data);
    assert.equal(detectionsIn(data), 51);
    assert.ok(announcedIn(data).length > 0, 'a client may know the lost entry');
    assert.equal(epochsIn(data)[0]?.orphans, 'read');
  });

  test('archived files bring nothing of one owner of a number to the next', async () => {
    const data = copyOf(stopped, 'orphans-of-old');
    rmSync(join(data, 'log'), { recursive: true });
    const access = openAccess(data);
    addAgain(access, Date.now());
    access.close();
    assert.equal(restored(backup, '--replace', '--data', data).orphans.length, 1);
    await readBy(data);
    assert.deepEqual(inDetections(data, 'SELECT removed FROM stream'), [{ removed: 1 }]);
  });

  test('rows of a subscription that was removed since go, also where it was added again, whatever the clock said', () => {
    const endMs = Date.parse(restored(backup, '--data', join(work, 'end')).state_of);
    const endedOf = (name: string, change: (access: Database) => void) => {
      const data = copyOf(stopped, name);
      rmSync(join(data, 'log'), { recursive: true });
      const access = openAccess(data);
      change(access);
      access.close();
      restored(backup, '--replace', '--data', data);
      return inDetections<{ removed: number }>(data, 'SELECT removed FROM stream')[0]?.removed;
    };
    const addedMs = endMs + 24 * HOUR_MS;
    const isFast = endedOf('fast-clock', (access) =>
      writing(access, () => access.prepare('UPDATE subscription SET created_at = ?').run(addedMs)),
    );
    const isRemoved = endedOf('removed', (access) => removeSubscription(access, 7001));
    const isAddedAgain = endedOf('added-again', (access) => addAgain(access, endMs - 24 * HOUR_MS));
    assert.deepEqual([isFast, isRemoved, isAddedAgain], [0, 1, 1]);
  });

  test('rows of a subscription whose removal is cut off by --until go, since its number may have a new owner', async () => {
    using history = await createCopied();
    history.apply(rowsFrom(1, 5));
    const until = findTail(history.folder.log).last?.at ?? '';
    await history.remove(7001);
    history.apply(rowsFrom(10, 5));
    history.stop();
    const data = join(work, 'until-removed');
    restored(backupOf(history.folder.root, 'removed-copy'), '--until', until, '--data', data);
    assert.deepEqual(inDetections(data, 'SELECT removed FROM stream'), [{ removed: 1 }]);
  });

  test('rows of the new owner of a number stay, also where the log of the copy is ahead of its access.db', async () => {
    using history = await createCopied();
    const { root, log } = history.folder;
    const change = (work: (access: Database) => void) => {
      using access = openAccess(root);
      work(access);
    };
    change((access) => {
      for (const id of ['old', 'new']) addAccount(access, { id, name: id }, Date.now());
      addSubscription(access, { id: 7001, account_id: 'old' }, Date.now());
    });
    history.apply(rowsFrom(1, 5));
    const copy = backupOf(root, 'ahead-copy');
    const [before = ''] = readdirSync(join(copy, 'access'));
    change((access) => removeSubscription(access, 7001));
    await history.remove(7001);
    change((access) => {
      closeRemovals(access, [7001]);
      addSubscription(access, { id: 7001, account_id: 'new' }, Date.now());
    });
    history.apply(rowsFrom(100, 7));
    history.stop();
    backupOf(root, 'ahead-copy');
    // The machine ended before it wrote this.
    for (const name of readdirSync(join(copy, 'access')))
      if (name > before) rmSync(join(copy, 'access', name));
    rmSync(log, { recursive: true });
    restored(copy, '--replace', '--data', root);
    const streams = inDetections(root, 'SELECT removed FROM stream ORDER BY ordinal');
    assert.deepEqual(streams, [{ removed: 1 }, { removed: 0 }]);
  });

  test('a copy that is restored again announces again what clients may have missed, in a new epoch', () => {
    const data = join(work, 'staging');
    restored(backup, '--data', data);
    const [first] = epochsIn(data);
    const again = restored(whole, '--replace', '--data', data);
    assert.deepEqual([again.detections, again.raised], [51, true]);
    const [second, ...more] = epochsIn(data);
    assert.deepEqual([more, second?.number], [[], 2]);
    assert.ok(first && second && second.position > first.position);
    assert.equal(announcedIn(data).length, 51);
  });

  test('where positions have no room for another epoch, nothing is changed; an empty folder has', async () => {
    const data = join(work, 'no-room');
    restored(backup, '--data', data);
    const folder = dataFolder(data);
    const { db, log } = await recoverDetections({ folder, ...QUIETLY });
    // The clock is behind: what was delivered before is raised all the same.
    const now = () => 0;
    const deliveredMs = db.prepare<[], number>('SELECT max(delivered_at) FROM delivery').pluck().get();
    const writer = streamWriter({ db, log, folder: folder.log, now, onDelivered: () => {} });
    const epoch = { reason: 'test', orphans: 'left', position: 8.94e15, number: 0, parted: 0 } as const;
    writer.commit(writer.begin(new Set(), epoch), { kind: 'test' });
    assert.ok(Number(epochTimes(db).at(-1)) >= Number(deliveredMs));
    const conditions: string[] = [];
    const setCondition = (_: string, detail: string | null) => conditions.push(detail ?? '');
    const lost = lostEnd({ writer, now, log: () => {}, setCondition });
    const position = writer.lastPosition + 1;
    lost.note({ position, epoch: epochAt(db, position) });
    lost.makeUp();
    assert.equal(conditions.length, 1);
    assert.match(conditions[0] ?? '', /proves .* not made good: .* empty data folder/);
    writer.flush();
    log.close();
    db.close();
    const before = epochsIn(data);
    const refused = run('restore', whole, '--replace', '--data', data);
    assertFailed(refused, 1, /no room for version epoch 3: .* empty data folder.*Nothing was changed/s);
    assert.deepEqual(epochsIn(data), before);
    assert.equal(restored(whole, '--data', join(work, 'with-room')).detections, 51);
  });

  test('--until lists later files with the names under which they are read when they are dropped again', async () => {
    const data = copyOf(stopped, 'until-numbered');
    const drop = join(data, 'drop');
    const orphan = filesBelow(join(drop, 'archive')).sort().at(-1) ?? '';
    renameSync(orphan, orphan.replace(/ndjson$/, '2.ndjson'));
    const until = formatMs(backedUpAtMs);
    const { stdout } = run('restore', backup, '--replace', '--until', until, '--data', data);
    const [, path = '', name = ''] = /^ {2}(archive\S+) \(as (\S+)\)$/m.exec(stdout) ?? [];
    assert.ok(name, stdout);
    renameSync(join(drop, path), join(drop, name));
    await readBy(data);
    assert.equal(detectionsIn(data), 51);
  });

  test('--until restores an earlier state; later files stay archived, and revoked keys stay revoked', async () => {
    const data = copyOf(stopped, 'until');
    const [{ id }] = JSON.parse(run('key', 'list', '--data', data, '--json').stdout);
    run('key', 'revoke', id, '--yes', '--data', data);
    const refused = run('restore', backup, '--replace', '--until', '2020-01-01T00:00:00Z', '--data', data);
    assertFailed(refused, 1, /contains nothing from before 2020-01-01T00:00:00Z\. Nothing was changed/);
    const result = restored(backup, '--replace', '--until', formatMs(backedUpAtMs), '--data', data);
    assert.deepEqual([result.detections, result.raised, result.orphans.length], [50, true, 1]);
    // What clients have in a later version is announced again, as it is now; what they alone have is listed.
    const again = { id: idOf(first), version: 1002, headline: first.article_headline };
    assert.deepEqual(announcedIn(data), [again]);
    assert.equal(result.gone.count, 1);
    assert.equal(readFileSync(result.gone.file, 'utf8'), `${idOf(added)}\n`);
    assert.equal(epochsIn(data)[0]?.orphans, 'left');
    await served(data);
    assert.equal(detectionsIn(data), 50, 'files in the archive must stay there');
    assert.match(run('key', 'list', '--data', data, '--json').stdout, /"revoked_at": "/);
    const now = formatMs(Date.now());
    const after = restored(backup, '--replace', '--until', now, '--data', copyOf(stopped, 'all'));
    assert.deepEqual([after.detections, after.entries_cut, after.raised], [50, 0, true]);
  });

  test('after --until, epochs and positions continue beyond those cut off', () => {
    const data = join(work, 'twice');
    const untilEpoch = formatMs(backedUpAtMs);
    restored(backup, '--data', data);
    const [first] = epochsIn(data);
    const again = backupOf(data, 'twice-backup');
    restored(again, '--replace', '--until', untilEpoch, '--data', data);
    const [second, ...more] = epochsIn(data);
    assert.deepEqual([first?.number, second?.number, more], [1, 2, []]);
    assert.ok(first && second && second.position >= first.position + 3.1e13);
  });
});

describe('into a folder', () => {
  test('with an installation needs --replace, and moves it aside', () => {
    const data = copyOf(stopped, 'replaced');
    const refused = run('restore', backup, '--data', data);
    assertFailed(refused, 1, /already contains an installation .*add --replace/);
    assertSame(contentOf(data), contentOf(stopped));
    const before = contentOf(data);
    const result = restored(backup, '--replace', '--data', data);
    const [afterwards, aside] = [contentOf(data), contentOf(result.replaced)];
    for (const [name, content] of before) {
      const stays = name.startsWith('/drop/') || ['/usage', '/reserve', '/revocations'].includes(name);
      assert.ok((stays ? afterwards : aside).get(name) === content, name);
    }
  });

  test('used by a running appliance is refused, and the appliance continues', async () => {
    const refused = appliance.cli(['restore', backup, '--replace'], { anyStatus: true });
    assertFailed(refused, 1, /Wirewatch is using .*Stop it first. Nothing was changed/);
    assert.equal((await appliance.get('/v1/me')).status, 200);
    assert.ok(isLocked(join(appliance.data, 'lock')));
  });
});

test('keys, tokens and cursors keep working after a restore', async () => {
  const key = createKey(appliance.cli, 'agency', '7001');
  const [, id = '', secret = ''] = /_live_([a-z2-7]{12})_(.*)$/.exec(key) ?? [];
  const { access_token } = await granted(await postToken(appliance.serving(), inBody({ id, secret })));
  const since = new Date(Date.now() - 60_000).toISOString();
  const page = JSON.parse(await (await appliance.get(`/v1/detections/changes?since=${since}`, key)).text());
  await appliance.serving().stop();
  appliance.cli(['restore', backupOf(appliance.data, 'newest'), '--replace']);
  await appliance.restart();
  for (const credential of [key, access_token]) {
    const read = await appliance.get(`/v1/detections/changes?cursor=${page.next_cursor}`, credential);
    assert.equal(read.status, 200);
    assert.deepEqual(JSON.parse(await read.text()).data, []);
  }
});
