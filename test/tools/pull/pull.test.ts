/**
 * `wirewatch pull` against the real appliance: its copy ends up equal to the server's detections, however often pull is
 * killed (contract: Client procedures, Retry).
 */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { grouped } from '../../../src/counted.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { createKey, sharedAppliance } from '../../support/appliance.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { pulled } from '../../support/pull.ts';
import { onTerminal, terminalMissing } from '../../support/terminal.ts';

const MONTHS_BACKFILLED = 3;
const KILLS = 8;

const appliance = await sharedAppliance();
const subscriptions = ['--subscriptions', '7001,7002:text', '--seed', 'pull'];
const history = ['--backfill', 'history', '--windows', `${MONTHS_BACKFILLED * 30 * 144}`, '--rows', '600'];
appliance.cli(['generate', '--out', appliance.drop, ...subscriptions, ...history]);
appliance.cli(['generate', '--out', appliance.drop, ...subscriptions, '--windows', '4', '--rows', '300']);
// Two backfills and four windows of both exports.
await untilProcessed(10);

async function untilProcessed(files: number): Promise<void> {
  for (let turn = 0; turn < 600; turn += 1) {
    const status = JSON.parse(appliance.cli(['ingest', 'status', '--json']).stdout);
    const applied = status.files.filter(({ outcome }: { outcome: string }) => outcome === 'applied');
    if (applied.length === status.files.length && applied[0]?.number >= files) return;
    await sleep(100);
  }
  assert.fail('the exports were not applied');
}

/** Every detection of the period endpoint, by id, without members that a rescoring changes silently. */
async function periodWalk(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const { subscriptions } = JSON.parse(await (await appliance.get('/v1/me')).text());
  for (const { id, data_starts } of subscriptions) {
    for (const [content_type, start] of Object.entries(data_starts)) {
      if (typeof start !== 'string') continue;
      for (
        let day = start.slice(0, 10);
        day <= new Date().toISOString().slice(0, 10);
        day = plusDays(day, 20)
      ) {
        await walk(
          `from=${day}&to=${plusDays(day, 19)}&time_zone=UTC&limit=1000&subscription_id=${id}&content_type=${content_type}`,
          found,
        );
      }
    }
  }
  return found;
}

async function walk(query: string, found: Map<string, string>): Promise<void> {
  for (let cursor = ''; ; ) {
    const response = await appliance.get(`/v1/detections?${query}${cursor}`);
    assert.equal(response.status, 200, await response.clone().text());
    const page = JSON.parse(await response.text());
    for (const row of page.data) found.set(row.id, comparable(row));
    if (!page.has_more) return;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

function plusDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

function comparable(row: Record<string, unknown>): string {
  return JSON.stringify({ ...row, last_scored_at: '', exported_at: '' });
}

function copyIn(path: string): Map<string, string> {
  const db = openDatabase(path, 'read');
  const rows = db
    .prepare<unknown[], { id: string; version: number; body: string }>(
      'SELECT id, version, body FROM detections',
    )
    .all();
  const cursors = db.prepare('SELECT cursor FROM state').pluck().all();
  db.close();
  assert.equal(cursors.length, 1);
  assert.equal(typeof cursors[0], 'string', 'pull must have started to read the stream');
  for (const { id, version, body } of rows) {
    const detection = JSON.parse(body);
    assert.deepEqual([detection.id, detection.version, 'event' in detection], [id, version, false]);
  }
  return new Map(rows.map(({ id, body }) => [id, comparable(JSON.parse(body))]));
}

function pullArgs(folder: string, ...more: string[]): string[] {
  const keyFile = join(folder, 'key');
  writeFileSync(keyFile, `${appliance.key}\n`);
  return ['pull', '--base-url', appliance.serving().url, '--key-file', keyFile, ...more];
}

describe('pull', () => {
  test('a full copy equals the period walk of the server', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      const { code, stderr, stdout } = await pulled(pullArgs(folder, '--into', into, '--full'));
      assert.equal(code, 0, stderr);
      const walked = await periodWalk();
      const count = grouped(walked.size);
      // The change stream repeats deliveries since the newest finished window, which change nothing.
      assert.equal(
        stdout,
        `${count} detections added or changed in ${into}, which now has ${count}. Run the same command again to fetch later changes.\n`,
      );
      const again = JSON.parse((await pulled(pullArgs(folder, '--into', into, '--json'))).stdout);
      assert.deepEqual(again, { into, rows_read: 0, stored: 0, detections: walked.size });
      assert.ok(walked.size > 1000, `${walked.size} detections`);
      assert.deepEqual(copyIn(into), walked);
    }));

  test('killed at any moment and restarted, the copy ends equal', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      for (let kill = 0; kill < KILLS; kill += 1) {
        const program = runProgram(pullArgs(folder, '--into', into, '--full'));
        await sleep(150 + ((kill * 53) % 200));
        program.kill('SIGKILL');
        await program.ended;
      }
      const { code, stderr } = await pulled(pullArgs(folder, '--into', into, '--full'));
      assert.equal(code, 0, stderr);
      assert.deepEqual(copyIn(into), await periodWalk());
    }));

  test('a copy continues at its cursor and gets the changes since', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      assert.equal((await pulled(pullArgs(folder, '--into', into, '--full'))).code, 0);
      appliance.cli([
        'generate',
        '--out',
        appliance.drop,
        ...subscriptions,
        '--windows',
        '1',
        '--rows',
        '400',
        '--start',
        windowBefore(6),
      ]);
      await untilProcessed(12);
      const { code, stderr } = await pulled(pullArgs(folder, '--into', into));
      assert.equal(code, 0, stderr);
      assert.deepEqual(copyIn(into), await periodWalk());
    }));

  test('without --full a new copy starts at --since, by default now', () =>
    inFolder(async (folder) => {
      const all = join(folder, 'all.db');
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const args = pullArgs(folder, '--into', all, '--since', since);
      const first = await pulled(args);
      assert.deepEqual([first.code, first.stderr], [0, '']);
      assert.match(first.stdout, /Run the same command again/);
      assert.deepEqual(copyIn(all), await periodWalk());
      const second = await pulled(args);
      assert.equal(second.code, 0);
      assert.match(
        second.stderr,
        /^\S+all\.db continues where it stopped; --since is only for a new copy\.\n$/,
      );
      const none = join(folder, 'none.db');
      const begun = await pulled(pullArgs(folder, '--into', none));
      assert.equal(begun.code, 0);
      assert.match(begun.stdout, /This new copy starts with changes from now on\. .* --full\.\n$/);
      assert.equal(copyIn(none).size, 0);
      const again = await pulled(pullArgs(folder, '--into', none));
      assert.doesNotMatch(again.stdout, /--full/);
    }));

  test('--follow runs until it is stopped, and waits at the service, so that a change comes before a poll', () =>
    inFolder(async (folder) => {
      for (const [turn, poll] of [['--poll-seconds', '1'], []].entries()) {
        const into = join(folder, `lines ${turn}`);
        const program = runProgram(
          pullArgs(folder, '--into', into, '--follow', '--format', 'ndjson', ...poll),
        );
        await program.until('its place', () => lines(into) ?? undefined);
        const row = '--subscriptions 7001 --windows 1 --rows 5 --export newswire'.split(' ');
        const start = ['--seed', `follow ${turn}`, '--start', windowBefore(9 + turn)];
        appliance.cli(['generate', '--out', appliance.drop, ...row, ...start]);
        await program.until('five lines', () => ((lines(into)?.length ?? 0) >= 5 ? true : undefined));
        assert.equal(await program.stop(), 0, program.stderr());
      }
    }));

  test('--follow shows its progress on a terminal', { skip: terminalMissing }, () =>
    inFolder(async (folder) => {
      const args = pullArgs(folder, '--into', join(folder, 'copy.db'), '--follow');
      const program = runProgram(args, {}, { through: onTerminal });
      await program.until(
        'progress',
        () => program.stdout().includes('following the change stream') || undefined,
      );
      assert.equal(await program.stop(), 0, program.stdout());
    }),
  );

  test('--format ndjson writes each version once, even after a kill', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'changes.ndjson');
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const args = pullArgs(folder, '--into', into, '--format', 'ndjson', '--since', since);
      for (const delayMs of [180, 220, 260, 300]) {
        const program = runProgram(args);
        await sleep(delayMs);
        program.kill('SIGKILL');
        await program.ended;
      }
      const { code, stderr } = await pulled(args);
      assert.equal(code, 0, stderr);
      const versions = (lines(into) ?? []).map((line) => {
        const { id, version } = JSON.parse(line);
        return `${id} ${version}`;
      });
      assert.equal(new Set(versions).size, versions.length, 'a duplicate line');
      assert.equal(new Set(versions.map((version) => version.split(' ')[0])).size, (await periodWalk()).size);
    }));

  test('a key that reads too many streams is refused; one that reads fewer is not', () =>
    inFolder(async (folder) => {
      appliance.cli(['account', 'add', 'many', '--name', 'Many']);
      const ids = Array.from({ length: 11 }, (_, index) => `${8001 + index}`);
      for (const id of ids) appliance.cli(['subscription', 'add', id, '--account', 'many']);
      const key = createKey(appliance.cli, 'many', ids.join(','));
      const many = pullArgs(folder, '--into', join(folder, 'many.db'));
      writeFileSync(join(folder, 'key'), key);
      for (const more of [[], ['--full']]) {
        const { code, stderr } = await pulled([...many, ...more]);
        assert.equal(code, 1, stderr);
        assert.match(stderr, /22 streams; at most 20/);
      }
      writeFileSync(join(folder, 'key'), createKey(appliance.cli, 'many', ids.slice(0, 10).join(',')));
      const group = await pulled(many);
      assert.equal(group.code, 0, group.stderr);
    }));
});

/** The lines of the copy up to its noted length; null if none is noted yet. */
function lines(path: string): string[] | null {
  try {
    const { bytes, cursor } = JSON.parse(readFileSync(`${path}.place`, 'utf8'));
    if (cursor === null) return null;
    return readFileSync(path)
      .subarray(0, bytes)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    return null;
  }
}

function windowBefore(windows: number): string {
  return new Date((Math.floor(Date.now() / 600_000) - windows) * 600_000).toISOString();
}
