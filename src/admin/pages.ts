/** What is served where, for those who run the appliance. */
import { backupTimes } from '../backup/branch.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { alertDocument } from '../health/alerts.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import { manualHtml } from '../manual/html.ts';
import { PARTS, TOPICS, type Topic } from '../manual/topics.ts';
import { openApiDocument } from '../openapi/document.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS } from '../time.ts';
import { VERSION } from '../version.ts';
import { windowsBetween } from '../windows/ledger.ts';
import { readReach } from '../windows/reach.ts';
import { document, html, type Page, STYLE } from './html.ts';
import type { Metrics } from './metrics.ts';
import type { StandingSources } from './standing.ts';
import { type Status, statusPage } from './status-page.ts';

export interface PageSources extends StandingSources {
  readonly metrics: Metrics;
}

export interface Content {
  readonly contentType: string;
  readonly body: string;
}

const HTML = 'text/html; charset=utf-8';
const MANUAL = '/manual/';

/** @returns what gives the content at a path; null where there is none */
export function createPages(sources: PageSources): (path: string) => Promise<Content | null> {
  const { metrics } = sources;
  const pages = new Map<string, () => Content | Promise<Content>>([
    ['/', once(() => page(index()))],
    ['/manual', once(() => page(contents()))],
    ['/status', () => page(statusPage(readStatus(sources)))],
    ['/style.css', () => ({ contentType: 'text/css; charset=utf-8', body: STYLE })],
    ['/openapi.json', once(openApi)],
    ['/metrics', async () => ({ contentType: metrics.contentType, body: await metrics.text() })],
  ]);
  for (const topic of TOPICS)
    pages.set(
      `${MANUAL}${topic.name}`,
      once(() => page(topicPage(topic))),
    );
  return async (path) => (await pages.get(path)?.()) ?? null;
}

/** What does not change is made at its first request: the thread that makes it also answers the API. */
function once(make: () => Content): () => Content {
  let made: Content | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

function page(content: Page): Content {
  return { contentType: HTML, body: document(content) };
}

function openApi(): Content {
  return { contentType: 'application/json', body: `${JSON.stringify(openApiDocument(), null, 2)}\n` };
}

function index(): Page {
  return {
    title: 'Administration',
    body: html`<h1>Wirewatch ${VERSION}</h1>
<dl>
<dt><a href="/status">Status</a></dt><dd>exports, windows of the last day, alerts with what to do, rows a minute</dd>
<dt><a href="/manual">Manual</a></dt><dd>as “wirewatch manual” prints it, for this version</dd>
<dt><a href="/metrics">Metrics</a></dt><dd>for Prometheus; <a href="/manual/monitoring">what each means</a></dd>
<dt><a href="/openapi.json">OpenAPI</a></dt><dd>the API as an OpenAPI 3.1 document</dd>
</dl>
`,
  };
}

function contents(): Page {
  const parts = PARTS.map(({ title, topics }) => {
    const entries = topics.map(
      (one) => html`<dt><a href="${MANUAL}${one.name}">${one.name}</a></dt><dd>${one.title}</dd>\n`,
    );
    return html`<h2>${title}</h2>\n<dl>\n${entries}</dl>\n`;
  });
  return { title: 'Manual', body: html`<h1>Manual</h1>\n${parts}` };
}

function topicPage({ name, markdown }: Topic): Page {
  return { title: name, body: { markup: manualHtml(markdown) } };
}

function readStatus(sources: PageSources): Status {
  const { monitor, enabled, metrics, now } = sources;
  const nowMs = now();
  return {
    nowMs,
    health: monitor.health(),
    alerts: monitor.alerts().map(alertDocument),
    enabled,
    windows: readOrNull(sources, (db) =>
      EXPORT_NAMES.flatMap((name) => windowsBetween(db, name, nowMs - DAY_MS, nowMs)),
    ),
    reach: readOrNull(sources, (db) => ({
      newswire: readReach(db, 'newswire', nowMs),
      imagewire: readReach(db, 'imagewire', nowMs),
    })),
    verified: readVerified(sources),
    backup: readBackup(sources),
    ingested: metrics.recent.minutes('ingested'),
    served: metrics.recent.minutes('served'),
  };
}

function readVerified({ folder }: PageSources): Status['verified'] {
  const record = readScrubRecord(folder);
  if (record === null) return null;
  const findings = record.findings.reduce((sum, { count }) => sum + count, 0);
  return { at: record.at, findings, not_compared: record.not_compared };
}

function readBackup({ backup: { folder, every_minutes } }: PageSources): Status['backup'] {
  try {
    return every_minutes === 0 ? null : backupTimes(folder);
  } catch {
    // The alert "backup overdue" has the cause.
    return null;
  }
}

function readOrNull<Value>(
  { monitor, detections }: PageSources,
  read: (db: Database) => Value,
): Value | null {
  if (monitor.isDamaged()) return null;
  try {
    return read(detections());
  } catch (error) {
    monitor.noteFault(error);
    return null;
  }
}
