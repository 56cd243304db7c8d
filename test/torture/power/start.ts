/** Starts the real program on an image: a client continues from its cursor, and every dropped file is read. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs, HOUR_MS } from '../../../src/time.ts';
import { contentOf, fileName, idOf, newRow, nextWindowMs } from '../../support/export-files.ts';
import { filesWaiting, isErrorLine } from '../../support/installation-state.ts';
import { dropRecorded } from '../io/record.ts';
import { isRemoved } from '../scenario/stages.ts';
import { DATA } from '../scenario/world.ts';
import { Follower } from './follower.ts';
import type { Known } from './known.ts';
import { runRecorded, type Story } from './story.ts';

/** @param record the file for the record; @throws Error if something that a client had received no longer holds */
export async function startOn(
  image: string,
  { files, key, library }: Story,
  known: Known,
  record: string,
): Promise<void> {
  const recording = { library, record, root: image };
  writeFileSync(record, '');
  const program = runRecorded(['serve', '--port', '0'], recording);
  try {
    const url = await program.url();
    const drop = join(image, DATA, 'drop');
    if (await isPaused(url)) await runRecorded(['ingest', 'resume'], recording).ended;
    // Without a known key, the subscription may not exist yet, and rows would be skipped.
    const added = known.keys.size === 0 ? '' : dropNew(record, drop, files);
    // One that a reset had taken is in .taken/, with a number before its name.
    const held = () => program.log().flatMap(({ msg, file }) => (msg === 'file held' ? String(file) : []));
    const isHeld = (name: string) => held().some((one) => name === one || name.endsWith(`.${one}`));
    await program.until('the files to be read', () => filesWaiting(drop).every(isHeld) || undefined);
    if (known.cursor !== null)
      await followOn(url, key, { ...known, cursor: known.cursor }, { files, held: held(), added });
    assert.equal(await program.stop(), 0, 'the program failed to stop');
    assert.deepEqual(program.log().filter(isErrorLine), [], 'a power cut must not cause errors in the log');
  } finally {
    await program.kill();
  }
}

async function isPaused(url: string): Promise<boolean> {
  const health: { alerts: { paused: number } } = JSON.parse(await (await fetch(`${url}/v1/health`)).text());
  return health.alerts.paused === 1;
}

/** @returns the id of its detection */
function dropNew(record: string, drop: string, files: Story['files']): string {
  const row = newRow();
  const name = fileName('newswire', nextWindowMs());
  dropRecorded(record, {
    draft: `${drop}-draft`,
    path: join(drop, name),
    content: contentOf('ndjson', [row]),
  });
  files.set(name, [idOf(row)]);
  return idOf(row);
}

async function followOn(
  url: string,
  key: string,
  { rows, cursor, dropped }: Known & { readonly cursor: string },
  { files, held, added }: { files: Story['files']; held: readonly string[]; added: string },
): Promise<void> {
  const all = await Follower.readAll(url, key, `since=${formatMs(Date.now() - HOUR_MS)}`);
  const rest = await Follower.readAll(url, key, `cursor=${cursor}`);
  assert.ok([rows, ...rest].join() === all.join(), 'a client does not continue where it stopped');
  const stream: { id: string }[] = JSON.parse(`[${all.join()}]`);
  const ids = new Set(stream.map(({ id }) => id));
  assert.ok(ids.has(added), 'a file dropped after the power cut does not reach the stream');
  for (const name of dropped.keys())
    for (const id of held.includes(name) ? [] : (files.get(name) ?? []))
      assert.ok(ids.has(id) || isRemoved(id), `${name} was read, but ${id} is not in the stream`);
}
