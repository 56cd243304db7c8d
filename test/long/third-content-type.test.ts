/**
 * The rooms know no content type by name: a copy of the project whose field table has a third one compiles, ingests its
 * export, and serves, shows and removes its detections. Only src/detection is changed.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DetectionsPage, Overview } from '../../src/admin/console/api.ts';
import { DAY_MS, formatMs, formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import { createKey, startAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { readerOf } from '../support/lab.ts';
import { copyProject } from '../support/project-copy.ts';
import { testFolder } from '../support/test-folder.ts';

/** All that a content type is; a lab says besides how many rows its history has. */
const CHANGES: readonly [file: string, find: string, replace: string][] = [
  ['detection/content-type.ts', "['text', 'image']", "['text', 'image', 'video']"],
  ['detection/content-type.ts', "['newswire', 'imagewire']", "['newswire', 'imagewire', 'videowire']"],
  ['detection/content-type.ts', "  imagewire: 'image',", "  imagewire: 'image',\n  videowire: 'video',"],
  [
    'detection/content-type.ts',
    '  image: {',
    "  video: { export: 'videowire', match_type: 'frame_fingerprint', id_letter: 'v', score_max: 10, has_own_address: false },\n  image: {",
  ],
  ['detection/band.ts', '  image: {', "  video: { lowest: 'low', thresholds: [5] },\n  image: {"],
  ['tools/lab/feed.ts', 'imagewire: 180', 'imagewire: 180, videowire: 0'],
];

test('a third content type is one more line in each table of src/detection', async () => {
  process.env.WIREWATCH_PROGRAM = programWithVideo(testFolder());
  await drive();
});

/** @returns the path of a command that runs the changed program */
function programWithVideo(folder: string): string {
  const copy = copyProject(join(folder, 'copy'));
  for (const [file, find, replace] of CHANGES) {
    const path = join(copy, 'src', file);
    const source = readFileSync(path, 'utf8');
    assert.equal(source.split(find).length, 2, `${file}: ${find}`);
    writeFileSync(path, source.replace(find, replace));
  }
  const options = { cwd: copy, stdio: 'pipe', encoding: 'utf8' } as const;
  writeFileSync(join(copy, 'src.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src'] }));
  const check = ['node_modules/typescript/bin/tsc', '--noEmit', '--project', 'src.json'];
  execFileSync(process.execPath, check, options);
  execFileSync(process.execPath, ['build/bundle.mjs'], options);
  const program = join(folder, 'wirewatch');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${copy}/dist/main.cjs' "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

async function drive(): Promise<void> {
  await using appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
  appliance.cli(['subscription', 'add', '7003', '--account', 'agency']);
  const key = createKey(appliance.cli, 'agency', '7003');
  // By a name that test/support/checked-fetch.ts does not know: its document has two content types.
  const url = appliance.serving().url.replace('127.0.0.1', 'localhost');
  const { read } = readerOf(url, key);
  const windowMs = nextWindowMs();
  const row = newRow({ subscription_id: 7003, strength_score: 7.5 });
  const id = `v.7003.${row.source_internal_id}.${row.article_id}`;
  const nameOf = (startMs: number) => `videowire.${formatWindowStart(startMs)}.ndjson`;
  await appliance.dropped(nameOf(windowMs), ndjson([row]));
  const better = { ...row, strength_score: 11 };
  const higher = await appliance.dropped(nameOf(nextWindowMs()), ndjson([better]));
  assert.equal(higher.errors_total, 1, 'the greatest score is that of the type');

  type Page = { data: { id: string; content_type: string; match_type: string; strength: object }[] };
  const idsOf = (list: readonly { readonly id: string }[]) => list.map((one) => one.id);
  const since = formatMs(Date.now() - DAY_MS);
  const stream: Page = await read(`/v1/detections/changes?since=${since}&content_type=video`);
  const shown = stream.data.map(({ match_type, strength, ...one }) => [one.id, match_type, strength]);
  assert.deepEqual(shown, [[id, 'frame_fingerprint', { score: 7.5, band: 'medium' }]]);
  const [from, to] = [formatMs(windowMs), formatMs(windowMs + WINDOW_MS)];
  const period: Page = await read(`/v1/detections?from=${from}&to=${to}&content_type=video`);
  assert.deepEqual(idsOf(period.data), [id]);
  assert.equal((await read(`/v1/detections/${id}`)).content_type, 'video');

  const ui = await openConsole(appliance);
  const overview = await ui.get<Overview>('overview');
  assert.equal(overview.database.versions, 1);
  assert.deepEqual(Object.keys(overview.exports), ['newswire', 'imagewire', 'videowire']);
  const { detections } = await ui.get<DetectionsPage>('detections/live?content_type=video');
  assert.deepEqual(idsOf(detections), [id]);

  appliance.cli(['verify']);
  appliance.cli(['subscription', 'remove', '7003', '--yes']);
  assert.equal((await ui.get<Overview>('overview')).database.versions, 0);
}
