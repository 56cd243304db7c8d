/** Responses of the console's endpoints for lists: detections, customers, history; with hostile content. */
import type {
  AccountEntry,
  AuditedChange,
  Customers,
  DetectionDetail,
  DetectionEntry,
  KeyEntry,
  Time,
} from '../../src/admin/console/api.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Markup, characters that change the text direction, and 10,000 further characters. */
export const HOSTILE = `<img src=x onerror="document.title='taken'">\u202Egnp.exe\u2066 ${'long '.repeat(2000)}`;
const HEADLINES = [
  'Parliament passes the budget after a night of talks',
  'Storm closes two Alpine passes, trains run late',
  'Central bank leaves its rate unchanged',
  'Harbour city opens its new tidal barrier',
  'Researchers map the sea floor off the northern coast',
];
const PLACES = [
  ['Morning Courier', 'courier.example'],
  ['Lakeside Herald', 'herald.example'],
  [null, 'finance-today.example'],
  ['The Northern Post', 'post.example'],
] as const;

export function iso(ms: number): Time {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

export function detection(nowMs: number, index: number): DetectionEntry {
  const [name, domain] = PLACES[index % PLACES.length] ?? PLACES[0];
  const score = (index * 37) % 100;
  return {
    id: `t.7001.${1000 + index}.${50_000 + index}`,
    version: 1 + (index % 3),
    event: index % 3 === 0 ? 'created' : 'updated',
    content_type: 'text',
    subscription_id: 7001,
    first_detected_at: iso(nowMs - index * 47_000),
    first_detected_estimated: false,
    last_scored_at: iso(nowMs - index * 47_000),
    exported_at: iso(nowMs - index * 47_000),
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

export function detectionDetail(nowMs: number, current: DetectionEntry): DetectionDetail {
  const versions = [3, 2, 1].map((version) => ({
    version,
    at: iso(nowMs - (4 - version) * 3_600_000),
    detection: { ...current, version, strength: { ...current.strength, score: 20 * version } },
    changed: version === 1 ? [] : ['strength.score'],
  }));
  return { current, versions, next: null };
}

function key(nowMs: number, index: number, behind: number): KeyEntry {
  const id = `abcdefghij${22 + index}`;
  return {
    id,
    name: ['Rights desk, production', 'Rights desk, staging', 'Licensing bureau'][index] ?? `key ${index}`,
    account: 'agency',
    status: 'active',
    scopes: ['detections:read'],
    subscriptions: ['7001', '7002:text'],
    allow_addresses: index === 2 ? ['192.0.2.0/24'] : [],
    created_at: iso(nowMs - 40 * DAY_MS),
    expires_at: index === 1 ? iso(nowMs + 9 * DAY_MS) : null,
    revoked_at: null,
    last_used_at: iso(nowMs - (behind + 1) * MINUTE_MS),
    daily_rows: null,
    rows_today: 10_421 * index,
    refused: index === 1 ? [{ code: 'rate_limited', count: 31, last_at: iso(nowMs - 3_600_000) }] : [],
    follower: {
      account: 'agency',
      key_id: id,
      name: id,
      rows_behind: behind * 212,
      seconds_behind: behind * 60,
      minutes_behind: behind,
      behind: behind > 120,
    },
  };
}

export function customers(nowMs: number): Customers {
  const made = { account: 'agency', created_at: iso(nowMs - 400 * DAY_MS) };
  const account: AccountEntry = {
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
    keys: [key(nowMs, 0, 0), key(nowMs, 1, 134), key(nowMs, 2, 0)],
  };
  return { at: iso(nowMs), accounts: [account] };
}

export function auditEntries(nowMs: number): AuditedChange[] {
  const entry = (minutes: number, more: Partial<AuditedChange>): AuditedChange => ({
    at: iso(nowMs - minutes * MINUTE_MS),
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
  return [
    entry(3, {
      kind: 'console',
      actor: 'kim',
      change: 'changed',
      members: { revoked_at: { from: null, to: iso(nowMs) } },
    }),
    entry(40, {
      command: 'window reset',
      subject: 'operation',
      id: null,
      change: 'asked for',
      members: { export: { from: null, to: 'newswire' } },
    }),
    entry(75, {
      sudo_user: 'ana',
      command: 'account set',
      subject: 'account',
      id: 'agency',
      members: { daily_rows: { from: 500_000, to: 1_000_000 } },
    }),
  ];
}
