/** `wirewatch status`: the state on one screen. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Status } from '../../src/operations/status.ts';
import { systemLines } from '../../src/operations/status-lines.ts';
import { statusText } from '../../src/operations/status-views.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { assertFailed } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { runProgram } from '../support/program.ts';
import { onTerminal, terminalMissing } from '../support/terminal.ts';
import { until } from '../support/until.ts';

const appliance = await sharedAppliance();
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
const failedName = fileName('newswire', nextWindowMs());
await appliance.dropped(failedName, 'no row at all\n');

const statusOf = (...more: string[]) => appliance.cli(['status', ...more]).stdout;
const json = () => JSON.parse(statusOf('--json'));

test('shows exports, files, alerts, keys, disks and copy', async () => {
  assert.equal((await appliance.get('/v1/me')).status, 200);
  await until('the use of the key is written', () => json().keys.used_in_last_day === 1);
  const text = statusOf();
  assert.ok(text.startsWith(`Wirewatch  running, listening on ${appliance.serving().url}\n`), text);
  assert.match(text, /^newswire +read up to .*, 19 days ago, except 1 failed window$/m);
  assert.doesNotMatch(text, /complete/);
  assert.match(text, /^keys +1 active, 1 used in the last 24 hours; last used .* ago$/m);
  assert.match(text, /^waiting +0 files in /m);
  assert.match(text, /^copy +none; see the setting \[copy\] to$/m);
  const failed = `\n  failed  ${failedName}: the file has rows or lines that do not match the export format\n`;
  assert.ok(text.replaceAll(/\n {10}/g, ' ').includes(failed), text);
});

test("shows what waits during a pause, and the database's state without an appliance", async () => {
  appliance.cli(['ingest', 'pause']);
  appliance.put(fileName('imagewire', nextWindowMs()), ndjson([newRow()]));
  assert.match(statusOf(), /^ingest +paused since .*wirewatch ingest resume$/m);
  assert.equal(json().ingest.waiting, 1);
  await appliance.serving().stop();
  try {
    assert.equal(json().running, false);
    const text = statusOf();
    assert.match(text, /^Wirewatch +not running; start it with: wirewatch serve$/m);
    assert.match(text, /^Alerts \(only those that follow from the databases, because .* is not running\)$/m);
  } finally {
    appliance.cli(['ingest', 'resume']);
    await appliance.restart();
  }
});

test('--watch updates it on a terminal', { skip: terminalMissing }, async () => {
  const run = runProgram(['status', '--watch', '--data', appliance.data], {}, { through: onTerminal });
  const shows = (what: RegExp) => run.until(`${what}`, () => what.exec(run.stdout()) ?? undefined);
  try {
    await shows(/Wirewatch +running/);
    appliance.cli(['ingest', 'pause']);
    await shows(/paused since/);
  } finally {
    run.kill('SIGTERM');
    appliance.cli(['ingest', 'resume']);
  }
});

test('--watch needs a terminal', () =>
  assertFailed(appliance.cli(['status', '--watch'], { anyStatus: true }), 2, /--watch needs a terminal/));

/** Of a copy that was never reached. */
const COPY = { to: '/copy', entries_behind: 0, behind_since: null, contact_at: null, failure: null };

test('if detections.db is unreadable, the rest is shown; a reason is shown once', () => {
  const reason = 'the name must end in one of ndjson, ndjson.gz, ndjson.zst';
  const status: Status = json();
  const [file] = status.not_applied;
  assert.ok(file !== undefined);
  const alert = { name: 'refused files', page_worthy: true, since: 'X', what_to_do: '' } as const;
  const times = { behind_since: '2026-11-21T11:59:00Z', contact_at: '2026-11-21T11:58:00Z' };
  const text = statusText({
    ...status,
    at: '2026-11-21T12:00:00Z',
    url: null,
    database: { ...status.database, unreadable: 'it is damaged' },
    not_applied: [{ ...file, file: 'a.xml', outcome: 'refused', report: { reason } }],
    alerts: [{ ...alert, detail: `a.xml: ${reason}` }],
    keys: { ...status.keys, active: 12_345, used_in_last_day: 0, last_used_at: null },
    disks: [{ of: 'data', folder: '/data', free_bytes: 1024 ** 3 / 4, bytes: 100 * 1024 ** 3, low: true }],
    copy: { ...COPY, entries_behind: 2, ...times },
    followers: [],
    scrub: null,
  });
  const expected = `Wirewatch  running
ingest     detections.db cannot be read: it is damaged
keys       12,345 active, 0 used in the last 24 hours; no recorded use
disk       0.3 of 100.0 GiB free, getting full (/data)
role       writer: it reads the exports
copy       2 entries behind since 2026-11-21T11:59:00Z, 1 minute ago (/copy)
verified   not yet

Alerts
  NOW  refused files, since X: a.xml: the name must end in one of ndjson, ndjson.gz, ndjson.zst

Latest files that were not applied
  refused a.xml
`;
  assert.equal(text, expected);
});

test('a copy that was never reached, and differences that a comparison found, are no good state', () => {
  const status: Status = json();
  const scrub = { at: '2026-11-21T11:00:00Z', findings: 2, not_compared: null };
  const lines = systemLines({ ...status, at: '2026-11-21T12:00:00Z', copy: COPY, scrub });
  assert.deepEqual(lines.slice(-2), [
    ['copy', 'beginning (/copy)'],
    ['verified', '2026-11-21T11:00:00Z, 1 hour ago: 2 differences', 'failed'],
  ]);
});
