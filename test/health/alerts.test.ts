/** Alerts from the database, their list in the manual, and `alert list`. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { EXPORT_NAMES, type ExportName } from '../../src/detection/content-type.ts';
import { ALERT_ADVICE, ALERT_NAMES, alertDocument, isPageWorthy } from '../../src/health/alert-texts.ts';
import { ledgerAlerts } from '../../src/health/ledger-alerts.ts';
import type { FileRecord } from '../../src/ingest/files/file-record.ts';
import { DAY_MS, formatMs, HOUR_MS, WINDOW_MS } from '../../src/time.ts';
import type { WindowStatus } from '../../src/windows/window-states.ts';
import { tableRows, topic } from '../support/manual.ts';
import { createTestStore, type TestStore } from '../support/store.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const START = NOW - 40 * DAY_MS;

let store: TestStore;
beforeEach(() => {
  store = createTestStore();
});
afterEach(() => store.close());

const set = (status: WindowStatus, start = START, since = NOW - HOUR_MS, exportName?: ExportName) =>
  store.setWindow(status, start, since, exportName);

const file = (members: Partial<FileRecord>) =>
  store.addFile(NOW - HOUR_MS, { window_start: START, ...members }).name;

const alerts = (nowMs = NOW, enabled_exports: readonly ExportName[] = EXPORT_NAMES) =>
  ledgerAlerts(store.reader, { enabled_exports, failed_windows: 'hold' }, nowMs).map(alertDocument);
const names = (nowMs = NOW) => alerts(nowMs).map(({ name }) => name);

describe('windows', () => {
  for (const status of ['failed', 'missing', 'abandoned'] as const) {
    test(`that are ${status} open one per export, with count, time and command`, () => {
      set(status, START, NOW - HOUR_MS);
      set(status, START + WINDOW_MS, NOW - 2 * HOUR_MS);
      set(status, START, NOW - HOUR_MS, 'imagewire');
      const found = alerts().sort((a, b) => (a.detail < b.detail ? 1 : -1));
      const [first, second] = [formatMs(START), formatMs(START + WINDOW_MS)];
      const ago = (hours: number) => formatMs(NOW - hours * HOUR_MS);
      assert.ok(found.every(({ name, page_worthy }) => name === `${status} windows` && !page_worthy));
      const shown = found.map(({ since, detail }) => `${since} ${detail}`);
      assert.deepEqual(shown, [
        `${ago(2)} newswire: 2 ${status} windows, ${first} to ${second}`,
        `${ago(1)} imagewire: 1 ${status} window, ${first}`,
      ]);
      const command = {
        failed: 'wirewatch window reset newswire --all',
        missing: 'wirewatch window list newswire --status missing',
        abandoned: `wirewatch window accept newswire ${formatMs(START)}`,
      }[status];
      assert.ok(found[0]?.what_to_do.includes(command), found[0]?.what_to_do);
      set('done', START);
      set('done', START + WINDOW_MS);
      assert.equal(alerts().length, 1, 'the alert must close when its windows are done');
    });
  }

  test('that are missing by hundreds name the command that sets the first expected one', () => {
    for (let count = 0; count < 144; count += 1) {
      assert.ok(!alerts()[0]?.what_to_do.includes('window expect'));
      set('missing', START + count * WINDOW_MS);
    }
    assert.match(alerts()[0]?.what_to_do ?? '', /wirewatch window expect newswire START$/);
  });

  test('that are an hour overdue open one per export, once a later window was read', () => {
    const lateFrom = START + 2 * WINDOW_MS + HOUR_MS;
    set('done', START - WINDOW_MS);
    assert.deepEqual(names(lateFrom + DAY_MS), [], 'no later window was read');
    set('done', START + 2 * WINDOW_MS);
    assert.deepEqual(names(lateFrom - 1), []);
    assert.deepEqual(alerts(lateFrom)[0], {
      name: 'late windows',
      page_worthy: false,
      since: formatMs(lateFrom),
      detail: `newswire: 1 late window, ${formatMs(START)}: more than an hour overdue, but a later window was read`,
      what_to_do: ALERT_ADVICE['late windows'],
    });
    const both = alerts(lateFrom + WINDOW_MS)[0]?.detail ?? '';
    assert.match(both, /^newswire: 2 late windows, .* to .*: more than an hour overdue/);
    assert.deepEqual(alerts(lateFrom, ['imagewire']), []);
    set('missing');
    set('failed', START + WINDOW_MS);
    assert.deepEqual(names(lateFrom + WINDOW_MS).sort(), ['failed windows', 'missing windows']);
  });

  test('that were abandoned are reported for a week; failed and missing ones until resolved', () => {
    set('failed', START, NOW - 300 * DAY_MS);
    set('missing', START + WINDOW_MS, NOW - 29 * DAY_MS);
    set('abandoned', START + 2 * WINDOW_MS, NOW - 7 * DAY_MS + 1);
    assert.equal(alerts().length, 3);
    assert.deepEqual(names(NOW + 1), ['failed windows', 'missing windows']);
  });

  test('of an export that is switched off open none', () => {
    set('failed');
    set('missing', START, NOW, 'imagewire');
    file({ report: { bad_rows: 1 } });
    assert.deepEqual(alerts(NOW, []), []);
  });
});

describe('files', () => {
  test('a bad second file of a done window opens one, for a day or until a later one was good', () => {
    set('done');
    // The good one may be the first one again.
    for (const outcome of ['applied', 'repeated'] as const) {
      file({ outcome: 'failed' });
      assert.deepEqual(names(), ['failed files']);
      assert.deepEqual(names(NOW + DAY_MS - HOUR_MS), []);
      file({ outcome });
      assert.deepEqual(alerts(), []);
    }
  });

  test('a failed window is not reported again as a file', () => {
    set('failed');
    file({ outcome: 'failed' });
    assert.deepEqual(names(), ['failed windows']);
  });

  test('a failed backfill opens one, until one with its label is applied', () => {
    file({ outcome: 'failed', window_start: null, label: 'history' });
    assert.deepEqual(names(), ['failed files']);
    file({ outcome: 'applied', window_start: null, label: 'other' });
    assert.deepEqual(names(), ['failed files']);
    file({ outcome: 'applied', window_start: null, label: 'history' });
    assert.deepEqual(alerts(), []);
  });

  test('refused files open one, for a day', () => {
    const nothing = { export: null, window_start: null, report: { reason: 'no name' } };
    const first = file({ outcome: 'refused', ...nothing });
    const found = alerts().map(({ name, detail }) => [name, detail]);
    assert.deepEqual(found, [['refused files', `refused ${first}: no name`]]);
    const second = file({ outcome: 'refused', report: { reason: 'too far ahead' } });
    assert.equal(alerts()[0]?.detail, `refused ${second} and 1 more file: too far ahead`);
    assert.deepEqual(names(NOW + DAY_MS - HOUR_MS), []);
  });

  test('skipped rows open one, for a day: bad ones and those of unknown subscriptions', () => {
    file({ report: { bad_rows: 0, unknown_rows: {} } });
    assert.deepEqual(alerts(), []);
    for (const [said, report] of Object.entries({
      '2 bad rows': { bad_rows: 2, unknown_rows: {} },
      '3 rows of subscription 7009 (text)': { bad_rows: 0, unknown_rows: { '7009:text': 3 } },
    })) {
      const name = file({ report });
      const [skipped, ...others] = alerts();
      assert.deepEqual([skipped?.name, others.length], ['rows skipped', 0]);
      assert.equal(skipped?.detail, `newswire: rows were skipped in ${name}: ${said}`);
      assert.deepEqual(names(NOW + DAY_MS - HOUR_MS), []);
      store.writer.exec('DELETE FROM ingest_file');
    }
    file({ outcome: 'failed', window_start: null, label: 'x', report: { bad_rows: 2 } });
    assert.deepEqual(names(), ['failed files']);
  });
});

test('the manual lists every alert, its urgency, and what to do', () => {
  const [now = '', later = ''] = topic('alerts').split('## Alerts that can wait');
  const listed = (text: string) =>
    tableRows(text)
      .filter(([name = '']) => name.startsWith('**'))
      .map(([name = '', opens, closes, todo]) => {
        assert.ok(opens && closes, name);
        return [name.replaceAll('*', ''), todo];
      });
  const expected = (isUrgent: boolean) => {
    const names = ALERT_NAMES.filter((name) => isPageWorthy({ name }) === isUrgent);
    return names.map((name) => [name, ALERT_ADVICE[name]]);
  };
  assert.deepEqual(listed(now), expected(true));
  assert.match(ALERT_ADVICE['another machine took over'], /names this machine.*copied back: restore again/);
  assert.deepEqual(listed(later), expected(false));
});
