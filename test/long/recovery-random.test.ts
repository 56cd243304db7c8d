/**
 * Random operations and kills; copies of detections.db are taken at any time and later put in its place, with or
 * without a leftover write-ahead log. The database must end up as before, column by column, and as in an undisturbed
 * appliance.
 *
 * The seed is fixed; WIREWATCH_TEST_SEED sets another one, WIREWATCH_TEST_RUNS the number of runs.
 */

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { openDatabase } from '../../src/store/database.ts';
import { formatMs, formatWindowStart } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { assertSameContent, contentOfDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { contentOf, fileName, nextWindowMs, type Row } from '../support/export-files.ts';
import { untilIdle } from '../support/installation-state.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { until } from '../support/until.ts';

const SEED = Number(process.env.WIREWATCH_TEST_SEED ?? 1);
const RUNS = Number(process.env.WIREWATCH_TEST_RUNS ?? 1);
const STEPS = 14;
const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0', WIREWATCH_SERVER_BASE_URL: 'https://api.example' };

type Step =
  | { readonly kind: 'drop'; readonly name: string; readonly content: Buffer }
  /** A window fails, its mended file is held, and the operator has it read. */
  | { readonly kind: 'mend'; readonly startMs: number; readonly name: string; readonly content: Buffer }
  | { readonly kind: 'replay' };

/** Rows of few detections, so that most occur repeatedly. Photos have fixed URLs. */
function rowsOf(prng: Prng, startMs: number, isImage: boolean): Row[] {
  return Array.from({ length: 1 + prng.below(8) }, () => ({
    subscription_id: isImage ? 7001 : prng.pick([7001, 7002]),
    source_internal_id: 1 + prng.below(3),
    article_id: 1 + prng.below(6),
    first_detected_at: formatMs(startMs - prng.below(5) * 60_000),
    last_scored_at: formatMs(startMs + prng.below(3) * 60_000),
    exported_at: formatMs(startMs + prng.below(3) * 60_000),
    strength_score: prng.below(99),
    ...(isImage ? { source_image_url: 'https://photos.example.org/1.jpg' } : {}),
  }));
}

function stepOf(prng: Prng, index: number): Step {
  const startMs = nextWindowMs();
  const exportName = prng.chance(0.3) ? 'imagewire' : 'newswire';
  const rows = rowsOf(prng, startMs, exportName === 'imagewire');
  const form = prng.pick(['ndjson', 'ndjson.gz', 'csv.zst'] as const);
  const content = contentOf(form, rows);
  const name = fileName(exportName, startMs, form);
  const chance = prng.below(10);
  if (chance === 0) return { kind: 'replay' };
  if (chance === 1) return { kind: 'drop', name, content: Buffer.from('broken') };
  if (chance === 2) return { kind: 'drop', name: `${exportName}.backfill-${index}.${form}`, content };
  if (chance === 3)
    return {
      kind: 'mend',
      startMs,
      name: fileName('newswire', startMs),
      content: contentOf('ndjson', rowsOf(prng, startMs, false)),
    };
  return { kind: 'drop', name, content };
}

async function carryOut(installation: Installation, serving: Serving, step: Step): Promise<void> {
  const drop = async (name: string, content: Buffer) => {
    putFile(installation.drop, name, content);
    await untilIdle(installation, serving);
  };
  switch (step.kind) {
    case 'drop':
      return drop(step.name, step.content);
    case 'mend':
      await drop(step.name, Buffer.from('broken'));
      putFile(installation.drop, step.name, step.content);
      installation.cli(['window', 'reset', 'newswire', formatWindowStart(step.startMs)]);
      return untilIdle(installation, serving);
    case 'replay':
      installation.cli(['ingest', 'replay'], { anyStatus: true });
      return untilIdle(installation, serving);
  }
}

/**
 * Copies the database, also of a running appliance. No checkpoint may run during the copy: it would mix two states.
 *
 * @returns the folder of the copy
 */
function copyDatabase({ data }: Installation, name: string): string {
  const folder = join(data, '..', 'copies', name);
  mkdirSync(folder, { recursive: true });
  // Not copyFileSync(), which never ends if the file is truncated during the copy.
  const read = () =>
    ['', '-wal'].map((end) => {
      const path = join(data, `detections.db${end}`);
      return existsSync(path) ? readFileSync(path) : null;
    });
  let files = read();
  for (let again = read(); !isDeepStrictEqual(again, files); again = read()) files = again;
  for (const [index, content] of files.entries())
    if (content !== null) writeFileSync(join(folder, `detections.db${['', '-wal'][index]}`), content);
  return folder;
}

/** Replaces the database by a copy; sometimes the -wal file stays, as if an operator copied the file by hand. */
function replaceDatabase({ data }: Installation, copy: string, prng: Prng): void {
  const ends = prng.pick([['', '-wal', '-shm'], [''], ['', '-shm']]);
  for (const end of ends) {
    const path = join(data, `detections.db${end}`);
    rmSync(path, { force: true });
    const copied = join(copy, `detections.db${end}`);
    if (existsSync(copied)) copyFileSync(copied, path);
  }
}

/** Restores the copy and starts, sometimes with a few kills during the recovery. @returns the idle run */
async function recoverFrom(installation: Installation, copy: string, prng: Prng): Promise<Serving> {
  replaceDatabase(installation, copy, prng);
  for (let kills = prng.below(3); kills > 0; kills -= 1) {
    const starting = installation.begin();
    await sleep(150 + prng.below(400));
    await starting.kill();
  }
  const serving = await installation.serve();
  // Before that, a reader would use the leftover write-ahead log of another file.
  const headers = { authorization: `Bearer ${installation.key}` };
  await until('it is served', async () => (await fetch(`${serving.url}/v1/me`, { headers })).status === 200);
  await untilIdle(installation, serving);
  return serving;
}

const SELECT_TEXTS = `
  SELECT coalesce(rescored.body, stream_row.body) AS body
  FROM detection JOIN stream_row ON stream_row.place = detection.place
    LEFT JOIN rescored ON rescored.place = detection.place
  ORDER BY id`;

/** The visible members of each detection. */
function visible(data: string): unknown[] {
  const db = openDatabase(join(data, 'detections.db'), 'read');
  try {
    const texts = db.prepare<[], string>(SELECT_TEXTS).pluck().all();
    return texts.map((text) => {
      const { last_scored_at: _, exported_at: __, event: ___, ...detection } = JSON.parse(text);
      return detection;
    });
  } finally {
    db.close();
  }
}

for (let run = 0; run < RUNS; run += 1) {
  test(`whatever happened since a copy, it is rebuilt equal (seed ${SEED + run})`, {
    timeout: 300_000,
  }, async () => {
    const prng = seededPrng(`put back ${SEED + run}`, 'steps');
    const installation = createInstallation(SETTINGS);
    const undisturbed = createInstallation(SETTINGS);
    const content = () => withoutOpenDelivery(contentOfDetections(installation.data));
    try {
      const steps = Array.from({ length: STEPS }, (_, index) => stepOf(prng, index));
      let serving = await installation.serve();
      const copies: string[] = [];
      for (const [index, step] of steps.entries()) {
        if (prng.chance(0.4)) copies.push(copyDatabase(installation, `${index}`));
        await carryOut(installation, serving, step);
        if (copies.length === 0 || !prng.chance(0.15)) continue;
        // In the middle of the run, so that later operations build on the rebuilt database.
        await (prng.chance(0.5) ? serving.kill() : serving.stop());
        const before = content();
        serving = await recoverFrom(installation, prng.pick(copies), prng);
        assertSameContent(content(), before, `after step ${index}`);
      }
      await serving.stop();
      const before = content();
      for (const copy of [join(installation.data, 'nothing'), ...copies.slice(-2)]) {
        serving = await recoverFrom(installation, copy, prng);
        await serving.stop();
        assertSameContent(content(), before, existsSync(copy) ? copy : 'from nothing');
      }
      assert.equal(installation.cli(['verify', '--json']).status, 0);

      serving = await undisturbed.serve();
      for (const step of steps) await carryOut(undisturbed, serving, step);
      await serving.stop();
      assert.deepEqual(
        visible(installation.data),
        visible(undisturbed.data),
        'the result must equal that of an undisturbed appliance',
      );
    } finally {
      installation.remove();
      undisturbed.remove();
    }
  });
}
