/**
 * `wirewatch pull` against the real appliance: its copy ends up equal to the server's detections, however often pull is
 * killed (contract: Client procedures, Retry).
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { grouped } from '../../../src/counted.ts';
import { unlessError } from '../../../src/refused.ts';
import { formatMs, HOUR_MS, WINDOW_MS } from '../../../src/time.ts';
import { createKey, sharedAppliance } from '../../support/appliance.ts';
import { assertFailed, runBeside, succeedBeside } from '../../support/command.ts';
import { fresh } from '../../support/followers.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { pullArgs, sqlIn } from '../../support/pull.ts';
import { onTerminal, terminalMissing } from '../../support/terminal.ts';
import { words } from '../../support/words.ts';

const KILLS = 8;
const SINCE = formatMs(Date.now() - HOUR_MS);

const appliance = await sharedAppliance();
// Three months, and four windows.
await generated('--backfill', 'history', '--windows', `${3 * 30 * 144}`, '--rows', '600');
await generated('--windows', '4', '--rows', '300');

/** Drops sample files, and waits until they are applied. */
async function generated(...options: string[]): Promise<void> {
  const generate = `generate --subscriptions 7001,7002:text --seed pull --json --out ${appliance.drop}`;
  for (const { file } of JSON.parse(appliance.cli([...words(generate), ...options]).stdout)) {
    const line = await appliance.processed(basename(file));
    assert.equal(line.msg, 'file applied', JSON.stringify(line));
  }
}

/** Without the members that a rescoring changes silently. */
const comparable = (row: object) => JSON.stringify({ ...row, last_scored_at: '', exported_at: '' });

/** Every detection of the change stream, by id. */
async function served(): Promise<Map<string, string>> {
  const { copy } = await fresh(async (path) => JSON.parse(await (await appliance.get(path)).text()));
  return new Map([...copy].map(([id, row]) => [id, comparable(row)]));
}

function copyIn(path: string): Map<string, string> {
  const [state, ...more] = sqlIn(path, 'SELECT cursor FROM state');
  assert.deepEqual([typeof state?.cursor, more], ['string', []], 'pull must have started to read the stream');
  const rows = sqlIn(path, 'SELECT id, version, body FROM detections ORDER BY id');
  return new Map(
    rows.map(({ id, version, body }) => {
      const detection = JSON.parse(`${body}`);
      assert.deepEqual([detection.id, detection.version, 'event' in detection], [id, version, false]);
      return [`${id}`, comparable(detection)];
    }),
  );
}

/** Runs `use` with a function that gives the arguments for a new copy. */
const inOwnFolder = (use: (into: string, args: (...more: string[]) => string[]) => Promise<void>) =>
  inFolder((folder) => {
    const into = join(folder, 'copy');
    return use(into, (...more) => pullArgs(appliance, folder, '--into', into, ...more));
  });

test('a full copy equals the server', () =>
  inOwnFolder(async (into, args) => {
    const { stdout } = await succeedBeside(args('--full'));
    const all = await served();
    assert.ok(all.size > 1000, `${all.size} detections`);
    // The change stream repeats deliveries since the newest finished window, which change nothing.
    assert.equal(
      stdout,
      `${grouped(all.size)} detections added or changed in ${into}, which now has ${grouped(all.size)}. Run the same command again to fetch later changes.\n`,
    );
    const again = JSON.parse((await succeedBeside(args('--json'))).stdout);
    assert.deepEqual(again, { into, rows_read: 0, stored: 0, detections: all.size });
    assert.deepEqual(copyIn(into), all);
  }));

test('killed at any moment and restarted, the copy ends equal', () =>
  inOwnFolder(async (into, args) => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      const program = runProgram(args('--full'));
      await sleep(150 + ((kill * 53) % 200));
      await program.kill();
    }
    await succeedBeside(args('--full'));
    assert.deepEqual(copyIn(into), await served());
  }));

test('a copy continues at its cursor and gets the changes since', () =>
  inOwnFolder(async (into, args) => {
    await succeedBeside(args('--full'));
    await generated('--windows', '1', '--rows', '400', '--start', windowBefore(6));
    await succeedBeside(args());
    assert.deepEqual(copyIn(into), await served());
  }));

test('without --full a new copy starts at --since, by default now', async () => {
  await inOwnFolder(async (into, args) => {
    const first = await succeedBeside(args('--since', SINCE));
    assert.equal(first.stderr, '');
    assert.match(first.stdout, /Run the same command again/);
    assert.deepEqual(copyIn(into), await served());
    const { stderr: told } = await succeedBeside(args('--since', SINCE));
    assert.match(told, /^wirewatch: \S+copy continues where it stopped; --since is only for a new copy\.\n$/);
  });
  await inOwnFolder(async (into, args) => {
    const { stdout } = await succeedBeside(args());
    assert.match(stdout, /This new copy starts with changes from now on\. .* --full\.\n$/);
    assert.equal(copyIn(into).size, 0);
    assert.doesNotMatch((await succeedBeside(args())).stdout, /--full/);
  });
});

for (const [at, poll] of [['--poll-seconds', '1'], []].entries())
  test(`--follow ${poll.join(' ')} runs until it is stopped, and gets a change`, () =>
    inOwnFolder(async (into, args) => {
      await using program = runProgram(args('--follow', '--format', 'ndjson', ...poll));
      await program.until('its place', () => lines(into) ?? undefined);
      const window = ['--windows', '1', '--export', 'newswire', '--start', windowBefore(9 + at)];
      await generated('--rows', '5', '--seed', `follow ${at}`, ...window);
      await program.until('five lines', () => ((lines(into)?.length ?? 0) >= 5 ? true : undefined));
    }));

test('--follow shows its progress on a terminal', { skip: terminalMissing }, () =>
  inOwnFolder(async (_, args) => {
    await using program = runProgram(args('--follow'), {}, { through: onTerminal });
    const isShown = () => program.stdout().includes('following the change stream') || undefined;
    await program.until('progress', isShown);
  }),
);

test('--format ndjson writes each version once, even after a kill', () =>
  inOwnFolder(async (into, args) => {
    const lined = args('--format', 'ndjson', '--since', SINCE);
    for (const delayMs of [180, 220, 260, 300]) {
      const program = runProgram(lined);
      await sleep(delayMs);
      await program.kill();
    }
    await succeedBeside(lined);
    const rows = (lines(into) ?? []).map((line) => JSON.parse(line));
    const versions = new Set(rows.map(({ id, version }) => `${id} ${version}`));
    assert.equal(versions.size, rows.length, 'a duplicate line');
    assert.equal(new Set(rows.map(({ id }) => id)).size, (await served()).size);
  }));

test('a key that reads too many streams is refused; one that reads fewer is not', () =>
  inFolder(async (folder) => {
    appliance.cli(['account', 'add', 'many', '--name', 'Many']);
    const ids = Array.from({ length: 11 }, (_, index) => `${8001 + index}`);
    for (const id of ids) appliance.cli(['subscription', 'add', id, '--account', 'many']);
    const argsFor = (count: number, ...more: string[]) => {
      const key = createKey(appliance.cli, 'many', ids.slice(0, count).join(','));
      return pullArgs({ ...appliance, key }, folder, '--into', join(folder, 'many.db'), ...more);
    };
    for (const more of [[], ['--full']])
      assertFailed(await runBeside(argsFor(11, ...more)), 1, /22 streams; at most 20/);
    await succeedBeside(argsFor(10));
  }));

/** The lines of the copy up to its noted length; null if none is noted yet. */
function lines(path: string): string[] | null {
  const place = unlessError('null', () => readFileSync(`${path}.place`, 'utf8'));
  const { bytes = 0, cursor = null } = JSON.parse(place) ?? {};
  if (cursor === null) return null;
  const text = readFileSync(path).subarray(0, bytes).toString('utf8');
  return text.split('\n').filter((line) => line !== '');
}

const windowBefore = (windows: number): string =>
  formatMs((Math.floor(Date.now() / WINDOW_MS) - windows) * WINDOW_MS);
