/** Checks that must hold after each stage: follower, fresh client and model agree; so do files, log and database. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Detection } from '../../support/appliance.ts';
import { assertSameList, reading } from '../../support/database-content.ts';
import { isErrorLine, isIdle, loggedDestinations, loggedFiles } from '../../support/installation-state.ts';
import { filesBelow } from '../../support/test-folder.ts';
import { FOLDERS, type Model, sha256Of, type Version } from './model.ts';
import type { World } from './world.ts';

/** Alerts that neither the scenario nor a crash may cause. */
const NEVER = ['log damaged', 'end of log lost'];
const DAMAGED = 'database damaged';

/**
 * Starts the appliance once more, unless it runs, and compares what it serves with the model.
 *
 * @param reference the rows of the run without faults; null if this is that run
 * @param options.mayRebuild whether a fault may look like a damaged detections.db, which is then rebuilt from the log
 * @param options.mayReorder whether files may have been read in another order: then only compare within each stream
 * @throws AssertionError
 */
export async function checkWorld(
  world: World,
  model: Model,
  reference: readonly Detection[] | null,
  { mayRebuild = false, mayReorder = false } = {},
): Promise<void> {
  for (const [name, copy] of Object.entries({ BACKUP: world.backup, PLACE: world.place }))
    if (existsSync(join(copy, 'installation.json'))) await mustEnd(world, ['verify', name]);
  await world.ensureRunning();
  await world.until('ingest to be idle', () => isIdle(world));
  await world.follow();
  const { rows } = await world.fresh();
  const inOrder = <Row extends { readonly id: string }>(list: readonly Row[]) =>
    mayReorder ? byStream(list) : list;
  assertSameList(
    inOrder(rows.map(versionOf)),
    inOrder(model.stream),
    'a fresh client must have the rows of the model',
  );
  if (reference !== null)
    assertSameList(inOrder(rows), inOrder(reference), 'every row must be as in the run without faults');
  checkFollower(world.copy.rows, rows);
  await checkKeys(world, model);
  const log = world.logs.at(-1)?.() ?? [];
  await world.stop();
  const complaints = log.filter(isErrorLine);
  assert.deepEqual(complaints, [], 'the last start must log no errors');
  const never = mayRebuild ? NEVER : [...NEVER, DAMAGED];
  const opened = world.logs.flatMap((lines) => lines().filter(({ alert }) => never.includes(String(alert))));
  assert.deepEqual(opened, [], 'no unexpected alerts');
  checkFiles(world, model);
  checkRemoved(world);
  await mustEnd(world, ['verify']);
}

/** Groups rows by stream, and keeps the order within each. */
function byStream<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  const streamOf = ({ id }: Row) => id.split('.', 2).join('.');
  return rows.toSorted((a, b) => streamOf(a).localeCompare(streamOf(b)));
}

/** Ignores rows of a removed subscription, which only the follower still has. */
function checkFollower(copied: readonly Detection[], rows: readonly Detection[]): void {
  const streams = new Set(rows.map(({ subscription_id }) => subscription_id));
  const own = copied.filter(({ subscription_id }) => streams.has(subscription_id));
  assertSameList(own, rows, 'the follower must have the rows of a fresh client, each version once');
}

function versionOf({ id, version, strength, event }: Detection): Version {
  assert.equal(event, version === 1 ? 'created' : 'updated');
  return { id, version, score: strength.score };
}

async function checkKeys(world: World, model: Model): Promise<void> {
  for (const [label, isValid] of model.keys) {
    const key = world.keys[label];
    // A command that was killed after its commit has not printed the key.
    if (key === undefined) continue;
    const { status } = await world.get('/v1/me', key);
    assert.equal(status, isValid ? 200 : 401, `the key "${label}"`);
  }
}

/** Every dropped file is in its folder exactly once, and nothing else is. */
function checkFiles({ drop, data }: World, { files }: Model): void {
  const found = FOLDERS.flatMap((folder) =>
    filesBelow(join(drop, folder))
      .filter((path) => !path.endsWith('.reason.json'))
      .map((path) => ({ folder, path })),
  );
  const left = [...files];
  for (const { folder, path } of found) {
    const sha256 = sha256Of(readFileSync(path));
    const at = left.findIndex((file) => file.sha256 === sha256 && file.folders.includes(folder));
    assert.ok(at >= 0, `${path} was not dropped, or exists twice`);
    left.splice(at, 1);
  }
  const missing = left.filter(({ folders }) => !folders.includes('deleted'));
  assert.deepEqual(missing, [], 'every dropped file must exist');
  assert.deepEqual(readdirSync(drop).sort(), ['.taken', ...FOLDERS].sort());
  const paths = found.map(({ path }) => path);
  checkRecords(data, drop, paths);
}

/** A subscription that was removed has no rows for the next owner of its number. */
function checkRemoved({ data }: World): void {
  const idsOf = (name: string, sql: string) =>
    reading(join(data, name), (db) => db.prepare<[], number>(sql).pluck().all());
  const known = idsOf('access.db', 'SELECT id FROM subscription');
  const stored = idsOf('detections.db', 'SELECT DISTINCT subscription_id FROM stream WHERE removed = 0');
  const left = stored.filter((id) => !known.includes(id));
  assert.deepEqual(left, [], 'removed subscriptions must have no rows');
}

/** The last record of each file must name its path, and no content may be applied twice. */
function checkRecords(data: string, drop: string, found: readonly string[]): void {
  const lying = found.map((path) => path.slice(drop.length + 1));
  const stated = loggedDestinations(data);
  assert.deepEqual(lying.toSorted(), stated.toSorted(), 'each file must be where its record says');
  const last = new Map(loggedFiles(data).map((record) => [record.number, record])).values();
  const applied = [...last].filter(({ outcome }) => outcome === 'applied').map(({ sha256 }) => sha256);
  assert.equal(new Set(applied).size, applied.length, 'no content may be applied twice');
}

async function mustEnd(world: World, args: readonly string[]): Promise<void> {
  const { code, stderr, stdout } = await world.command(args);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}${stdout}`);
}
