/** Repeated faults in the log: the first with its cause, then a summary, and all are counted. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { pino } from 'pino';
import { createFaultLog, type FaultLog } from '../../src/http/fault-log.ts';
import { NOW_MS, startTestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;

function faultLog(everyMs: number): { faults: FaultLog; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const log = pino({ base: null, timestamp: false }, stream);
  return { faults: createFaultLog({ log, now: () => NOW_MS, everyMs }), lines };
}

/** Always created at the same place, like a repeated fault. */
function fault(message: string, cause?: Error): Error {
  return new Error(message, cause === undefined ? {} : { cause });
}

const SINCE = '2026-11-21T12:00:00Z';

test('a fault is logged fully once, then counted, and the counts add up', async () => {
  const { faults, lines } = faultLog(20);
  for (let index = 0; index < 1000; index += 1) faults.note('fault', fault('broken'), `request ${index}`);
  assert.deepEqual(
    lines.map(({ msg, request_id }) => [msg, request_id]),
    [['fault', 'request 0']],
  );
  await until('it is counted', () => lines.length > 1);
  const { level: _, ...again } = lines[1] ?? {};
  const about = { what: 'fault', cause: 'broken', since: SINCE };
  assert.deepEqual(again, { ...about, count: 1000, more: 999, msg: 'fault repeated' });
  await until('it is over', () => lines.length > 2);
  const { level, ...over } = lines[2] ?? {};
  assert.deepEqual([level, over], [30, { ...about, count: 1000, msg: 'fault no longer occurs' }]);
  faults.note('fault', fault('broken'), 'once more');
  assert.equal(lines.length, 4);
  faults.close();
});

test('each root cause has its own line', () => {
  const { faults, lines } = faultLog(HOUR_MS);
  const disk = fault('disk');
  for (const error of [
    fault('a', disk),
    fault('b', fault('c', disk)),
    fault('a'),
    'thrown text',
    'thrown text',
  ])
    faults.note('fault', error, 'id');
  faults.note('unavailable', fault('a', disk), 'id');
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['fault', 'fault', 'fault', 'unavailable'],
  );
  faults.close();
});

test('the number of lines is bounded, and a stop logs all counts', () => {
  const { faults, lines } = faultLog(HOUR_MS);
  for (let index = 0; index < 5000; index += 1) faults.note('fault', fault(`number ${index}`), 'id');
  assert.equal(lines.length, 51);
  faults.note('fault', fault('number 7'), 'id');
  faults.close();
  const summaries = lines.slice(51).map(({ cause, count }) => `${cause}: ${count}`);
  assert.deepEqual(summaries.sort(), ['number 7: 2', 'other causes: 4950']);
});

test('while keys cannot be checked, many requests log the cause once', async () => {
  const server = await startTestServer();
  const { key } = server.makeKey();
  const path = `${server.store.folder}/access.db`;
  renameSync(path, `${path}-away`);
  for (let index = 0; index < 50; index += 1) assert.equal((await server.get('/v1/me', key)).status, 503);
  renameSync(`${path}-away`, path);
  assert.equal((await server.get('/v1/me', key)).status, 200);
  await server.close();
  const count = (wanted: unknown) => server.lines.filter(({ msg }) => msg === wanted).length;
  assert.equal(count('unavailable'), 1);
  const again = server.lines.find(({ msg }) => msg === 'fault repeated');
  assert.deepEqual([again?.what, again?.count, again?.more], ['unavailable', 50, 49]);
  assert.match(String(again?.cause), /ENOENT/);
});
