/** Responses of the console's endpoints for a state that would take long to create: 90 days with 200 failed files. */

import type {
  AuditPage,
  DetectionsPage,
  ExportName,
  FileEntry,
  FilesPage,
  Jobs,
  KeyTrends,
  OpenWindow,
  Overview,
  Session,
  Trends,
  WindowDetail,
  WindowLetter,
  WindowMap,
} from '../../src/admin/console/api.ts';
import type { Job } from '../../src/operations/jobs.ts';
import { operationForms } from '../../src/operations/table.ts';
import {
  auditEntries,
  customers,
  detection,
  detectionDetail,
  HOSTILE,
  iso,
} from './console-list-responses.ts';

const MINUTE_MS = 60_000;
const WINDOW_MS = 10 * MINUTE_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;
const DAYS = 90;
const DAY_WINDOWS = 144;
const FAILED = 200;
const EXPORTS: readonly ExportName[] = ['newswire', 'imagewire'];

/** @returns the response to GET for each path, by path without query */
export function busyResponses(nowMs: number): Record<string, unknown> {
  const map = windowMap(nowMs);
  const files = failedFiles(map);
  const detections = Array.from({ length: 30 }, (_, index) => detection(nowMs, index));
  const page: DetectionsPage = {
    detections,
    next: 'cursor',
    searched_to: iso(nowMs - 7 * DAY_MS),
    total: null,
  };
  const filesPage: FilesPage = { files, next: null };
  return {
    '/console/session': session(nowMs),
    '/console/overview': overview(nowMs, map, files),
    '/console/windows': map,
    '/console/window': windowDetail(map, files),
    '/console/files': filesPage,
    '/console/customers': customers(nowMs),
    '/console/detections/live': page,
    '/console/detections/search': page,
    '/console/detections/one': detectionDetail(nowMs, detections[0] ?? detection(nowMs, 0)),
    '/console/history/audit': { entries: auditEntries(nowMs), next: 'more' } satisfies AuditPage,
    '/console/manual': { topics: [{ name: 'alerts', title: 'every alert', excerpt: '' }] },
    '/console/manual/alerts': {
      name: 'alerts',
      title: 'every alert',
      html: '<h1>Alerts</h1><p>Each closes by itself.</p>',
    },
    '/console/operations': { operations: operationForms() },
    '/console/jobs': { jobs: jobs(nowMs) } satisfies Jobs,
    '/console/trends': trends(nowMs),
    '/console/trends/keys': keyTrends(nowMs),
  };
}

function trends(nowMs: number): Trends {
  const values = (scale: number) => Array.from({ length: 24 }, (_, hour) => scale * (1 + (hour % 5)));
  const of = { created: values(40), updated: values(7), late_seconds: values(30) };
  const exports = { newswire: of, imagewire: of };
  return {
    from: iso(nowMs - DAY_MS),
    step_seconds: 3600,
    exports,
    customers: [{ id: 'nordpresse', name: 'Nordpresse', rows: values(12) }],
    enabled: ['newswire', 'imagewire'],
    machine: {
      requests: values(900),
      refused: values(4),
      rows_served: values(20_000),
      rows_ingested: values(60),
      behind_seconds: values(1).map((value, hour) => (hour < 6 ? null : value)),
    },
  };
}

function keyTrends(nowMs: number): KeyTrends {
  const { from, step_seconds, machine } = trends(nowMs);
  const { requests, refused, rows_served, behind_seconds } = machine;
  const counts = { requests, refused, rows_served };
  return {
    from,
    step_seconds,
    keys: [
      { id: 'k1', name: 'Rights desk', ...counts, lag_seconds: behind_seconds },
      { id: 'k2', name: 'Archive', ...counts, lag_seconds: null },
    ],
  };
}

function session(nowMs: number): Session {
  return {
    name: 'kim',
    read_only: false,
    expires_at: iso(nowMs + DAY_MS / 2),
    version: '0.1.0',
    demo: false,
    lab: false,
  };
}

function windowMap(nowMs: number): WindowMap {
  const fromMs = Math.floor(nowMs / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS;
  const open: OpenWindow[] = [];
  const exportOf = (name: ExportName, offset: number) => {
    let windows = '';
    const rows: number[] = [];
    for (let index = 0; index < DAYS * DAY_WINDOWS; index += 1) {
      const startMs = fromMs + index * WINDOW_MS;
      const letter = letterOf(index + offset, startMs, nowMs);
      windows += letter;
      rows.push(letter === 'd' ? 20 + ((index * 7919) % 180) : 0);
      if ('fmal'.includes(letter)) open.unshift(openWindow(name, startMs, letter));
    }
    return { enabled: true, windows, rows };
  };
  const exports = { newswire: exportOf('newswire', 0), imagewire: exportOf('imagewire', 17) };
  return { at: iso(nowMs), from: iso(fromMs), exports, open };
}

function letterOf(index: number, startMs: number, nowMs: number): WindowLetter {
  if (startMs + WINDOW_MS > nowMs) return 'n';
  if (startMs + 2 * WINDOW_MS > nowMs) return 'w';
  if (index < 3 * DAY_WINDOWS) return '-';
  if (index % 120 === 0) return 'f';
  if (index % 1700 < 5) return 'm';
  if (index % 2900 < 3) return 'a';
  return index % 37 === 0 ? 'e' : 'd';
}

function openWindow(name: ExportName, startMs: number, letter: WindowLetter): OpenWindow {
  const isFailed = letter === 'f';
  const window_start = iso(startMs);
  return {
    export: name,
    window_start,
    window_end: iso(startMs + WINDOW_MS),
    letter,
    since: iso(startMs + DAY_MS),
    held: isFailed && startMs % (7 * WINDOW_MS) === 0,
    reason: isFailed ? 'the file has rows or lines that do not match the export format' : null,
    report: isFailed
      ? {
          errors: [{ line: 3, column: 'strength_score', value: 'high', expected: 'a number from 0 to 100' }],
          errors_total: 2,
        }
      : null,
    actions: isFailed ? [{ operation: 'window reset', given: { export: name, start: [window_start] } }] : [],
  };
}

function failedFiles({ open }: WindowMap): FileEntry[] {
  return open
    .filter(({ letter }) => letter === 'f')
    .slice(0, FAILED)
    .map((one, index) => ({
      number: FAILED - index,
      file: `${one.export}.${one.window_start.replaceAll(/[-:]/g, '').slice(0, 13)}Z.ndjson`,
      outcome: 'failed',
      export: one.export,
      window_start: one.window_start,
      label: null,
      taken_at: one.since ?? one.window_end,
      finished_at: one.since,
      destination: `failed/${one.export}.ndjson`,
      sha256: null,
      bytes: 48_211,
      report: {
        rows: 112,
        reason: one.reason ?? '',
        errors: [
          {
            line: 3,
            column: 'strength_score',
            expected: 'a number from 0 to 100',
            value: index === 0 ? HOSTILE : 'high',
          },
        ],
        errors_total: 12,
      },
    }));
}

function windowDetail(map: WindowMap, files: readonly FileEntry[]): WindowDetail {
  const [first] = files;
  const one = map.open.find(({ window_start }) => window_start === first?.window_start) ?? map.open[0];
  if (one === undefined) throw new Error('no window is open');
  return { ...one, due_at: one.window_end, files: files.slice(0, 1) };
}

function overview(nowMs: number, map: WindowMap, files: readonly FileEntry[]): Overview {
  const newest = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS - WINDOW_MS;
  const count = (name: ExportName, letter: string) => map.exports[name].windows.split(letter).length - 1;
  const exportOf = (name: ExportName) => ({
    enabled: true,
    newest_done: iso(newest),
    newest_late_seconds: 96,
    windows_done: count(name, 'd'),
    not_read: {
      failed: count(name, 'f'),
      missing: count(name, 'm'),
      abandoned: count(name, 'a'),
      not_arrived: 0,
    },
  });
  return {
    at: iso(nowMs),
    version: '0.1.0',
    role: 'writer',
    running: true,
    url: 'http://127.0.0.1:8080',
    health: {
      status: 'degraded',
      paused_since: null,
      reason: 'GET /v1/health answers 503: the disk is full.',
    },
    exports: { newswire: exportOf('newswire'), imagewire: exportOf('imagewire') },
    alerts: [
      {
        name: 'disk full',
        page_worthy: true,
        since: iso(nowMs - 12 * MINUTE_MS),
        detail: 'the data folder has 0 bytes left',
        what_to_do: 'Make room on the disk of the data folder and of the drop folder. Nothing is lost.',
      },
      {
        name: 'failed windows',
        page_worthy: false,
        since: iso(nowMs - 2 * DAY_MS),
        detail: `${EXPORTS.map((name) => `${name}: ${count(name, 'f')} windows`).join('; ')}`,
        what_to_do:
          'Read the reason beside the file in failed/, have it fixed, drop it, and reset the window.',
      },
    ],
    ingest: {
      drop: '/var/lib/wirewatch/drop',
      waiting: 14,
      waiting_files: ['newswire.20261121T1000Z.ndjson', 'imagewire.20261121T1000Z.ndjson'],
      waits_for: { reason: 'disk full: no room', what_to_do: 'Make room.' },
      held: 2,
      held_files: [],
      reading: { file: 'newswire.20261121T0950Z.ndjson', rows: 3500 },
      applying: [{ file: 'newswire.backfill.2025.ndjson.gz', rows: 1_200_000, rows_applied: 431_000 }],
    },
    not_applied: files.slice(0, 20).map((file) => ({ ...file, what_to_do: 'Fix it and drop it again.' })),
    disks: [{ of: 'data', folder: 'data', free_bytes: 41_000_000_000, bytes: 500_000_000_000, low: false }],
    database: {
      bytes: 12_400_000_000,
      access_bytes: 200_000,
      log_bytes: 1_900_000_000,
      versions: 14_902_113,
      unreadable: null,
    },
    copy: {
      to: '/mnt/copy/wirewatch',
      entries_behind: 0,
      behind_since: null,
      contact_at: iso(nowMs - 30_000),
      failure: null,
    },
    scrub: { at: iso(nowMs - 9 * 3_600_000), findings: 0, not_compared: null },
    keys: { active: 3, used_in_last_day: 2, last_used_at: iso(nowMs), behind: 1, unreadable: null },
    followers: [],
    settings: { file: null, problem: null, changed: [], what_to_do: null },
  };
}

function jobs(nowMs: number): Job[] {
  const job = { by: 'kim', subject: '', started_at: iso(nowMs - 2 * MINUTE_MS) };
  return [
    { ...job, id: 2, operation: 'ingest replay', state: 'running', text: '431 of 1,200 files' },
    {
      ...job,
      id: 1,
      operation: 'backup',
      state: 'done',
      text: '/mnt/copy/wirewatch is up to date: 2,201,930 bytes written.',
    },
  ];
}
