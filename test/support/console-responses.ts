/**
 * Responses of the console's endpoints for a state that would take long to create: 90 days with 200 failed files, and
 * hostile content.
 */
import type {
  AlertDocument,
  AuditedChange,
  AuditPage,
  Customers,
  DetectionDetail,
  DetectionEntry,
  DetectionsPage,
  ExportName,
  FileEntry,
  FilesPage,
  Jobs,
  KeyEntry,
  KeyTrends,
  OpenWindow,
  Overview,
  Session,
  Trends,
  WindowDetail,
  WindowLetter,
  WindowMap,
} from '../../src/admin/console/api.ts';
import { operationForms } from '../../src/operations/table.ts';
import { DAY_MS, formatMs, formatWindowStart, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';

const DAYS = 90;
const DAY_WINDOWS = 144;
const FAILED = 200;
const DATABASE = { bytes: 12_400_000_000, access_bytes: 200_000, log_bytes: 1_900_000_000 };
/** Markup, characters that change the text direction, and 10,000 further characters. */
export const HOSTILE = `<img src=x onerror="document.title='taken'">\u202Egnp.exe\u2066 ${'long '.repeat(2000)}`;
const HEADLINES = ['Parliament passes the budget after a night of talks', 'Storm closes two Alpine passes'];
const PLACES = [
  ['Morning Courier', 'courier.example'],
  ['Lakeside Herald', 'herald.example'],
  [null, 'finance-today.example'],
] as const;
const HIGH_SCORE = {
  line: 3,
  column: 'strength_score',
  value: 'high',
  expected: 'a number from 0 to 100',
};

/** @returns the response to GET for each path, by path without query */
export function busyResponses(nowMs: number): Record<string, unknown> {
  const ago = (minutes: number) => formatMs(nowMs - minutes * MINUTE_MS);
  const map = windowMap(nowMs);
  const files = failedFiles(map);
  const detections = Array.from({ length: 30 }, (_, index) => detection(ago(index), index));
  const page: DetectionsPage = {
    ...{ detections, next: 'cursor', searched_to: ago(7 * 24 * 60), total: null },
  };
  const job = { by: 'kim', subject: '', started_at: ago(2) };
  const backedUp = '/mnt/copy/wirewatch is up to date: 2,201,930 bytes written.';
  return {
    '/console/session': {
      name: 'kim',
      read_only: false,
      expires_at: ago(-12 * 60),
      version: '0.1.0',
      demo: false,
      lab: false,
    } satisfies Session,
    '/console/overview': overview(ago, map, files),
    '/console/windows': map,
    '/console/window': windowDetail(map, files),
    '/console/files': { files, next: null } satisfies FilesPage,
    '/console/customers': customers(ago),
    '/console/detections/live': page,
    '/console/detections/search': page,
    '/console/detections/one': detectionDetail(ago, detection(ago(0), 0)),
    '/console/history/audit': { entries: auditEntries(ago), next: 'more' } satisfies AuditPage,
    '/console/manual': { topics: [{ name: 'alerts', title: 'every alert', excerpt: '' }] },
    '/console/manual/alerts': { name: 'alerts', title: 'every alert', html: '<h1>Alerts</h1><p>Each.</p>' },
    '/console/operations': { operations: operationForms() },
    '/console/jobs': {
      jobs: [
        { ...job, id: 2, operation: 'ingest replay', state: 'running', text: '431 of 1,200 files' },
        { ...job, id: 1, operation: 'backup', state: 'done', text: backedUp },
      ],
    } satisfies Jobs,
    '/console/trends': trends(ago),
    '/console/trends/keys': keyTrends(ago),
  };
}

/** @returns the time so many minutes ago */
type Ago = (minutes: number) => string;

function trends(ago: Ago): Trends {
  const values = (scale: number) => Array.from({ length: 24 }, (_, hour) => scale * (1 + (hour % 5)));
  const of = { created: values(40), updated: values(7), late_seconds: values(30) };
  return {
    from: ago(24 * 60),
    step_seconds: 3600,
    exports: { newswire: of, imagewire: of },
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

function keyTrends(ago: Ago): KeyTrends {
  const { from, step_seconds, machine } = trends(ago);
  const { behind_seconds, rows_ingested: _, ...counts } = machine;
  const keys = [
    { id: 'k1', name: 'Rights desk', ...counts, lag_seconds: behind_seconds },
    { id: 'k2', name: 'Archive', ...counts, lag_seconds: null },
  ];
  return { from, step_seconds, keys };
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
  return { at: formatMs(nowMs), from: formatMs(fromMs), exports, open };
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
  const window_start = formatMs(startMs);
  const common = {
    export: name,
    window_start,
    window_end: formatMs(startMs + WINDOW_MS),
    letter,
    since: formatMs(startMs + DAY_MS),
  };
  if (letter !== 'f') return { ...common, held: false, reason: null, report: null, actions: [] };
  return {
    ...common,
    held: startMs % (7 * WINDOW_MS) === 0,
    reason: 'the file has rows or lines that do not match the export format',
    report: { errors: [HIGH_SCORE], errors_total: 2 },
    actions: [{ operation: 'window reset', given: { export: name, start: [window_start] } }],
  };
}

function failedFiles({ open }: WindowMap): FileEntry[] {
  return open
    .filter(({ letter }) => letter === 'f')
    .slice(0, FAILED)
    .map(({ export: name, window_start, window_end, since, reason }, index) => ({
      number: FAILED - index,
      file: `${name}.${formatWindowStart(Date.parse(window_start))}.ndjson`,
      outcome: 'failed',
      export: name,
      window_start,
      label: null,
      taken_at: since ?? window_end,
      finished_at: since,
      destination: `failed/${name}.ndjson`,
      sha256: null,
      bytes: 48_211,
      report: {
        rows: 112,
        reason: reason ?? '',
        errors: [{ ...HIGH_SCORE, value: index === 0 ? HOSTILE : 'high' }],
        errors_total: 12,
      },
    }));
}

function windowDetail({ open }: WindowMap, files: readonly FileEntry[]): WindowDetail {
  const one = open.find(({ window_start }) => window_start === files[0]?.window_start);
  if (one === undefined) throw new Error('no window has failed');
  return { ...one, due_at: one.window_end, files: files.slice(0, 1) };
}

function overview(ago: Ago, map: WindowMap, files: readonly FileEntry[]): Overview {
  const count = (name: ExportName, letter: string) => map.exports[name].windows.split(letter).length - 1;
  const exportOf = (name: ExportName) => ({
    enabled: true,
    newest_done: formatMs(Math.floor(Date.parse(ago(10)) / WINDOW_MS) * WINDOW_MS),
    newest_late_seconds: 96,
    windows_done: count(name, 'd'),
    not_read: {
      failed: count(name, 'f'),
      missing: count(name, 'm'),
      abandoned: count(name, 'a'),
      not_arrived: 0,
    },
  });
  const alert = (name: AlertDocument['name'], page_worthy: boolean, detail: string, what_to_do: string) => ({
    ...{ name, page_worthy, detail, what_to_do, since: ago(12) },
  });
  return {
    at: ago(0),
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
      alert('disk full', true, 'the data folder has 0 bytes left', 'Make room. Nothing is lost.'),
      alert('failed windows', false, 'newswire: 90 windows', 'Have the file fixed, and reset the window.'),
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
    database: { ...DATABASE, versions: 14_902_113, unreadable: null },
    copy: {
      to: '/mnt/copy/wirewatch',
      entries_behind: 0,
      behind_since: null,
      contact_at: ago(1),
      failure: null,
    },
    scrub: { at: ago(9 * 60), findings: 0, not_compared: null },
    keys: { active: 3, used_in_last_day: 2, last_used_at: ago(0), behind: 1, unreadable: null },
    followers: [],
    settings: { file: null, problem: null, changed: [], what_to_do: null },
  };
}

function detection(at: string, index: number): DetectionEntry {
  const [name, domain] = PLACES[index % PLACES.length] ?? PLACES[0];
  const score = (index * 37) % 100;
  return {
    id: `t.7001.${1000 + index}.${50_000 + index}`,
    version: 1 + (index % 3),
    event: index % 3 === 0 ? 'created' : 'updated',
    content_type: 'text',
    subscription_id: 7001,
    first_detected_at: at,
    first_detected_estimated: false,
    last_scored_at: at,
    exported_at: at,
    source: { id: `urn:newsml:agency.example:${1000 + index}`, internal_id: 1000 + index, language: 'en' },
    strength: { score, band: ['off', 'low', 'medium', 'high', 'max'][Math.floor(score / 20)] ?? 'max' },
    article: {
      id: 50_000 + index,
      url: index === 0 ? 'javascript:alert(1)' : `https://www.${domain}/2026/11/${index}`,
      domain,
      headline: index === 0 ? HOSTILE : (HEADLINES[index % HEADLINES.length] ?? null),
      publisher: name === null ? null : { id: 40 + index, name },
    },
  };
}

function detectionDetail(ago: Ago, current: DetectionEntry): DetectionDetail {
  const versions = [3, 2, 1].map((version) => ({
    version,
    at: ago((4 - version) * 60),
    detection: { ...current, version, strength: { ...current.strength, score: 20 * version } },
    changed: version === 1 ? [] : ['strength.score'],
  }));
  return { current, versions, next: null };
}

function customers(ago: Ago): Customers {
  const made = { account: 'agency', created_at: ago(400 * 24 * 60) };
  const key = (index: number, name: string, behind: number, more: Partial<KeyEntry>): KeyEntry => {
    const id = `abcdefghij${22 + index}`;
    const seconds_behind = behind * 60;
    return {
      ...made,
      id,
      name,
      status: 'active',
      scopes: ['detections:read'],
      subscriptions: ['7001', '7002:text'],
      allow_addresses: [],
      expires_at: null,
      revoked_at: null,
      last_used_at: ago(behind + 1),
      daily_rows: null,
      rows_today: 10_421 * index,
      refused: [],
      follower: {
        ...{ account: 'agency', key_id: id, name: id, rows_behind: behind * 212 },
        ...{ seconds_behind, minutes_behind: behind, behind: behind > 120 },
      },
      ...more,
    };
  };
  return {
    at: ago(0),
    accounts: [
      {
        id: 'agency',
        name: 'Agency',
        status: 'active',
        created_at: made.created_at,
        suspended_at: null,
        print_metadata: false,
        allowance: null,
        daily_rows: 1_000_000,
        rows_today: 31_263,
        subscriptions: [
          {
            ...made,
            id: 7001,
            name: 'Domestic',
            time_zone: 'Europe/Zurich',
            content_types: ['text', 'image'],
          },
          { ...made, id: 7002, name: 'Overseas', time_zone: 'UTC', content_types: ['text'] },
        ],
        keys: [
          key(0, 'Rights desk, production', 0, {}),
          key(1, 'Rights desk, staging', 134, {
            expires_at: ago(-9 * 24 * 60),
            refused: [{ code: 'rate_limited', count: 31, last_at: ago(60) }],
          }),
          key(2, 'Licensing bureau', 0, { allow_addresses: ['192.0.2.0/24'] }),
        ],
      },
    ],
  };
}

function auditEntries(ago: Ago): AuditedChange[] {
  const entry = (minutes: number, more: Partial<AuditedChange>): AuditedChange => ({
    at: ago(minutes),
    entry: 1000 - minutes,
    kind: 'command',
    command: null,
    actor: 'root',
    as: null,
    sudo_user: null,
    subject: 'key',
    id: 'abcdefghij22',
    change: 'changed',
    members: {},
    ...more,
  });
  const asked = { subject: 'operation', id: null, change: 'asked for' } as const;
  const account = { command: 'account set', subject: 'account', id: 'agency' } as const;
  return [
    entry(3, { kind: 'console', actor: 'kim', members: { revoked_at: { from: null, to: ago(0) } } }),
    entry(40, { ...asked, command: 'window reset', members: { export: { from: null, to: 'newswire' } } }),
    entry(75, { ...account, sudo_user: 'ana', members: { daily_rows: { from: 500_000, to: 1_000_000 } } }),
  ];
}
