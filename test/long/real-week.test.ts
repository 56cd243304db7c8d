/**
 * A week of a site, from Thursday, 22 October 2026, to the Wednesday after it, in minutes: two machines with small disks, a
 * place for the copy that transactions wait for, an export every ten minutes, three clients. WEEK says what happens, by
 * UTC, and ALERTS which alerts must be open meanwhile, and no others.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { EXPORT_NAMES } from '../../src/detection/content-type.ts';
import { readLogMarkOf } from '../../src/store/log-mark.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import * as site from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { logOf } from '../support/copy-at.ts';
import {
  assertSameContent,
  checkMadeAnew,
  contentOfDetections,
  withoutOpenDelivery,
} from '../support/database-content.ts';
import { contentOf, fileName, ndjson, type Row } from '../support/export-files.ts';
import { Follower } from '../support/followers.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { without } from '../support/installed.ts';
import { readerOf } from '../support/lab.ts';
import { createMachinePair } from '../support/machine-pair.ts';
import { movingClock } from '../support/preload.ts';
import type { LogLine } from '../support/program.ts';
import { sqlIn } from '../support/pull.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { testFolder } from '../support/test-folder.ts';
import { eventually } from '../support/until.ts';
import * as week from '../support/week.ts';
import { Model, type Newest } from '../torture/scenario/model.ts';

const at = (time: string) => Date.parse(`2026-10-${time.replace(' ', 'T')}:00Z`);
const [BEGIN_MS, END_MS, HALF_HOUR_MS] = [at('22 00:00'), at('29 00:00'), 30 * MINUTE_MS];
const FOREVER = Number.POSITIVE_INFINITY;

/** When, what happens, and what must be seen at once. The day is one of October. */
const WEEK: Readonly<Record<string, () => Promise<void>>> = {
  async '22 12:00 keys are made: one until Monday noon, one to be revoked, one to be rotated'() {
    for (const name of ['guest', 'leaving', 'rotating'])
      keep(name, site.createKey(writer.cli, 'agency', '7001'));
    writer.cli(['key', 'set', idOf('guest'), '--expires', formatMs(at('26 12:00'))]);
    keyOf('guest').untilMs = at('26 12:00');
  },
  async '23 10:00 wrong files: no export file, a window with a bad row, a damaged second file for a window'() {
    const [good, again] = [fileOf('23 09:50', [7001]), fileOf('23 09:00', [7001])];
    const bad = ndjson(good.rows.map((row) => ({ ...row, strength_score: 101 })));
    const name = fileName('newswire', at('23 09:50'));
    await deliver([{ ...again, name: 'notes.txt' }, 'refused']);
    await deliver([{ ...again, content: Buffer.from('}') }, 'failed']);
    await deliver([{ ...good, name, content: Buffer.from(bad) }, 'failed']);
  },
  async '23 12:00 the failed window is reset: the corrected file is read'() {
    writer.cli(['window', 'reset', 'newswire', '20261023T0950Z']);
    await settle(waiting.splice(0));
  },
  '23 14:00 the disk of the writer is full': () => fill(),
  async '23 14:30 a key is revoked on the full disk'() {
    writer.cli(['key', 'revoke', idOf('leaving'), '--yes']);
    keyOf('leaving').untilMs = at('23 14:30');
  },
  '23 15:00 there is room again: what waited is read': () => makeRoom(),
  async '24 08:00 a backfill, with an earlier time of a known detection'() {
    const [id, { row }] = newest('t.7001.');
    const first_detected_at = '2026-09-15T10:00:00Z';
    await deliver([backfill('june', '2026-06-01', 300, { ...row, first_detected_at })]);
    assert.equal((await reader(writer).read(`/v1/detections/${id}`)).first_detected_at, first_detected_at);
  },
  async '24 10:00 a customer is removed: nothing of him is left on either machine, or in the copy'() {
    writer.cli(['account', 'remove', 'other', '--yes']);
    keyOf('other').untilMs = at('24 10:00');
    subscriptions = [7001, 7002];
    model.remove(8001);
    await eventually(async () => {
      const { stdout } = spawnSync('grep', ['-rlF', 't.8001.', one.data, other.data], { encoding: 'utf8' });
      assert.equal(stdout, '');
      assert.ok(!(await logOf(place)).lines.some((line) => line.includes('t.8001.')), 'the copy');
    });
  },
  async '25 00:30 a file of photos has a name that means two windows'() {
    await deliver([
      { ...week.windowFile('imagewire', at('25 00:00'), []), name: 'fotos_20261025_0200.csv' },
      'refused',
    ]);
  },
  async '25 12:00 the writer dies, and the standby is promoted'() {
    await running(one).kill();
    serving.delete(one);
    other.cli(['promote']);
    [writer, standby] = [other, one];
    await clients.pullFrom(running(writer).url);
  },
  async '25 13:00 the dead machine comes back as the standby'() {
    appendFileSync(config, '[copy]\nstandby = true\n');
    await comeBack(one);
  },
  async '26 09:00 an export has rows of a customer whom nobody has added'() {
    unknown = fileOf('26 08:00', [9001]);
    await deliver([unknown]);
  },
  async '26 10:00 he is added, with the number of the removed one, and a replay brings his rows alone'() {
    writer.cli(['account', 'add', 'next', '--name', 'Next']);
    for (const id of ['8001', '9001']) writer.cli(['subscription', 'add', id, '--account', 'next']);
    keep('other', site.createKey(writer.cli, 'next', '8001,9001'));
    subscriptions = [7001, 7002, 8001, 9001];
    writer.cli(['ingest', 'replay', '--from', formatMs(at('24 09:00'))]);
    model.apply('newswire', unknown.rows);
  },
  async '26 14:00 a key is rotated: the old one is good for another day'() {
    const { stdout } = writer.cli(['key', 'rotate', idOf('rotating'), '--overlap', '24h', '--json']);
    keep('rotated', JSON.parse(stdout).key);
    keyOf('rotating').untilMs = at('27 14:00');
  },
  async '27 14:00 the disk of the new writer is full, while a backfill waits'() {
    await fill();
    await deliver([backfill('summer', '2026-07-01', 1500)]);
  },
  '27 15:00 there is room again': () => makeRoom(),
};

/** Files that do not come at their time: of which windows, when they come, and what becomes of them then. */
const LATE: readonly (readonly [
  exports: string,
  from: string,
  to: string,
  comes: string,
  outcome?: 'held',
])[] = [
  ['newswire', '22 09:00', '22 09:20', '24 12:00'],
  ['newswire imagewire', '23 06:00', '23 08:00', '23 08:00'],
  ['newswire', '23 09:50', '23 10:00', '23 11:00', 'held'],
];

/** Alert, from when it is open, when it is closed again, and why. */
const ALERTS: readonly (readonly [name: string, opens: string, closes: string, why: string])[] = [
  ['late windows', '22 10:30', '24 04:00', 'an hour overdue at 10:20, until a start finds them missing'],
  ['ingest stalled', '23 06:30', '23 08:00', 'the exporter was away from 06:00 on'],
  ['refused files', '23 10:00', '24 10:00', 'notes.txt; for a day'],
  ['failed files', '23 10:00', '24 10:00', 'the second file of a window that stays done; for a day'],
  ['failed windows', '23 10:00', '23 12:00', 'a bad row, until the window was reset'],
  ['held windows', '23 11:00', '23 12:00', 'the corrected file, until then'],
  ['disk full', '23 14:00', '23 15:00', 'until there was room'],
  ['disk getting full', '23 14:00', '23 15:00', 'until there was room'],
  ['missing windows', '24 04:00', '24 12:00', 'until their files came'],
  ['rows skipped', '24 12:00', '25 12:00', 'the late files have rows of the removed customer; for a day'],
  ['refused files', '25 00:30', '26 00:30', 'the photos; for a day'],
  ['rows skipped', '26 09:00', '26 10:00', 'of 9001, until the replay'],
  ['disk full', '27 14:00', '27 15:00', 'until there was room'],
  ['disk getting full', '27 14:00', '27 15:00', 'until there was room'],
];
const NEED_SOMEONE = ['ingest stalled', 'disk full'];

type Installation = site.Installation;
/** A file, and what becomes of it; if nothing is said, it is applied. */
type Delivery = readonly [file: week.ExportFile, outcome?: 'failed' | 'refused' | 'held' | undefined];

const work = testFolder();
const config = join(work, 'wirewatch.toml');
writeFileSync(config, week.PHOTOS);
const clock = movingClock(join(work, 'clock'), BEGIN_MS);
const pair = createMachinePair({
  ...{ WIREWATCH_CONFIG: config, WIREWATCH_COPY_WAIT: 'true' },
  // Nothing here waits for a check: hastier ones would only take time from the rest.
  ...{
    WIREWATCH_HASTE: '5',
    WIREWATCH_INGEST_RESCAN_SECONDS: '1',
    WIREWATCH_INGEST_TRUNCATED_SECONDS: '0.03',
  },
  ...clock.settings,
});
const { one, other, place } = pair;
const disks = new Map([one, other].map((machine) => [machine, week.smallDisk(machine.data)]));
const serving = new Map<Installation, site.Serving>();
/** What was logged in earlier half hours and runs: on a full disk, some files may be read. */
const earlier: LogLine[] = [];
let [writer, standby] = [one, other];
const prng = seededPrng('38', 'week');
const model = new Model();
const clients = week.createClients(join(work, 'clients'), one.key, clock.settings);
const keys = new Map<string, { readonly key: string; untilMs: number }>();
/** The customers whose stories the agency looks for. */
let subscriptions = [7001, 7002, 8001];
let unknown: week.ExportFile;
/** Ingest reads no file now. */
let isBlocked = false;
/** Files that were dropped and are not read yet. */
const waiting: Delivery[] = [];
/** Files by the time at which they come. */
const coming = new Map<number, Delivery[]>();

const diskOf = (machine: Installation) => disks.get(machine) ?? assert.fail();
const running = (machine: Installation) => serving.get(machine) ?? assert.fail('it does not run');
const start = async (machine: Installation) => {
  earlier.push(...(serving.get(machine)?.log ?? []));
  serving.set(machine, await machine.serve());
};
const keep = (name: string, key: string) => keys.set(name, { key, untilMs: FOREVER });
const keyOf = (name: string) => keys.get(name) ?? assert.fail(name);
const idOf = (name: string) => keyOf(name).key.split('_')[2] ?? '';
const fileOf = (time: string, of: readonly number[]) => week.windowFile('newswire', at(time), of);
/** The last detection that the model knows. */
const newest = (id: string) => [...model.newest].findLast(([known]) => known.startsWith(id)) ?? assert.fail();

site.showLogOfFailures(() => serving.get(writer));
after(async () => {
  await clients.endPull();
  for (const run of serving.values()) await run.kill();
  for (const disk of disks.values()) disk.remove();
  pair.remove();
});

/** Makes a machine a standby, with the copy in place of what it has. */
async function comeBack(machine: Installation): Promise<void> {
  machine.cli(['restore', place, '--replace']);
  await start(machine);
}

const reader = (machine: Installation, key = one.key) => readerOf(running(machine).url, key);

/** History: a row an hour for each of two subscriptions. */
function backfill(label: string, from: string, hours: number, ...more: Row[]): week.ExportFile {
  const rowsFor = (id: number) => week.rowsOf('newswire', id, Date.parse(from), hours, 6 * hours);
  const rows = [...rowsFor(7001), ...rowsFor(7002), ...more];
  const name = `newswire.backfill-${label}.ndjson`;
  return { name, export: 'newswire', rows, content: contentOf('ndjson', rows) };
}

/** Drops files, and waits until they are read, unless nothing is read now. */
async function deliver(...files: readonly Delivery[]): Promise<void> {
  for (const [{ name, content }] of files) site.putFile(pair.settings.WIREWATCH_INGEST_DROP, name, content);
  if (isBlocked) waiting.push(...files);
  else await settle(files);
}

/** Waits until files are read. @param before where those that waited may have been read already */
async function settle(files: readonly Delivery[], before: readonly LogLine[] = []): Promise<void> {
  for (const [file, outcome = 'applied'] of files) {
    const isOutcome = (line: LogLine) => line.file === file.name && line.msg === `file ${outcome}`;
    if (!before.some(isOutcome)) await running(writer).logged(`${file.name} to be ${outcome}`, isOutcome);
    if (outcome === 'held') waiting.push([file]);
    const rows = file.rows.filter((row) => subscriptions.includes(Number(row.subscription_id)));
    if (outcome === 'applied') model.apply(file.export, rows, file.name.includes('backfill'));
  }
}

async function fill(): Promise<void> {
  isBlocked = true;
  // A checkpoint would make room later. Wirewatch makes one after a change, and a reader may be in its way.
  const detections = join(writer.data, 'detections.db');
  await eventually(() => {
    sqlIn(detections, 'PRAGMA wal_checkpoint(TRUNCATE)');
    assert.equal(statSync(`${detections}-wal`).size, 0);
  });
  await diskOf(writer).fill();
}

async function makeRoom(): Promise<void> {
  diskOf(writer).makeRoom();
  isBlocked = false;
  await settle(waiting.splice(0), earlier);
}

/** Delivers the files of the windows that have just ended, and those that come late. */
async function exportFiles(nowMs: number): Promise<void> {
  for (let windowMs = nowMs - HALF_HOUR_MS; windowMs < nowMs; windowMs += WINDOW_MS)
    for (const name of EXPORT_NAMES) {
      const isLate = LATE.find(
        ([of, from, to]) => of.includes(name) && windowMs >= at(from) && windowMs < at(to),
      );
      const whenMs = isLate === undefined ? nowMs : at(isLate[3]);
      const delivery = [week.windowFile(name, windowMs, subscriptions), isLate?.[4]] as const;
      coming.set(whenMs, [...(coming.get(whenMs) ?? []), delivery]);
    }
  await deliver(...(coming.get(nowMs) ?? []));
}

/** One machine after the other is stopped or killed, and starts again. */
async function restart(): Promise<void> {
  for (const machine of [writer, standby]) {
    if (prng.chance(0.5)) await running(machine).kill();
    else assert.equal(await running(machine).stop(), 0);
    await start(machine);
  }
  await clients.pullFrom(running(writer).url);
}

/** The open alerts are those of the table, and health follows from them. */
async function checkAlerts(nowMs: number): Promise<void> {
  const expected = ALERTS.filter(([, opens, closes]) => nowMs >= at(opens) && nowMs < at(closes));
  const names = expected.map(([name]) => name).sort();
  await eventually(async () => {
    const open = new Set(await openAlertsOf(writer));
    // What still fits on a full disk is left to chance.
    if (isBlocked) open.delete('ingest stalled');
    assert.deepEqual([...open].sort(), names, formatMs(nowMs));
  });
  const { status } = await reader(writer).get('/v1/health');
  assert.equal(status, NEED_SOMEONE.some((name) => names.includes(name)) ? 503 : 200, formatMs(nowMs));
}

/** One client goes from one machine to the other, as it happens. */
async function clientsRead(): Promise<void> {
  const { url } = prng.pick([...serving.values()]);
  await clients.read(running(writer).url, url, formatMs(BEGIN_MS));
}

/** What a new client gets, as comparable texts. */
async function everythingOf(machine: Installation, key?: string): Promise<Map<string, string>> {
  const client = new Follower();
  client.position = `since=${formatMs(BEGIN_MS)}`;
  await client.follow((path) => reader(machine, key).read(path));
  return week.comparable([...client.copy.values()]);
}

/** Machines, model and copies agree, and so do keys on both machines. */
async function compare(nowMs: number): Promise<void> {
  const markOf = ({ data }: Installation) => readLogMarkOf(join(data, 'detections.db'));
  await eventually(() => assert.deepEqual(markOf(standby), markOf(writer)));
  const own = await everythingOf(writer);
  week.assertSame(await everythingOf(standby), own, 'the standby');
  await clientsRead();
  await eventually(() => {
    for (const [name, copy] of Object.entries(clients.copies())) week.assertSame(copy, own, name);
  });
  const other = keyOf('other');
  const others = nowMs < other.untilMs ? await everythingOf(writer, other.key) : [];
  const shown = [...own, ...others].map(([, text]) => JSON.parse(text));
  const seen = shown.map((row): [string, string] => {
    const { version, first_detected_at, first_detected_estimated, strength } = row;
    return [row.id, `${[version, first_detected_at, first_detected_estimated, strength.score]}`];
  });
  const known = [...model.newest].map(([id, { version, first, isEstimated, row }]): [string, string] => {
    return [id, `${[version, first, isEstimated, row.strength_score]}`];
  });
  week.assertSame(new Map(seen), new Map(known), `the model at ${formatMs(nowMs)}`);
  // A day of Berlin, which may have 25 hours.
  const dayOf = (ms: number) => week.berlin(ms).slice(0, 10);
  const day = dayOf(nowMs - DAY_MS);
  const period = `from=${day}&to=${day}&time_zone=${week.ZONE}&limit=1000`;
  const { data } = await reader(standby).read(
    `/v1/detections?subscription_id=7001&content_type=text&${period}`,
  );
  const isOfDay = ([id, { first }]: [string, Newest]) =>
    /^t.7001/.test(id) && dayOf(Date.parse(first)) === day;
  const ids = [...model.newest].filter(isOfDay).map(([id]) => id);
  assert.deepEqual(data.map(({ id }: Row) => id).sort(), ids.sort(), day);
  for (const [name, { key, untilMs }] of keys)
    for (const machine of [writer, standby])
      await eventually(async () => {
        const { status } = await reader(machine, key).get('/v1/me');
        assert.equal(status, nowMs < untilMs ? 200 : 401, `the key ${name}`);
      });
}

const contentOfStopped = ({ data }: Installation) => withoutOpenDelivery(contentOfDetections(data));
const isMissing = [...disks.values()].some(({ isMounted }) => !isMounted) && 'no disk can be mounted here';
const skip = NO_PRELOAD || isMissing || without('python3');

test('a week of a site', { skip }, async (context) => {
  keep('other', site.addOtherAccount(one.cli));
  await start(one);
  // The copy must begin first.
  await eventually(() => comeBack(other));
  await clients.pullFrom(running(one).url);
  for (let nowMs = BEGIN_MS + HALF_HOUR_MS; nowMs <= END_MS; nowMs += HALF_HOUR_MS) {
    clock.moveTo(nowMs);
    if (nowMs % DAY_MS === 4 * HOUR_MS && nowMs > BEGIN_MS + DAY_MS) {
      await compare(nowMs);
      await restart();
    }
    for (const [what, happens] of Object.entries(WEEK))
      if (at(what.slice(0, 8)) === nowMs) {
        context.diagnostic(what);
        await happens();
      }
    await exportFiles(nowMs);
    clock.moveTo(nowMs + 16 * MINUTE_MS);
    await checkAlerts(nowMs);
    if (!isBlocked && nowMs % (8 * HOUR_MS) === 0) await clientsRead();
    // What is waited for next must be new.
    for (const run of serving.values()) earlier.push(...run.takeLog());
  }
  await compare(END_MS);
  for (const machine of [writer, standby]) assert.equal(await running(machine).stop(), 0);
  assertSameContent(contentOfStopped(standby), contentOfStopped(writer), 'the standby');
  await checkMadeAnew(writer.data, async () => {
    await start(writer);
    await eventually(async () => assert.ok(await everythingOf(writer)));
    assert.equal(await running(writer).stop(), 0);
  });
  for (const machine of [one, other]) machine.cli(['verify']);
  writer.cli(['verify', place]);
});
