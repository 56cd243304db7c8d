/** The read of each path of the console (api.ts). Runs on the console thread. */
import { BoundedMap } from '../../bounded-map.ts';
import { fileDocument, filesPage } from '../../ingest/file-record.ts';
import { MINUTES_KEPT } from '../../limits/request-counts.ts';
import { readUsage } from '../../limits/usage.ts';
import { operationForms } from '../../operations/forms.ts';
import { readStatus } from '../../operations/status.ts';
import { ANY_TEXT, list, readParameters } from '../../query/parameters.ts';
import { text } from '../../query/value-kinds.ts';
import { Refused } from '../../refused.ts';
import { formatMs, MINUTE_MS, SECOND_MS } from '../../time.ts';
import { alertActions } from './alert-actions.ts';
import type { FilesPage, Jobs, Minutes, Operations, Overview } from './api.ts';
import { readCustomers } from './customers.ts';
import { readLive, readOne, readSearch } from './detections.ts';
import { readAudit, readOperations } from './history.ts';
import { readManualTopic, readManualTopics } from './manual.ts';
import type { Read, Sources } from './sources.ts';
import { readWindow, readWindowMap } from './windows.ts';

type Reader = (sources: Sources, asked: Read, nowMs: number) => unknown;

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['operations', (_, { mayAct }): Operations => ({ operations: mayAct ? operationForms() : [] })],
  ['overview', overview],
  ['windows', readWindowMap],
  ['window', readWindow],
  ['files', files],
  ['customers', readCustomers],
  ['detections/live', readLive],
  ['detections/search', readSearch],
  ['detections/one', readOne],
  ['history/audit', readAudit],
  ['history/operations', readOperations],
  ['jobs', ({ jobs }): Jobs => ({ jobs: jobs.list() })],
  ['manual', readManualTopics],
]);
const MANUAL = 'manual/';

/** Views that every console shows: one read serves all of them. */
const SHARED: readonly string[] = ['overview', 'windows', 'customers'];
const SHARED_MS = 2 * SECOND_MS;
const SHARED_MAX = 10;
const shared = new BoundedMap<string, { readonly atMs: number; readonly body: Promise<string> }>(SHARED_MAX);

/** @returns JSON text; @throws Refused */
export function read(sources: Sources, asked: Read, nowMs: number): Promise<string> {
  if (!SHARED.includes(asked.path)) return answer(sources, asked, nowMs);
  const name = JSON.stringify([
    asked.path,
    asked.query,
    asked.mayAct,
    asked.unreadable,
    asked.live.alerts,
    sources.version(),
  ]);
  const found = shared.get(name);
  if (found !== undefined && performance.now() - found.atMs < SHARED_MS) return found.body;
  const body = answer(sources, asked, nowMs);
  shared.set(name, { atMs: performance.now(), body });
  return body;
}

async function answer(sources: Sources, asked: Read, nowMs: number): Promise<string> {
  const reader = READERS.get(asked.path) ?? (asked.path.startsWith(MANUAL) ? readManualTopic : undefined);
  if (reader === undefined) throw new Refused('not_found', `There is no /console/${asked.path}.`);
  const value = await reader(sources, asked, nowMs);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

async function overview(sources: Sources, { query, mayAct }: Read, nowMs: number): Promise<Overview> {
  readParameters(query, {});
  const { config, kind } = sources.settings;
  const { alerts, ...status } = await readStatus({ ...sources, config, kind, nowMs });
  const { paused_since } = status.health;
  return {
    ...status,
    alerts: alerts.map((alert) => ({
      ...alert,
      actions: mayAct ? alertActions(sources, alert, paused_since) : [],
    })),
    minutes: minutesOf(sources, nowMs),
  };
}

/** Each minute of the last day, including the current one. */
function minutesOf({ folder }: Sources, nowMs: number): Minutes {
  const last = Math.floor(nowMs / MINUTE_MS);
  const first = last - MINUTES_KEPT + 1;
  const zeros = (): number[] => Array(MINUTES_KEPT).fill(0);
  const counts = { requests: zeros(), refused: zeros(), rows_served: zeros(), rows_ingested: zeros() };
  for (const of of readUsage(folder.usage)?.minutes ?? []) {
    const at = of.minute - first;
    if (at < 0 || at >= MINUTES_KEPT) continue;
    counts.requests[at] = of.requests;
    counts.refused[at] = of.refused;
    counts.rows_served[at] = of.rows_served;
    counts.rows_ingested[at] = of.rows_ingested;
  }
  return { from: formatMs(first * MINUTE_MS), ...counts };
}

function files(sources: Sources, { query }: Read): FilesPage {
  const asked = readParameters(query, {
    outcome: list(text()),
    export: ANY_TEXT,
    name: ANY_TEXT,
    after: ANY_TEXT,
  });
  const { after } = asked;
  if (after !== null && !/^\d{1,15}$/.test(after))
    throw new Refused('invalid_request', 'after: expected what next was.');
  const page = filesPage(sources.detections(), {
    outcomes: asked.outcome,
    export: asked.export,
    part: asked.name,
    before: after === null ? null : Number(after),
  });
  return { files: page.files.map(fileDocument), next: page.next === null ? null : `${page.next}` };
}
