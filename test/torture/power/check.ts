/** Recovers an image as a start does, with the program's own code, and checks that everything reported still holds. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { listKeyStates } from '../../../src/auth/keys.ts';
import { openAccess } from '../../../src/auth/open-access.ts';
import { verifyCopy } from '../../../src/copy/source.ts';
import { streamName } from '../../../src/detection/content-type.ts';
import { recoverDetections } from '../../../src/log/recover.ts';
import { scrub } from '../../../src/log/scrub.ts';
import { createStreamCursors } from '../../../src/query/cursors.ts';
import { jsonBaseUrl } from '../../../src/query/detection-text.ts';
import { completeRestore } from '../../../src/store/complete-restore.ts';
import type { Database } from '../../../src/store/database.ts';
import { type DataFolder, dataFolder, ensureFolder } from '../../../src/store/folder.ts';
import { refuseForeignDatabases } from '../../../src/store/installation.ts';
import { readSecret } from '../../../src/store/secret.ts';
import { sourceAt } from '../../support/copy-at.ts';
import { QUIETLY } from '../../support/history.ts';
import { checkStreams, readStream } from '../../support/streams.ts';
import { filesBelow } from '../../support/test-folder.ts';
import { sha256Of } from '../scenario/model.ts';
import { isRemoved } from '../scenario/stages.ts';
import { BACKUP, DATA, SETTINGS } from '../scenario/world.ts';
import type { Known } from './known.ts';
import type { Story } from './story.ts';

/** Those of the follower. */
const STREAMS = [streamName(7001, 'text'), streamName(7001, 'image')];
const BASE_URL = jsonBaseUrl(SETTINGS.WIREWATCH_SERVER_BASE_URL);

/**
 * @param depth slow checks, for some images only: compare the database with the log, column by column; verify the backup
 * @returns `applied`: how many entries of the log the database lacked
 * @throws Error if something that had been reported to a client or operator no longer holds
 */
export async function checkImage(
  root: string,
  story: Story,
  known: Known,
  depth: { readonly scrub?: boolean; readonly backup?: boolean } = {},
) {
  const folder = dataFolder(join(root, DATA));
  checkFiles(join(folder.root, 'drop'), known);
  ensureFolder(folder);
  completeRestore(folder);
  refuseForeignDatabases(folder);
  checkKeys(folder, known);
  const { db, log, applied, madeAnew } = await recoverDetections({ folder, ...QUIETLY });
  log.close();
  try {
    checkStream(db, folder, known);
    checkDetections(db, folder, story, known);
    // During the removal of a stream, its head exists without its rows.
    if (known.removal !== 'asked for') checkStreams(db);
  } finally {
    db.close();
  }
  if (depth.scrub === true) {
    const { findings } = await scrub({ folder, ...QUIETLY });
    assert.deepEqual(findings, [], 'the database does not match its log');
  }
  if (depth.backup === true && known.hasBackup) {
    const { findings } = await verifyCopy(await sourceAt(join(root, BACKUP)), () => {});
    assert.deepEqual(findings, [], 'a complete copy is damaged');
  }
  return { applied, isRebuilt: madeAnew !== null };
}

/** Every dropped file must still exist in some folder. */
function checkFiles(drop: string, { dropped }: Known): void {
  const there = new Set(filesBelow(drop).map((path) => sha256Of(readFileSync(path))));
  for (const [name, content] of dropped)
    assert.ok(there.has(sha256Of(content)), `${name} was dropped, but is lost`);
}

function checkKeys(folder: DataFolder, { keys }: Known): void {
  const start = { create: true, kind: 'appliance', operation: { kind: 'start' } } as const;
  using db = openAccess(folder.root, { ...start, onRecovered: () => {} });
  const found = new Map(listKeyStates(db).map(({ id, revoked_at }) => [id, revoked_at !== null]));
  for (const [id, isRevoked] of keys) {
    assert.ok(found.has(id), `key ${id} was shown, but is lost`);
    assert.ok(!isRevoked || found.get(id) === true, `key ${id} was revoked, but works again`);
  }
}

/** The stream must start with the follower's rows, and its cursor must continue after them. */
function checkStream(db: Database, folder: DataFolder, { rows, cursor }: Known): void {
  const all = readStream(db, { streams: STREAMS, baseUrl: BASE_URL });
  if (cursor === null) return;
  assert.ok(all.startsWith(rows), 'rows that a client received are missing or changed');
  const from = createStreamCursors(readSecret(folder)).decode(cursor).position;
  const rest = readStream(db, { streams: STREAMS, baseUrl: BASE_URL, from });
  assert.ok(
    all === (rest === '' ? rows : `${rows},${rest}`),
    "a client's cursor does not continue after its last row",
  );
}

/** Every file in the archive must be applied completely, and every detection must be from a dropped file. */
function checkDetections(db: Database, folder: DataFolder, { files }: Story, known: Known): void {
  const ids = new Set(db.prepare<[], string>('SELECT id FROM detection').pluck().all());
  const archive = join(folder.root, 'drop', 'archive');
  for (const path of filesBelow(archive)) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const content = known.dropped.get(name);
    if (content === undefined) continue;
    assert.ok(readFileSync(path).equals(content), `${relative(archive, path)} is not the dropped content`);
    for (const id of files.get(name) ?? [])
      assert.ok(
        ids.has(id) || (isRemoved(id) && known.removal !== 'not asked for'),
        `${relative(archive, path)} is in the archive, but ${id} does not exist`,
      );
  }
  const dropped = new Set([...known.dropped.keys()].flatMap((name) => files.get(name) ?? []));
  for (const id of ids)
    assert.ok(
      dropped.has(id) && !(isRemoved(id) && known.removal === 'done'),
      `${id} exists, but should not`,
    );
}
